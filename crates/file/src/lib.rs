//! Reads and writes files named by the user: reads are bounded, writes are atomic where possible.
//!
//! A name can lead to anything: an endless device, a pipe without a writer, a directory. Such names are refused with a
//! message and without blocking.
//!
//! `input.rs` reads, `output.rs` writes, `pattern.rs` expands patterns. Other crates open files named by a user only to
//! serve them; tune has its own readers, which stay below a root directory.
#![forbid(unsafe_code)]

mod input;
mod output;
mod pattern;
mod pipe;
mod stamp;
mod temp_file;

pub mod limits;

pub use input::{Input, InputError, read, read_text};
pub use output::Output;
pub use pattern::{is_pattern, matching, names};
pub use stamp::{ChangeDetector, Stamp, stamp};
pub use temp_file::TempFile;
