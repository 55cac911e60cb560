//! Errors of a trial.

use std::io;

/// Why a trial has no figures.
#[derive(Debug)]
pub(super) enum Failure {
    /// A signal requested the end of the run.
    Interrupted,
    Failed(String),
    /// A host was lost, so the run cannot continue.
    Lost(String),
    /// A disk is full, so all further trials would fail.
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
