//! Paths that are rewritten by regular expressions.

use std::borrow::Cow;
use std::ops::Range;

use super::pattern::Pattern;

/// A rule: a path in which the pattern is found becomes another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    pub(crate) pattern: Pattern,
    /// The path, which begins with text that begins with `/`.
    pub(crate) path: Vec<RewritePiece>,
    /// The beginning of the query; none for the query of the request alone.
    pub(crate) query: Option<Vec<RewritePiece>>,
}

/// Part of what a path becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RewritePiece {
    /// As it is.
    Text(String),
    /// What this group of the pattern has matched.
    Group(usize),
}

/// Which part of a request's target is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPart {
    /// The path.
    Path,
    /// Text of the rule's query, with its `?` in front.
    Query,
    /// What a group has matched, for the query: nothing of it may have a meaning there.
    QueryValue,
}

impl Rewrite {
    /// Calls `put` with each piece of the new path. Returns whether the expression matches `path`. `written` returns the text
    /// for a part of the path.
    pub fn apply<'p>(
        &self,
        path: &[u8],
        written: impl Fn(Range<usize>) -> Cow<'p, [u8]>,
        put: &mut impl FnMut(TargetPart, &[u8]),
    ) -> bool {
        let Some(groups) = self.pattern.groups(path) else {
            return false;
        };
        let group = |group: &usize| {
            groups
                .get(*group)
                .map_or(Cow::Borrowed(&b""[..]), |found| written(found.range()))
        };
        for piece in &self.path {
            match piece {
                RewritePiece::Text(text) => put(TargetPart::Path, text.as_bytes()),
                RewritePiece::Group(number) => put(TargetPart::Path, &group(number)),
            }
        }
        if let Some(query) = &self.query {
            put(TargetPart::Query, b"?");
            for piece in query {
                match piece {
                    RewritePiece::Text(text) => put(TargetPart::Query, text.as_bytes()),
                    RewritePiece::Group(number) => put(TargetPart::QueryValue, &group(number)),
                }
            }
        }
        true
    }

    /// Positions in `path` of the groups before which the rule adds a slash: they follow a slash in the new path, but not in
    /// `path`. `None` if the pattern is not found.
    pub fn slashes_added(&self, path: &[u8]) -> Option<Vec<usize>> {
        let groups = self.pattern.groups(path)?;
        let mut added = Vec::new();
        let mut is_after_slash = false;
        for piece in &self.path {
            match piece {
                RewritePiece::Text(text) => is_after_slash = text.ends_with('/'),
                RewritePiece::Group(number) => {
                    let Some(group) = groups.get(*number).filter(|group| !group.is_empty()) else {
                        continue;
                    };
                    let before = path[..group.start()].last();
                    let is_slash = before == Some(&b'/') || group.as_bytes().starts_with(b"/");
                    if is_after_slash && !is_slash {
                        added.push(group.start());
                    }
                    is_after_slash = group.as_bytes().ends_with(b"/");
                }
            }
        }
        Some(added)
    }

    /// The text that every new path begins with.
    pub(crate) fn beginning(&self) -> &str {
        match self.path.first() {
            Some(RewritePiece::Text(text)) => text,
            Some(RewritePiece::Group(_)) | None => "",
        }
    }

    /// How often a group stands in the path and in the query, and how many bytes of text there are.
    pub fn extent(&self) -> (usize, usize, usize) {
        let query = self.query.as_deref().unwrap_or(&[]);
        let groups = |pieces: &[RewritePiece]| {
            let is_group = |piece: &&RewritePiece| matches!(piece, RewritePiece::Group(_));
            pieces.iter().filter(is_group).count()
        };
        let bytes = |piece: &RewritePiece| match piece {
            RewritePiece::Text(text) => text.len(),
            RewritePiece::Group(_) => 0,
        };
        let text = self.path.iter().chain(query).map(bytes).sum::<usize>();
        (groups(&self.path), groups(query), text + "?".len())
    }
}
