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
    /// A disk is full: further trials would fail one after the other.
    NoRoom(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match is_no_room(&error) {
            true => Failure::NoRoom(error.to_string()),
            false => Failure::Failed(error.to_string()),
        }
    }
}

/// Whether there is no room where something was to be written.
pub(super) fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

pub(super) type Try<T> = Result<T, Failure>;

pub(super) fn failed<T>(why: impl Into<String>) -> Try<T> {
    Err(Failure::Failed(why.into()))
}
