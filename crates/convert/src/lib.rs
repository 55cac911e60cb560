//! Configurations of nginx and HAProxy become one of Onrush: text in, text and one note per directive out. What Onrush
//! cannot do is approximated or left out, and said so.
//!
//! `source/` reads what was written, with its place (`nginx/` and `haproxy/` have a reader each), and `settings/` are listeners,
//! routes, groups and timeouts in the terms of Onrush; `document.rs` writes the result. Both languages decide in an order what
//! becomes of a request; `expression/` makes routes of that, of which the first match responds.
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
