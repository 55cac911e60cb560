//! The error of reading an earlier result.

use std::fmt;
use std::path::{Path, PathBuf};

use onrush_file::Unreadable;

/// Why an earlier result cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// The path is not a directory.
    NoDirectory(PathBuf),
    /// The directory lacks this file, which every result has.
    NoResult(PathBuf, &'static str),
    /// A file cannot be read.
    Unreadable(PathBuf, Unreadable),
    /// A line of a file is invalid.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// The file has an unsupported version.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The folder contains no result.
    NoResults(PathBuf),
    /// A directory cannot be listed.
    Unlisted(PathBuf, std::io::Error),
    /// A limit is exceeded.
    TooMany {
        /// The file or directory.
        path: PathBuf,
        /// The exceeded limit.
        what: String,
    },
}

impl Unusable {
    pub(super) fn line(path: &Path, line: u64, what: impl Into<String>) -> Unusable {
        Unusable::Line {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::NoDirectory(path) => write!(
                out,
                "{} is not a directory: expected one that onrush bench wrote",
                path.display()
            ),
            Unusable::NoResult(path, name) => write!(
                out,
                "{} has no {name}: expected a directory that onrush bench wrote",
                path.display()
            ),
            Unusable::Unreadable(path, _) => write!(out, "cannot read {}", path.display()),
            Unusable::Line { path, line, what } => {
                write!(out, "{}, line {line}: {what}", path.display())
            }
            Unusable::Version { path, found } => write!(
                out,
                "{} has version {found}, but this program reads version {}: use the version that wrote it, or a newer \
                 one",
                path.display(),
                crate::outcome::SCHEMA
            ),
            Unusable::NoResults(path) => write!(
                out,
                "there is no result below {}: expected directories with a raw.csv, which onrush bench writes",
                path.display()
            ),
            Unusable::Unlisted(path, _) => write!(out, "cannot list {}", path.display()),
            Unusable::TooMany { path, what } => write!(out, "{} has {what}", path.display()),
        }
    }
}

impl std::error::Error for Unusable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Unusable::Unreadable(_, source) => Some(source),
            Unusable::Unlisted(_, source) => Some(source),
            Unusable::NoDirectory(_)
            | Unusable::NoResult(..)
            | Unusable::NoResults(_)
            | Unusable::Line { .. }
            | Unusable::Version { .. }
            | Unusable::TooMany { .. } => None,
        }
    }
}
