//! What a location responds with, when nothing has responded before: files, or a server.

use std::path::Path as FilePath;

use super::access::{self, Entry};
use super::attempt::{LooksFor, try_files};
use super::caching::alike;
use super::errors;
use super::fields;
use super::handler::Handler;
use super::internal;
use super::log;
use super::proxy;
use super::scope::Scope;
use super::work::{Spot, State, Work};
use crate::condition::{Atom, Both, Path};
use crate::decide::{Given, TooMany};
use crate::directive::Directive;
use crate::document::Value;
use crate::route::{Response, Route};
use crate::unit::{nginx_size, written_size};

/// Whoever asks for what Onrush has nothing for gets this status.
const FOREIGN_STATUS: u16 = 501;

/// The route of a location.
///
/// # Errors
/// When there are too many.
pub(super) fn serve<'a>(
    work: &mut Work<'a>,
    state: &State<'a>,
    given: &Given,
    comments: &[String],
) -> Result<(), TooMany> {
    let Some(limit) = state.scope.own("limit_except") else {
        return one(work, state, given, comments);
    };
    work.notes.carried(limit);
    let mut methods = limit.arguments().to_vec();
    if methods.iter().any(|method| method == "GET") {
        methods.push("HEAD".to_owned());
    }
    if let Both::Is(given) = given.and(&Atom::Method(methods)) {
        one(work, state, &given, comments)?;
    }
    // What stands in its block is for the others.
    let state = State {
        scope: state.scope.with(limit.inside()),
        ..state.clone()
    };
    one(work, &state, given, comments)
}

fn one<'a>(
    work: &mut Work<'a>,
    state: &State<'a>,
    given: &Given,
    comments: &[String],
) -> Result<(), TooMany> {
    let scope = &state.scope;
    let spot = Spot {
        when: &given.condition,
        constants: &state.constants,
    };
    let mut route = Route::new(given.condition.clone(), Response::status(404));
    route.comments = comments.to_vec();
    if let Some(directive) = scope.own("internal") {
        let how = "clients get 404 here; requests that come from inside do not exist in Onrush";
        work.notes.approximated(directive, how);
        // nginx has not come to the location then.
        fields::response(work, &state.server, &spot, &mut route);
        return work.push(route);
    }
    timeouts(work, scope, &mut route);
    match access::write(work, scope, spot.constants, &mut route) {
        Entry::Open => respond(work, state, &spot, &mut route),
        Entry::Closed => {}
    }
    fields::response(work, scope, &spot, &mut route);
    compression(work, scope, &mut route);
    log::write(work, scope, &mut route);
    errors::write(work, state, &mut route);
    let others = only_prefix(&mut route);
    work.push(route)?;
    others.map_or(Ok(()), |others| work.push(others))
}

/// Makes the route one that responds with what the location has: a server, files, or nothing.
fn respond<'a>(work: &mut Work<'a>, state: &State<'a>, spot: &Spot<'_>, route: &mut Route) {
    let handler = Handler::of(&state.scope);
    let is_location = state.at < state.locations.len();
    if handler.is_none()
        && let Some(directive) = Handler::unknown(&state.scope).filter(|_| is_location)
    {
        route.response = Response::status(FOREIGN_STATUS);
        let why = format!(
            "the converter does not know it, and it may be what responds here; the response is {FOREIGN_STATUS}"
        );
        return work.notes.left_out(directive, why);
    }
    match handler {
        Some(Handler::Forward(module, directive)) => {
            proxy::pass(work, state, spot, module, directive, route);
        }
        Some(Handler::Foreign(directive)) => {
            route.response = Response::status(FOREIGN_STATUS);
            let why = format!("Onrush has nothing for this; the response is {FOREIGN_STATUS}");
            work.notes.left_out(directive, why);
        }
        None => {
            route.response = match state.rewrites {
                Some(rewrite) => rewritten_files(work, state, spot, rewrite),
                None => files(work, state, spot, None),
            };
            if state.scope.own("alias").is_none() && state.rewrites.is_none() {
                // Beneath a root the whole path is looked for.
                route.when = std::mem::take(&mut route.when).without_prefix();
            }
        }
    }
}

/// Timeouts that a route may have for itself.
pub(super) const ROUTE_TIMEOUTS: [&str; 5] = [
    "client_body",
    "client_send",
    "connect",
    "upstream_body",
    "upstream_first_byte",
];

/// Whether a timeout counts on the route.
fn has_timeout(route: &Route, key: &str) -> bool {
    match &route.response {
        Response::Forward(_) => true,
        Response::Files(_) | Response::File(_) => key.starts_with("client_"),
        Response::Respond { .. } | Response::Redirect { .. } => false,
    }
}

/// Leaves timeouts that routes have in common to `[timeouts]`, and the others to the routes.
pub(super) fn share_timeouts(work: &mut Work<'_>) {
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

fn timeouts<'a>(work: &mut Work<'a>, scope: &Scope<'a>, route: &mut Route) {
    const KEYS: [(&str, &str); 4] = [
        ("client_header_timeout", "client_head"),
        ("client_body_timeout", "client_body"),
        ("keepalive_timeout", "client_idle"),
        ("send_timeout", "client_send"),
    ];
    for (name, key) in KEYS {
        let Some(directive) = scope.one(name) else {
            continue;
        };
        match crate::unit::nginx_time(directive.argument(0)) {
            Some(time) if name == "keepalive_timeout" && time.is_zero() => {
                let how = "connections are kept open; nginx closes each after one response";
                work.notes.approximated(directive, how);
            }
            Some(time) => {
                work.timeouts.say(key, time, directive);
                if ROUTE_TIMEOUTS.contains(&key) {
                    route.wait(key, time);
                }
            }
            None => work
                .notes
                .left_out(directive, "expected a time such as 60s"),
        }
    }
}

/// `gzip` and what goes with it.
pub(super) fn compression<'a>(work: &mut Work<'a>, scope: &Scope<'a>, route: &mut Route) {
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
        (
            "gzip_vary",
            "Vary: Accept-Encoding is said wherever it matters",
        ),
        ("gzip_proxied", "clients behind proxies get what others get"),
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
    work: &mut Work<'a>,
    state: &State<'a>,
    spot: &Spot<'_>,
    rewrite: &'a Directive,
) -> Response {
    let is_root = state.scope.own("alias").is_none();
    let directory = state.moved.as_ref().and_then(|(from, to)| {
        let Path::Prefix(path) = spot.when.path() else {
            return None;
        };
        let directory = format!("{to}{}", path.strip_prefix(from.as_str())?);
        let is_whole = path.ends_with('/') && directory.ends_with('/');
        (is_root && is_whole).then_some(directory)
    });
    match directory {
        Some(directory) => files(work, state, spot, Some(&directory)),
        None => {
            let why = format!(
                "Onrush cannot serve files for this changed path; the response is {FOREIGN_STATUS}"
            );
            work.notes.left_out(rewrite, why);
            Response::status(FOREIGN_STATUS)
        }
    }
}

/// Files of the location's directory, or of its subdirectory `below`.
fn files<'a>(
    work: &mut Work<'a>,
    state: &State<'a>,
    spot: &Spot<'_>,
    below: Option<&str>,
) -> Response {
    let scope = &state.scope;
    let (root, alias) = (scope.one("root"), scope.own("alias"));
    let directory = match alias.or(root) {
        Some(directive) => {
            let text = super::variable::expanded(directive.argument(0), spot.constants);
            if text.contains('$') {
                let why = "a directory has no variables; the response is 404";
                work.notes.left_out(directive, why);
                return Response::status(404);
            }
            work.notes.carried(directive);
            work.path(&text)
        }
        None => work.path("html"),
    };
    let is_relative = alias
        .or(root)
        .is_none_or(|said| !said.argument(0).starts_with('/'));
    if is_relative && work.files.list(FilePath::new(&directory)).is_empty() {
        // nginx starts without the directory as well, and finds nothing there.
        return Response::status(404);
    }
    let directory = match below {
        Some(below) => format!("{}{below}", directory.trim_end_matches('/')),
        None => directory,
    };
    if alias.is_some_and(|alias| is_file(work, alias)) {
        return Response::File(directory);
    }
    if let Path::Exact(_) = spot.when.path()
        && alias.is_some_and(|alias| !alias.argument(0).ends_with('/'))
    {
        return Response::File(directory);
    }
    if let Some(directive) = alias
        && let Err(why) = alias_fits(directive, spot)
    {
        work.notes.left_out(directive, why);
        return Response::status(404);
    }
    let mut keys = vec![("root".to_owned(), Value::Text(directory))];
    let tried = scope.own("try_files").map(|directive| {
        let prefix = match spot.when.path() {
            Path::Prefix(prefix) if alias.is_some() || below.is_some() => prefix,
            _ => "/",
        };
        try_files(work, state, directive, prefix)
    });
    let tried = tried.unwrap_or_default();
    let names = match tried.looks_for {
        LooksFor::FilesAlone => Vec::new(),
        LooksFor::Index => index(work, state, alias.or(root)),
    };
    if names != ["index.html"] {
        keys.push(("index".to_owned(), Value::texts(names)));
    }
    // nginx makes no difference between names that begin with a dot and others.
    keys.push(("hidden".to_owned(), Value::Truth(true)));
    if let Some(directive) = scope.one("gzip_static") {
        work.notes.carried(directive);
        if directive.argument(0) != "off" {
            keys.push(("precompressed".to_owned(), Value::texts(["gzip"])));
        }
    }
    if let Some(directive) = scope.one("autoindex") {
        work.notes.carried(directive);
        if directive.argument(0) == "on" {
            keys.push(("listing".to_owned(), Value::Truth(true)));
            let how = "the page of a directory is Onrush's own";
            work.notes.approximated(directive, how);
            listings(work, scope);
        }
    }
    let fallback = tried.fallback.map(Value::Text);
    keys.extend(fallback.map(|file| ("fallback".to_owned(), file)));
    Response::Files(keys)
}

/// Formats of the pages of directories.
fn listings<'a>(work: &mut Work<'a>, scope: &Scope<'a>) {
    if let Some(format) = scope.one("autoindex_format") {
        match format.argument(0) {
            "html" => work.notes.carried(format),
            "json" => work.notes.approximated(
                format,
                "a directory is JSON for clients whose Accept prefers it",
            ),
            _ => work.notes.left_out(
                format,
                "a directory is HTML, or JSON for clients whose Accept prefers it",
            ),
        }
    }
    for name in ["autoindex_exact_size", "autoindex_localtime"] {
        if let Some(directive) = scope.one(name) {
            let how = "sizes and times are written in Onrush's own way";
            work.notes.approximated(directive, how);
        }
    }
}

/// The names of files that are sent for a directory, without those that nginx would send to another location.
fn index<'a>(
    work: &mut Work<'a>,
    state: &State<'a>,
    directory: Option<&'a Directive>,
) -> Vec<String> {
    let said = state.scope.one("index");
    let default = ["index.html".to_owned()];
    let mut names = Vec::new();
    if let Some(said) = said {
        work.notes.carried(said);
    }
    for name in said.map_or(&default[..], Directive::arguments) {
        let is_name = !name.contains(['/', '$']) && !matches!(name.as_str(), "" | "." | "..");
        let other = internal::stranger_to_index(state, name);
        let why = match other {
            _ if !is_name => "index files have names without slashes and variables".to_owned(),
            None => {
                if let Some(own) = internal::stricter_for_index(state, name) {
                    let how = format!(
                        "what it says is not said of {name} where a directory or try_files leads to it"
                    );
                    work.notes.approximated(own.directive, how);
                }
                names.push(name.clone());
                continue;
            }
            Some(other) => format!(
                "{name} of a directory may be {}'s, which does something else with it: it is not sent",
                other.directive.shown()
            ),
        };
        match (said, directory, other) {
            (Some(directive), _, _) | (None, Some(directive), _) => {
                work.notes.left_out(directive, why);
            }
            (None, None, Some(other)) => work.notes.approximated(other.directive, why),
            (None, None, None) => {}
        }
    }
    names
}

/// Whether an `alias` names a file that is there.
fn is_file(work: &Work<'_>, alias: &Directive) -> bool {
    let name = alias.argument(0);
    let is_plain = !name.contains('$') && !name.ends_with('/');
    is_plain && work.files.read(FilePath::new(&work.path(name))).is_ok()
}

/// The path of a route, which is longer than its prefix, names no file: `alias` of a file is for the prefix alone.
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

/// Whether what is left behind the route's path is what is looked for beneath the directory.
fn alias_fits(directive: &Directive, spot: &Spot<'_>) -> Result<(), &'static str> {
    let Path::Prefix(prefix) = spot.when.path() else {
        return Err("Onrush looks for files by the path behind a prefix; the response is 404");
    };
    let ends = |text: &str| text.ends_with('/');
    match ends(prefix) && !ends(directive.argument(0)) {
        true => Err(
            "the last part of the directory and of the path become one name; the response is 404",
        ),
        false => Ok(()),
    }
}
