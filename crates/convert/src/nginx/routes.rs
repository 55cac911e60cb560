//! Routes of servers: one for each location, and one for all other paths.

use std::rc::Rc;

use super::content;
use super::fields;
use super::handler;
use super::location::{Location, MatchExtent, REFUSED_EVERYWHERE, locations};
use super::real_ip;
use super::rewrite::run;
use super::scope::Scope;
use super::server::{Server, named};
use super::variable::{Constants, UNDERSCORES};
use super::work::{Context, RouteContext, State};
use crate::expression::condition::{Atom, Condition, Conjunction, Path};
use crate::expression::decide::{KnownRequests, LimitExceeded};
use crate::expression::pattern::PrefixPattern;
use crate::settings::route::{Response, Route, escaped};
use crate::source::directive::Directive;
use crate::source::guards::Guards;

/// Creates the routes of the servers of one class of addresses; the variables in `known` have the same value in all of
/// its requests.
pub(super) fn serve<'a>(
    work: &mut Context<'a>,
    servers: &[Server<'a>],
    owners: &[usize],
    given: &KnownRequests,
    known: &Constants,
) -> Result<(), LimitExceeded> {
    let default = owners.first().map(|owner| &servers[*owner].scope);
    let mut known = known.clone();
    if default.is_some_and(keeps_underscores) {
        known.push((UNDERSCORES.to_owned(), String::new()));
    }
    for (owner, atom) in named(servers, owners) {
        let server = &servers[owner];
        let unclear = atom.as_ref().and_then(|atom| server.unclear(atom));
        let given = match atom.map(|atom| given.and(&atom)) {
            None => given.clone(),
            Some(Conjunction::Is(given)) => given,
            Some(Conjunction::Never) => continue,
            Some(Conjunction::Inexpressible) => {
                let why = "Onrush cannot combine an expression for the name in Host with one for the port";
                work.notes.left_out(server.directive, why);
                continue;
            }
        };
        match unclear {
            Some(said) => {
                let why = "the response is 421 for each host that it may match (with --open-guards, other servers respond to these hosts)";
                work.notes.left_out(said, why);
                misdirected(work, server, given)?;
            }
            None => one(work, server, given, &known)?,
        }
    }
    Ok(())
}

fn one<'a>(
    work: &mut Context<'a>,
    server: &Server<'a>,
    given: KnownRequests,
    known: &Constants,
) -> Result<(), LimitExceeded> {
    let level = server.directive.inside();
    let comments = [server.origin()];
    if work.unverified.contains(&server.directive.number) {
        let why = "its rule for client certificates differs from that of the default server, and its names are expressions, which Onrush cannot compare with the requested name (SNI)";
        match work.guards {
            Guards::Closed => return unverified(work, server, &given, (comments, why)),
            Guards::Open => work.notes.left_out(server.directive, why),
        }
    }
    let rejects = server.scope.value("ssl_reject_handshake") == "on" && has_tls_alone(server);
    if rejects && work.guards == Guards::Closed {
        return misdirected(work, server, given);
    }
    if let Some(directive) = revocation(server)
        && work.guards == Guards::Closed
    {
        let why = "nginx checks for revoked certificates before the rules of the server; the response is 501 for every client (--open-guards lets all clients in)";
        work.notes.left_out(directive, why);
        let mut route = Route::new(given.condition, Response::status(501));
        route.comments = comments.into();
        return work.push(route);
    }
    let mut constants = constants(server, known, &work.trusted);
    if keeps_underscores(&server.scope) {
        constants.push((UNDERSCORES.to_owned(), String::new()));
    }
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
            for at in 0..found.len() {
                inside(work, at, &state, given, &comments[0])?;
            }
            let root = PrefixPattern {
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

/// Adds a route that responds with 421 to requests for hosts that a name without an equivalent may match.
fn misdirected(
    work: &mut Context<'_>,
    server: &Server<'_>,
    given: KnownRequests,
) -> Result<(), LimitExceeded> {
    let mut route = Route::new(given.condition, Response::status(421));
    route.comments = vec![server.origin()];
    work.push(route)
}

/// Creates the routes of the location with index `at`.
fn inside<'a>(
    work: &mut Context<'a>,
    at: usize,
    state: &State<'a>,
    given: &KnownRequests,
    origin: &str,
) -> Result<(), LimitExceeded> {
    let location = &state.locations[at];
    let given = match given.and(&Atom::Path(location.path.path.clone())) {
        Conjunction::Is(given) => given,
        Conjunction::Never => return Ok(()),
        Conjunction::Inexpressible => return serve_unmatchable(work, location, given, origin),
    };
    if location.asks == MatchExtent::Wider {
        return refused(work, location, &given.condition, origin);
    }
    let state = State {
        scope: location.scope.clone(),
        at,
        captured: Some(location.path.clone()),
        ..state.clone()
    };
    let comments = [origin.to_owned(), location.directive.origin()];
    if let Some(directive) = state.scope.own("internal") {
        return content::internal(work, &state, &given, directive, &comments);
    }
    let Some(limit) = state.scope.own("limit_except") else {
        return entered(work, location.directive, given, state, &comments);
    };
    work.notes.carried(limit);
    let mut methods = limit.arguments().to_vec();
    if methods.iter().any(|method| method == "GET") {
        methods.push("HEAD".to_owned());
    }
    if let Conjunction::Is(given) = given.and(&Atom::Method(methods)) {
        entered(work, location.directive, given, state.clone(), &comments)?;
    }
    // nginx replaces the location by the block before the rewrite rules, which the block does not inherit.
    let state = State {
        scope: state.scope.with(limit.inside()),
        ..state
    };
    content::serve(work, &state, &given, &comments)
}

/// Creates the routes of requests that have entered a location.
fn entered<'a>(
    work: &mut Context<'a>,
    location: &'a Directive,
    given: KnownRequests,
    state: State<'a>,
    comments: &[String],
) -> Result<(), LimitExceeded> {
    run(
        work,
        location.inside(),
        given,
        state,
        comments,
        &mut |work, state, given| content::serve(work, &state, given, comments),
    )
}

/// Handles a server whose rule about client certificates Onrush cannot tie to the requested name (SNI).
fn unverified<'a>(
    work: &mut Context<'a>,
    server: &Server<'a>,
    given: &KnownRequests,
    (comments, why): ([String; 1], &str),
) -> Result<(), LimitExceeded> {
    let why = format!("{why}; the response is 403 (--open-guards lets all clients in)");
    work.notes.left_out(server.directive, why);
    let mut route = Route::new(given.condition.clone(), Response::status(403));
    route.comments = comments.into();
    work.push(route)
}

/// Handles a location that cannot be matched together with the conditions around it: if it refuses requests, all of its
/// paths are refused.
fn serve_unmatchable<'a>(
    work: &mut Context<'a>,
    location: &Location<'a>,
    given: &KnownRequests,
    origin: &str,
) -> Result<(), LimitExceeded> {
    if !location.closes(work.guards) {
        let why = "Onrush cannot combine its path with the conditions around it";
        work.notes.left_out(location.directive, why);
        return Ok(());
    }
    let when = given.condition.with_path(location.path.path.clone());
    work.notes
        .approximated(location.directive, REFUSED_EVERYWHERE);
    refused(work, location, &when, origin)
}

/// Adds a route that refuses all requests of a location.
fn refused<'a>(
    work: &mut Context<'a>,
    location: &Location<'a>,
    when: &Condition,
    origin: &str,
) -> Result<(), LimitExceeded> {
    let mut route = Route::new(when.clone(), Response::status(403));
    route.comments = vec![origin.to_owned(), location.directive.origin()];
    for rule in location.directive.inside() {
        if matches!(rule.name(), "deny" | "return") {
            work.notes.carried(rule);
        }
    }
    work.push(route)
}

/// Whether all listeners of the server use TLS.
fn has_tls_alone(server: &Server<'_>) -> bool {
    let listens = server.scope.all("listen");
    let is_tls = |listen: &&Directive| listen.arguments().iter().any(|option| option == "ssl");
    !listens.is_empty() && listens.iter().all(is_tls)
}

/// The `ssl_ocsp` of a server that verifies client certificates.
fn revocation<'a>(server: &Server<'a>) -> Option<&'a Directive> {
    let verifies = !matches!(server.scope.value("ssl_verify_client"), "" | "off");
    let directive = server.scope.one("ssl_ocsp");
    directive.filter(|directive| verifies && directive.argument(0) != "off")
}

/// Whether a server accepts field names with underscores. nginx applies the setting of an address's default server to
/// fields before Host, and the setting of the named server to those after it, so a server accepts them if either does.
fn keeps_underscores(scope: &Scope<'_>) -> bool {
    scope.value("underscores_in_headers") == "on" || scope.value("ignore_invalid_headers") == "off"
}

/// Variables with the same value in all requests of a server.
fn constants(server: &Server<'_>, known: &Constants, trusted: &[String]) -> Constants {
    let level = server.directive.inside();
    let mut constants = known.clone();
    if server.scope.value("ssl_verify_client") == "on" && has_tls_alone(server) {
        // Clients without a valid certificate send no requests.
        constants.push(("ssl_client_verify".to_owned(), "SUCCESS".to_owned()));
    }
    let said = level.iter().find(|said| said.name() == "server_name");
    let name = said.map_or("", |said| said.argument(0));
    if !name.starts_with('~') {
        let name = name.strip_prefix('.').unwrap_or(name);
        constants.push(("server_name".to_owned(), name.to_ascii_lowercase()));
    }
    real_ip::mark(&server.scope, trusted, &mut constants);
    constants
}

/// Adds nginx's automatic redirects: from the path of a forwarding location without its final slash to the one with it.
fn slashes<'a>(
    work: &mut Context<'a>,
    found: &[Location<'a>],
    state: &State<'a>,
    given: &KnownRequests,
    origin: &str,
) -> Result<(), LimitExceeded> {
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
        let Conjunction::Is(given) = given.and(&Atom::Path(exact)) else {
            continue;
        };
        let to = format!("{}?{{query}}", escaped(path));
        let mut route = Route::new(
            given.condition.clone(),
            Response::Redirect { to, status: 301 },
        );
        route.comments = vec![origin.to_owned(), location.directive.origin()];
        let spot = RouteContext {
            when: &given.condition,
            constants: &state.constants,
        };
        fields::response(work, &location.scope, &spot, &mut route);
        work.push(route)?;
        let how = format!("the redirect of {short} ends with ? if the request has no query");
        work.notes.approximated(directive, how);
    }
    Ok(())
}
