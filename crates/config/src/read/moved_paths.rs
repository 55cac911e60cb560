//! Compares paths that an edit produces with the conditions of earlier routes.

use super::moved_match::may_match_after_move;
use crate::automaton::may_begin_with;
use crate::plan::{PathEdit, PathMatch, Pattern, Rewrite, RewritePiece, Route};

/// Effect of an edit on a path.
enum Edit {
    /// Replaces every path by this one.
    Fixed(String),
    /// Replaces `from` + rest by `to` + rest + tail. `tail` is `None` if it is not known, or if the client's path may
    /// continue after the rest.
    Moved {
        from: String,
        to: String,
        tail: Option<String>,
    },
    /// The new path begins with `to`; the client's path is not known.
    Begun { to: String },
}

/// Whether `editing` may rewrite a path outside `guard` to a path inside it.
pub(super) fn may_bypass(editing: &Route, guard: &PathMatch) -> bool {
    if guard.covers(&editing.when.path) {
        return false;
    }
    let path = &editing.when.path;
    match &editing.path_edit {
        PathEdit::Keep => false,
        PathEdit::ReplacePrefix(by) => leads_past(&replaced(path, by), guard, path.prefix()),
        PathEdit::Rewrite(rules) => rules.iter().any(|rule| {
            let edit = rewritten(rule);
            leads_past(&edit, guard, path.prefix())
                || brings_match(rule, &edit, guard, path.prefix())
        }),
    }
}

fn leads_past(edit: &Edit, guard: &PathMatch, prefix: &str) -> bool {
    let (guarded, is_exact) = match guard {
        PathMatch::Any => return false,
        PathMatch::Regex(pattern) => return leads_to_match(edit, pattern, prefix),
        PathMatch::Prefix(path) => (path.as_str(), false),
        PathMatch::Exact(path) => (path.as_str(), true),
    };
    match edit {
        Edit::Fixed(to) => guard.matches(to.as_bytes()),
        Edit::Begun { to } => {
            guarded.starts_with(to.as_str()) || (!is_exact && to.starts_with(guarded))
        }
        Edit::Moved { from, to, tail } => {
            let rest = guarded.strip_prefix(to.as_str()).unwrap_or_default();
            let end = tail.as_deref().unwrap_or_default();
            let rest = match is_exact {
                true => rest.strip_suffix(end).unwrap_or(rest),
                false => rest,
            };
            if repeats(from, rest) {
                return false;
            }
            let client = format!("{from}{rest}");
            let is_of_route = client.starts_with(prefix) || prefix.starts_with(&client);
            is_of_route
                && guard.matches(format!("{to}{rest}{end}").as_bytes())
                && !guard.matches(client.as_bytes())
        }
    }
}

/// Whether a client repeats the segments of a prefix, as in `/api/api/admin`. The guard of `/api/admin` protects the
/// server's `/admin`; the server's own `/api/admin` is a different resource.
fn repeats(from: &str, rest: &str) -> bool {
    let prefix = from.trim_matches('/');
    let rest = rest.trim_start_matches('/').strip_prefix(prefix);
    !prefix.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn leads_to_match(edit: &Edit, pattern: &Pattern, prefix: &str) -> bool {
    let (to, client) = match edit {
        Edit::Fixed(to) => return pattern.matches(to.as_bytes()),
        Edit::Moved { from, to, tail } => match tail {
            Some(tail) => return may_match_after_move(pattern.as_str(), from, to, tail),
            None => (to, from.as_str()),
        },
        Edit::Begun { to } => (to, prefix),
    };
    // The route applies to every path; few expressions match `/~`.
    let client = if matches!(client, "" | "/") {
        "/~"
    } else {
        client
    };
    may_begin_with(pattern.as_str(), to) && !may_begin_with(pattern.as_str(), client)
}

/// Whether a literal of the rule matches `guard` by itself, if the edit is known only in part.
fn brings_match(rule: &Rewrite, edit: &Edit, guard: &PathMatch, prefix: &str) -> bool {
    let PathMatch::Regex(pattern) = guard else {
        return false;
    };
    let client = match edit {
        Edit::Moved { tail: Some(_), .. } | Edit::Fixed(_) => return false,
        Edit::Moved { from, .. } => from.as_str(),
        Edit::Begun { .. } => prefix,
    };
    let is_found = |(at, piece): (usize, &RewritePiece)| match piece {
        RewritePiece::Text(text) if at == 0 => pattern.matches(decoded(text).as_bytes()),
        RewritePiece::Text(text) => pattern.matches(format!("/~{}", decoded(text)).as_bytes()),
        RewritePiece::Group(_) => false,
    };
    let is_client_refused = pattern.matches(client.as_bytes()) || pattern.matches(b"/~");
    !is_client_refused && rule.path.iter().enumerate().any(is_found)
}

fn replaced(path: &PathMatch, by: &str) -> Edit {
    let to = decoded(by);
    let PathMatch::Prefix(prefix) = path else {
        return Edit::Fixed(to);
    };
    let mut from = prefix.clone();
    // An edit does not add a slash unless the path with that slash belongs to the same route.
    if to.ends_with('/') && !from.ends_with('/') {
        from.push('/');
    }
    let tail = Some(String::new());
    Edit::Moved { from, to, tail }
}

fn rewritten(rule: &Rewrite) -> Edit {
    let to = decoded(rule.beginning());
    let (is_group_first, others) = match rule.path.as_slice() {
        [RewritePiece::Text(_)] => return Edit::Fixed(to),
        [RewritePiece::Text(_), RewritePiece::Group(1), others @ ..] => (true, others),
        _ => (false, &[][..]),
    };
    match moved_part(rule.pattern.as_str()).filter(|_| is_group_first) {
        None => Edit::Begun { to },
        Some((from, is_whole)) => {
            let tail = match others {
                [] => Some(String::new()),
                [RewritePiece::Text(text)] => Some(decoded(text)),
                _ => None,
            };
            let tail = tail.filter(|_| is_whole);
            let from = from.to_owned();
            Edit::Moved { from, to, tail }
        }
    }
}

/// Literal text between `^` and the first group of an expression, and whether the expression ends with this group.
fn moved_part(pattern: &str) -> Option<(&str, bool)> {
    let (literal, group) = pattern.strip_prefix('^')?.split_once('(')?;
    let is_plain = !literal.contains(['\\', '.', '+', '*', '?', '[', '{', '|', '$', '^']);
    let is_capturing =
        !group.starts_with('?') || group.starts_with("?<") || group.starts_with("?P<");
    let end = group.strip_suffix('$').unwrap_or(group);
    let is_whole = end.find([')', '(']) == Some(end.len().wrapping_sub(1));
    let is_known = is_plain && is_capturing && (is_whole || !group.contains('|'));
    is_known.then_some((literal, is_whole))
}

/// Percent-decodes `text`, as paths are decoded for comparison.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
