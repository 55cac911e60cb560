//! The error of reading an earlier result.

use std::fmt;
use std::path::{Path, PathBuf};

use onrush_file::InputError;

/// Why an earlier result cannot be used.
#[derive(Debug)]
pub enum ReadError {
    /// The path is not a directory.
    NoDirectory(PathBuf),
    /// The directory lacks this file, which every result has.
    NoResult(PathBuf, &'static str),
    /// A file cannot be read.
    Unreadable(PathBuf, InputError),
    /// A line of a file is invalid.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The problem and the expected text.
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

impl ReadError {
    pub(super) fn line(path: &Path, line: u64, what: impl Into<String>) -> ReadError {
        ReadError::Line {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::NoDirectory(path) => write!(
                out,
                "{} is not a directory: expected a result of onrush bench",
                path.display()
            ),
            ReadError::NoResult(path, name) => write!(
                out,
                "{} has no {name}: expected a result of onrush bench",
                path.display()
            ),
            ReadError::Unreadable(path, _) => write!(out, "cannot read {}", path.display()),
            ReadError::Line { path, line, what } => {
                write!(out, "{}, line {line}: {what}", path.display())
            }
            ReadError::Version { path, found } => write!(
                out,
                "{} has version {found}, but this program reads version {}: use the version that wrote it, or a newer \
                 one",
                path.display(),
                crate::outcome::SCHEMA
            ),
            ReadError::NoResults(path) => write!(
                out,
                "no result found below {}: expected directories with a raw.csv, as onrush bench writes them",
                path.display()
            ),
            ReadError::Unlisted(path, _) => write!(out, "cannot list {}", path.display()),
            ReadError::TooMany { path, what } => write!(out, "{} has {what}", path.display()),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Unreadable(_, source) => Some(source),
            ReadError::Unlisted(_, source) => Some(source),
            ReadError::NoDirectory(_)
            | ReadError::NoResult(..)
            | ReadError::NoResults(_)
            | ReadError::Line { .. }
            | ReadError::Version { .. }
            | ReadError::TooMany { .. } => None,
        }
    }
}
