//! The request target for a server: the client's target, or an edited one.

use std::borrow::Cow;

use onrush_config::plan::{Rewrite, TargetPart};
use onrush_http::request::RequestHead;
use onrush_http::write::HeadWriter;

use crate::routing::path::{self, CanonicalPath};
use crate::routing::variables::VariableValues;
use crate::rules::forwarding::{ForwardingRules, PathRule};

pub(super) fn write(rule: &PathRule, facts: &VariableValues<'_>, writer: &mut HeadWriter<'_>) {
    let mut has_query = false;
    let (path, prefix) = (facts.head.path, facts.about.prefix());
    compose(rule, path, prefix, &mut |part, bytes| match part {
        TargetPart::Path => {
            writer.raw(bytes);
        }
        TargetPart::Query => {
            has_query = true;
            writer.raw(bytes);
        }
        TargetPart::QueryValue => write_query_value(bytes, writer),
    });
    if let Some(query) = facts.head.query {
        let mark: &[u8] = if has_query { b"&" } else { b"?" };
        writer.raw(mark).raw(query.as_bytes());
    }
}

/// [`path::ambiguity`] of the path for the server. An edit may create a dot segment: without the prefix `/api`,
/// `/api../admin` becomes `/../admin`.
pub(super) fn ambiguity(rule: &PathRule, facts: &VariableValues<'_>) -> Option<&'static str> {
    let (path, prefix) = (facts.head.path, facts.about.prefix());
    match rule {
        PathRule::Client => path::ambiguity(&path::path_for_server(path)),
        // The whole path comes from the configuration.
        PathRule::Whole(_) => None,
        PathRule::Prefix(_) | PathRule::Rewrite(_) => {
            path::ambiguity(&composed(rule, path, prefix))
        }
    }
}

/// Other normalized paths for which a server gets the same path as for `path`, the normalized path of the request,
/// because an edit adds a slash: `/api/admin` for `/apiadmin`, if `/api` is stripped.
pub(crate) fn other_paths(
    head: &RequestHead<'_, '_>,
    rules: &ForwardingRules,
    (path, prefix): (&[u8], &str),
) -> Vec<Vec<u8>> {
    match &rules.path {
        PathRule::Client | PathRule::Whole(_) => Vec::new(),
        PathRule::Prefix(by) => match by.ends_with('/') {
            true => path::with_slash_after(path, prefix).into_iter().collect(),
            false => Vec::new(),
        },
        PathRule::Rewrite(rewrites) => {
            let canonical = CanonicalPath::new(head.path);
            let text = canonical.text().as_bytes();
            let places = rewrites
                .iter()
                .find_map(|rewrite| rewrite.slashes_added(text));
            let with_slash = |at: usize| {
                let (before, after) = canonical.text().split_at_checked(at)?;
                Some(format!("{before}/{after}"))
            };
            let sent = |path: &str| {
                path::normalize(&composed(&rules.path, path, prefix))
                    .ok()
                    .map(Cow::into_owned)
            };
            let target = sent(head.path);
            let others = places
                .unwrap_or_default()
                .into_iter()
                .filter_map(with_slash);
            others
                .filter(|other| sent(other) == target)
                .filter_map(|other| Some(path::normalize(&other).ok()?.into_owned()))
                .collect()
        }
    }
}

fn composed(rule: &PathRule, path: &str, prefix: &str) -> String {
    let mut composed = Vec::new();
    compose(rule, path, prefix, &mut |part, bytes| {
        if part == TargetPart::Path {
            composed.extend_from_slice(bytes);
        }
    });
    String::from_utf8(composed)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Calls `put` with the new path, and with the beginning of the query if the rule has one.
fn compose(rule: &PathRule, path: &str, prefix: &str, put: &mut impl FnMut(TargetPart, &[u8])) {
    match rule {
        PathRule::Whole(whole) => put(TargetPart::Path, whole.as_bytes()),
        _ if path == "*" => put(TargetPart::Path, b"*"),
        PathRule::Client => put(TargetPart::Path, path::path_for_server(path).as_bytes()),
        PathRule::Prefix(replacement) => {
            let rest = path::rest(path, prefix);
            let rest = match replacement.ends_with('/') {
                true => rest.strip_prefix('/').unwrap_or(&rest),
                false => &rest,
            };
            put(TargetPart::Path, replacement.as_bytes());
            put(TargetPart::Path, rest.as_bytes());
        }
        PathRule::Rewrite(rules) => rewrite(rules, path, put),
    }
}

/// Calls `put` with the result of the first rule that matches `path`. Collapses slashes at the start: servers may parse
/// `//` as the start of an authority (RFC 3986 4.2).
fn rewrite(rules: &[Rewrite], path: &str, put: &mut impl FnMut(TargetPart, &[u8])) {
    let canonical = CanonicalPath::new(path);
    let text = canonical.text().as_bytes();
    let mut written = 0;
    let mut put_once = |part, mut bytes: &[u8]| {
        if part == TargetPart::Path {
            while written == 1 && bytes.starts_with(b"/") {
                bytes = &bytes[1..];
            }
            written += bytes.len();
        }
        put(part, bytes);
    };
    let mut rules = rules.iter();
    let is_rewritten =
        rules.any(|rule| rule.apply(text, |part| canonical.written(part), &mut put_once));
    if !is_rewritten {
        put(TargetPart::Path, path::path_for_server(path).as_bytes());
    }
}

/// Writes a part of a path as a value in a query, and percent-encodes the separators.
fn write_query_value(bytes: &[u8], writer: &mut HeadWriter<'_>) {
    for &byte in bytes {
        match byte {
            b'&' => writer.raw(b"%26"),
            b'+' => writer.raw(b"%2B"),
            b';' => writer.raw(b"%3B"),
            b'=' => writer.raw(b"%3D"),
            _ => writer.raw(&[byte]),
        };
    }
}
