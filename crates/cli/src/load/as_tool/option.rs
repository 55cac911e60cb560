//! The options of another tool as a table, and the reader of command lines that uses it.

use lexopt::Arg;

use super::line::{Line, Printer, Run};

/// Checks a value, given the option's name, and returns it in the form in which the module of the tool reads it.
pub(super) type Check = fn(&str, &str) -> Result<String, String>;

/// What an option does. Notes and refusals are the rest of a sentence that begins with the option's name.
pub(super) enum Action {
    /// Takes no value and is stored with this one.
    Flag(&'static str),
    Value(Check),
    /// Takes a value, on which there may be a note, given the option's name and the checked value.
    NotedValue(Check, fn(&str, &str) -> Option<String>),
    /// Takes no value and has no effect.
    Ignored(&'static str),
    /// Takes a value and has no effect.
    IgnoredValue(Check, &'static str),
    Refused(&'static str),
}

/// Options that do the same, with blanks between them. One that has several names has `|` between these.
pub(super) type Row = (&'static str, Action);

/// A table of options, a row in each line.
macro_rules! table {
    ($($options:literal => $action:expr,)*) => { &[$(($options, $action)),*] };
}
pub(super) use table;

/// How words become options and values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// getopt: a short option's value may be joined to it, and `=` is then part of it.
    Getopt,
    /// getopt_long: the same, and a long option may be cut short as long as it is the only one that begins so. Messages
    /// have the first name of an option.
    GetoptLong,
    /// clap: as getopt. A long name of one letter is the short option.
    Clap,
    /// Go's flags: one dash or two, the value in the next word or after `=`; the first word that is not an option ends
    /// them.
    Go,
}

/// The command line of a tool.
pub(super) struct Syntax {
    /// The tool, as unknown options are refused with it.
    pub(super) tool: &'static str,
    pub(super) grammar: Grammar,
    /// Printed for `-h`.
    pub(super) help: &'static str,
    pub(super) tables: [&'static [Row]; 2],
}

/// What a command line contains.
#[derive(Default)]
pub(super) struct Given {
    /// First names of options, and values, in the order of the command line.
    options: Vec<(&'static str, String)>,
    /// Words that are not options.
    words: Vec<String>,
    /// What was asked for and has no effect.
    pub(super) notes: Vec<String>,
}

impl Syntax {
    /// Reads a command line and makes a run of it with `run`.
    pub(super) fn line(
        &self,
        words: &[String],
        run: impl FnOnce(Given) -> Result<Run, String>,
    ) -> Result<Line, String> {
        let mut given = Given::default();
        match self.grammar {
            Grammar::Go => self.read_go(words, &mut given)?,
            Grammar::Getopt | Grammar::GetoptLong | Grammar::Clap => {
                self.read_getopt(words, &mut given)?;
            }
        }
        match given.has("-h") {
            true => Ok(Line::Help(self.help)),
            false => run(given).map(Line::Run),
        }
    }

    fn read_getopt(&self, words: &[String], given: &mut Given) -> Result<(), String> {
        let mut parser = lexopt::Parser::from_args(words);
        parser.set_short_equals(false);
        while !given.has("-h")
            && let Some(arg) = parser.next().map_err(|error| error.to_string())?
        {
            let name = match arg {
                Arg::Short(letter) => format!("-{letter}"),
                Arg::Long(name) if self.grammar == Grammar::Clap => dashed(name),
                Arg::Long(name) => format!("--{name}"),
                Arg::Value(word) => {
                    given.words.push(word.to_string_lossy().into_owned());
                    continue;
                }
            };
            self.take(&name, given, || {
                let value = parser.value().map_err(|error| error.to_string())?;
                Ok(value.to_string_lossy().into_owned())
            })?;
        }
        Ok(())
    }

    fn read_go(&self, words: &[String], given: &mut Given) -> Result<(), String> {
        let mut words = words.iter();
        while !given.has("-h")
            && let Some(word) = words.next()
        {
            let name = word.strip_prefix("--").or(word.strip_prefix('-'));
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                given.words.push(word.clone());
                given.words.extend(words.cloned());
                break;
            };
            let (name, joined) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (name, None),
            };
            self.take(&dashed(name), given, || {
                let value = joined.or_else(|| words.next().map(String::as_str));
                let value = value.ok_or_else(|| format!("-{name} wants a value"))?;
                Ok(value.to_owned())
            })?;
        }
        Ok(())
    }

    /// Takes one option, whose value `value` reads.
    fn take(
        &self,
        name: &str,
        given: &mut Given,
        value: impl FnOnce() -> Result<String, String>,
    ) -> Result<(), String> {
        let (first, action) = self.find(name)?;
        let shown = match self.grammar {
            Grammar::GetoptLong if name.starts_with("--") => first,
            _ => self.shown(name),
        };
        let value = match action {
            Action::Flag(value) => (*value).to_owned(),
            Action::Value(check)
            | Action::NotedValue(check, _)
            | Action::IgnoredValue(check, _) => check(shown, &value()?)?,
            Action::Ignored(_) => String::new(),
            Action::Refused(why) => return Err(format!("{shown}{why}")),
        };
        if let Action::Ignored(note) | Action::IgnoredValue(_, note) = action {
            given.notes.push(format!("{shown}{note}"));
        }
        if let Action::NotedValue(_, note) = action {
            given.notes.extend(note(shown, &value));
        }
        given.options.push((first, value));
        Ok(())
    }

    /// The first name of an option, and what it does.
    fn find(&self, name: &str) -> Result<(&'static str, &'static Action), String> {
        let rows = self.tables.into_iter().flatten();
        let options =
            rows.flat_map(|(options, action)| options.split(' ').map(move |names| (names, action)));
        let with = |is: &dyn Fn(&str) -> bool| {
            let found = options
                .clone()
                .filter(|(names, _)| names.split('|').any(is));
            found.collect::<Vec<_>>()
        };
        let exact = with(&|known| known == name);
        let is_cut = self.grammar == Grammar::GetoptLong && name.starts_with("--");
        let begun = with(&|known| is_cut && known.starts_with(name));
        match (exact.as_slice(), begun.as_slice()) {
            (&[(names, action)], _) | (_, &[(names, action)]) => {
                let first = names.split('|').next();
                Ok((first.expect("a split has a part"), action))
            }
            (_, []) => Err(format!(
                "{} is not an option of {}",
                self.shown(name),
                self.tool
            )),
            _ => Err(format!(
                "{name} is the beginning of several options of {}",
                self.tool
            )),
        }
    }

    /// The name of an option in messages.
    fn shown<'name>(&self, name: &'name str) -> &'name str {
        match self.grammar {
            Grammar::Go if name.starts_with("--") => &name[1..],
            _ => name,
        }
    }
}

impl Given {
    /// The values of these options, which have a blank between them, in the order of the command line.
    pub(super) fn all(&self, names: &str) -> impl DoubleEndedIterator<Item = &str> {
        let options = self.options.iter();
        let options = options.filter(move |(known, _)| names.split(' ').any(|name| name == *known));
        options.map(|(_, value)| value.as_str())
    }

    /// The last value of these options.
    pub(super) fn last(&self, names: &str) -> Option<&str> {
        self.all(names).next_back()
    }

    pub(super) fn has(&self, names: &str) -> bool {
        self.last(names).is_some()
    }

    /// The last value of an option whose check returns whole numbers.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let number = self.last(name)?.parse();
        Some(number.expect("the check returned a whole number"))
    }

    /// The only word that is not an option.
    pub(super) fn only_word(&self, what: &str, why_not_more: &str) -> Result<&str, String> {
        match &*self.words {
            [] => Err(format!("there is no {what}")),
            [word] => Ok(word),
            [word, more, ..] => Err(format!(
                "{more:?} behind the {what} {word:?}: {why_not_more}"
            )),
        }
    }

    /// A run with our command line, as most tools have it.
    pub(super) fn run(self, native: Vec<String>, printer: Printer) -> Run {
        Run {
            native,
            printer,
            verbose: self.has("-v"),
            is_capped: false,
            stop_on_connect_failure: false,
            notes: self.notes,
        }
    }
}

/// The check of values that may be anything.
pub(super) fn any(_: &str, value: &str) -> Result<String, String> {
    Ok(value.to_owned())
}

/// A bare name with the dashes that it has in tables.
fn dashed(name: &str) -> String {
    match name.len() {
        1 => format!("-{name}"),
        _ => format!("--{name}"),
    }
}
