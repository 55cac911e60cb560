//! Questions about an expression and all possible paths, answered by a search through the states of its automaton.

use std::collections::HashSet;

use onrush_config::automaton::{Automaton, State};

/// Whether there may be a directory below `below` whose path does not match the expression, but matches with `name`
/// appended. Paths of directories end with a slash.
pub(crate) fn may_match_with_name(pattern: &str, below: &str, name: &str) -> bool {
    let Some(mut paths) = Paths::new(pattern) else {
        return true;
    };
    paths
        .any(below, &mut |paths, state| {
            if paths.automaton.is_match_at_end(state)? {
                return Some(false);
            }
            let state = paths.automaton.read(state, name)?;
            paths.automaton.is_match_at_end(state)
        })
        .unwrap_or(true)
}

/// Whether matching after `prefix` is the same as matching the rest on its own: no part of the prefix can belong to a
/// match.
pub(crate) fn matches_independently_after(pattern: &str, prefix: &str) -> bool {
    let fresh = |mut automaton: Automaton| {
        let none = automaton.start_after(prefix.bytes().last())?;
        let start = automaton.start()?;
        Some(automaton.read(start, prefix)? == none)
    };
    Automaton::new(pattern).and_then(fresh).unwrap_or(false)
}

/// Whether the expression matches after one prefix exactly where it matches after the other.
pub(crate) fn matches_same_after(pattern: &str, one: &str, other: &str) -> bool {
    let same = |mut automaton: Automaton| {
        let start = automaton.start()?;
        Some(automaton.read(start, one)? == automaton.read(start, other)?)
    };
    Automaton::new(pattern).and_then(same).unwrap_or(false)
}

/// Whether the result of an expression can differ between a request target (with query) and its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryEffect {
    /// The expression may match the target and not the path.
    pub(crate) is_found: bool,
    /// The expression may match the path and not the target.
    pub(crate) is_lost: bool,
}

/// The differences that a query can make to the result of an expression.
pub(crate) fn query_effect(pattern: &str) -> QueryEffect {
    let unknown = QueryEffect {
        is_found: true,
        is_lost: true,
    };
    if !pattern.contains('^') {
        return unknown;
    }
    let found = Paths::new(pattern).and_then(|mut paths| paths.with_queries());
    found.unwrap_or(unknown)
}

/// Whether the expression may match the path of a directory.
pub(crate) fn may_match_directory(pattern: &str) -> bool {
    let Some(mut paths) = Paths::new(pattern) else {
        return true;
    };
    let found = paths.any("/", &mut |paths, state| {
        paths.automaton.is_match_at_end(state)
    });
    found.unwrap_or(true) || paths.is_open
}

/// Search over all paths, by the states of the automaton.
struct Paths {
    automaton: Automaton,
    /// Whether the search has met a path prefix after which every path matches.
    is_open: bool,
}

impl Paths {
    fn new(pattern: &str) -> Option<Paths> {
        Automaton::new(pattern).map(|automaton| Paths {
            automaton,
            is_open: false,
        })
    }

    /// Compares all targets with their paths, which consist of bytes above the space. None if the automaton cannot
    /// decide.
    fn with_queries(&mut self) -> Option<QueryEffect> {
        let begin = self.automaton.start()?;
        let mut beyond = QueryEffect::default();
        // Each state, with the result for the path once the query has started.
        let (mut seen, mut waiting) = (HashSet::new(), Vec::new());
        waiting.push((self.automaton.next(begin, b'/')?, None));
        while let Some((state, in_path)) = waiting.pop() {
            if state.is_match() {
                beyond.is_found |= in_path == Some(false);
                continue;
            }
            if state.is_dead() {
                beyond.is_lost |= in_path == Some(true);
                continue;
            }
            if !seen.insert((state, in_path)) {
                continue;
            }
            let at_end = self.automaton.is_match_at_end(state)?;
            match in_path {
                Some(in_path) => {
                    beyond.is_found |= at_end && !in_path;
                    beyond.is_lost |= !at_end && in_path;
                }
                None => waiting.push((self.automaton.next(state, b'?')?, Some(at_end))),
            }
            for byte in (b'!'..=u8::MAX).filter(|byte| in_path.is_some() || *byte != b'?') {
                waiting.push((self.automaton.next(state, byte)?, in_path));
            }
        }
        Some(beyond)
    }

    /// Whether `holds` is true for any directory below `below`, among those in which no match is complete at their last
    /// slash. None if the automaton cannot decide.
    fn any(
        &mut self,
        below: &str,
        holds: &mut dyn FnMut(&mut Paths, State) -> Option<bool>,
    ) -> Option<bool> {
        let start = self.automaton.start()?;
        let state = self.automaton.read(start, below)?;
        if state.is_match() {
            self.is_open = true;
            return Some(false);
        }
        let mut seen = HashSet::new();
        let mut waiting = vec![(state, below.ends_with('/'))];
        while let Some((state, is_directory)) = waiting.pop() {
            if !seen.insert((state, is_directory)) {
                continue;
            }
            if is_directory && holds(self, state)? {
                return Some(true);
            }
            for byte in 1..=u8::MAX {
                let next = self.automaton.next(state, byte)?;
                match next.is_match() {
                    true => self.is_open = true,
                    false if next.is_dead() => {}
                    false => waiting.push((next, byte == b'/')),
                }
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::automaton::may_begin_with;

    #[test]
    fn expressions_can_match_index_file() {
        for (pattern, below, name, expected) in [
            (r"\.php\n?$", "/", "index.php", true),
            (r"\.php\n?$", "/", "index.html", false),
            (r"(?i-u)\.PHP\n?$", "/", "index.php", true),
            (r"(?-u)[^/]\.php(/|\n?$)", "/", "index.html", false),
            (r"(?-u)[^/]\.php(/|\n?$)", "/", "index.php", true),
            (r"/\.(git|ht)", "/", "index.html", false),
            (r"(?i-u)\.(jpe?g|png)\n?$", "/", "index.html", false),
            (r"(?-u)^/admin/.*\.html\n?$", "/", "index.html", true),
            (r"(?-u)^/admin/.*\.html\n?$", "/files/", "index.html", false),
            (r"(?-u)^/admin/.*\.php\n?$", "/", "index.html", false),
            (r"^/u/", "/", "index.html", false),
            (r"^/(a|b)/", "/", "index.html", false),
            (r"^/(a|index)", "/", "index.html", true),
            (r"x|^/", "/", "index.html", false),
            (
                r"(?-u)(?:#.*#|\.(?:bak|in[ci])|~)$",
                "/",
                "index.html",
                false,
            ),
            (r"(?-u)(a.*|\.(?:x|html))$", "/", "index.html", true),
            (r"^/a/(?s-u:.*)(?:\.(sql|bak)$)", "/", "index.html", false),
            (r"^/a/(?s-u:.*)(?:\.php$)", "/b/", "index.php", false),
            (r"/\.(?:\z|[^w]|w(?:\z|[^e]))", "/", "index.html", false),
            (r"^/(?:build|lib)(?:$|/)", "/", "index.html", false),
        ] {
            let found = may_match_with_name(pattern, below, name);
            assert_eq!(found, expected, "{pattern} {below} {name}");
        }
    }

    #[test]
    fn match_can_start_in_prefix() {
        for (pattern, prefix, expected) in [
            (r"\.php$", "/a/", true),
            (r"\.php$", "/a.", false),
            (r"\.(php|sql)$", "/c/x.php", false),
            (r"(?i)\.PHP$", "/a/x", true),
            (r"/\.git", "/a/", false),
            (r"/\.git", "/a", true),
            (r"[^/]\.php", "/a", false),
            (r"[^/]\.php", "/a/", true),
        ] {
            assert_eq!(
                matches_independently_after(pattern, prefix),
                expected,
                "{pattern} {prefix}"
            );
        }
    }

    #[test]
    fn expressions_can_match_below_prefix() {
        for (pattern, prefix, expected) in [
            ("^/(a|c)/", "/x", false),
            ("^/(a|c)/", "/c", true),
            ("^/a", "/a/b", true),
            ("^/a$", "/a/b", false),
            ("a$", "/x/", true),
        ] {
            assert_eq!(may_begin_with(pattern, prefix), expected, "{pattern}");
        }
    }

    #[test]
    fn query_can_change_expression_match() {
        for (pattern, is_found, is_lost) in [
            (r"^/admin", false, false),
            (r"(?-u)^/(a|b)/", false, false),
            (r"(?i-u)^/adm[a-z]+/x", false, false),
            (r"(?-u)^/a/(.*)\n?$", false, false),
            (r"(?-u)^/a(/|\?|\n?$)", false, false),
            (r"(?-u)^/a\n?$", false, true),
            (r"(?-u)^/[^?]*x", false, false),
            (r"(?-u)^/[^?]*\n?$", false, true),
            (r"(?-u)^/.*x", true, false),
            (r"(?-u)^/a.*\.php\n?$", true, true),
            (r"(?-u)^/[^/]+/x", true, false),
            (r"^/a|b", true, false),
            (r"x", true, true),
        ] {
            let expected = QueryEffect { is_found, is_lost };
            assert_eq!(query_effect(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn expressions_can_match_directories() {
        for (pattern, expected) in [
            (r"(?-u)\.php\n?$", false),
            (r"\.(css|js)$", false),
            (r"/\.git", true),
            (r"^/a", true),
            (r"^/a/$", true),
            (r"^/a$", false),
        ] {
            assert_eq!(may_match_directory(pattern), expected, "{pattern}");
        }
    }
}
