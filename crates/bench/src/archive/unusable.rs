//! Why an earlier result cannot be used.

use std::fmt;
use std::path::{Path, PathBuf};

use onrush_file::Unreadable;

/// Why an earlier result cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// What was named is no directory.
    NoDirectory(PathBuf),
    /// A directory has not the file that results have.
    NoResult(PathBuf, &'static str),
    /// A file of it cannot be read.
    Unreadable(PathBuf, Unreadable),
    /// A line of a file says something that has no meaning.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it, and what was expected.
        what: String,
    },
    /// It has another version than this program reads.
    Version {
        /// The file.
        path: PathBuf,
        /// The version it names.
        found: u64,
    },
    /// A folder holds no result at all.
    NoResults(PathBuf),
    /// A directory cannot be listed.
    Unlisted(PathBuf, std::io::Error),
    /// There is more of something than is read.
    TooMany {
        /// Where.
        path: PathBuf,
        /// Of what there is too much, and how much is read.
        what: String,
    },
}

impl Unusable {
    /// A mistake in a line of a file.
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
                "{} is no directory: expected one that onrush bench wrote",
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
                "{} is of version {found}: this program reads version {}; use the one that wrote it, or a newer one",
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
