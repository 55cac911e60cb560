//! Errors that end a command. An unreadable file is a fact, and a value that cannot be written an outcome; neither is
//! an error here.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a command could not start or finish.
#[derive(Debug)]
pub enum Error {
    /// A file or directory could not be read.
    Read(PathBuf, io::Error),
    /// A file or directory could not be written.
    Write(PathBuf, io::Error),
    /// A snapshot file that is invalid, truncated, or of an unsupported version.
    Snapshot(PathBuf, String),
    /// Facts required for a plan are missing.
    Facts(String),
    /// The request is invalid on this machine.
    Request(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(path, _) => write!(f, "cannot read {}", path.display()),
            Error::Write(path, _) => write!(f, "cannot write {}", path.display()),
            Error::Snapshot(path, why) => {
                write!(f, "{} is not a usable snapshot: {why}", path.display())
            }
            Error::Facts(what) | Error::Request(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read(_, source) | Error::Write(_, source) => Some(source),
            Error::Snapshot(..) | Error::Facts(_) | Error::Request(_) => None,
        }
    }
}
