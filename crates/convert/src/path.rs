//! Conditions on a path, and what two of them are together.

use onrush_config::value;

use crate::pcre::{translated, without_look_ahead};

/// What a path has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Any,
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
    /// A regular expression that is found in it.
    Pattern(String),
}

/// Two conditions as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Both<T> {
    Is(T),
    /// Nothing fulfils both.
    Never,
    /// There may be such requests, but Onrush has no condition for them.
    Inexpressible,
}

impl Path {
    /// A regular expression, in the syntax of Onrush.
    ///
    /// # Errors
    /// When Onrush does not take it, with its reason: look-around and back-references, for instance.
    pub(crate) fn pattern(pattern: &str) -> Result<Path, String> {
        match value::parse_path(&format!("~{pattern}")) {
            Ok(_) => Ok(Path::Pattern(pattern.to_owned())),
            Err(invalid) => match without_look_ahead(pattern) {
                Some(same) => Path::pattern(&same),
                None => Err(invalid.to_string()),
            },
        }
    }

    /// The same where an expression is one of PCRE, of a path without its encodings. Literals stay as they are.
    pub(crate) fn of_pcre(self) -> Path {
        match self {
            Path::Pattern(pattern) => Path::Pattern(translated(&pattern)),
            other => other,
        }
    }

    /// As a route's `path` says it; none for any path.
    pub(crate) fn written(&self) -> Option<String> {
        match self {
            Path::Any => None,
            Path::Exact(path) => Some(format!("={path}")),
            Path::Prefix(path) => Some(path.clone()),
            Path::Suffix(_) | Path::Contains(_) | Path::Pattern(_) => {
                Some(format!("~{}", self.as_pattern()))
            }
        }
    }

    /// The regular expression that is found in the same paths.
    pub(crate) fn as_pattern(&self) -> String {
        match self {
            Path::Any => "^/".to_owned(),
            // Not `$`, which is something else in PCRE.
            Path::Exact(path) => format!("^{}\\z", regex::escape(path)),
            Path::Prefix(path) => format!("^{}", regex::escape(path)),
            Path::Suffix(end) => format!("{}\\z", regex::escape(end)),
            Path::Contains(part) => regex::escape(part),
            Path::Pattern(pattern) => pattern.clone(),
        }
    }

    /// Whether a path fulfils it.
    pub(crate) fn holds(&self, path: &str) -> bool {
        match self {
            Path::Any => true,
            Path::Exact(exact) => path == exact,
            Path::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Path::Suffix(end) => path.ends_with(end.as_str()),
            Path::Contains(part) => path.contains(part.as_str()),
            Path::Pattern(pattern) => {
                let regex = regex::bytes::Regex::new(pattern);
                regex.is_ok_and(|regex| regex.is_match(path.as_bytes()))
            }
        }
    }

    /// Both at once.
    pub(crate) fn and(&self, other: &Path) -> Both<Path> {
        match (self, other) {
            (one, other) if one == other => Both::Is(one.clone()),
            (Path::Any, path) | (path, Path::Any) => Both::Is(path.clone()),
            (Path::Exact(path), test) | (test, Path::Exact(path)) => match test.holds(path) {
                true => Both::Is(Path::Exact(path.clone())),
                false => Both::Never,
            },
            (Path::Prefix(one), Path::Prefix(other)) => {
                let (short, long) = match one.len() < other.len() {
                    true => (one, other),
                    false => (other, one),
                };
                match long.starts_with(short.as_str()) {
                    true => Both::Is(Path::Prefix(long.clone())),
                    false => Both::Never,
                }
            }
            (Path::Prefix(root), test) | (test, Path::Prefix(root)) if root == "/" => {
                Both::Is(test.clone())
            }
            (Path::Prefix(prefix), test) | (test, Path::Prefix(prefix)) => beneath(prefix, test),
            _ => Both::Inexpressible,
        }
    }
}

/// What of `test` begins with `prefix`.
fn beneath(prefix: &str, test: &Path) -> Both<Path> {
    let pattern = test.as_pattern();
    let (flags, bare) = match pattern.strip_prefix("(?i)") {
        Some(bare) => ("i", bare),
        None => ("", pattern.as_str()),
    };
    let is_anchored = bare.replace("[^", "[").replace("\\^", "").contains('^');
    if is_anchored && (has_top_level_choice(bare) || !bare.starts_with('^')) {
        return Both::Inexpressible;
    }
    let combined = match bare.strip_prefix('^') {
        Some(rest) => {
            let literal = leading_literal(rest);
            let is_same = literal
                .bytes()
                .zip(prefix.bytes())
                .all(|(one, other)| is_letter(one, other, flags));
            match behind_literal(rest, prefix.chars().count()) {
                _ if !is_same => return Both::Never,
                Some(_) if flags.is_empty() && literal.len() >= prefix.len() => pattern,
                Some(behind) if literal.len() >= prefix.len() => {
                    format!("^{}(?i:{behind})", regex::escape(prefix))
                }
                _ => return Both::Inexpressible,
            }
        }
        None if is_found_in(prefix, flags, bare) => {
            return Both::Is(Path::Prefix(prefix.to_owned()));
        }
        None => match found_beneath(prefix, flags, bare) {
            Some(pattern) => pattern,
            None => return Both::Inexpressible,
        },
    };
    match Path::pattern(&combined) {
        Ok(path) => Both::Is(path),
        Err(_) => Both::Inexpressible,
    }
}

fn is_letter(one: u8, other: u8, flags: &str) -> bool {
    one == other || !flags.is_empty() && one.eq_ignore_ascii_case(&other)
}

/// Whether `bare` is found in every path that begins with `prefix`.
fn is_found_in(prefix: &str, flags: &str, bare: &str) -> bool {
    let mut edges = ["$", "\\b", "\\B", "\\z"].iter();
    let regex = regex::Regex::new(&format!("(?{flags}:{bare})"));
    !edges.any(|edge| bare.contains(edge)) && regex.is_ok_and(|regex| regex.is_match(prefix))
}

/// The expression for paths beneath `prefix` in which `bare` is found, also where it begins in the prefix itself; none where
/// that is not easily seen.
fn found_beneath(prefix: &str, flags: &str, bare: &str) -> Option<String> {
    let escaped = regex::escape(prefix);
    // What stands before is anything anyway.
    let found = bare.strip_prefix(".*").or(bare.strip_prefix(".+"));
    let found = found.filter(|rest| !rest.starts_with('?')).unwrap_or(bare);
    let literal: Vec<char> = leading_literal(found).chars().collect();
    let is_beginning =
        prefix.ends_with('/') && !found.contains(['/', '.']) && !found.contains("[^");
    if (literal.is_empty() || has_top_level_choice(found)) && !is_beginning {
        return None;
    }
    let mut ways = Vec::new();
    for length in 1..=literal.len() {
        let begin: String = literal[..length].iter().collect();
        let at = prefix.len().checked_sub(begin.len());
        let end = at.and_then(|at| prefix.get(at..)).unwrap_or_default();
        let is_same = |(one, other)| is_letter(one, other, flags);
        if !end.is_empty() && end.bytes().zip(begin.bytes()).all(is_same) {
            ways.push(format!("(?{flags}:{})", behind_literal(found, length)?));
        }
    }
    // Paths may have bytes that are no text, and ends of lines.
    ways.push(format!("(?s-u:.*)(?{flags}:{bare})"));
    Some(match &ways[..] {
        [one] => format!("^{escaped}{one}"),
        several => format!("^{escaped}(?:{})", several.join("|")),
    })
}

/// What of a pattern is behind its first letters, which stand for themselves.
fn behind_literal(pattern: &str, letters: usize) -> Option<&str> {
    let mut rest = pattern.chars();
    for _ in 0..letters {
        if rest.next()? == '\\' {
            rest.next()?;
        }
    }
    Some(rest.as_str())
}

/// Whether a `|` stands outside of all parentheses.
pub(crate) fn has_top_level_choice(pattern: &str) -> bool {
    let mut depth = 0_usize;
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// What every text that an expression matches begins with, as far as that is easily seen.
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
    fn two_conditions_are_one_where_onrush_has_it() {
        let prefix = |text: &str| Path::Prefix(text.to_owned());
        let exact = |text: &str| Path::Exact(text.to_owned());
        let pattern = |text: &str| Path::Pattern(text.to_owned());
        let suffix = Path::Suffix(".php".to_owned());
        for (one, other, expected) in [
            (prefix("/a"), prefix("/a/b"), Both::Is(prefix("/a/b"))),
            (prefix("/a"), prefix("/b"), Both::Never),
            (exact("/a.php"), suffix.clone(), Both::Is(exact("/a.php"))),
            (exact("/a"), suffix.clone(), Both::Never),
            (Path::Any, exact("/a"), Both::Is(exact("/a"))),
            (
                prefix("/a/"),
                suffix.clone(),
                Both::Is(pattern("^/a/(?s-u:.*)(?:\\.php\\z)")),
            ),
            (
                prefix("/sub"),
                pattern("b$"),
                Both::Is(pattern("^/sub(?:(?:$)|(?s-u:.*)(?:b$))")),
            ),
            (
                prefix("/a"),
                pattern("(?i)^/A/b"),
                Both::Is(pattern("^/a(?i:/b)")),
            ),
            (
                prefix("/a/"),
                pattern("^/a/[0-9]"),
                Both::Is(pattern("^/a/[0-9]")),
            ),
            (prefix("/a/"), pattern("^/b/[0-9]"), Both::Never),
            (prefix("/a/"), pattern("^/a?"), Both::Inexpressible),
            (prefix("/a/"), pattern("^/a/|b"), Both::Inexpressible),
            (pattern("x"), pattern("y"), Both::Inexpressible),
        ] {
            assert_eq!(one.and(&other), expected, "{one:?} and {other:?}");
            assert_eq!(other.and(&one), expected, "{other:?} and {one:?}");
        }
    }

    #[test]
    fn expressions_that_need_more_than_linear_time_are_refused() {
        let refused = Path::pattern("^/(?=x)").expect_err("look-ahead");
        assert!(refused.contains("look-around"), "{refused}");
    }
}
