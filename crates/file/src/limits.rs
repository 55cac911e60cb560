//! Every bound of reading and writing files, each with its reason.

use std::time::Duration;

/// How long a pipe may be silent whose writer has not closed it, and how long its reader may take nothing: longer than a
/// command behind `<(…)` takes to ask for a password, and a thread that reads a file again does not hang for ever.
pub const PIPE_SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long the reader of a pipe is waited for that is to be written: longer than a shell takes to start the command behind
/// a pipe that it has made.
pub const PIPE_READER_WAIT_MAX: Duration = Duration::from_secs(1);

/// How many names are tried for the file that becomes the output: one is free unless somebody takes them on purpose.
pub(crate) const NAMES_TRIED_MAX: u32 = 16;

/// Names in a directory that is looked into for a pattern.
pub const NAMES_MAX: usize = 100_000;
