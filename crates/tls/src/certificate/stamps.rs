//! How files were when they were read, and whether they have changed since.

use std::path::PathBuf;

use onrush_file::{Stamp, stamp};

/// Files, and how they were when they were read.
#[derive(Debug)]
pub(crate) struct Stamps {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) read: Vec<Stamp>,
}

impl Stamps {
    /// Looks at `files`, which are read after this.
    pub(crate) fn of(files: Vec<PathBuf>) -> Stamps {
        let read = files.iter().map(|file| stamp(file)).collect();
        Stamps { files, read }
    }
}
