//! `[[route]]`: conditions, processing steps, and the action.

use toml::Spanned;
use toml::de::DeValue;

use super::condition::Listeners;
use super::cors::read_cors;
use super::defaults::Defaults;
use super::error_pages::read_error_pages;
use super::group::Groups;
use super::kinds::REQUEST_BODY_MAX;
use super::rewrite::read_rewrites;
use super::timeouts::read_timeouts_of_route;
use super::unreachable::ListenerSchemes;
use super::{
    access, bypassed_routes, cache_control, compress, condition, fields, response, tracing,
    unreachable,
};
use crate::diagnostic::{Diagnostics, Span};
use crate::limits;
use crate::plan::{Action, Compress, Edits, PathEdit, PathMatch, Route, RouteMatch};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{is_false, is_true};
use crate::value::{self, Invalid};

const KEYS: Keys = Keys {
    known: &[
        "host",
        "path",
        "method",
        "headers",
        "query",
        "from",
        "scheme",
        "listener",
        "not",
        "allow",
        "deny",
        "rate_limit",
        "basic_auth",
        "request_body_max",
        "error_pages",
        "timeouts",
        "request_headers",
        "response_headers",
        "upstream_headers",
        "strip_prefix",
        "replace_prefix",
        "rewrite",
        "cors",
        "cache_control",
        "mirror",
        "compress",
        "log",
        "tracing",
        "respond",
        "redirect",
        "files",
        "synthetic",
        "forward",
    ],
    of_other_versions: &[("cache", "is not supported yet in this version")],
};

const FORWARD_ONLY: [&str; 6] = [
    "request_headers",
    "upstream_headers",
    "strip_prefix",
    "replace_prefix",
    "rewrite",
    "mirror",
];

pub(super) fn read_routes(
    file: &Section<'_, '_>,
    defaults: &Defaults,
    (listeners, spoken): (Listeners<'_>, Option<&ListenerSchemes>),
    groups: &mut Groups,
    findings: &mut Diagnostics<'_>,
) -> Vec<Route> {
    let is_empty = |key| {
        file.value(key).is_some_and(|value| {
            value
                .get_ref()
                .as_array()
                .is_some_and(|list| list.is_empty())
        })
    };
    let has_none = !file.is_present_or_misspelt("route") || is_empty("route");
    if listeners.have_no_http() {
        if !has_none {
            let message = "no [[listen]] has protocol \"http\", so no client can reach a [[route]]: add such a [[listen]], or remove the [[route]]";
            findings.error(file.place("route"), message);
        }
    } else if has_none && !(listeners.are_unknown() && names_protocols(file)) {
        findings.error(
            0..0,
            "there is no [[route]]: expected at least one, which defines the responses",
        );
    }
    let mut routes: Vec<(Route, Span)> = Vec::new();
    for (table, span) in file.tables("route", limits::ROUTES_MAX, findings) {
        let errors_before = findings.errors();
        let section = Section::open("[[route]]", span.clone(), table, KEYS, findings);
        tracing::warn_of_idle(&section, file, findings);
        let route = read_route(&section, (defaults, listeners), groups, findings);
        // A route with an invalid condition would cover more or less than was meant.
        let is_whole = findings.errors() == errors_before;
        routes.extend(route.filter(|_| is_whole).map(|route| (route, span)));
    }
    unreachable::warn_of_unreachable(&routes, findings);
    unreachable::warn_of_unserved_schemes(&routes, spoken, findings);
    bypassed_routes::warn_of_edits(&routes, findings);
    bypassed_routes::warn_of_encoded_slashes(&routes, findings);
    let mut routes: Vec<Route> = routes.into_iter().map(|(route, _)| route).collect();
    // Routes live as long as the configuration: release spare capacity.
    routes.shrink_to_fit();
    routes
}

/// Whether a listener has the key `protocol`. An invalid one may be meant for a load target, which needs no routes.
fn names_protocols(file: &Section<'_, '_>) -> bool {
    let names = |listen: &Spanned<DeValue<'_>>| listen.get_ref().get("protocol").is_some();
    file.value("listen")
        .and_then(|listen| listen.get_ref().as_array())
        .is_some_and(|all| all.iter().any(names))
}

fn read_route(
    section: &Section<'_, '_>,
    (defaults, listeners): (&Defaults, Listeners<'_>),
    groups: &mut Groups,
    findings: &mut Diagnostics<'_>,
) -> Option<Route> {
    let when = condition::read_when(section, listeners, findings);
    let access = access::read_access(section, findings);
    let request_body_max = section.read_number("request_body_max", REQUEST_BODY_MAX, findings);
    let whole = &defaults.error_pages;
    let error_pages = read_error_pages(section, Some(whole), findings);
    let timeouts = read_timeouts_of_route(section, &defaults.timeouts, findings);
    let edits = fields::read_edits(section, &defaults.upstream_headers, findings);
    let cors = read_cors(section, &when, &edits, findings);
    let path_edit = read_path_edit(section, &when, findings);
    let compress = compress::read_of_route(section, defaults.compress.as_ref(), findings);
    warn_of_two_codings(section, &edits, compress.as_ref(), findings);
    let log = section.truth("log", findings).unwrap_or(true);
    let tracing = tracing::read_of_route(section, findings);
    let action = response::read_action(section, groups, findings)?;
    let of_route = (&edits, &action);
    let cache_control =
        cache_control::read_of_route(section, &defaults.cache_control, of_route, findings);
    if !matches!(action, Action::Forward { .. }) {
        let reason = "on a route that does not forward";
        section.warn_ignored(&FORWARD_ONLY, reason, findings);
    }
    Some(Route {
        when,
        access,
        request_body_max: request_body_max.unwrap_or(defaults.request_body_max),
        error_pages: error_pages.unwrap_or_else(|| whole.clone()),
        timeouts,
        edits,
        cors,
        cache_control,
        path_edit,
        compress,
        log,
        tracing,
        action,
    })
}

/// Warns of a route that sets Content-Encoding and compresses: responses would be encoded twice (RFC 9110, section
/// 8.4).
fn warn_of_two_codings(
    route: &Section<'_, '_>,
    edits: &Edits,
    compress: Option<&Compress>,
    findings: &mut Diagnostics<'_>,
) {
    let mut written = edits.response.set.iter().chain(&edits.response.add);
    let says_coding = written.any(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    if says_coding && compress.is_some() && route.has("compress") {
        let message = format!(
            "compress has no effect on this route: its response_headers in line {} set Content-Encoding, and the response would have two; remove one of them",
            findings.line_of(&route.place("response_headers")),
        );
        findings.warning(route.place("compress"), message);
    }
}

const PREFIX: Kind<String> = Kind {
    expected: "a path such as \"/api\"",
    parse: |text| {
        let is_bad = |letter: char| letter.is_control() || matches!(letter, '?' | '#' | ' ');
        if !text.starts_with('/') || text.starts_with("//") || text.contains(is_bad) {
            return Err(Invalid::new(format!(
                "{text:?} is not the beginning of a path: expected one such as \"/api\""
            )));
        }
        value::refuse_dot_segments(text)?;
        Ok(text.to_owned())
    },
};

fn read_path_edit(
    route: &Section<'_, '_>,
    when: &RouteMatch,
    findings: &mut Diagnostics<'_>,
) -> PathEdit {
    const KEYS: [&str; 2] = ["strip_prefix", "replace_prefix"];
    if let Some(rewrites) = read_rewrites(route, findings) {
        let reason = "cannot be used with rewrite: expected one of them";
        route.report_conflict(&KEYS, reason, findings);
        return PathEdit::Rewrite(rewrites);
    }
    let stripped = route.value(KEYS[0]).filter(|value| !is_false(value));
    if stripped.is_none() && !route.has(KEYS[1]) {
        return PathEdit::Keep;
    }
    let strip = match stripped {
        Some(value) if !is_true(value) => route.read(KEYS[0], STRIPPED, findings),
        _ => None,
    };
    let replacement = route.read(KEYS[1], PREFIX, findings);
    let matched = match &when.path {
        PathMatch::Prefix(matched) | PathMatch::Exact(matched) => matched,
        PathMatch::Any if route.has("path") => return PathEdit::Keep, // It was wrong.
        PathMatch::Any | PathMatch::Regex(_) => {
            let reason = "needs a route whose path is a prefix or exact, such as path = \"/\"";
            route.report_conflict(&KEYS, reason, findings);
            return PathEdit::Keep;
        }
    };
    let removed = strip.as_deref().unwrap_or(matched);
    let Some(rest) = matched.strip_prefix(removed) else {
        let message = format!(
            "strip_prefix {removed:?} is not the beginning of the route's path {matched:?}"
        );
        findings.error(route.place("strip_prefix"), message);
        return PathEdit::Keep;
    };
    // Avoids a double or missing slash where the replacement meets the rest.
    let mut path = replacement.unwrap_or_else(|| "/".to_owned());
    if removed.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    let is_double = path.ends_with('/') && rest.starts_with('/');
    path.push_str(if is_double { &rest[1..] } else { rest });
    PathEdit::ReplacePrefix(path)
}

const STRIPPED: Kind<String> = Kind {
    expected: "true to strip the path of the route, or the beginning of it such as \"/api\"",
    parse: PREFIX.parse,
};
