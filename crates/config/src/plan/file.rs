//! Paths of files and directories that a plan names. Their existence and content are not checked here.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::diagnostic::Span;

/// A path with the place where it was written, for error messages. Relative only in a plan from the command line.
#[derive(Clone)]
pub struct FilePath {
    path: PathBuf,
    place: Option<Span>,
}

impl FilePath {
    pub(crate) fn written(path: PathBuf, place: Span) -> FilePath {
        FilePath {
            path,
            place: Some(place),
        }
    }

    /// Place in the configuration; `None` if the path comes from the command line.
    pub fn place(&self) -> Option<&Span> {
        self.place.as_ref()
    }
}

impl<P: Into<PathBuf>> From<P> for FilePath {
    fn from(path: P) -> FilePath {
        FilePath {
            path: path.into(),
            place: None,
        }
    }
}

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(out)
    }
}

/// Compares paths without places, so that a moved line is not a change.
impl PartialEq for FilePath {
    fn eq(&self, other: &FilePath) -> bool {
        self.path == other.path
    }
}

impl Eq for FilePath {}
