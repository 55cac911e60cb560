//! Files that users name: read within a bound, written whole or not at all.
//!
//! A name can lead to anything: an endless device, a pipe without a writer, a directory. Anything but a file is refused with one sentence and
//! without a wait, and a file takes no more memory than its reader allows.
//!
//! `input.rs` reads a file within a bound and never waits for one that is not a regular file, `output.rs` writes a
//! file whole or not at all, and `pattern.rs` expands a pattern. Other crates open files named by a user only to serve them;
//! tune has its own readers, which stay below a root directory.
#![forbid(unsafe_code)]

mod beside;
mod input;
mod output;
mod pattern;
mod pipe;
mod stamp;

pub mod limits;

pub use beside::Beside;
pub use input::{Input, Unreadable, read, read_text};
pub use output::Output;
pub use pattern::{is_pattern, matching, names};
pub use stamp::{Look, Stamp, stamp};
