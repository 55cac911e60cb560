//! Frontends and backends, including the lines that they inherit from `defaults`.

use crate::source::directive::Directive;

/// Role of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Frontend,
    Backend,
    Both,
}

/// A `frontend`, `backend` or `listen` section.
#[derive(Clone, Debug)]
pub(super) struct Proxy<'a> {
    pub(super) kind: Kind,
    pub(super) section: &'a Directive,
    /// Lines inherited from `defaults`, then its own.
    pub(super) lines: Vec<&'a Directive>,
}

/// All proxies of a configuration, in order.
pub(super) fn proxies(sections: &[Directive]) -> Vec<Proxy<'_>> {
    let mut defaults: Option<usize> = None;
    let mut proxies = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        let kind = match section.name() {
            "frontend" => Kind::Frontend,
            "backend" => Kind::Backend,
            "listen" => Kind::Both,
            "defaults" => {
                defaults = Some(at);
                continue;
            }
            _ => continue,
        };
        let defaults = match named_defaults(sections, section) {
            Some(at) => Some(at),
            None => defaults,
        };
        let inherited = defaults.map_or_else(Vec::new, |at| inherited(sections, at));
        let is_inherited = |line: &&Directive| !matches!(line.name(), "server" | "bind" | "acl");
        let lines = inherited.into_iter().filter(is_inherited);
        proxies.push(Proxy {
            kind,
            section,
            lines: lines.chain(section.inside()).collect(),
        });
    }
    proxies
}

/// Index of the `defaults` section that a section names with `from`.
fn named_defaults(sections: &[Directive], section: &Directive) -> Option<usize> {
    let from = section.words.iter().position(|word| word == "from")?;
    let name = section.words.get(from + 1)?;
    let mut sections = sections.iter();
    sections.position(|section| section.name() == "defaults" && section.argument(0) == name)
}

/// All lines of a `defaults` section. The lines of the section named after `from` are first; it must be earlier in the
/// file.
fn inherited(sections: &[Directive], at: usize) -> Vec<&Directive> {
    let mut chain = vec![&sections[at]];
    let mut end = at;
    while let Some(at) = named_defaults(&sections[..end], &sections[end]) {
        chain.push(&sections[at]);
        end = at;
    }
    let chain = chain.into_iter().rev();
    chain.flat_map(|section| section.inside()).collect()
}

impl<'a> Proxy<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.section.argument(0)
    }

    /// All lines that begin with these words.
    pub(super) fn all<'p>(&'p self, words: &'p [&str]) -> impl Iterator<Item = &'a Directive> + 'p {
        let begins = move |line: &&&'a Directive| begins(line, words);
        self.lines.iter().filter(begins).copied()
    }

    /// The last line that begins with these words; it takes precedence.
    pub(super) fn last(&self, words: &[&str]) -> Option<&'a Directive> {
        self.lines
            .iter()
            .rev()
            .find(|line| begins(line, words))
            .copied()
    }

    /// The line that turns an option on, unless a later `no option` turns it off.
    pub(super) fn option(&self, name: &str) -> Option<&'a Directive> {
        self.switch(&["option", name])
    }

    /// The last line that begins with these words, unless a later `no` line turns it off.
    pub(super) fn switch(&self, on: &[&str]) -> Option<&'a Directive> {
        let off = [&["no"], on].concat();
        let said = self.lines.iter().rev();
        let mut said = said.filter(|line| begins(line, on) || begins(line, &off));
        said.next().filter(|line| begins(line, on)).copied()
    }

    /// Whether the proxy has `mode http`. HAProxy's default is TCP.
    pub(super) fn is_http(&self) -> bool {
        self.last(&["mode"])
            .is_some_and(|mode| mode.argument(0) == "http")
    }
}

fn begins(line: &Directive, words: &[&str]) -> bool {
    line.words.len() >= words.len()
        && line
            .words
            .iter()
            .zip(words)
            .all(|(one, other)| one == other)
}

/// The words of a line from `begin` on, up to its condition.
pub(super) fn words(line: &Directive, begin: usize) -> Vec<&str> {
    let words = line.words.iter().skip(begin).map(String::as_str);
    words
        .take_while(|word| *word != "if" && *word != "unless")
        .collect()
}
