//! What keeps a trial from being made.

use std::io;

/// Why a trial gave no numbers.
#[derive(Debug)]
pub(super) enum Failure {
    /// We were asked to stop.
    Interrupted,
    /// A program did not do its part.
    Failed(String),
    /// A host is gone, and with it what the run is about.
    Lost(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

pub(super) type Try<T> = Result<T, Failure>;

pub(super) fn failed<T>(why: impl Into<String>) -> Try<T> {
    Err(Failure::Failed(why.into()))
}
