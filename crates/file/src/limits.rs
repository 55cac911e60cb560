//! Bounds of reading and writing files, each with its reason.

use std::time::Duration;

/// How long a pipe's writer may write nothing, or its reader read nothing. Longer than the command in `<(…)` needs to
/// ask for a password; finite so that a thread that reloads a file does not hang.
pub const PIPE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long to wait for a pipe's reader before writing. Longer than a shell needs to start the command at the other end
/// of its pipe.
pub const PIPE_READER_WAIT_MAX: Duration = Duration::from_secs(1);

/// Temporary names tried for an output file. Usually the first one is free, unless another user takes the names on
/// purpose.
pub(crate) const NAMES_TRIED_MAX: u32 = 16;

/// Maximum number of names read from a directory to match a pattern.
pub const NAMES_MAX: usize = 100_000;
