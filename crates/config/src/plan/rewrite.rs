//! Rewriting of paths by regular expressions.

use std::borrow::Cow;
use std::ops::Range;

use super::pattern::Pattern;

/// A rule: replaces a path that matches the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    pub(crate) pattern: Pattern,
    /// New path; the first piece is text that begins with `/`.
    pub(crate) path: Vec<RewritePiece>,
    /// Beginning of the new query; `None` to keep only the query of the request.
    pub(crate) query: Option<Vec<RewritePiece>>,
}

/// Piece of a new path or query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RewritePiece {
    /// Literal text.
    Text(String),
    /// Match of this group of the pattern.
    Group(usize),
}

/// Kind of a piece passed to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPart {
    /// Part of the path.
    Path,
    /// Text of the rule's query, with a leading `?`.
    Query,
    /// Match of a group in the query, where the caller must encode reserved characters.
    QueryValue,
}

impl Rewrite {
    /// Calls `put` with each piece of the new target; returns whether the pattern matches. `written` returns the text
    /// for a range of `path`.
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

    /// Positions in `path` of the groups before which the rule adds a slash: they follow a slash in the new path, but
    /// not in `path`. `None` if the pattern does not match.
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

    /// Literal prefix of every new path.
    pub(crate) fn beginning(&self) -> &str {
        match self.path.first() {
            Some(RewritePiece::Text(text)) => text,
            Some(RewritePiece::Group(_)) | None => "",
        }
    }

    /// Number of groups in the path and in the query, and the number of bytes of literal text.
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
