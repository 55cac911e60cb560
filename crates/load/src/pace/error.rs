//! Errors that prevent a run: the message, and whether the user's options or the target caused it.

use std::fmt;

/// Reason why a run did not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The options are impossible on this machine or in general; the user must change them.
    Invalid(String),
    /// The target could not be reached.
    Unreachable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(sentence) | Error::Unreachable(sentence) => out.write_str(sentence),
        }
    }
}

impl std::error::Error for Error {}
