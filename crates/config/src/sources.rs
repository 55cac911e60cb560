//! Texts of a configuration: one file, and the files it includes. Spans count through all of them.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// Byte range in the concatenated texts, with one byte between two files.
pub type Span = Range<usize>;

/// Message about an include, with its place.
pub(crate) type IncludeMessage = (Span, String);

/// Files of a configuration, the main file first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    pub(crate) files: Vec<Source>,
    pub(crate) errors: Vec<IncludeMessage>,
    /// Warnings about includes.
    pub(crate) warnings: Vec<IncludeMessage>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Position of its first byte.
    pub(crate) start: usize,
    /// Positions in `text` of the lines, ascending; the first is 0.
    lines: Vec<usize>,
    /// Indices of the files that it includes, in order.
    pub(crate) included: Vec<usize>,
}

impl Source {
    /// Path, as the user or the including file named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Content of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Converts `span` to a range in this file's text.
    pub(crate) fn to_file_range(&self, span: &Span) -> Span {
        span.start - self.start..span.end.max(span.start) - self.start
    }

    /// Converts a range in this file's text to a span.
    pub(crate) fn to_span(&self, span: Span) -> Span {
        span.start + self.start..span.end + self.start
    }

    /// Directory of the file, against which the paths in it are resolved.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

impl Sources {
    /// Creates a configuration of one file, without includes.
    pub(crate) fn of(text: String, path: PathBuf) -> Sources {
        let mut sources = Sources {
            files: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        sources.push(path, text);
        sources
    }

    /// All files, the main file first.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// The file that the user named.
    pub fn first(&self) -> &Source {
        &self.files[0]
    }

    pub(crate) fn has_several_files(&self) -> bool {
        self.files.len() > 1
    }

    /// Adds a file and returns its index.
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

    pub(crate) fn file(&self, span: &Span) -> &Source {
        let is_before = |source: &Source| source.start <= span.start;
        &self.files[self.files.partition_point(is_before) - 1]
    }

    /// Line where a span begins, from 1.
    pub(crate) fn line(&self, span: &Span) -> usize {
        let source = self.file(span);
        let start = source.to_file_range(span).start;
        source.lines.partition_point(|line| *line <= start)
    }

    /// Character in the line where a span begins, from 1.
    pub(crate) fn column(&self, span: &Span) -> usize {
        let source = self.file(span);
        let start = floor_boundary(&source.text, source.to_file_range(span).start);
        let line_start = source.lines[self.line(span) - 1].min(start);
        source.text[line_start..start].chars().count() + 1
    }

    /// Formats the place of a span: `conf.d/a.toml:3:7`.
    pub(crate) fn format_place(&self, span: &Span) -> String {
        let path = self.file(span).path.display();
        format!("{path}:{}:{}", self.line(span), self.column(span))
    }
}

/// The last character boundary not after `at`.
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
    fn offsets_map_to_file_line_and_column() {
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
            assert_eq!(sources.format_place(&(at..at + 1)), expected, "{at}");
        }
    }
}
