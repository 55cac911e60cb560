//! The content of a location: files, or a response from a server.

use std::time::Duration;

use super::access::{self, AccessOutcome};
use super::caching::alike;
use super::directory::files;
use super::errors;
use super::fields;
use super::handler::Handler;
use super::log;
use super::proxy;
use super::real_ip;
use super::scope::Scope;
use super::work::{Context, RouteContext, State};
use crate::document::Value;
use crate::expression::condition::Path;
use crate::expression::decide::{KnownRequests, LimitExceeded};
use crate::settings::route::{Response, Route};
use crate::settings::unit::{nginx_size, written_size};
use crate::source::directive::Directive;

/// Status of content that Onrush cannot serve.
const FOREIGN_STATUS: u16 = 501;

/// Creates the route for the content of a location.
pub(super) fn serve<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    given: &KnownRequests,
    comments: &[String],
) -> Result<(), LimitExceeded> {
    let scope = &state.scope;
    // nginx determines the client address again after the rewrite rules.
    let mut constants = state.constants.clone();
    real_ip::mark(scope, &work.trusted, &mut constants);
    let spot = RouteContext {
        when: &given.condition,
        constants: &constants,
    };
    let mut route = Route::new(given.condition.clone(), Response::status(404));
    route.comments = comments.to_vec();
    timeouts(work, scope, &mut route);
    match access::write(work, scope, spot.constants, &mut route) {
        AccessOutcome::Open => respond(work, state, &spot, &mut route),
        AccessOutcome::Refused | AccessOutcome::Closed => {}
    }
    fields::response(work, scope, &spot, &mut route);
    compression(work, scope, &mut route);
    log::write(work, scope, &mut route);
    errors::write(work, state, &mut route);
    let others = only_prefix(&mut route);
    work.push(route)?;
    others.map_or(Ok(()), |others| work.push(others))
}

/// Creates the route for an `internal` location. nginx refuses requests of clients before the rules of the location.
pub(super) fn internal<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    given: &KnownRequests,
    directive: &'a Directive,
    comments: &[String],
) -> Result<(), LimitExceeded> {
    let how = "clients get 404; Onrush has no internal redirects, and a server's response with X-Accel-Redirect becomes 502";
    work.notes.approximated(directive, how);
    let spot = RouteContext {
        when: &given.condition,
        constants: &state.constants,
    };
    let mut route = Route::new(given.condition.clone(), Response::status(404));
    route.comments = comments.to_vec();
    // nginx has not entered the location, so it adds the fields of the server.
    fields::response(work, &state.server, &spot, &mut route);
    work.push(route)
}

/// Sets the response to the content of the location: a server, files, or nothing.
fn respond<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    spot: &RouteContext<'_>,
    route: &mut Route,
) {
    let handler = Handler::of(&state.scope);
    let is_location = state.at < state.locations.len();
    if handler.is_none()
        && let Some(directive) = Handler::unknown(&state.scope).filter(|_| is_location)
    {
        route.response = Response::status(FOREIGN_STATUS);
        let why = format!(
            "the converter does not know it, and it may generate the response; the response is {FOREIGN_STATUS}"
        );
        return work.notes.left_out(directive, why);
    }
    match handler {
        Some(Handler::Forward(module, directive)) => {
            proxy::pass(work, state, spot, module, directive, route);
        }
        Some(Handler::Foreign(directive)) => {
            route.response = Response::status(FOREIGN_STATUS);
            let why = format!("Onrush has no equivalent; the response is {FOREIGN_STATUS}");
            work.notes.left_out(directive, why);
        }
        None => {
            route.response = match state.rewrites {
                Some(rewrite) => rewritten_files(work, state, spot, rewrite),
                None => files(work, state, spot, None),
            };
            if state.scope.own("alias").is_none() && state.rewrites.is_none() {
                // With `root`, the whole path is below the directory.
                route.when = std::mem::take(&mut route.when).without_prefix();
            }
        }
    }
}

/// Timeouts that a route may have of its own.
pub(super) const ROUTE_TIMEOUTS: [&str; 5] = [
    "client_body",
    "client_send",
    "connect",
    "upstream_body",
    "upstream_first_byte",
];

/// Whether a timeout has an effect on the route.
fn has_timeout(route: &Route, key: &str) -> bool {
    match &route.response {
        Response::Forward(_) => true,
        Response::Files(_) | Response::File(_) => key.starts_with("client_"),
        Response::Respond { .. } | Response::Redirect { .. } => false,
    }
}

/// Leaves timeouts that are equal in all routes to `[timeouts]`, and the others to the routes.
pub(super) fn share_timeouts(work: &mut Context<'_>) {
    for key in ROUTE_TIMEOUTS {
        let value = |route: &Route| {
            let found = route.timeouts.iter().find(|(known, _)| *known == key);
            found.map(|(_, time)| *time)
        };
        let mut counted = work.routes.iter().filter(|route| has_timeout(route, key));
        let first = counted.next().and_then(value);
        let is_common = counted.all(|route| value(route) == first);
        for route in &mut work.routes {
            if is_common || !has_timeout(route, key) {
                route.timeouts.retain(|(known, _)| *known != key);
            }
        }
        if !is_common {
            work.timeouts.leave_to_routes(key, &mut work.notes);
        }
    }
}

/// Timeouts of connections, which do not depend on the response.
pub(super) fn connection_timeouts<'a>(work: &mut Context<'a>, scope: &Scope<'a>) {
    for (name, key) in [
        ("client_header_timeout", "client_head"),
        ("keepalive_timeout", "client_idle"),
    ] {
        timeout(work, scope, name, key);
    }
}

fn timeouts<'a>(work: &mut Context<'a>, scope: &Scope<'a>, route: &mut Route) {
    connection_timeouts(work, scope);
    for (name, key) in [
        ("client_body_timeout", "client_body"),
        ("send_timeout", "client_send"),
    ] {
        if let Some(time) = timeout(work, scope, name, key) {
            route.set_timeout(key, time);
        }
    }
}

/// The time of a directive, recorded as the value of `key`.
fn timeout<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    name: &str,
    key: &'static str,
) -> Option<Duration> {
    let directive = scope.one(name)?;
    match crate::settings::unit::nginx_time(directive.argument(0)) {
        Some(time) if name == "keepalive_timeout" && time.is_zero() => {
            let how = "connections are kept open; nginx closes each after one response";
            work.notes.approximated(directive, how);
            None
        }
        Some(time) => {
            work.timeouts.record(key, time, directive);
            Some(time)
        }
        None => {
            let why = "expected a time such as 60s";
            work.notes.left_out(directive, why);
            None
        }
    }
}

/// `gzip` and the other directives of its module.
pub(super) fn compression<'a>(work: &mut Context<'a>, scope: &Scope<'a>, route: &mut Route) {
    let Some(gzip) = scope.one("gzip") else {
        return;
    };
    work.notes.carried(gzip);
    if gzip.argument(0) != "on" {
        return;
    }
    let mut types = vec!["text/html".to_owned()];
    if let Some(directive) = scope.one("gzip_types") {
        work.notes.carried(directive);
        for kind in directive.arguments() {
            let all = ["text/*", "application/*", "image/*", "font/*"];
            match &**kind {
                "*" => types.extend(all.map(str::to_owned)),
                kind if kind.contains('/') => types.extend(alike(kind)),
                _ => work
                    .notes
                    .left_out(directive, "expected media types such as text/css"),
            }
        }
    }
    let mut known = Vec::new();
    types.retain(|kind| {
        let is_new = !known.contains(kind);
        known.push(kind.clone());
        is_new
    });
    let mut size = "20".to_owned();
    if let Some(directive) = scope.one("gzip_min_length") {
        match nginx_size(directive.argument(0)) {
            Some(bytes) => {
                size = written_size(bytes);
                work.notes.carried(directive);
            }
            None => work.notes.left_out(directive, "expected a size such as 1k"),
        }
    }
    for (name, how) in [
        ("gzip_vary", "Vary: Accept-Encoding is sent where necessary"),
        (
            "gzip_proxied",
            "responses to proxies are compressed like all others",
        ),
    ] {
        if let Some(directive) = scope.one(name) {
            work.notes.approximated(directive, how);
        }
    }
    let entries = [
        ("codings", Value::texts(["gzip"])),
        ("types", Value::texts(types)),
        ("size_min", Value::Text(size)),
    ];
    route.put("compress", Value::table(entries));
}

/// Files for a path that a `rewrite … break` has changed: they are in the directory that replaces the route's prefix.
fn rewritten_files<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    spot: &RouteContext<'_>,
    rewrite: &'a Directive,
) -> Response {
    let is_root = state.scope.own("alias").is_none();
    let directory = state.moved.as_ref().and_then(|(from, to)| {
        let Path::Prefix(path) = spot.when.path() else {
            return None;
        };
        let directory = format!("{to}{}", path.strip_prefix(from.as_str())?);
        let is_whole = path.ends_with('/') && directory.ends_with('/');
        (is_root && is_whole && spot.when.path().is_literal()).then_some(directory)
    });
    match directory {
        Some(directory) => files(work, state, spot, Some(&directory)),
        None => {
            let why = format!(
                "Onrush cannot serve files for the rewritten path; the response is {FOREIGN_STATUS}"
            );
            work.notes.left_out(rewrite, why);
            Response::status(FOREIGN_STATUS)
        }
    }
}

/// Limits a route for an `alias` of a file to its exact prefix, because longer paths name no file. Returns a route with
/// 404 for these.
fn only_prefix(route: &mut Route) -> Option<Route> {
    let (Response::File(_), Path::Prefix(prefix)) = (&route.response, route.when.path()) else {
        return None;
    };
    let exact = Path::Exact(prefix.clone());
    let others = Route {
        response: Response::status(404),
        ..route.clone()
    };
    route.when = route.when.with_path(exact);
    Some(others)
}
