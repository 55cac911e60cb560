//! Conditions on a path, and their conjunctions.

use onrush_config::automaton::may_begin_with;
use onrush_config::value;

use crate::expression::automaton::matches_independently_after;
use crate::expression::dialect::translate;
use crate::expression::parts::alternatives;
use crate::expression::pcre::{
    in_bytes, is_found, literals_of, not_starting_with, with_pcre_semantics,
};
use crate::limits::PREFIX_MAX;

/// Condition on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Any,
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
    /// A regular expression that matches part of the path.
    Pattern(String),
    /// A prefix, and a regular expression that may match anywhere in the path, also in the prefix.
    Within(String, String),
}

/// Conjunction of two conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conjunction<T> {
    Is(T),
    /// No request fulfils both.
    Never,
    /// Some requests may fulfil both, but Onrush cannot express that.
    Inexpressible,
}

impl<T> Conjunction<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Conjunction<U> {
        match self {
            Conjunction::Is(both) => Conjunction::Is(change(both)),
            Conjunction::Never => Conjunction::Never,
            Conjunction::Inexpressible => Conjunction::Inexpressible,
        }
    }
}

impl Path {
    /// Parses an expression in the syntax of Onrush.
    pub(crate) fn pattern(pattern: &str) -> Result<Path, String> {
        match value::parse_path(&format!("~{pattern}")) {
            Ok(_) => Ok(Path::Pattern(pattern.to_owned())),
            Err(invalid) => Err(invalid.to_string()),
        }
    }

    /// Parses an expression in the syntax of PCRE. Fails for look-around and back-references, for instance.
    pub(crate) fn from_pcre(pattern: &str) -> Result<Path, String> {
        Path::pattern(&translate(pattern)?)
    }

    /// The same condition, with an expression that matches bytes.
    pub(crate) fn in_bytes(self) -> Path {
        match self {
            Path::Pattern(pattern) => Path::Pattern(in_bytes(&pattern)),
            Path::Within(prefix, pattern) => Path::Within(prefix, in_bytes(&pattern)),
            other => other,
        }
    }

    /// The same condition, with its expression translated from PCRE. Literals stay as they are.
    pub(crate) fn with_pcre_semantics(self) -> Path {
        match self {
            Path::Pattern(pattern) => Path::Pattern(with_pcre_semantics(&pattern)),
            Path::Within(prefix, pattern) => Path::Within(prefix, with_pcre_semantics(&pattern)),
            other => other,
        }
    }

    /// Whether it is a literal path that Onrush accepts. A path that Onrush would refuse as a likely mistake, such as
    /// `/a%2Fb`, is written as an expression instead.
    pub(crate) fn is_literal(&self) -> bool {
        match self {
            Path::Exact(path) | Path::Prefix(path) => value::parse_path(path).is_ok(),
            _ => false,
        }
    }

    /// Whether no request can match, because dot segments are resolved before. The last segment of a prefix may be
    /// longer in a request, so it does not count.
    pub(crate) fn is_unreachable(&self) -> bool {
        let segments = match self {
            Path::Exact(path) => path,
            Path::Prefix(path) => path.rsplit_once('/').map_or("", |(segments, _)| segments),
            _ => return false,
        };
        let mut segments = segments.split('/');
        segments.any(|segment| matches!(segment, "." | ".."))
    }

    /// The value of a route's `path`; none for any path.
    pub(crate) fn written(&self) -> Option<String> {
        match self {
            Path::Any => None,
            Path::Exact(path) | Path::Prefix(path)
                if path.starts_with('/') && !self.is_literal() =>
            {
                Some(format!("~{}", self.as_pattern()))
            }
            Path::Exact(path) => Some(format!("={path}")),
            Path::Prefix(path) => Some(path.clone()),
            Path::Suffix(_) | Path::Contains(_) | Path::Pattern(_) | Path::Within(..) => {
                Some(format!("~{}", self.as_pattern()))
            }
        }
    }

    /// An expression for the value of `not`: paths that do not start with the prefix of [`Path::Within`].
    pub(crate) fn except(&self) -> Option<String> {
        match self {
            Path::Within(prefix, _) => Some(format!("~(?s-u)^{}", not_starting_with(prefix))),
            _ => None,
        }
    }

    /// A regular expression for the same paths, ignoring [`Path::except`].
    pub(crate) fn as_pattern(&self) -> String {
        match self {
            Path::Any => "^/".to_owned(),
            // Not `$`, which PCRE also matches before a final line break.
            Path::Exact(path) => format!("^{}\\z", regex::escape(path)),
            Path::Prefix(path) => format!("^{}", regex::escape(path)),
            Path::Suffix(end) => format!("{}\\z", regex::escape(end)),
            Path::Contains(part) => regex::escape(part),
            Path::Pattern(pattern) | Path::Within(_, pattern) => pattern.clone(),
        }
    }

    pub(crate) fn holds(&self, path: &str) -> bool {
        match self {
            Path::Any => true,
            Path::Exact(exact) => path == exact,
            Path::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Path::Suffix(end) => path.ends_with(end.as_str()),
            Path::Contains(part) => path.contains(part.as_str()),
            Path::Pattern(pattern) => is_found(pattern, path),
            Path::Within(prefix, pattern) => {
                path.starts_with(prefix.as_str()) && Path::Pattern(pattern.clone()).holds(path)
            }
        }
    }

    pub(crate) fn and(&self, other: &Path) -> Conjunction<Path> {
        match (self, other) {
            (one, other) if one == other => Conjunction::Is(one.clone()),
            (Path::Any, path) | (path, Path::Any) => Conjunction::Is(path.clone()),
            (Path::Exact(path), test) | (test, Path::Exact(path)) => match test.holds(path) {
                true => Conjunction::Is(Path::Exact(path.clone())),
                false => Conjunction::Never,
            },
            (within @ Path::Within(prefix, pattern), test)
            | (test, within @ Path::Within(prefix, pattern)) => match test {
                Path::Prefix(longer) if longer.starts_with(prefix.as_str()) => {
                    with_prefix(longer, &Path::Pattern(pattern.clone()))
                }
                Path::Prefix(shorter) if prefix.starts_with(shorter.as_str()) => {
                    Conjunction::Is(within.clone())
                }
                Path::Prefix(_) => Conjunction::Never,
                Path::Within(..) => Conjunction::Inexpressible,
                other if other.as_pattern() == *pattern => Conjunction::Is(within.clone()),
                _ => Conjunction::Inexpressible,
            },
            (Path::Prefix(one), Path::Prefix(other)) => {
                let (short, long) = match one.len() < other.len() {
                    true => (one, other),
                    false => (other, one),
                };
                match long.starts_with(short.as_str()) {
                    true => Conjunction::Is(Path::Prefix(long.clone())),
                    false => Conjunction::Never,
                }
            }
            (Path::Prefix(root), test) | (test, Path::Prefix(root)) if root == "/" => {
                Conjunction::Is(test.clone())
            }
            (Path::Prefix(prefix), test) | (test, Path::Prefix(prefix)) => {
                with_prefix(prefix, test)
            }
            _ => Conjunction::Inexpressible,
        }
    }
}

fn with_prefix(prefix: &str, test: &Path) -> Conjunction<Path> {
    let pattern = test.as_pattern();
    let (flags, bare) = match pattern.strip_prefix("(?i)") {
        Some(bare) => ("i", bare),
        None => ("", pattern.as_str()),
    };
    if !may_begin_with(&with_pcre_semantics(&pattern), prefix) {
        return Conjunction::Never;
    }
    if flags.is_empty()
        && let Some(literals) = bare.strip_prefix('^').and_then(literals_of)
    {
        return of_literals(prefix, literals);
    }
    let is_anchored = bare.replace("[^", "[").replace("\\^", "").contains('^');
    if is_anchored {
        return anchored_beneath(prefix, flags, bare).unwrap_or_else(|| within(prefix, &pattern));
    }
    if is_found_in(prefix, flags, bare) {
        return Conjunction::Is(Path::Prefix(prefix.to_owned()));
    }
    if !matches_independently_after(&in_bytes(&pattern), prefix) {
        return within(prefix, &pattern);
    }
    // Paths may contain bytes that are not UTF-8, and line breaks.
    let escaped = regex::escape(prefix);
    match Path::pattern(&format!("^{escaped}(?s-u:.*)(?{flags}:{bare})")) {
        Ok(path) => Conjunction::Is(path),
        Err(_) => Conjunction::Inexpressible,
    }
}

/// The conjunction of a prefix and an anchored expression whose literal start includes the prefix. None if that cannot
/// be seen from the literal start.
fn anchored_beneath(prefix: &str, flags: &str, bare: &str) -> Option<Conjunction<Path>> {
    let rest = bare.strip_prefix('^')?;
    let literal = leading_literal(rest);
    if alternatives(bare).len() > 1 || literal.len() < prefix.len() {
        return None;
    }
    let behind = behind_literal(rest, prefix.chars().count())?;
    let combined = match flags.is_empty() {
        true => bare.to_owned(),
        false => format!("^{}(?i:{behind})", regex::escape(prefix)),
    };
    Path::pattern(&combined).ok().map(Conjunction::Is)
}

/// Both conditions as [`Path::Within`].
fn within(prefix: &str, pattern: &str) -> Conjunction<Path> {
    let within = Path::Within(prefix.to_owned(), pattern.to_owned());
    match prefix.len() <= PREFIX_MAX && prefix.is_ascii() {
        true => Conjunction::Is(within),
        false => Conjunction::Inexpressible,
    }
}

/// The conjunction of `prefix` with an expression for paths that start with one of the literals.
fn of_literals(prefix: &str, literals: Vec<Vec<char>>) -> Conjunction<Path> {
    let literals = literals.into_iter().map(String::from_iter);
    let mut longer: Vec<String> = Vec::new();
    for literal in literals {
        if prefix.starts_with(&literal) {
            return Conjunction::Is(Path::Prefix(prefix.to_owned()));
        }
        if literal.starts_with(prefix) {
            longer.push(literal);
        }
    }
    match &longer[..] {
        [] => Conjunction::Never,
        [one] => Conjunction::Is(Path::Prefix(one.clone())),
        several => {
            let ways: Vec<String> = several.iter().map(|way| regex::escape(way)).collect();
            Conjunction::Is(Path::Pattern(format!("^(?:{})", ways.join("|"))))
        }
    }
}

/// Whether `bare` matches every path that starts with `prefix`.
fn is_found_in(prefix: &str, flags: &str, bare: &str) -> bool {
    let mut edges = ["$", "\\b", "\\B", "\\z"].iter();
    !edges.any(|edge| bare.contains(edge)) && is_found(&format!("(?{flags}:{bare})"), prefix)
}

/// The rest of a pattern after this number of literal letters.
fn behind_literal(pattern: &str, letters: usize) -> Option<&str> {
    let mut rest = pattern.chars();
    for _ in 0..letters {
        if rest.next()? == '\\' {
            rest.next()?;
        }
    }
    Some(rest.as_str())
}

/// A literal with which every match starts, as long as it can easily be seen.
pub(crate) fn leading_literal(pattern: &str) -> String {
    let mut literal = String::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\\' => match letters.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => escaped,
                _ => break,
            },
            '.' | '[' | '(' | ')' | '*' | '+' | '?' | '{' | '|' | '^' | '$' => break,
            letter => letter,
        };
        if matches!(letters.peek(), Some('*' | '?' | '{')) {
            break;
        }
        literal.push(letter);
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_conditions_are_combined() {
        let prefix = |text: &str| Path::Prefix(text.to_owned());
        let exact = |text: &str| Path::Exact(text.to_owned());
        let pattern = |text: &str| Path::Pattern(text.to_owned());
        let suffix = Path::Suffix(".php".to_owned());
        for (one, other, expected) in [
            (
                prefix("/a"),
                prefix("/a/b"),
                Conjunction::Is(prefix("/a/b")),
            ),
            (prefix("/a"), prefix("/b"), Conjunction::Never),
            (
                exact("/a.php"),
                suffix.clone(),
                Conjunction::Is(exact("/a.php")),
            ),
            (exact("/a"), suffix.clone(), Conjunction::Never),
            (Path::Any, exact("/a"), Conjunction::Is(exact("/a"))),
            (
                prefix("/a/"),
                suffix.clone(),
                Conjunction::Is(pattern("^/a/(?s-u:.*)(?:\\.php\\z)")),
            ),
            (
                prefix("/sub"),
                pattern("b$"),
                Conjunction::Is(Path::Within("/sub".to_owned(), "b$".to_owned())),
            ),
            (
                prefix("/a"),
                pattern("(?i)^/A/b"),
                Conjunction::Is(pattern("^/a(?i:/b)")),
            ),
            (
                prefix("/a/"),
                pattern("^/a/[0-9]"),
                Conjunction::Is(pattern("^/a/[0-9]")),
            ),
            (prefix("/a/"), pattern("^/b/[0-9]"), Conjunction::Never),
            (
                prefix("/c"),
                pattern("^/(a|c)/"),
                Conjunction::Is(prefix("/c/")),
            ),
            (
                prefix("/c/d"),
                pattern("^/(a|c)/"),
                Conjunction::Is(prefix("/c/d")),
            ),
            (prefix("/x"), pattern("^/(a|c)/"), Conjunction::Never),
            (
                prefix("/c"),
                pattern("^/c(a|b)"),
                Conjunction::Is(pattern("^(?:/ca|/cb)")),
            ),
            (prefix("/x"), pattern("^/a|^/b$"), Conjunction::Never),
            (
                prefix("/a/"),
                pattern("^/a?"),
                Conjunction::Is(Path::Within("/a/".to_owned(), "^/a?".to_owned())),
            ),
            (
                prefix("/c/x.php"),
                pattern("(?i)\\.(php|sql)$"),
                Conjunction::Is(Path::Within(
                    "/c/x.php".to_owned(),
                    "(?i)\\.(php|sql)$".to_owned(),
                )),
            ),
            (pattern("x"), pattern("y"), Conjunction::Inexpressible),
        ] {
            assert_eq!(one.and(&other), expected, "{one:?} and {other:?}");
            assert_eq!(other.and(&one), expected, "{other:?} and {one:?}");
        }
    }

    #[test]
    fn look_around_is_refused() {
        let refused = Path::from_pcre("^/(?=x)").expect_err("look-ahead");
        assert!(refused.contains("look-around"), "{refused}");
    }
}
