//! Options of another tool as a table, and the parser of command lines that uses it.

use lexopt::Arg;

use super::line::{Line, Printer, Run};

/// Checks the value of the option with this name and returns it in the form that the tool's module expects.
pub(super) type Check = fn(&str, &str) -> Result<String, String>;

/// What an option does. A note or refusal is the rest of a sentence that begins with the option's name.
pub(super) enum Action {
    /// Takes no value; this value is stored.
    Flag(&'static str),
    Value(Check),
    /// Takes a value; the function returns a note on the option's name and its checked value.
    NotedValue(Check, fn(&str, &str) -> Option<String>),
    /// Takes no value and has no effect.
    Ignored(&'static str),
    /// Takes a value and has no effect.
    IgnoredValue(Check, &'static str),
    Refused(&'static str),
}

/// Options with the same action, separated by spaces. `|` separates the names of one option.
pub(super) type Row = (&'static str, Action);

/// A table of options, one row per line.
macro_rules! table {
    ($($options:literal => $action:expr,)*) => { &[$(($options, $action)),*] };
}
pub(super) use table;

/// Syntax of options and values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// getopt: a value may be joined to a short option, and a `=` is then part of the value.
    Getopt,
    /// getopt_long: like getopt, and a long option may be abbreviated to a unique prefix. Messages use the first name
    /// of an option.
    GetoptLong,
    /// clap: like getopt. A long name of one letter is the short option.
    Clap,
    /// Go's flag package: one dash or two, the value in the next word or after `=`. The first word that is not an
    /// option ends the options.
    Go,
}

/// The command line of a tool.
pub(super) struct Syntax {
    /// The tool's name in messages about unknown options.
    pub(super) tool: &'static str,
    pub(super) grammar: Grammar,
    /// Printed for `-h`.
    pub(super) help: &'static str,
    pub(super) tables: [&'static [Row]; 2],
}

/// A parsed command line.
#[derive(Default)]
pub(super) struct ParsedOptions {
    /// First names of options with their values, in the order of the command line.
    options: Vec<(&'static str, String)>,
    /// Words that are not options.
    words: Vec<String>,
    /// Notes on options that have no effect.
    pub(super) notes: Vec<String>,
}

impl Syntax {
    /// Parses a command line; `run` turns the options into a run.
    pub(super) fn line(
        &self,
        words: &[String],
        run: impl FnOnce(ParsedOptions) -> Result<Run, String>,
    ) -> Result<Line, String> {
        let mut given = ParsedOptions::default();
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

    fn read_getopt(&self, words: &[String], given: &mut ParsedOptions) -> Result<(), String> {
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

    fn read_go(&self, words: &[String], given: &mut ParsedOptions) -> Result<(), String> {
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
                let value = value.ok_or_else(|| format!("-{name} needs a value"))?;
                Ok(value.to_owned())
            })?;
        }
        Ok(())
    }

    /// Stores one option. `value` reads its value.
    fn take(
        &self,
        name: &str,
        given: &mut ParsedOptions,
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

    /// The first name of an option and its action.
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
                "{name} is ambiguous: several options of {} begin with it",
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

impl ParsedOptions {
    /// Values of these options, separated by spaces, in the order of the command line.
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

    /// The last value of an option whose check returns integers.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let number = self.last(name)?.parse();
        Some(number.expect("the check returned a whole number"))
    }

    /// The only word that is not an option.
    pub(super) fn only_argument(&self, what: &str, why_not_more: &str) -> Result<&str, String> {
        match &*self.words {
            [] => Err(format!("no {what} given")),
            [word] => Ok(word),
            [word, more, ..] => Err(format!(
                "{more:?} after the {what} {word:?}: {why_not_more}"
            )),
        }
    }

    /// A run with this native command line and the usual settings.
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

/// Accepts any value.
pub(super) fn any(_: &str, value: &str) -> Result<String, String> {
    Ok(value.to_owned())
}

/// A bare name with the dashes that it has in the tables.
fn dashed(name: &str) -> String {
    match name.len() {
        1 => format!("-{name}"),
        _ => format!("--{name}"),
    }
}
