//! Translates configurations of nginx and HAProxy into one for Onrush: text in, text out, and one note per directive
//! with its outcome (see [`Outcome`]).
//!
//! `source/` holds directives with their positions; `nginx/` and `haproxy/` parse the two languages. Both languages
//! evaluate rules in order; `expression/` turns ordered rules into routes, the first matching route responds.
//! `settings/` describes listeners, routes, groups and timeouts of Onrush, and `document.rs` writes them as TOML.
//!
//! `expression/` also combines conditions, translates regular expressions of PCRE, and checks properties of an
//! expression for all possible paths. `source/note.rs` keeps the outcome of each directive; unknown directives are
//! reported as left out.
//!
//! # Invariants
//!
//! - A rule that may refuse requests and cannot be converted refuses every request that it applies to (`source/guards.rs`),
//!   unless the caller asks for open guards.
//! - Only `source.rs` reads files.
//! - For any input the result is a configuration that the crate `config` accepts, or an error with its position
//!   (`tests/any_text.rs`).
#![forbid(unsafe_code)]

pub mod haproxy;
pub mod nginx;

mod document;
mod expression;
pub mod limits;
mod result;
mod settings;
mod source;
#[cfg(test)]
mod written;

pub use result::{Conversion, Defect};
pub use source::guards::Guards;
pub use source::note::{Note, Outcome};
pub use source::{Disk, Files, InputError};
