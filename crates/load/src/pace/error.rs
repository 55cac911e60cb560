//! Why a run could not be made: the sentence for the user, and who has to do something about it.

use std::fmt;

/// A run that did not take place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// What was asked for cannot be done, here or at all; asking differently helps.
    Invalid(String),
    /// Nothing of the target could be reached.
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
