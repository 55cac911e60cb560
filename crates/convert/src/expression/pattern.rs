//! Recognises expressions that are equivalent to a prefix or an exact path, and the value of `$1` for them.

use crate::expression::condition::Path;

/// An expression that is equivalent to a prefix or an exact path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrefixPattern {
    pub(crate) path: Path,
    /// Start of the value of `$1`; the rest of the path after the prefix follows. None without a group.
    pub(crate) captured: Option<String>,
}

/// Parses an expression; none if it is not that simple.
pub(crate) fn prefix_pattern(pattern: &str) -> Option<PrefixPattern> {
    if matches!(
        pattern,
        "^" | "/" | "^/" | ".*" | "^.*$" | "^.*" | "^/.*" | "^/.*$"
    ) {
        return Some(PrefixPattern {
            path: Path::Prefix("/".to_owned()),
            captured: None,
        });
    }
    if matches!(
        pattern,
        "^(.*)$" | "^(.*)" | "(.*)" | "(.*)$" | "^(.+)$" | "^(/.*)$" | "^(/.*)"
    ) {
        return Some(PrefixPattern {
            path: Path::Prefix("/".to_owned()),
            captured: Some("/".to_owned()),
        });
    }
    let mut rest = pattern.strip_prefix('^')?;
    let mut literal = String::new();
    while let Some(letter) = rest.chars().next() {
        let (letter, length) = match letter {
            '\\' => match rest[1..].chars().next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => {
                    (escaped, 1 + escaped.len_utf8())
                }
                _ => return None,
            },
            '.' | '[' | '(' | ')' | '*' | '+' | '?' | '{' | '|' | '$' => break,
            letter => (letter, letter.len_utf8()),
        };
        if rest[length..].starts_with(['*', '?', '{', '+']) {
            break;
        }
        literal.push(letter);
        rest = &rest[length..];
    }
    if !literal.starts_with('/') {
        return None;
    }
    let prefix = |path: String, captured: Option<&str>| {
        Some(PrefixPattern {
            path: Path::Prefix(path),
            captured: captured.map(str::to_owned),
        })
    };
    match rest {
        "" | ".*" | ".*$" => prefix(literal, None),
        "$" => Some(PrefixPattern {
            path: Path::Exact(literal),
            captured: None,
        }),
        "(.*)" | "(.*)$" | "(.+)$" | "(.+)" => prefix(literal, Some("")),
        "(/.*)" | "(/.*)$" => prefix(format!("{literal}/"), Some("/")),
        "/?(.*)" | "/?(.*)$" => prefix(literal, Some("")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_patterns_are_recognised() {
        for (pattern, expected) in [
            ("^/a/(.*)$", Some((Path::Prefix("/a/".into()), Some("")))),
            ("^/a(/.*)$", Some((Path::Prefix("/a/".into()), Some("/")))),
            ("^/a/?(.*)$", Some((Path::Prefix("/a".into()), Some("")))),
            ("^/a\\.b$", Some((Path::Exact("/a.b".into()), None))),
            ("^(.*)$", Some((Path::Prefix("/".into()), Some("/")))),
            ("^/", Some((Path::Prefix("/".into()), None))),
            ("\\.php$", None),
            ("^/(a|b)$", None),
            ("^/a\\d", None),
            ("(?i)^/a", None),
        ] {
            let found = prefix_pattern(pattern).map(|simple| (simple.path, simple.captured));
            let expected = expected.map(|(path, captured)| (path, captured.map(str::to_owned)));
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
