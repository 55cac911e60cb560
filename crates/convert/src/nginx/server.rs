//! Servers by their names, and what is in them.

use std::rc::Rc;

use super::content;
use super::fields;
use super::handler;
use super::location::{Asks, Location, REFUSED_EVERYWHERE, locations};
use super::rewrite::run;
use super::scope::Scope;
use super::variable::Constants;
use super::work::{Spot, State, Work};
use crate::condition::{Atom, Both, Condition, Path, Test};
use crate::decide::{Given, TooMany};
use crate::directive::Directive;
use crate::guards::Guards;
use crate::pattern::Simple;
use crate::route::{Response, Route, escaped};

/// A server of `http`.
#[derive(Clone, Debug)]
pub(super) struct Server<'a> {
    pub(super) directive: &'a Directive,
    pub(super) scope: Scope<'a>,
    names: Names,
}

/// Its names, by how nginx looks for them.
#[derive(Clone, Debug, Default)]
struct Names {
    /// Names, and `*.example.com`.
    hosts: Vec<String>,
    /// The beginnings of names such as `www.*`, with their dot.
    beginnings: Vec<String>,
    patterns: Vec<String>,
    /// Whether requests without a `Host` are its own: the name is empty.
    has_hostless: bool,
}

/// How a server is found by a name: the lower, the earlier nginx looks there.
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
        work: &mut Work<'a>,
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

    /// Its names, and `*.example.com`.
    pub(super) fn hosts(&self) -> &[String] {
        &self.names.hosts
    }

    /// Whether it has names of other kinds.
    pub(super) fn has_patterns(&self) -> bool {
        !self.names.beginnings.is_empty() || !self.names.patterns.is_empty()
    }

    /// For comments.
    fn origin(&self) -> String {
        let Names {
            hosts,
            beginnings,
            patterns,
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
    fn add<'a>(&mut self, work: &mut Work<'a>, said: &'a Directive, name: &str) {
        if let Some(pattern) = name.strip_prefix('~') {
            let pattern = match pattern.strip_suffix('$') {
                Some(rest) if !rest.ends_with('\\') => format!("(?i){rest}\\.?(:[0-9]+)?$"),
                _ => format!("(?i){pattern}"),
            };
            match Path::pattern(&pattern) {
                Ok(_) => self.patterns.push(pattern),
                Err(why) => work.notes.left_out(said, why),
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
            work.notes
                .left_out(said, format!("{name:?} is no name of a host"));
        }
    }

    fn hostless(&self) -> Option<(Rank, usize, Atom)> {
        let atom = Atom::Header("Host".to_owned(), Test::Absent);
        self.has_hostless.then_some((Rank::Exact, 0, atom))
    }

    /// What each kind of name asks for.
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
        for pattern in &self.patterns {
            atoms.push((Rank::Pattern, 0, header(pattern.clone())));
        }
        atoms
    }
}

/// The servers of one class of addresses, the default first, in the order in which names are looked for.
fn named(servers: &[Server<'_>], owners: &[usize]) -> Vec<(usize, Option<Atom>)> {
    let mut found: Vec<(Rank, usize, usize, Option<Atom>)> = Vec::new();
    for (position, owner) in owners.iter().enumerate() {
        let server = &servers[*owner];
        let is_default = position == 0;
        if is_default {
            found.push((Rank::Default, 0, *owner, None));
            // It gets its own names anyway, unless another one is looked at before.
            if !is_taken(servers, owners, *owner) {
                continue;
            }
        }
        if !server.names.hosts.is_empty() && !has_rivals(servers, owners, *owner) {
            let hosts = Atom::Host(server.names.hosts.clone());
            found.push((Rank::Exact, 0, *owner, Some(hosts)));
            continue_with_wide(&server.names, *owner, &mut found);
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

/// The names of a server beside its hosts.
fn continue_with_wide(
    names: &Names,
    owner: usize,
    found: &mut Vec<(Rank, usize, usize, Option<Atom>)>,
) {
    let atoms = names.atoms().into_iter();
    let wide = atoms.filter(|(rank, _, _)| *rank > Rank::Below);
    let wide = names.hostless().into_iter().chain(wide);
    found.extend(wide.map(|(rank, length, atom)| (rank, length, owner, Some(atom))));
}

/// Whether other servers have names that those of this one may be among.
fn is_taken(servers: &[Server<'_>], owners: &[usize], own: usize) -> bool {
    let hosts = &servers[own].names.hosts;
    owners.iter().filter(|owner| **owner != own).any(|owner| {
        let names = &servers[*owner].names;
        let mut wide = names.hosts.iter().filter_map(|host| host.strip_prefix('*'));
        !names.beginnings.is_empty()
            || !names.patterns.is_empty()
            || wide.any(|below| hosts.iter().any(|host| host.ends_with(below)))
    })
}

/// Whether other servers have names below one of this server's.
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

/// Makes the routes of the servers of one class of addresses, which has this port alone.
///
/// # Errors
/// When there are too many.
pub(super) fn serve<'a>(
    work: &mut Work<'a>,
    servers: &[Server<'a>],
    owners: &[usize],
    given: &Given,
    port: Option<&str>,
) -> Result<(), TooMany> {
    for (owner, atom) in named(servers, owners) {
        let server = &servers[owner];
        let given = match atom.map(|atom| given.and(&atom)) {
            None => given.clone(),
            Some(Both::Is(given)) => given,
            Some(Both::Never) => continue,
            Some(Both::Inexpressible) => {
                let why =
                    "Onrush cannot ask for the name and the port in a Host by two expressions";
                work.notes.left_out(server.directive, why);
                continue;
            }
        };
        one(work, server, given, port)?;
    }
    Ok(())
}

fn one<'a>(
    work: &mut Work<'a>,
    server: &Server<'a>,
    given: Given,
    port: Option<&str>,
) -> Result<(), TooMany> {
    let level = server.directive.inside();
    let comments = [server.origin()];
    if work.unverified.contains(&server.directive.number) {
        let why = "its rule about certificates of clients differs from that of the default server, and its names are expressions, which Onrush does not compare with the name that a client asks for";
        match work.guards {
            Guards::Closed => return unverified(work, server, &given, (comments, why)),
            Guards::Open => work.notes.left_out(server.directive, why),
        }
    }
    let constants = constants(server, port);
    let found: Rc<[Location<'a>]> =
        locations(&mut work.notes, level, &server.scope, work.guards).into();
    let state = State {
        scope: server.scope.clone(),
        constants,
        server: server.scope.clone(),
        locations: Rc::clone(&found),
        at: found.len(),
        captured: None,
        moved: None,
        rewritten: None,
        rewrites: None,
        undecided: None,
    };
    run(
        work,
        level,
        given,
        state,
        &comments,
        &mut |work, state, given| {
            slashes(work, &found, &state, given, &comments[0])?;
            for (at, location) in found.iter().enumerate() {
                let given = match given.and(&Atom::Path(location.path.path.clone())) {
                    Both::Is(given) => given,
                    Both::Never => continue,
                    Both::Inexpressible => {
                        unasked(work, location, given, &comments[0])?;
                        continue;
                    }
                };
                if location.asks == Asks::Wider {
                    refused(work, location, &given.condition, &comments[0])?;
                    continue;
                }
                let state = State {
                    scope: location.scope.clone(),
                    at,
                    captured: Some(location.path.clone()),
                    ..state.clone()
                };
                let comments = [comments[0].clone(), location.directive.origin()];
                let inside = location.directive.inside();
                run(
                    work,
                    inside,
                    given,
                    state,
                    &comments,
                    &mut |work, state, given| content::serve(work, &state, given, &comments),
                )?;
            }
            let root = Simple {
                path: Path::Prefix("/".to_owned()),
                captured: None,
            };
            match found.iter().any(|location| location.path == root) {
                true => Ok(()),
                false => content::serve(work, &state, given, &comments),
            }
        },
    )
}

/// A server whose rule about certificates of clients counts for no name that a client asks for.
fn unverified<'a>(
    work: &mut Work<'a>,
    server: &Server<'a>,
    given: &Given,
    (comments, why): ([String; 1], &str),
) -> Result<(), TooMany> {
    let why = format!("{why}; the response is 403 (--open-guards lets every client in)");
    work.notes.left_out(server.directive, why);
    let mut route = Route::new(given.condition.clone(), Response::status(403));
    route.comments = comments.into();
    work.push(route)
}

/// A location that cannot be asked for together with the conditions around it: where it refuses, all of its paths are refused.
fn unasked<'a>(
    work: &mut Work<'a>,
    location: &Location<'a>,
    given: &Given,
    origin: &str,
) -> Result<(), TooMany> {
    if !location.closes(work.guards) {
        let why = "Onrush cannot ask for its path together with the conditions around it";
        work.notes.left_out(location.directive, why);
        return Ok(());
    }
    let when = given.condition.with_path(location.path.path.clone());
    work.notes
        .approximated(location.directive, REFUSED_EVERYWHERE);
    refused(work, location, &when, origin)
}

/// A route that refuses all requests of a location.
fn refused<'a>(
    work: &mut Work<'a>,
    location: &Location<'a>,
    when: &Condition,
    origin: &str,
) -> Result<(), TooMany> {
    let mut route = Route::new(when.clone(), Response::status(403));
    route.comments = vec![origin.to_owned(), location.directive.origin()];
    for rule in location.directive.inside() {
        if matches!(rule.name(), "deny" | "return") {
            work.notes.carried(rule);
        }
    }
    work.push(route)
}

/// What is known of all requests of a server.
fn constants(server: &Server<'_>, port: Option<&str>) -> Constants {
    let level = server.directive.inside();
    let mut constants = Vec::new();
    let listens = server.scope.all("listen");
    let is_tls = |listen: &&Directive| listen.arguments().iter().any(|option| option == "ssl");
    if server.scope.value("ssl_verify_client") == "on"
        && !listens.is_empty()
        && listens.iter().all(is_tls)
    {
        // Others come to no request.
        constants.push(("ssl_client_verify".to_owned(), "SUCCESS".to_owned()));
    }
    constants.extend(port.map(|port| ("server_port".to_owned(), port.to_owned())));
    let said = level.iter().find(|said| said.name() == "server_name");
    let name = said.map_or("", |said| said.argument(0));
    if !name.starts_with('~') {
        let name = name.strip_prefix('.').unwrap_or(name);
        constants.push(("server_name".to_owned(), name.to_ascii_lowercase()));
    }
    constants
}

/// Redirects of nginx's own: from the path of a location of servers, without the slash at its end, to the one with it.
fn slashes<'a>(
    work: &mut Work<'a>,
    found: &[Location<'a>],
    state: &State<'a>,
    given: &Given,
    origin: &str,
) -> Result<(), TooMany> {
    for location in found.iter().filter(|location| !location.is_expression()) {
        let (Path::Prefix(path) | Path::Exact(path)) = &location.path.path else {
            continue;
        };
        let Some(short) = path.strip_suffix('/').filter(|short| !short.is_empty()) else {
            continue;
        };
        let exact = Path::Exact(short.to_owned());
        let prefix = Path::Prefix(short.to_owned());
        let is_taken = found.iter().any(|other| {
            let path = &other.path.path;
            !other.is_expression() && (*path == exact || *path == prefix)
        });
        let passes = location.scope.own_of(&handler::PASSES);
        let Some(directive) =
            passes.filter(|_| !is_taken && location.scope.own("internal").is_none())
        else {
            continue;
        };
        let Both::Is(given) = given.and(&Atom::Path(exact)) else {
            continue;
        };
        let to = format!("{}?{{query}}", escaped(path));
        let mut route = Route::new(
            given.condition.clone(),
            Response::Redirect { to, status: 301 },
        );
        route.comments = vec![origin.to_owned(), location.directive.origin()];
        let spot = Spot {
            when: &given.condition,
            constants: &state.constants,
        };
        fields::response(work, &location.scope, &spot, &mut route);
        work.push(route)?;
        let how = format!(
            "in the redirect of {short} a ? stands at the end where the client has sent no query"
        );
        work.notes.approximated(directive, how);
    }
    Ok(())
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
    fn names_are_looked_for_as_nginx_does() {
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
