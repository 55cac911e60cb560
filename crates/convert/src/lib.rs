//! Translates configurations of nginx and HAProxy to one of Onrush: text in, text and one note per directive out. A note says when a
//! directive is approximated or left out.
//!
//! `source/` reads directives with their places (`nginx/` and `haproxy/` have a reader each), and `settings/` are listeners, routes, groups and
//! timeouts in the terms of Onrush; `document.rs` writes the result. Both languages evaluate rules in an order; `expression/` turns them into
//! routes of which the first match responds.
//!
//! `expression/` also combines conditions, translates regular expressions of PCRE, and asks an expression about all paths at once. `source/note.rs`
//! keeps the outcome of each directive; one without a note is reported as left out.
//!
//! # Invariants
//!
//! - Only `source.rs` reads files; the rest takes text and returns text and notes.
//! - The result for any input is a configuration that the crate `config` accepts, or a sentence with its place
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
pub use source::{Disk, Files, Unusable};
