//! `expires`: Cache-Control of responses, optionally by media type through a map.

use super::map::Map;
use super::scope::Scope;
use super::variable::{canonical, expanded};
use super::work::{Context, RouteContext};
use crate::document::Value;
use crate::expression::pcre::literals_of;
use crate::settings::route::{Response, Route};
use crate::settings::unit::nginx_time;
use crate::source::directive::Directive;

const NO_EXPIRES: &str =
    "only Cache-Control is sent, without Expires, which HTTP/1.1 does not need";

/// Statuses that get the field. In Onrush 206 and 304 count as the 200 that they stand for.
const STATUSES: [&str; 2] = ["2xx", "3xx"];

/// All top-level types, which is all responses with a media type.
const KINDS: [&str; 7] = [
    "application/*",
    "audio/*",
    "font/*",
    "image/*",
    "model/*",
    "text/*",
    "video/*",
];

/// Types to which nginx appends a charset if `charset` is set (default of `charset_types`).
const WITH_CHARSET: [&str; 6] = [
    "text/html",
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];

/// Common media types that an expression for this word matches.
const FAMILIES: [(&str, &[&str]); 2] = [
    (
        "json",
        &[
            "application/json",
            "application/geo+json",
            "application/ld+json",
            "application/manifest+json",
            "application/problem+json",
            "application/vnd.api+json",
            "application/vnd.geo+json",
        ],
    ),
    (
        "xml",
        &[
            "application/xml",
            "text/xml",
            "application/atom+xml",
            "application/rdf+xml",
            "application/rss+xml",
            "application/xhtml+xml",
            "image/svg+xml",
        ],
    ),
];

/// Whether nginx appends the charset to text types, so that map keys without it do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    Said,
    Unsaid,
}

/// Cache-Control of some responses.
struct Rule {
    /// Media types; none for all responses.
    types: Option<Vec<String>>,
    value: String,
}

/// Writes `expires` into the route.
pub(super) fn write<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    spot: &RouteContext<'_>,
    route: &mut Route,
) {
    let Some(directive) = scope.one("expires") else {
        return;
    };
    let text = match directive.arguments() {
        [text] => expanded(text, spot.constants),
        _ => String::new(),
    };
    let rules = match mapped(work, &text) {
        Some(map) => by_type(map, scope),
        None => of_value(&text).map(|value| {
            let rule = |value| Rule { types: None, value };
            Rules {
                rules: value.map(rule).into_iter().collect(),
                is_whole: true,
            }
        }),
    };
    let rules = match rules {
        Some(Rules {
            rules,
            is_whole: true,
        }) if rules.is_empty() => return work.notes.carried(directive),
        Some(Rules { rules, is_whole }) => {
            if !is_whole {
                let how = "types without a rule of their own get no Cache-Control, because some types are off, or an expression does not match whole types";
                work.notes.approximated(directive, how);
            }
            rules
        }
        None => {
            let why = "Onrush has no equivalent for times of day, times relative to the file, or variables other than a map of $sent_http_content_type";
            return work.notes.left_out(directive, why);
        }
    };
    put(work, directive, rules, route);
}

fn put<'a>(work: &mut Context<'a>, directive: &'a Directive, rules: Vec<Rule>, route: &mut Route) {
    if route.response_headers.changes("cache-control") {
        // nginx sends this value in addition to the one of `add_header`.
        return match &rules[..] {
            [Rule { types: None, value }] => {
                route.response_headers.add("Cache-Control", value);
                work.notes.approximated(directive, NO_EXPIRES);
            }
            _ => work.notes.left_out(
                directive,
                "it depends on the media type, and add_header also sets Cache-Control",
            ),
        };
    }
    let rules = match route.response {
        // nginx sends an HTML page with a redirect.
        Response::Redirect { .. } => of_html(rules),
        Response::Respond { .. }
        | Response::File(_)
        | Response::Files(_)
        | Response::Forward(_) => rules,
    };
    if rules.is_empty() {
        return work.notes.carried(directive);
    }
    let is_by_type = rules.iter().any(|rule| rule.types.is_some());
    let replaces = matches!(route.response, Response::Forward(_));
    let written = rules.into_iter().map(|rule| {
        // nginx redirects to any directory with an HTML page, so rules by type must not apply.
        let statuses = match is_by_type {
            true => Value::text(STATUSES[0]),
            false => Value::texts(STATUSES),
        };
        let mut entries = vec![("status".to_owned(), statuses)];
        if let Some(types) = rule.types {
            entries.push(("type".to_owned(), Value::one_or_list(&types)));
        }
        entries.push(("value".to_owned(), Value::Text(rule.value)));
        if replaces {
            entries.push(("replace".to_owned(), Value::Truth(true)));
        }
        Value::Table(entries)
    });
    let mut written: Vec<Value> = written.collect();
    let value = match written.len() {
        1 => written.remove(0),
        _ => Value::List(written),
    };
    route.put("cache_control", value);
    work.notes.approximated(directive, NO_EXPIRES);
}

/// The rule for HTML, without its condition on the type.
fn of_html(rules: Vec<Rule>) -> Vec<Rule> {
    let is_for_html = |rule: &Rule| {
        let mut types = rule.types.iter().flatten();
        rule.types.is_none() || types.any(|kind| matches!(&**kind, "text/html" | "text/*"))
    };
    let rule = rules.into_iter().find(is_for_html);
    let said = rule.map(|rule| Rule {
        types: None,
        ..rule
    });
    said.into_iter().collect()
}

/// Parses a value of `expires`. The outer option is empty if Onrush has no equivalent, the inner one for `off`.
fn of_value(text: &str) -> Option<Option<String>> {
    Some(Some(match text {
        "off" => return Some(None),
        "epoch" => "no-cache".to_owned(),
        "max" => "max-age=315360000".to_owned(),
        negative if negative.starts_with('-') => "no-cache".to_owned(),
        text => format!("max-age={}", nginx_time(text)?.as_secs()),
    }))
}

/// The map from media types that defines a variable.
fn mapped<'w, 'a>(work: &'w Context<'a>, text: &str) -> Option<&'w Map<'a>> {
    let name = canonical(text.strip_prefix('$')?.trim_matches(['{', '}']));
    let mut maps = work.maps.iter();
    maps.find(|map| {
        map.target() == name && map.variable().as_deref() == Some("sent_http_content_type")
    })
}

/// The rules, and whether they cover the whole map.
struct Rules {
    rules: Vec<Rule>,
    is_whole: bool,
}

/// A rule for each entry of the map. None if a value has no equivalent.
fn by_type(map: &Map<'_>, scope: &Scope<'_>) -> Option<Rules> {
    let charset = match scope.value("charset") {
        "" | "off" => Charset::Unsaid,
        _ => Charset::Said,
    };
    let mut rules: Vec<Rule> = Vec::new();
    // Onrush has no rule for "no field", so a default rule would apply to types for which nginx sends none.
    let mut is_silent = false;
    let mut says_without = true;
    let mut is_whole = true;
    for at in 0..map.len() {
        let value = of_value(map.value(at).trim())?;
        let (Some(key), Some(value)) = (map.key(at), &value) else {
            match map.key(at) {
                Some("") => says_without = false,
                Some(_) => is_silent = true,
                None => {}
            }
            continue;
        };
        match types_of(key, charset) {
            _ if key.is_empty() => {}
            Some(types) if types.is_empty() => {}
            Some(types) => rules.push(Rule {
                types: Some(types),
                value: value.clone(),
            }),
            None => (is_silent, is_whole) = (true, false),
        }
    }
    if let Some(value) = of_value(map.value(map.len() - 1).trim())? {
        let kinds = || KINDS.map(str::to_owned).to_vec();
        let types = (!says_without).then(kinds);
        is_whole &= !is_silent;
        rules.extend((!is_silent).then_some(Rule { types, value }));
    }
    Some(Rules { rules, is_whole })
}

/// Media types that a key of a map matches: one type, all types of a kind, or alternatives. None for other expressions.
fn types_of(key: &str, charset: Charset) -> Option<Vec<String>> {
    let Some(expression) = key.strip_prefix('~') else {
        let is_other = charset == Charset::Said && WITH_CHARSET.contains(&key);
        return Some(if is_other { Vec::new() } else { alike(key) });
    };
    let bare = expression.trim_start_matches('*');
    if let Some((_, family)) = FAMILIES.iter().find(|(word, _)| *word == bare) {
        return Some(family.iter().map(|&kind| kind.to_owned()).collect());
    }
    let bare = bare.trim_start_matches('^').trim_end_matches('$');
    let bare = bare.trim_end_matches(".*");
    let mut types = Vec::new();
    for literal in literals_of(&without_dots(bare))? {
        let one: String = literal.into_iter().collect();
        let is_part = |letter: char| {
            letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '+' | '-')
        };
        if !one.contains('/') || !one.chars().all(is_part) {
            return None;
        }
        types.extend(match one.strip_suffix('/') {
            Some(kind) => vec![format!("{}/*", kind.to_ascii_lowercase())],
            None => alike(&one),
        });
    }
    Some(types)
}

/// Escapes dots, which people usually mean literally in media types.
fn without_dots(expression: &str) -> String {
    expression.replace("\\.", ".").replace('.', "\\.")
}

/// A media type, and its other name in Onrush.
pub(super) fn alike(kind: &str) -> Vec<String> {
    let kind = kind.to_ascii_lowercase();
    match &*kind {
        // RFC 9239 makes text/javascript the only name.
        "application/javascript" | "application/x-javascript" => {
            vec![kind, "text/javascript".to_owned()]
        }
        _ => vec![kind],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_keys_become_media_types() {
        for (key, expected) in [
            ("text/css", Some(&["text/css"][..])),
            ("text/html", Some(&[])),
            ("~image/", Some(&["image/*"])),
            ("~*^application/ld\\+json$", Some(&["application/ld+json"])),
            ("~*(text/css|font/)", Some(&["text/css", "font/*"])),
            (
                "~*application/javascript",
                Some(&["application/javascript", "text/javascript"]),
            ),
            ("~*svg", None),
            ("~^text/(css|x)", Some(&["text/css", "text/x"])),
            (
                "~*image/vnd.microsoft.icon",
                Some(&["image/vnd.microsoft.icon"]),
            ),
        ] {
            let types = types_of(key, Charset::Said);
            let types = types.as_ref().map(|types| types.iter().map(String::as_str));
            let types: Option<Vec<&str>> = types.map(Iterator::collect);
            assert_eq!(types.as_deref(), expected, "{key}");
        }
    }

    #[test]
    fn expires_times_become_cache_directives() {
        for (text, expected) in [
            ("1h", Some(Some("max-age=3600"))),
            ("0", Some(Some("max-age=0"))),
            ("-1", Some(Some("no-cache"))),
            ("off", Some(None)),
            ("@15h30m", None),
            ("$x", None),
        ] {
            let value = of_value(text);
            let value = value.as_ref().map(Option::as_deref);
            assert_eq!(value, expected, "{text}");
        }
    }
}
