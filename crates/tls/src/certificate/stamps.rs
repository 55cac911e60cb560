//! Stamps of files, which show whether the files have changed since they were read.

use std::path::PathBuf;

use onrush_file::{Stamp, stamp};

/// Files, and their stamps when they were read.
#[derive(Debug)]
pub(crate) struct Stamps {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) read: Vec<Stamp>,
}

impl Stamps {
    /// Takes the stamps of `files`; must be called before they are read.
    pub(crate) fn of(files: Vec<PathBuf>) -> Stamps {
        let read = files.iter().map(|file| stamp(file)).collect();
        Stamps { files, read }
    }
}
