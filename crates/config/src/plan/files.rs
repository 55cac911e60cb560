//! Files beneath a directory, and how they are served.

use super::coding::Coding;
use super::file::FilePath;
use crate::limits;

/// How the files beneath a directory are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The directory.
    pub root: FilePath,
    /// File names to try, in order, when the path is a directory. Never with a `/`.
    pub index: Vec<String>,
    /// Whether files and directories whose names begin with a dot are served.
    pub hidden: bool,
    /// Which compressed siblings (`x.css.br`) are served in a file's place to clients that take
    /// them, the favourite first.
    pub precompressed: Vec<Coding>,
    /// Whether a directory without an index file is listed.
    pub listing: bool,
    /// The file beneath the root that is served when nothing is found: names with `/` between them, none of them empty,
    /// `.` or `..`.
    pub fallback: Option<String>,
}

impl Files {
    /// Those beneath `root`, as they are served when nothing else is said.
    pub fn beneath(root: impl Into<FilePath>) -> Files {
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
