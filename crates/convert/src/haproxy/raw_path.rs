//! Conditions of guards that depend on the spelling of a path or query. HAProxy compares the raw text, Onrush the
//! decoded and normalized one, so for some requests the result of such a condition is unknown.

use super::fetch::{Fetch, Method, Subject};
use crate::expression::decide::Formula;

/// Effect on a request if a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Refused,
    /// The rule does not refuse the request, or an `allow` keeps later rules from doing so.
    Admitted,
    Other,
}

impl Effect {
    /// The effect if the negated condition holds.
    pub(super) fn opposite(self) -> Effect {
        match self {
            Effect::Refused => Effect::Admitted,
            Effect::Admitted => Effect::Refused,
            Effect::Other => Effect::Other,
        }
    }
}

const PATH: &str =
    "paths are compared decoded and normalized; HAProxy compares them as the client sent them";
const QUERY: &str = "HAProxy also separates parameters at ;";

/// Adds an unknown part to a condition whose result may differ from HAProxy's: if it refuses requests, it may have to
/// refuse more; if it admits requests, it may have to admit fewer.
pub(super) fn with_unknown_part(
    formula: Formula,
    effect: Effect,
    fetch: &Fetch,
    values: &[String],
) -> Formula {
    let is_raw = match (&fetch.subject, effect) {
        (_, Effect::Other) => false,
        (Subject::Query(_), Effect::Refused) => true,
        (Subject::Query(_), Effect::Admitted) => {
            let is_whole = matches!(fetch.method, Method::Same | Method::Begin);
            !is_whole || values.iter().any(|value| value.contains(';'))
        }
        (Subject::Path, Effect::Refused) => values.iter().any(|value| is_raw(fetch.method, value)),
        (Subject::Path, Effect::Admitted) => values
            .iter()
            .any(|value| fetch.method == Method::Pattern && is_whole(value)),
        _ => false,
    };
    if !is_raw {
        return formula;
    }
    let why = match fetch.subject {
        Subject::Query(_) => QUERY,
        _ => PATH,
    };
    let parts = vec![formula, Formula::Unknown(why.to_owned())];
    match effect {
        Effect::Admitted => Formula::All(parts),
        Effect::Refused | Effect::Other => Formula::Any(parts),
    }
}

/// Whether a value looks for a raw form that a normalized path does not have.
fn is_raw(method: Method, value: &str) -> bool {
    match method {
        Method::Pattern => is_raw_pattern(value),
        Method::Directory => matches!(value.trim_matches('/'), "" | ".") || has_raw_form(value),
        // A dot as the last segment is removed by normalization.
        Method::Same | Method::End if value.ends_with("/.") => true,
        _ => has_raw_form(value),
    }
}

fn has_raw_form(text: &str) -> bool {
    ["%", "//", "/./", "..", "\\"]
        .iter()
        .any(|part| text.contains(part))
}

fn is_raw_pattern(pattern: &str) -> bool {
    // An unescaped `..` matches any two characters, so only escaped dots count.
    const ESCAPED: [&str; 9] = [
        "\\.\\.", "\\.{", "\\.+", "[.][.]", "[.]{", "[.]+", "/\\./", "\\\\", "\\W",
    ];
    const ENCODED: [&str; 4] = ["\\x25", "\\x2e", "\\x2f", "\\x5c"];
    const BARE: [&str; 8] = ["%", "//", "/{", "/]{", "/){", "/+/", "/[/", "/(/"];
    let has = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    has(pattern, &ESCAPED)
        || has(&pattern.to_ascii_lowercase(), &ENCODED)
        || has(&pattern.replace('\\', ""), &BARE)
        || has_negated_letters(pattern)
}

/// Whether a negated class excludes letters or digits. Classes such as `[^/]` stand for a segment and match normalized
/// paths alike.
fn has_negated_letters(pattern: &str) -> bool {
    pattern.split("[^").skip(1).any(|class| {
        let class = class.split(']').next().unwrap_or_default();
        class.contains(|letter: char| letter.is_ascii_alphanumeric())
    })
}

/// Whether an expression is anchored at the end, so that it may match the normalized path but not a raw form.
fn is_whole(pattern: &str) -> bool {
    pattern.contains('$') || pattern.to_ascii_lowercase().contains("\\z")
}
