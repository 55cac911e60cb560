//! Servers and their names.

use super::scope::Scope;
use super::work::Context;
use crate::expression::condition::{Atom, Path, Test};
use crate::expression::dialect::{translate, wider};
use crate::expression::pcre::of_caseless_host;
use crate::source::directive::Directive;
use crate::source::guards::Guards;

#[derive(Clone, Debug)]
pub(super) struct Server<'a> {
    pub(super) directive: &'a Directive,
    pub(super) scope: Scope<'a>,
    names: Names,
}

/// Names of a server, by type.
#[derive(Clone, Debug, Default)]
struct Names {
    /// Exact names, and wildcards such as `*.example.com`.
    hosts: Vec<String>,
    /// Names such as `www.*`, without the asterisk.
    beginnings: Vec<String>,
    patterns: Vec<String>,
    /// For each name without an equivalent, the number of its directive and an expression for all hosts that it may
    /// match. Requests for these hosts are refused.
    unclear: Vec<(usize, String)>,
    /// Whether it has the empty name, for requests without `Host`.
    has_hostless: bool,
}

/// Precedence of a type of name; nginx tries the lower ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Exact,
    Below,
    Beginning,
    Pattern,
    Default,
}

impl<'a> Server<'a> {
    pub(super) fn new(
        work: &mut Context<'a>,
        directive: &'a Directive,
        scope: Scope<'a>,
    ) -> Server<'a> {
        let mut names = Names::default();
        let named = directive.inside().iter();
        for said in named.filter(|said| said.name() == "server_name") {
            work.notes.carried(said);
            for name in said.arguments() {
                names.add(work, said, name);
            }
        }
        work.notes.carried(directive);
        Server {
            directive,
            scope,
            names,
        }
    }

    /// Exact names, and wildcards at the start (`*.example.com`).
    pub(super) fn hosts(&self) -> &[String] {
        &self.names.hosts
    }

    /// Whether it has names of other types: expressions, or wildcards at the end.
    pub(super) fn has_patterns(&self) -> bool {
        !self.names.beginnings.is_empty() || !self.names.patterns.is_empty()
    }

    /// The `server_name` without an equivalent from which this condition was made.
    pub(super) fn unclear(&self, atom: &Atom) -> Option<&'a Directive> {
        let Atom::Header(_, Test::Matches(pattern)) = atom else {
            return None;
        };
        let mut unclear = self.names.unclear.iter();
        let (number, _) = unclear.find(|(_, unclear)| unclear == pattern)?;
        let mut said = self.directive.inside().iter();
        said.find(|said| said.number == *number)
    }

    /// Position and names of the server, for comments.
    pub(super) fn origin(&self) -> String {
        let Names {
            hosts,
            beginnings,
            patterns,
            unclear: _,
            has_hostless: _,
        } = &self.names;
        let beginnings = beginnings.iter().map(|beginning| format!("{beginning}*"));
        let patterns = patterns.iter().map(|pattern| format!("~{pattern}"));
        let names: Vec<String> = hosts
            .iter()
            .cloned()
            .chain(beginnings)
            .chain(patterns)
            .collect();
        let mut origin = format!("{} {}", self.directive.origin(), names.join(" "));
        origin.truncate(origin.trim_end().len());
        let cut = origin.char_indices().nth(2 * crate::limits::SHOWN_MAX);
        if let Some((at, _)) = cut {
            origin.truncate(at);
            origin.push('…');
        }
        origin
    }
}

impl Names {
    fn add<'a>(&mut self, work: &mut Context<'a>, said: &'a Directive, name: &str) {
        if let Some(pattern) = name.strip_prefix('~') {
            let pattern = format!("(?i){pattern}");
            let carried = translate(&pattern).map(|pattern| of_caseless_host(&pattern));
            match carried.and_then(|pattern| Path::pattern(&pattern).map(|_| pattern)) {
                Ok(pattern) => self.patterns.push(pattern),
                Err(why) => {
                    work.notes.left_out(said, why);
                    let wider = wider(&pattern).map(|pattern| of_caseless_host(&pattern));
                    self.close(work, said, wider);
                }
            }
            return;
        }
        let name = name.to_ascii_lowercase();
        if let Some(beginning) = name.strip_suffix(".*") {
            self.beginnings.push(format!("{beginning}."));
        } else if let Some(domain) = name.strip_prefix('.') {
            self.hosts.push(domain.to_owned());
            self.hosts.push(format!("*{name}"));
        } else if onrush_config::value::parse_host(&name).is_ok() && name != "_" {
            self.hosts.push(name);
        } else if name.is_empty() {
            self.has_hostless = true;
        } else if name.contains('.') {
            // Others, such as "_", match no host.
            work.notes.left_out(
                said,
                format!("{name:?} is not a host name that Onrush supports"),
            );
            let pattern = of_caseless_host(&format!("(?i)^{}$", regex::escape(&name)));
            self.close(work, said, Some(pattern));
        }
    }

    /// Refuses requests for all hosts that a name without an equivalent may match. Otherwise the default server, which
    /// may have no access rules, would respond to them.
    fn close<'a>(&mut self, work: &mut Context<'a>, said: &'a Directive, wider: Option<String>) {
        if work.guards == Guards::Closed {
            let wider = wider.filter(|pattern| Path::pattern(pattern).is_ok());
            let pattern = wider.unwrap_or_else(|| "^".to_owned());
            self.unclear.push((said.number, pattern));
        }
    }

    fn hostless(&self) -> Option<(Rank, usize, Atom)> {
        let atom = Atom::Header("Host".to_owned(), Test::Absent);
        self.has_hostless.then_some((Rank::Exact, 0, atom))
    }

    /// The condition for each type of name.
    fn atoms(&self) -> Vec<(Rank, usize, Atom)> {
        let (below, exact): (Vec<String>, Vec<String>) = self
            .hosts
            .iter()
            .cloned()
            .partition(|host| host.starts_with('*'));
        let mut atoms = Vec::new();
        atoms.extend(self.hostless());
        if !exact.is_empty() {
            atoms.push((Rank::Exact, 0, Atom::Host(exact)));
        }
        for host in below {
            atoms.push((Rank::Below, host.len(), Atom::Host(vec![host])));
        }
        let header = |pattern: String| Atom::Header("Host".to_owned(), Test::Matches(pattern));
        for beginning in &self.beginnings {
            let pattern = format!("(?i)^{}", regex::escape(beginning));
            atoms.push((Rank::Beginning, beginning.len(), header(pattern)));
        }
        let unclear = self.unclear.iter().map(|(_, pattern)| pattern);
        for pattern in self.patterns.iter().chain(unclear) {
            atoms.push((Rank::Pattern, 0, header(pattern.clone())));
        }
        atoms
    }
}

/// The servers of one class of addresses with their conditions, in order of precedence.
pub(super) fn named(servers: &[Server<'_>], owners: &[usize]) -> Vec<(usize, Option<Atom>)> {
    let mut found: Vec<(Rank, usize, usize, Option<Atom>)> = Vec::new();
    for (position, owner) in owners.iter().enumerate() {
        let server = &servers[*owner];
        let is_default = position == 0;
        if is_default {
            found.push((Rank::Default, 0, *owner, None));
            // Without other candidates the default server gets its own names anyway.
            if !is_taken(servers, owners, *owner) {
                continue;
            }
        }
        if !server.names.hosts.is_empty() && !has_rivals(servers, owners, *owner) {
            let hosts = Atom::Host(server.names.hosts.clone());
            found.push((Rank::Exact, 0, *owner, Some(hosts)));
            add_other_names(&server.names, *owner, &mut found);
            continue;
        }
        let atoms = server.names.atoms().into_iter();
        found.extend(atoms.map(|(rank, length, atom)| (rank, length, *owner, Some(atom))));
    }
    found.sort_by_key(|(rank, length, _, _)| (*rank, std::cmp::Reverse(*length)));
    found
        .into_iter()
        .map(|(_, _, owner, atom)| (owner, atom))
        .collect()
}

/// Adds the names of a server other than exact names and wildcards at the start.
fn add_other_names(
    names: &Names,
    owner: usize,
    found: &mut Vec<(Rank, usize, usize, Option<Atom>)>,
) {
    let atoms = names.atoms().into_iter();
    let wide = atoms.filter(|(rank, _, _)| *rank > Rank::Below);
    let wide = names.hostless().into_iter().chain(wide);
    found.extend(wide.map(|(rank, length, atom)| (rank, length, owner, Some(atom))));
}

/// Whether names of other servers may match hosts of this one.
fn is_taken(servers: &[Server<'_>], owners: &[usize], own: usize) -> bool {
    let hosts = &servers[own].names.hosts;
    owners.iter().filter(|owner| **owner != own).any(|owner| {
        let names = &servers[*owner].names;
        let mut wide = names.hosts.iter().filter_map(|host| host.strip_prefix('*'));
        !names.beginnings.is_empty()
            || !names.patterns.is_empty()
            || !names.unclear.is_empty()
            || wide.any(|below| hosts.iter().any(|host| host.ends_with(below)))
    })
}

/// Whether other servers have names that match a wildcard of this one.
fn has_rivals(servers: &[Server<'_>], owners: &[usize], own: usize) -> bool {
    let wide: Vec<&String> = servers[own]
        .names
        .hosts
        .iter()
        .filter(|host| host.starts_with('*'))
        .collect();
    owners.iter().filter(|owner| **owner != own).any(|owner| {
        let mut hosts = servers[*owner].names.hosts.iter();
        hosts.any(|host| wide.iter().any(|wide| host.ends_with(&wide[1..])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::tests::work_of;

    fn order(text: &str) -> Vec<String> {
        work_of(text, |work, level| {
            let servers: Vec<Server<'_>> = level
                .iter()
                .map(|directive| Server::new(work, directive, Scope::default()))
                .collect();
            let owners: Vec<usize> = (0..servers.len()).collect();
            let found = named(&servers, &owners);
            found
                .iter()
                .map(|(owner, atom)| format!("{owner} {atom:?}"))
                .collect()
        })
    }

    #[test]
    fn server_names_have_nginx_precedence() {
        assert_eq!(
            order("server { server_name a.org; } server { server_name b.org *.c.org; }"),
            ["1 Some(Host([\"b.org\", \"*.c.org\"]))", "0 None"]
        );
        let text = "server { server_name x.org; } server { server_name *.org; }
            server { server_name *.a.org w.*; } server { server_name ~^r; } server { server_name b.org; }";
        assert_eq!(
            order(text),
            [
                "0 Some(Host([\"x.org\"]))",
                "2 Some(Host([\"*.a.org\"]))",
                "4 Some(Host([\"b.org\"]))",
                "1 Some(Host([\"*.org\"]))",
                "2 Some(Header(\"Host\", Matches(\"(?i)^w\\\\.\")))",
                "3 Some(Header(\"Host\", Matches(\"(?i)^r\")))",
                "0 None",
            ]
        );
    }
}
