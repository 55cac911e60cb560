//! Configuration: text -> what was written -> a [`Plan`] that cannot be wrong. Pure: it reads no file, resolves no
//! name and looks at no directory; text comes in, a plan or every error found comes out.
//!
//! Three types, one for each step: the text, `File` (what was written, each value with its place) and
//! [`Plan`] (what it means). The command line's one-liners make the same plan from the same parse functions.
#![forbid(unsafe_code)]

pub mod plan;

pub mod address;
pub mod value;

pub mod limits;

mod nearest;

pub use plan::Plan;
