//! The files and directories that a plan names. Whether they exist, and what is in them, is not known here.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::diagnostic::Span;

/// A path of a plan, and where it was written, for whoever finds that there is something wrong with what it leads to.
/// Relative only in a plan from the command line.
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

    /// Where in the text of the configuration it stands; nowhere when it comes from the command line.
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

/// What two plans say is the same wherever they say it.
impl PartialEq for FilePath {
    fn eq(&self, other: &FilePath) -> bool {
        self.path == other.path
    }
}

impl Eq for FilePath {}
