//! Conditions on requests: hosts, paths, methods and values.

use super::{Invalid, is_token};
use crate::limits;
use crate::plan::{Host, PathMatch, Pattern, ValueMatch};

/// Parses a host of a `Host` header without port: a name, an IPv4 address, or an IPv6 address in brackets; or
/// `*.example.com` for all names below a domain.
pub fn parse_host(text: &str) -> Result<Host, Invalid> {
    if let Some(below) = text.strip_prefix('*') {
        let is_name = below
            .strip_prefix('.')
            .is_some_and(|name| is_host_name(name) && !is_number(name));
        if is_name {
            return Ok(Host::new(text));
        }
        return Err(Invalid::new(format!(
            "host {text:?}: a \"*\" stands for whole labels at the beginning, such as \"*.example.com\""
        )));
    }
    let literal = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let valid = match literal {
        Some(literal) => literal.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_host_name(text),
    };
    if valid {
        return Ok(Host::new(text));
    }
    if text
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
        && !text.contains("::")
    {
        return Err(Invalid::new(format!(
            "host {text:?}: leave the port out; a host matches on every port"
        )));
    }
    Err(Invalid::new(format!(
        "{text:?} is not a host name: expected one such as \"static.example.com\""
    )))
}

/// Whether `text` is a host name: labels of letters, digits, `-` and `_`, each at most 63 characters (RFC 1123, section
/// 2.1; container networks use the underscore). IPv4 addresses also have this form.
pub(crate) fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=limits::HOST_LABEL_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= limits::HOST_MAX && text.split('.').all(is_label)
}

/// Whether `text` consists of digits and dots: it is then a valid or invalid IPv4 address, never a name.
pub(crate) fn is_number(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Parses a regular expression of the `regex` crate: linear time, without look-around and back-references.
pub(crate) fn parse_pattern(text: &str) -> Result<Pattern, Invalid> {
    let built = regex::bytes::RegexBuilder::new(text)
        .size_limit(limits::PATTERN_BYTES_MAX)
        .build();
    match built {
        Ok(regex) => Ok(Pattern::new(regex)),
        Err(regex::Error::CompiledTooBig(_)) => Err(Invalid::new(format!(
            "regular expression {text:?} is too large: expected at most {} KiB when compiled",
            limits::PATTERN_BYTES_MAX >> 10
        ))),
        Err(error) => {
            // The last line is the message; those before it point to the place.
            let what = error.to_string();
            let what = what.lines().last().unwrap_or_default();
            let what = what.strip_prefix("error: ").unwrap_or(what);
            Err(Invalid::new(format!(
                "{text:?} is not a regular expression: {what}"
            )))
        }
    }
}

/// Parses a condition on a path: a prefix `/p/`, `=/exact`, or a regular expression `~^/p/[0-9]+$`.
pub fn parse_path(text: &str) -> Result<PathMatch, Invalid> {
    if let Some(pattern) = text.strip_prefix('~') {
        return parse_pattern(pattern).map(PathMatch::Regex);
    }
    let (exact, path) = match text.strip_prefix('=') {
        Some(path) => (true, path),
        None => (false, text),
    };
    if !path.starts_with('/') {
        return Err(Invalid::new(format!(
            "path {text:?} does not begin with \"/\": expected a prefix such as \"/p/\" or an exact path such as \"=/p\""
        )));
    }
    if let Some(bad) = path
        .chars()
        .find(|letter| matches!(letter, '?' | '#' | ' ') || letter.is_control())
    {
        return Err(Invalid::new(format!(
            "path {text:?} contains {bad:?}, which is never part of a request's path"
        )));
    }
    if path.to_ascii_lowercase().contains("%2f") {
        return Err(Invalid::new(format!(
            "path {text:?} contains an encoded slash, but paths are matched after decoding: write \"/\""
        )));
    }
    refuse_dot_segments(path)?;
    Ok(if exact {
        PathMatch::Exact(path.to_owned())
    } else {
        PathMatch::Prefix(path.to_owned())
    })
}

pub(crate) fn refuse_dot_segments(path: &str) -> Result<(), Invalid> {
    let mut segments = path.split('/');
    match segments.find(|segment| matches!(*segment, "." | "..")) {
        None => Ok(()),
        Some(dots) => Err(Invalid::new(format!(
            "path {path:?} contains the segment {dots:?}: write the path without such segments"
        ))),
    }
}

/// Parses a method: a token in upper case, like all registered methods.
pub(crate) fn parse_method(text: &str) -> Result<String, Invalid> {
    if !is_token(text) {
        return Err(Invalid::new(format!(
            "{text:?} is not a method: expected one such as \"GET\""
        )));
    }
    let upper = text.to_ascii_uppercase();
    if upper != text {
        return Err(Invalid::new(format!(
            "method {text:?} is written {upper:?}: methods are case-sensitive"
        )));
    }
    if text == "CONNECT" {
        return Err(Invalid::new(
            "CONNECT is refused with 501 before routes are matched",
        ));
    }
    Ok(upper)
}

/// Parses a condition on a value: `*` for present, `!` for absent, `~` and a regular expression, or the exact value.
pub(crate) fn parse_value_match(text: &str) -> Result<ValueMatch, Invalid> {
    match text {
        "*" => Ok(ValueMatch::Present),
        "!" => Ok(ValueMatch::Absent),
        _ => match text.strip_prefix('~') {
            Some(pattern) => parse_pattern(pattern).map(ValueMatch::Regex),
            None => Ok(ValueMatch::Exact(text.to_owned())),
        },
    }
}

/// Parses a search pattern: literal text, or `~` and a regular expression.
pub(crate) fn parse_search(text: &str) -> Result<Pattern, Invalid> {
    match text.strip_prefix('~') {
        Some(pattern) => parse_pattern(pattern),
        None => parse_pattern(&regex::escape(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn hosts_with_ports_are_rejected() {
        check(
            parse_host,
            &[
                ("Static.Example.com", "Exact(\"static.example.com\")"),
                ("10.0.0.1", "Exact(\"10.0.0.1\")"),
                ("[::1]", "Exact(\"[::1]\")"),
                ("a_b", "Exact(\"a_b\")"),
                (
                    "",
                    "error: \"\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "a..b",
                    "error: \"a..b\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "-a",
                    "error: \"-a\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "[::1",
                    "error: \"[::1\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "a:80",
                    "error: host \"a:80\": leave the port out; a host matches on every port",
                ),
                ("*.a.com", "Subdomains(\".a.com\")"),
                (
                    "*a.com",
                    "error: host \"*a.com\": a \"*\" stands for whole labels at the beginning, such as \"*.example.com\"",
                ),
                (
                    "*.1.2",
                    "error: host \"*.1.2\": a \"*\" stands for whole labels at the beginning, such as \"*.example.com\"",
                ),
            ],
        );
        assert!(parse_host(&"a.".repeat(127)).is_err());
        assert!(parse_host(&"a".repeat(64)).is_err());
    }

    #[test]
    fn path_conditions_are_prefix_or_exact() {
        check(
            parse_path,
            &[
                ("/", "Prefix(\"/\")"),
                ("/p/", "Prefix(\"/p/\")"),
                ("=/health", "Exact(\"/health\")"),
                (
                    "p/",
                    "error: path \"p/\" does not begin with \"/\": expected a prefix such as \"/p/\" or an exact path such as \"=/p\"",
                ),
                (
                    "",
                    "error: path \"\" does not begin with \"/\": expected a prefix such as \"/p/\" or an exact path such as \"=/p\"",
                ),
                (
                    "/p?x",
                    "error: path \"/p?x\" contains '?', which is never part of a request's path",
                ),
                ("~^/p", "Regex(Pattern(Regex(\"^/p\")))"),
            ],
        );
    }

    #[test]
    fn invalid_regex_error_has_reason() {
        let large = format!("(a{{1000}}){{{}}}", 1000);
        check(
            parse_pattern,
            &[
                ("^/[0-9]+$", "Pattern(Regex(\"^/[0-9]+$\"))"),
                (
                    "(a",
                    "error: \"(a\" is not a regular expression: unclosed group",
                ),
                (
                    &large,
                    &format!(
                        "error: regular expression {large:?} is too large: expected at most 256 KiB when compiled"
                    ),
                ),
            ],
        );
    }

    #[test]
    fn methods_must_be_uppercase_tokens() {
        check(
            parse_method,
            &[
                ("GET", "\"GET\""),
                ("PROPFIND", "\"PROPFIND\""),
                (
                    "get",
                    "error: method \"get\" is written \"GET\": methods are case-sensitive",
                ),
                (
                    "A B",
                    "error: \"A B\" is not a method: expected one such as \"GET\"",
                ),
                (
                    "CONNECT",
                    "error: CONNECT is refused with 501 before routes are matched",
                ),
            ],
        );
    }

    #[test]
    fn value_conditions_are_parsed() {
        check(
            parse_value_match,
            &[
                ("*", "Present"),
                ("!", "Absent"),
                ("", "Exact(\"\")"),
                ("a*", "Exact(\"a*\")"),
                ("~^a", "Regex(Pattern(Regex(\"^a\")))"),
            ],
        );
        check(
            parse_search,
            &[
                ("a.b", "Pattern(Regex(\"a\\\\.b\"))"),
                ("~a.b", "Pattern(Regex(\"a.b\"))"),
            ],
        );
    }
}
