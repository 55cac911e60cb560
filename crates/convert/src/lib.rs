//! Configurations of nginx and HAProxy become one of Onrush: text in, text and one note per directive out. What Onrush
//! cannot do is approximated or left out, and said so.
//!
//! Three steps, the same for both: `directive.rs` (what was written, with its place; each language has a reader of its own),
//! then routes, groups and timeouts in the words of Onrush, then `document.rs` (the text of the result). What requests
//! get is decided in an order by both languages; `decide.rs` makes routes of which the first that matches responds.
#![forbid(unsafe_code)]

pub mod haproxy;
pub mod nginx;

mod result;

mod access_log;
mod client_certificates;
mod document;
mod front;
mod group;
mod process;
mod route;
mod timeouts;
mod unit;

mod automaton;
mod condition;
mod decide;
mod dialect;
mod parts;
mod path;
mod pattern;
mod pcre;

mod directive;
mod guards;
mod note;
mod source;

pub mod limits;

#[cfg(test)]
mod written;

pub use guards::Guards;
pub use note::{Note, Outcome};
pub use result::{Conversion, Defect};
pub use source::{Disk, Files, Unusable};
