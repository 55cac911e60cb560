//! Static files below a directory.

use super::coding::Coding;
use super::file::FilePath;
use crate::limits;

/// Settings for static files below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Root directory.
    pub root: FilePath,
    /// Index files of a directory, in the order in which they are tried. Never contain `/`.
    pub index: Vec<String>,
    /// Whether files and directories whose names begin with a dot are served.
    pub hidden: bool,
    /// Codings of precompressed files (`x.css.br`) for clients that accept them, in order of preference.
    pub precompressed: Vec<Coding>,
    /// Whether directories without an index file are listed.
    pub listing: bool,
    /// File below the root that is served if a path does not exist; its segments are never empty, `.` or `..`.
    pub fallback: Option<String>,
}

impl Files {
    /// Default settings for a root directory.
    pub fn in_directory(root: impl Into<FilePath>) -> Files {
        Files {
            root: root.into(),
            index: limits::index_default(),
            hidden: false,
            precompressed: Vec::new(),
            listing: false,
            fallback: None,
        }
    }
}
