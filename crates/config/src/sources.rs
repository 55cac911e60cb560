//! The texts that a configuration is made of: one file, and those that it includes. Each place is in one of them.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A place in the texts of a configuration, in bytes: all of them lie one behind the other, with a byte between two.
pub type Span = Range<usize>;

/// What is to be said of what is included, and where that is asked for.
pub(crate) type Wrong = (Span, String);

/// The files of a configuration, and what each includes. The first is the one that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    pub(crate) files: Vec<Source>,
    /// What is wrong with includes.
    pub(crate) wrong: Vec<Wrong>,
    /// What of them is allowed, and hardly meant.
    pub(crate) doubtful: Vec<Wrong>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The place of its first byte.
    pub(crate) start: usize,
    /// Where each of its lines begins in its text, ascending; the first at 0.
    lines: Vec<usize>,
    /// Which files it includes, in their order.
    pub(crate) included: Vec<usize>,
}

impl Source {
    /// Where it came from: as it was named, or as the file says that includes it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What stands in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place `span` in its own text.
    pub(crate) fn local(&self, span: &Span) -> Span {
        span.start - self.start..span.end.max(span.start) - self.start
    }

    /// The place `span` of its own text as one of all texts.
    pub(crate) fn global(&self, span: Span) -> Span {
        span.start + self.start..span.end + self.start
    }

    /// Its directory, from which the paths in it are taken.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

impl Sources {
    /// A file, and nothing of what it includes yet.
    pub(crate) fn of(text: String, path: PathBuf) -> Sources {
        let mut sources = Sources {
            files: Vec::new(),
            wrong: Vec::new(),
            doubtful: Vec::new(),
        };
        sources.push(path, text);
        sources
    }

    /// All files; the one that was named comes first.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// The file that was named.
    pub fn first(&self) -> &Source {
        &self.files[0]
    }

    /// Whether there is another one.
    pub(crate) fn are_several(&self) -> bool {
        self.files.len() > 1
    }

    /// Adds a file that includes nothing yet, and says which it is.
    pub(crate) fn push(&mut self, path: PathBuf, text: String) -> usize {
        let end = |last: &Source| last.start + last.text.len() + 1;
        let after_newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
        self.files.push(Source {
            path,
            start: self.files.last().map_or(0, end),
            lines: std::iter::once(0).chain(after_newlines).collect(),
            text,
            included: Vec::new(),
        });
        self.files.len() - 1
    }

    /// The file that a place is in.
    pub(crate) fn file(&self, span: &Span) -> &Source {
        let is_before = |source: &Source| source.start <= span.start;
        &self.files[self.files.partition_point(is_before) - 1]
    }

    /// The line that a place begins in, from 1.
    pub(crate) fn line(&self, span: &Span) -> usize {
        let source = self.file(span);
        let start = source.local(span).start;
        source.lines.partition_point(|line| *line <= start)
    }

    /// The character within its line that a place begins at, from 1.
    pub(crate) fn column(&self, span: &Span) -> usize {
        let source = self.file(span);
        let start = floor_boundary(&source.text, source.local(span).start);
        let line_start = source.lines[self.line(span) - 1].min(start);
        source.text[line_start..start].chars().count() + 1
    }

    /// A place for people: `conf.d/a.toml:3:7`.
    pub(crate) fn shown(&self, span: &Span) -> String {
        let path = self.file(span).path.display();
        format!("{path}:{}:{}", self.line(span), self.column(span))
    }
}

/// The nearest place not after `at` where the text may be cut.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_in_one_file() {
        let mut sources = Sources::of("a = 1\nb = 2".to_owned(), "a.toml".into());
        sources.push("d/b.toml".into(), String::new());
        sources.push("c.toml".into(), "é = 1\nf = 2\n".to_owned());
        for (at, expected) in [
            (0, "a.toml:1:1"),
            (6, "a.toml:2:1"),
            (11, "a.toml:2:6"),
            (12, "d/b.toml:1:1"),
            (13, "c.toml:1:1"),
            (15, "c.toml:1:2"),
            (20, "c.toml:2:1"),
            (26, "c.toml:3:1"),
            (99, "c.toml:3:1"),
        ] {
            assert_eq!(sources.shown(&(at..at + 1)), expected, "{at}");
        }
    }
}
