//! Which routes can never be reached.

use crate::diagnostic::{Findings, Span};
use crate::plan::{Route, Scheme, ValueMatch, When};

/// Warns of every route all of whose requests are answered by one before it. (That several together
/// do so is not noticed.)
pub(super) fn warn_of_unreachable(routes: &[(Route, Span)], findings: &mut Findings<'_>) {
    for (at, (later, span)) in routes.iter().enumerate() {
        let mut not = later.when.not.iter();
        if not.any(|not| covers(not, &later.when)) {
            findings.warning(
                span.clone(),
                "this [[route]] is never reached: its not matches everything that it would",
            );
            continue;
        }
        let covering = routes[..at]
            .iter()
            .find(|(earlier, _)| covers(&earlier.when, &later.when));
        if let Some((_, by)) = covering {
            let line = findings.line_of(by);
            findings.warning(
                span.clone(),
                format!("this [[route]] is never reached: the one in line {line} matches everything it would"),
            );
        }
    }
}

/// Warns of every route for a scheme by which nobody can ask, when `spoken` says by which one can.
pub(super) fn warn_of_unspoken(
    routes: &[(Route, Span)],
    spoken: Option<&[Scheme]>,
    findings: &mut Findings<'_>,
) {
    let Some(spoken) = spoken else {
        return;
    };
    for (route, span) in routes {
        let Some(scheme) = route.when.scheme.filter(|scheme| !spoken.contains(scheme)) else {
            continue;
        };
        let why = match scheme {
            Scheme::Http => "every [[listen]] speaks TLS",
            Scheme::Https => "no [[listen]] speaks TLS",
        };
        let message = format!(
            "this [[route]] is never reached: {why}, and no proxy is trusted to say {:?}",
            scheme.text()
        );
        findings.warning(span.clone(), message);
    }
}

/// Whether every request that `later` matches is certainly matched by `earlier` too: each condition
/// of `earlier` follows from those of `later`.
fn covers(earlier: &When, later: &When) -> bool {
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
        (Some(earlier), Some(later)) => earlier.cover(later),
    };
    let is_excluded = |not: &When| later.not.iter().any(|excluded| covers(excluded, not));
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

/// Whether each of the conditions `earlier` follows from one of `later`.
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
