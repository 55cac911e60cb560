//! `cache_control` of the whole configuration and of routes.

use toml::Spanned;
use toml::de::DeValue;

use super::kinds::MEDIA_TYPE;
use super::status::read_statuses;
use crate::diagnostic::Diagnostics;
use crate::limits::CACHE_RULES_MAX;
use crate::plan::{Action, CacheRule, Edits, ServerCacheControl};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_text, is_false, is_true, one_or_list, parsed};
use crate::value;

const KEY: &str = "cache_control";
const EXPECTED: &str = "a string such as \"max-age=3600\", a table such as { type = \"image/*\", value = \"max-age=3600\" }, a list of such, or false";
const STATUSES: &str =
    "a status such as 404, a class such as \"4xx\", a range such as \"400-403\", or a list of them";

const VALUE: Kind<String> = Kind {
    expected: "directives such as \"public, max-age=3600\"",
    parse: value::parse_cache_control,
};

/// Rules for routes that do not forward and have no rules.
pub(super) fn read_default(
    file: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Vec<CacheRule> {
    read_rules(file, findings).unwrap_or_default()
}

pub(super) fn read_of_route(
    route: &Section<'_, '_>,
    default: &[CacheRule],
    (edits, action): (&Edits, &Action),
    findings: &mut Diagnostics<'_>,
) -> Vec<CacheRule> {
    let forwards = matches!(action, Action::Forward { .. });
    let Some(rules) = read_rules(route, findings) else {
        // No default here: a server's response without `Cache-Control` may be for one client only.
        return match forwards || changes_field(edits) {
            true => Vec::new(),
            false => default.to_vec(),
        };
    };
    if !rules.is_empty() && changes_field(edits) {
        let line = findings.line_of(&route.place("response_headers"));
        let message = format!(
            "{KEY} and response_headers in line {line} both change Cache-Control: expected only one of them"
        );
        findings.error(route.place(KEY), message);
    }
    let replaces = |rule: &CacheRule| rule.server_field == ServerCacheControl::Replace;
    if !forwards && rules.iter().any(replaces) {
        let message = "replace has no effect on a route that does not forward: it replaces only the Cache-Control of forwarded responses";
        findings.warning(route.place(KEY), message);
    }
    rules
}

/// Whether the route's own edits change the same field.
fn changes_field(edits: &Edits) -> bool {
    let edits = &edits.response;
    let written = edits.set.iter().chain(&edits.add).map(|(name, _)| name);
    let mut names = edits.remove.iter().chain(written);
    names.any(|name| name.eq_ignore_ascii_case("cache-control"))
}

fn read_rules(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<Vec<CacheRule>> {
    let value = section.value(KEY)?;
    if is_false(value) {
        return Some(Vec::new());
    }
    if is_true(value) {
        section.report_kind(KEY, EXPECTED, findings);
        return Some(Vec::new());
    }
    section.refuse_empty(KEY, EXPECTED, findings);
    let written = one_or_list(value);
    if let Some(one_more) = written.get(CACHE_RULES_MAX) {
        let count = written.len();
        let message = format!("{KEY} has {count} rules: expected at most {CACHE_RULES_MAX}");
        findings.error(one_more.span(), message);
    }
    let mut rules: Vec<CacheRule> = Vec::new();
    for value in written.into_iter().take(CACHE_RULES_MAX) {
        let Some(rule) = read_rule(value, findings) else {
            continue;
        };
        if rules.iter().any(|before| covers(before, &rule)) {
            let message = "this rule has no effect: an earlier rule matches all of its responses";
            findings.warning(value.span(), message);
        }
        rules.push(rule);
    }
    Some(rules)
}

fn read_rule(value: &Spanned<DeValue<'_>>, findings: &mut Diagnostics<'_>) -> Option<CacheRule> {
    const KEYS: Keys = Keys::new(&["status", "type", "value", "replace"]);
    if let Some(text) = as_text(value) {
        return Some(CacheRule {
            statuses: vec![STATUSES_DEFAULT],
            types: None,
            value: parsed(&text, VALUE.parse, findings)?,
            server_field: ServerCacheControl::default(),
        });
    }
    let section = Section::of(KEY, value, EXPECTED, KEYS, findings)?;
    section.require("value", VALUE.expected, findings);
    let types = section.read_nonempty_list("type", MEDIA_TYPE, findings);
    let statuses = read_statuses(&section, "status", STATUSES, findings);
    for (status, name) in [(206, "206"), (304, "304")] {
        let is_it = |range: &(u16, u16)| *range == (status, status);
        if statuses.iter().flatten().any(is_it) {
            let message =
                format!("a {name} gets the Cache-Control of its 200: expected status = 200");
            findings.error(section.place("status"), message);
        }
    }
    let of_server = match section.truth("replace", findings) {
        Some(true) => ServerCacheControl::Replace,
        Some(false) | None => ServerCacheControl::Keep,
    };
    Some(CacheRule {
        statuses: statuses.unwrap_or_else(|| vec![STATUSES_DEFAULT]),
        types,
        value: section.read("value", VALUE, findings)?,
        server_field: of_server,
    })
}

/// Successful responses: errors should not be cached for a year.
const STATUSES_DEFAULT: (u16, u16) = (200, 299);

/// Whether `earlier` applies to all responses to which `later` applies.
fn covers(earlier: &CacheRule, later: &CacheRule) -> bool {
    let has_status = |(first, last): &(u16, u16)| {
        let mut ranges = earlier.statuses.iter();
        ranges.any(|(from, to)| from <= first && last <= to)
    };
    let has_type = |wanted: &String| {
        let mut types = earlier.types.iter().flatten();
        types.any(|known| {
            known == wanted
                || known
                    .strip_suffix('*')
                    .is_some_and(|kind| wanted.starts_with(kind))
        })
    };
    let has_types = match (&earlier.types, &later.types) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(_), Some(wanted)) => wanted.iter().all(has_type),
    };
    has_types && later.statuses.iter().all(has_status)
}
