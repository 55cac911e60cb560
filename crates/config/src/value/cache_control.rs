//! `Cache-Control` of a response (RFC 9111, section 5.2.2).

use super::{Invalid, is_token};
use crate::limits::CACHE_CONTROL_BYTES_MAX;
use onrush_measure::suggestion::suggestion;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Argument {
    Nothing,
    Seconds,
    /// Nothing, or a quoted list of field names.
    Fields,
}

/// Directives of responses: RFC 9111, RFC 5861 (stale-…) and RFC 8246 (immutable).
const KNOWN: [(&str, Argument); 13] = [
    ("max-age", Argument::Seconds),
    ("s-maxage", Argument::Seconds),
    ("no-cache", Argument::Fields),
    ("no-store", Argument::Nothing),
    ("no-transform", Argument::Nothing),
    ("must-revalidate", Argument::Nothing),
    ("proxy-revalidate", Argument::Nothing),
    ("must-understand", Argument::Nothing),
    ("private", Argument::Fields),
    ("public", Argument::Nothing),
    ("immutable", Argument::Nothing),
    ("stale-while-revalidate", Argument::Seconds),
    ("stale-if-error", Argument::Seconds),
];

const OF_REQUESTS: [&str; 3] = ["max-stale", "min-fresh", "only-if-cached"];

/// Parses directives separated by commas. Unknown directives are accepted as extensions (RFC 9111, section 5.2.3)
/// unless they resemble a known one.
///
/// # Errors
/// If a directive is malformed, misspelt or repeated, or contradicts another.
pub fn parse_cache_control(text: &str) -> Result<String, Invalid> {
    let invalid = |why: String| Err(Invalid::new(why));
    if text.len() > CACHE_CONTROL_BYTES_MAX {
        return invalid(format!(
            "{text:?} has {} bytes: expected at most {CACHE_CONTROL_BYTES_MAX}",
            text.len()
        ));
    }
    let mut names: Vec<String> = Vec::new();
    for directive in directives(text) {
        let directive = directive.trim_matches([' ', '\t']);
        let (name, argument) = match directive.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (directive, None),
        };
        let name = name.to_ascii_lowercase();
        if let Err(why) = check(&name, argument) {
            return invalid(format!("{text:?} is not a Cache-Control value: {why}"));
        }
        if names.contains(&name) {
            return invalid(format!("{text:?} has {name} twice: expected it once"));
        }
        names.push(name);
    }
    let has = |name: &str| names.iter().any(|known| known == name);
    if has("public") && has("private") {
        return invalid(format!(
            "{text:?} has both public and private: expected one of them"
        ));
    }
    Ok(text.to_owned())
}

/// Splits at commas outside quotation marks.
fn directives(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |letter| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    })
}

fn check(name: &str, argument: Option<&str>) -> Result<(), String> {
    const EXAMPLE: &str = "expected directives such as \"public, max-age=3600\"";
    if !is_token(name) {
        return Err(format!("{name:?} is not a directive; {EXAMPLE}"));
    }
    if OF_REQUESTS.contains(&name) {
        return Err(format!("{name} is for requests; {EXAMPLE}"));
    }
    let Some((_, expected)) = KNOWN.iter().find(|(known, _)| *known == name) else {
        if let Some(near) = suggestion(name, KNOWN.iter().map(|(known, _)| *known)) {
            return Err(format!("unknown directive {name:?}; nearest: {near:?}"));
        }
        return match argument {
            Some(argument) if !is_token(argument) && !is_quoted(argument) => Err(format!(
                "{name} has {argument:?}: expected a word, or a quoted string"
            )),
            _ => Ok(()),
        };
    };
    match (expected, argument) {
        (Argument::Nothing | Argument::Fields, None) => Ok(()),
        (Argument::Nothing, Some(argument)) => {
            Err(format!("{name} has {argument:?}: expected no value"))
        }
        (Argument::Fields, Some(argument)) if is_quoted(argument) => Ok(()),
        (Argument::Fields, Some(argument)) => Err(format!(
            "{name} has {argument:?}: expected a quoted list of field names, or no value"
        )),
        (Argument::Seconds, Some(argument)) if is_seconds(argument) => Ok(()),
        (Argument::Seconds, argument) => Err(format!(
            "{name} has {:?}: expected seconds, such as {name}=3600",
            argument.unwrap_or("")
        )),
    }
}

/// Whether the argument is a number that caches can represent (RFC 9111, section 1.2.2).
fn is_seconds(argument: &str) -> bool {
    let is_digits = argument.bytes().all(|byte| byte.is_ascii_digit());
    is_digits
        && argument
            .parse::<u32>()
            .is_ok_and(|seconds| seconds <= 1 << 31)
}

/// Whether the argument is a quoted string of printable ASCII without escapes.
fn is_quoted(argument: &str) -> bool {
    let inside = argument
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| {
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte);
        !inside.is_empty() && inside.bytes().all(is_plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_cache_control_is_accepted() {
        for text in [
            "no-store",
            "public, max-age=31536000, immutable",
            "Private,Max-Age=0 , must-revalidate",
            "private=\"set-cookie, x-user\", no-cache=\"set-cookie\"",
            "s-maxage=2147483648, stale-while-revalidate=60,stale-if-error=86400",
            "no-cache, no-store, max-age=0, must-revalidate",
            "max-age=5, community=\"UCI, or so\", x=y",
        ] {
            assert_eq!(parse_cache_control(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn invalid_cache_control_is_rejected() {
        for (text, expected) in [
            (
                "",
                "\"\" is not a Cache-Control value: \"\" is not a directive; expected directives such as \"public, max-age=3600\"",
            ),
            (
                "public max-age=3600",
                "\"public max-age=3600\" is not a Cache-Control value: \"public max-age\" is not a directive; expected directives such as \"public, max-age=3600\"",
            ),
            (
                "public,",
                "\"public,\" is not a Cache-Control value: \"\" is not a directive; expected directives such as \"public, max-age=3600\"",
            ),
            (
                "max_age=5",
                "\"max_age=5\" is not a Cache-Control value: unknown directive \"max_age\"; nearest: \"max-age\"",
            ),
            (
                "max-age=1h",
                "\"max-age=1h\" is not a Cache-Control value: max-age has \"1h\": expected seconds, such as max-age=3600",
            ),
            (
                "max-age",
                "\"max-age\" is not a Cache-Control value: max-age has \"\": expected seconds, such as max-age=3600",
            ),
            (
                "s-maxage=99999999999",
                "\"s-maxage=99999999999\" is not a Cache-Control value: s-maxage has \"99999999999\": expected seconds, such as s-maxage=3600",
            ),
            (
                "max-age=+5",
                "\"max-age=+5\" is not a Cache-Control value: max-age has \"+5\": expected seconds, such as max-age=3600",
            ),
            (
                "no-store=1",
                "\"no-store=1\" is not a Cache-Control value: no-store has \"1\": expected no value",
            ),
            (
                "private=set-cookie",
                "\"private=set-cookie\" is not a Cache-Control value: private has \"set-cookie\": expected a quoted list of field names, or no value",
            ),
            (
                "only-if-cached",
                "\"only-if-cached\" is not a Cache-Control value: only-if-cached is for requests; expected directives such as \"public, max-age=3600\"",
            ),
            (
                "x=\"a\u{7f}\"",
                "\"x=\\\"a\\u{7f}\\\"\" is not a Cache-Control value: x has \"\\\"a\\u{7f}\\\"\": expected a word, or a quoted string",
            ),
            (
                "max-age=5, MAX-AGE=6",
                "\"max-age=5, MAX-AGE=6\" has max-age twice: expected it once",
            ),
            (
                "public, private",
                "\"public, private\" has both public and private: expected one of them",
            ),
        ] {
            let error = parse_cache_control(text).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
        let long = format!("x=\"{}\"", "y".repeat(CACHE_CONTROL_BYTES_MAX));
        assert!(parse_cache_control(&long).is_err());
    }
}
