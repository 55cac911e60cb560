//! Where configurations are read from, and why one cannot be used.

pub(crate) mod directive;
pub(crate) mod guards;
pub(crate) mod note;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::limits;

/// What a conversion may read: the files that a configuration names. [`Disk`] is the machine's; tests have others.
pub trait Files {
    /// The text of a file; bytes that are no UTF-8, as in old comments, are replaced.
    ///
    /// # Errors
    /// When it cannot be read, with the end of a sentence that begins with its name.
    fn read(&self, path: &Path) -> Result<String, String>;

    /// The names in a directory, in any order; none when it cannot be read.
    fn list(&self, directory: &Path) -> Vec<String>;

    /// A variable of the environment; none where it is not set.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

/// The files of this machine.
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

/// Why a file cannot be converted: what is wrong with it, where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line, from 1; none when it is about the file as a whole.
    pub line: Option<usize>,
    /// The sentence.
    pub message: String,
}

impl Unusable {
    /// About a line.
    pub(crate) fn at(file: &str, line: usize, message: impl Into<String>) -> Unusable {
        Unusable {
            file: file.into(),
            line: Some(line),
            message: message.into(),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            Some(line) => write!(out, "{file}:{line}: {}", self.message),
            None => write!(out, "{file}: {}", self.message),
        }
    }
}

impl std::error::Error for Unusable {}
