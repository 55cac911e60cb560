//! Paths that are rewritten by regular expressions.

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
    /// Hands `put` what `path` becomes, piece by piece; whether it becomes anything.
    pub fn apply(&self, path: &[u8], put: &mut impl FnMut(TargetPart, &[u8])) -> bool {
        let Some(groups) = self.pattern.groups(path) else {
            return false;
        };
        let group = |group: &usize| {
            groups
                .get(*group)
                .map_or(&b""[..], |found| found.as_bytes())
        };
        for piece in &self.path {
            match piece {
                RewritePiece::Text(text) => put(TargetPart::Path, text.as_bytes()),
                RewritePiece::Group(number) => put(TargetPart::Path, group(number)),
            }
        }
        if let Some(query) = &self.query {
            put(TargetPart::Query, b"?");
            for piece in query {
                match piece {
                    RewritePiece::Text(text) => put(TargetPart::Query, text.as_bytes()),
                    RewritePiece::Group(number) => put(TargetPart::QueryValue, group(number)),
                }
            }
        }
        true
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
