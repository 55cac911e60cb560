//! Edits of paths with which a server may get a path that an earlier route refuses.

use super::automaton::may_begin_with;
use crate::diagnostic::{Findings, Span};
use crate::plan::{Action, Host, PathEdit, PathMatch, Pattern, Route, When};

/// Warns of every route that may edit a path into a path that an earlier route refuses. Routes are chosen by the path before
/// the edit, so no route refuses the edited path.
pub(super) fn warn_of_edits(routes: &[(Route, Span)], findings: &mut Findings<'_>) {
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
                "this [[route]] may edit a path so that its server gets {path}, which the one in line {line} refuses: routes are chosen by the path before the edit"
            ),
        );
    }
}

/// Warns of every route whose expression looks for an encoded slash: paths are compared decoded, so that it finds none, and a
/// route that was to refuse them refuses nothing.
pub(super) fn warn_of_encoded_slashes(routes: &[(Route, Span)], findings: &mut Findings<'_>) {
    for (route, span) in routes {
        let PathMatch::Regex(pattern) = &route.when.path else {
            continue;
        };
        let pattern = pattern.as_str().to_ascii_lowercase();
        if pattern.contains("%2f") || pattern.contains("%2[") {
            findings.warning(
                span.clone(),
                "this [[route]] looks for an encoded slash in the path, which is compared decoded: write \"/\"",
            );
        }
    }
}

/// Whether `guard` refuses a path that `editing` may request from its server, for hosts and listeners that both apply to.
fn is_passed(guard: &Route, editing: &Route) -> bool {
    let is_reached = || match &guard.when.path {
        PathMatch::Any => false,
        PathMatch::Prefix(path) | PathMatch::Exact(path) => gets_path(editing, guard, path),
        PathMatch::Regex(pattern) => gets_match(editing, pattern),
    };
    let (refusing, edited) = (&guard.when, &editing.when);
    refuses_for(guard, editing)
        && have_common_host(&refusing.hosts, &edited.hosts)
        && have_common_listener(&refusing.listeners, &edited.listeners)
        && is_reached()
}

/// Whether the path edit of `editing` may produce `path`, or a path that begins with it.
fn gets_path(editing: &Route, guard: &Route, path: &str) -> bool {
    let of_client = editing.when.path.prefix();
    let is_client_path = match editing.path_edit {
        // Every path below the new prefix comes from exactly one path of a client.
        PathEdit::ReplacePrefix(_) => path.starts_with(of_client),
        PathEdit::Keep | PathEdit::Rewrite(_) => of_client != "/" && path.starts_with(of_client),
    };
    let may_become = |beginning: &str| match &guard.when.path {
        PathMatch::Exact(exact) => exact.starts_with(beginning),
        _ => path.starts_with(beginning) || beginning.starts_with(path),
    };
    (!is_client_path || of_client.is_empty()) && beginnings(editing).iter().any(|it| may_become(it))
}

/// Whether the path edit of `editing` may produce a path that `pattern` matches, from a path that it does not match.
fn gets_match(editing: &Route, pattern: &Pattern) -> bool {
    let of_client = match editing.when.path.prefix() {
        // The route applies to every path: `/~` is one that expressions rarely match.
        "" | "/" => "/~",
        prefix => prefix,
    };
    let may_become = |beginning| {
        may_begin_with(pattern.as_str(), beginning) && !may_begin_with(pattern.as_str(), of_client)
    };
    match &editing.path_edit {
        PathEdit::Keep => false,
        PathEdit::ReplacePrefix(by) => match &editing.when.path {
            PathMatch::Exact(_) => pattern.matches(by.as_bytes()),
            PathMatch::Any | PathMatch::Prefix(_) | PathMatch::Regex(_) => may_become(by),
        },
        PathEdit::Rewrite(rules) => rules.iter().any(|rule| match rule.extent() {
            (0, _, _) => pattern.matches(rule.beginning().as_bytes()),
            _ => may_become(rule.beginning()),
        }),
    }
}

/// Whether `other` takes the requests for the path of `guard` that meet the conditions of `editing`.
fn takes_before(other: &Route, guard: &Route, editing: &Route) -> bool {
    covers(&other.when.path, &guard.when.path) && is_implied(&other.when, &[&editing.when])
}

/// Whether `other` refuses the requests for the paths of `editing` that `guard` would refuse for its own path. A rule about
/// clients for several paths has one route per path.
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
fn is_implied(wide: &When, conditions: &[&When]) -> bool {
    fn has<T: PartialEq>(wide: &When, conditions: &[&When], of: fn(&When) -> &[T]) -> bool {
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

/// Whether `guard` refuses requests for resources of the servers of `editing`.
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

/// Whether both have a listener in common. An empty list is every listener.
fn have_common_listener(listeners: &[String], others: &[String]) -> bool {
    let is_both = |name| others.contains(name);
    listeners.is_empty() || others.is_empty() || listeners.iter().any(is_both)
}

/// Prefixes of the edited paths of a route.
fn beginnings(route: &Route) -> Vec<&str> {
    match &route.path_edit {
        PathEdit::Keep => Vec::new(),
        PathEdit::ReplacePrefix(by) => vec![by],
        PathEdit::Rewrite(rules) => rules.iter().map(|rule| rule.beginning()).collect(),
    }
}
