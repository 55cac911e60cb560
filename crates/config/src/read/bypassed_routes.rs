//! Path edits that may bypass a route that refuses the edited path.

use super::moved_paths::may_bypass;
use crate::diagnostic::{Diagnostics, Span};
use crate::plan::{Action, Host, PathMatch, Route, RouteMatch};

/// Warns of every route that may rewrite a path to one that an earlier route refuses. Routes are selected by the
/// original path, so the rewritten path is not checked.
pub(super) fn warn_of_edits(routes: &[(Route, Span)], findings: &mut Diagnostics<'_>) {
    for (at, (editing, span)) in routes.iter().enumerate() {
        let before = &routes[..at];
        let is_needed = |number: usize, guard: &Route| {
            let is_taken = |(other, _): &(Route, Span)| takes_before(other, guard, editing);
            let is_refused = |(other, _): &(Route, Span)| refuses_before(other, guard, editing);
            !before[..number].iter().any(is_taken) && !before.iter().any(is_refused)
        };
        let mut guards = before.iter().enumerate();
        let found = guards
            .find(|(number, (guard, _))| is_passed(guard, editing) && is_needed(*number, guard));
        let Some((_, (guard, by))) = found else {
            continue;
        };
        let line = findings.line_of(by);
        let path = match &guard.when.path {
            PathMatch::Regex(pattern) => format!("a path that {:?} matches", pattern.as_str()),
            PathMatch::Prefix(path) | PathMatch::Exact(path) => format!("{path:?}"),
            PathMatch::Any => "a path".to_owned(),
        };
        findings.warning(
            span.clone(),
            format!(
                "this [[route]] may rewrite a path to {path}, which the [[route]] in line {line} refuses: routes are matched by the path before the rewrite"
            ),
        );
    }
}

/// Warns of every route whose expression contains an encoded slash: paths are compared decoded, so it never matches,
/// and a route that was meant to refuse such paths does not.
pub(super) fn warn_of_encoded_slashes(routes: &[(Route, Span)], findings: &mut Diagnostics<'_>) {
    for (route, span) in routes {
        let PathMatch::Regex(pattern) = &route.when.path else {
            continue;
        };
        let pattern = pattern.as_str().to_ascii_lowercase();
        if pattern.contains("%2f") || pattern.contains("%2[") {
            findings.warning(
                span.clone(),
                "this [[route]] matches an encoded slash, but paths are matched after decoding: write \"/\"",
            );
        }
    }
}

/// Whether `guard` refuses a path that `editing` may request, for hosts, listeners, methods and schemes of both.
fn is_passed(guard: &Route, editing: &Route) -> bool {
    let (refusing, edited) = (&guard.when, &editing.when);
    refuses_for(guard, editing)
        && have_common_host(&refusing.hosts, &edited.hosts)
        && have_common_name(&refusing.listeners, &edited.listeners)
        && have_common_name(&refusing.methods, &edited.methods)
        && (refusing.scheme == edited.scheme
            || refusing.scheme.is_none()
            || edited.scheme.is_none())
        && may_bypass(editing, &guard.when.path)
}

/// Whether `other` takes the requests for the path of `guard` that meet the conditions of `editing`.
fn takes_before(other: &Route, guard: &Route, editing: &Route) -> bool {
    covers(&other.when.path, &guard.when.path) && is_implied(&other.when, &[&editing.when])
}

/// Whether `other` refuses the requests for the paths of `editing` that `guard` would refuse for its own path. A rule
/// about clients for several paths has one route per path.
fn refuses_before(other: &Route, guard: &Route, editing: &Route) -> bool {
    covers(&other.when.path, &editing.when.path)
        && refuses_for(other, editing)
        && other.access == guard.access
        && is_implied(&other.when, &[&guard.when, &editing.when])
}

fn covers(wide: &PathMatch, narrow: &PathMatch) -> bool {
    match wide {
        PathMatch::Any => true,
        PathMatch::Prefix(path) => narrow.prefix().starts_with(path.as_str()),
        PathMatch::Exact(_) | PathMatch::Regex(_) => wide == narrow,
    }
}

/// Whether every request that meets all of `conditions` also meets `wide`. Paths are ignored.
fn is_implied(wide: &RouteMatch, conditions: &[&RouteMatch]) -> bool {
    fn has<T: PartialEq>(
        wide: &RouteMatch,
        conditions: &[&RouteMatch],
        of: fn(&RouteMatch) -> &[T],
    ) -> bool {
        of(wide).is_empty() || conditions.iter().any(|when| of(when) == of(wide))
    }
    has(wide, conditions, |when| &when.hosts)
        && has(wide, conditions, |when| &when.methods)
        && has(wide, conditions, |when| &when.headers)
        && has(wide, conditions, |when| &when.query)
        && has(wide, conditions, |when| &when.listeners)
        && has(wide, conditions, |when| &when.not)
        && (wide.from.is_none() || conditions.iter().any(|when| when.from == wide.from))
        && (wide.scheme.is_none() || conditions.iter().any(|when| when.scheme == wide.scheme))
}

/// Whether `guard` restricts access to the servers of `editing`, or refuses requests altogether.
fn refuses_for(guard: &Route, editing: &Route) -> bool {
    let access = &guard.access;
    let is_guarded =
        access.basic_auth.is_some() || !access.allow.is_empty() || !access.deny.is_empty();
    match (&guard.action, &editing.action) {
        (Action::Respond { status, .. } | Action::RespondFile { status, .. }, _) => *status >= 400,
        (Action::Forward { split, .. }, Action::Forward { split: others, .. }) => {
            is_guarded
                && split
                    .iter()
                    .any(|(group, _)| others.iter().any(|(other, _)| other == group))
        }
        _ => false,
    }
}

fn have_common_host(hosts: &[Host], others: &[Host]) -> bool {
    let meet = |host: &Host| {
        let mut others = others.iter();
        others.any(|other| host.covers(other) || other.covers(host))
    };
    hosts.is_empty() || others.is_empty() || hosts.iter().any(meet)
}

/// Whether two lists have an element in common; an empty list means all.
fn have_common_name(names: &[String], others: &[String]) -> bool {
    let is_both = |name| others.contains(name);
    names.is_empty() || others.is_empty() || names.iter().any(is_both)
}
