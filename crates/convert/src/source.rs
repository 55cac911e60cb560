//! Access to the input files, and the error for an input that cannot be converted.

pub(crate) mod directive;
pub(crate) mod guards;
pub(crate) mod note;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::limits;

/// Access to the files that a configuration names. [`Disk`] reads the local file system; tests have other
/// implementations.
pub trait Files {
    /// Returns the text of a file. Bytes that are not UTF-8 (in old comments, for example) are replaced.
    ///
    /// # Errors
    /// When the file cannot be read. The error continues a sentence that starts with the file name.
    fn read(&self, path: &Path) -> Result<String, String>;

    /// Names in a directory, in any order; empty if it cannot be read.
    fn list(&self, directory: &Path) -> Vec<String>;

    /// Value of an environment variable, if it is set.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

/// The local file system.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> Result<String, String> {
        let bytes = onrush_file::read(path, limits::BYTES_MAX as u64);
        let bytes = bytes.map_err(|unreadable| unreadable.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, directory: &Path) -> Vec<String> {
        let names = onrush_file::names(directory).unwrap_or_default();
        let names = names.into_iter().map(|name| name.into_string());
        names.filter_map(Result::ok).collect()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Why a file cannot be converted. Displays the position, the problem and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line, from 1; none if the error concerns the whole file.
    pub line: Option<usize>,
    /// The problem, without its position.
    pub message: String,
}

impl InputError {
    pub(crate) fn at(file: &str, line: usize, message: impl Into<String>) -> InputError {
        InputError {
            file: file.into(),
            line: Some(line),
            message: message.into(),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            Some(line) => write!(out, "{file}:{line}: {}", self.message),
            None => write!(out, "{file}: {}", self.message),
        }
    }
}

impl std::error::Error for InputError {}
