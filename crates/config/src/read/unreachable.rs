//! Warnings about unreachable routes.

use crate::diagnostic::{Diagnostics, Span};
use crate::limits;
use crate::plan::{Host, Route, RouteMatch, Scheme, ValueMatch};

/// Warns of every route, and of every host of a route, whose requests all match earlier routes. Routes that cover a
/// later one only together are noticed if each of them covers some of its hosts.
pub(super) fn warn_of_unreachable(routes: &[(Route, Span)], findings: &mut Diagnostics<'_>) {
    for (at, (later, span)) in routes.iter().enumerate() {
        let mut not = later.when.not.iter();
        if not.any(|not| covers(not, &later.when)) {
            findings.warning(
                span.clone(),
                "this [[route]] is never reached: its not matches every request that the route would match",
            );
            continue;
        }
        let earlier = &routes[..at];
        if let Some(line) = covered_in(earlier, &later.when, findings) {
            findings.warning(
                span.clone(),
                format!("this [[route]] is never reached: the one in line {line} matches all of its requests"),
            );
            continue;
        }
        warn_of_unreachable_hosts(earlier, (later, span), findings);
    }
}

/// Line of the first route that covers `when`.
fn covered_in(
    earlier: &[(Route, Span)],
    when: &RouteMatch,
    findings: &Diagnostics<'_>,
) -> Option<String> {
    let mut earlier = earlier.iter();
    let by = earlier.find(|(earlier, _)| covers(&earlier.when, when));
    by.map(|(_, by)| findings.line_of(by))
}

fn warn_of_unreachable_hosts(
    earlier: &[(Route, Span)],
    (later, span): (&Route, &Span),
    findings: &mut Diagnostics<'_>,
) {
    let hosts = &later.when.hosts;
    if !(2..=limits::HOSTS_COMPARED_MAX).contains(&hosts.len()) {
        return;
    }
    let line_of = |host: &Host| {
        let hosts = vec![host.clone()];
        let when = RouteMatch {
            hosts,
            ..later.when.clone()
        };
        covered_in(earlier, &when, findings)
    };
    let lines: Vec<Option<String>> = hosts.iter().map(line_of).collect();
    let all: Option<Vec<String>> = lines.iter().cloned().collect();
    if let Some(all) = all {
        let all = all.join(", ");
        let message = format!(
            "this [[route]] is never reached: the ones in lines {all} match all of its requests"
        );
        findings.warning(span.clone(), message);
        return;
    }
    for (host, line) in hosts.iter().zip(lines) {
        let Some(line) = line else { continue };
        let message = format!(
            "this [[route]] is never reached with host \"{host}\": the one in line {line} matches all of its requests"
        );
        findings.warning(span.clone(), message);
    }
}

/// Schemes by which clients can reach each listener.
pub(super) type ListenerSchemes = Vec<(String, &'static [Scheme])>;

/// Warns of every route for a scheme that none of its listeners has. `spoken` is `None` if the schemes are not known.
pub(super) fn warn_of_unserved_schemes(
    routes: &[(Route, Span)],
    spoken: Option<&ListenerSchemes>,
    findings: &mut Diagnostics<'_>,
) {
    let Some(spoken) = spoken else {
        return;
    };
    for (route, span) in routes {
        let listeners = &route.when.listeners;
        let is_reached = |name: &String| listeners.is_empty() || listeners.contains(name);
        let mut where_it_is = spoken.iter().filter(|(name, _)| is_reached(name));
        let Some(scheme) = route.when.scheme else {
            continue;
        };
        if where_it_is.any(|(_, schemes)| schemes.contains(&scheme)) {
            continue;
        }
        let why = match (scheme, listeners.is_empty()) {
            (Scheme::Http, true) => "every [[listen]] uses TLS",
            (Scheme::Https, true) => "no [[listen]] uses TLS",
            (Scheme::Http, false) => "all of its listeners use TLS",
            (Scheme::Https, false) => "none of its listeners uses TLS",
        };
        let message = format!(
            "this [[route]] is never reached: {why}, and no proxy is trusted to report {:?}",
            scheme.text()
        );
        findings.warning(span.clone(), message);
    }
}

/// Whether `earlier` certainly matches every request that `later` matches.
fn covers(earlier: &RouteMatch, later: &RouteMatch) -> bool {
    let hosts = earlier.hosts.is_empty()
        || !later.hosts.is_empty()
            && later
                .hosts
                .iter()
                .all(|host| earlier.hosts.iter().any(|covering| covering.covers(host)));
    let methods = earlier.methods.is_empty()
        || !later.methods.is_empty()
            && later
                .methods
                .iter()
                .all(|method| earlier.methods.contains(method));
    let listeners = earlier.listeners.is_empty()
        || !later.listeners.is_empty()
            && later
                .listeners
                .iter()
                .all(|listener| earlier.listeners.contains(listener));
    let from = match (&earlier.from, &later.from) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(earlier), Some(later)) => earlier.contain_all(later),
    };
    let is_excluded = |not: &RouteMatch| later.not.iter().any(|excluded| covers(excluded, not));
    let scheme = earlier.scheme.is_none() || earlier.scheme == later.scheme;
    hosts
        && scheme
        && listeners
        && methods
        && from
        && earlier.not.iter().all(is_excluded)
        && earlier.path.covers(&later.path)
        && follow(&earlier.headers, &later.headers, str::eq_ignore_ascii_case)
        && follow(&earlier.query, &later.query, |one, other| one == other)
}

/// Whether each condition of `earlier` follows from one of `later`.
fn follow(
    earlier: &[(String, ValueMatch)],
    later: &[(String, ValueMatch)],
    is_same: fn(&str, &str) -> bool,
) -> bool {
    earlier.iter().all(|(name, condition)| {
        later
            .iter()
            .any(|(other, stronger)| is_same(name, other) && condition.covers(stronger))
    })
}
