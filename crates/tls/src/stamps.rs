//! How files were when they were read, and whether they have changed since.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What tells one state of a file from another: when it was changed, its length, and which file it is.
pub(crate) type Stamp = Option<(i64, i64, u64, u64)>;

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

pub(crate) fn stamp(file: &Path) -> Stamp {
    let found = fs::metadata(file).ok()?;
    Some((found.mtime(), found.mtime_nsec(), found.len(), found.ino()))
}
