//! Reads a machine, says what limits it, plans, applies and undoes: which CPU takes the interrupts, which mask, which
//! queue, which setting.
//!
//! The reading order of the modules is the order of the work: `tree` (where facts are read) -> `facts` -> `advise`
//! (pure) -> `apply`. Nothing is written but what a plan names, and every change stands in a journal before it is made.
#![forbid(unsafe_code)]

pub mod cpus;
mod error;
pub mod limits;

pub mod tree;

pub mod facts;

pub mod advise;
pub mod report;

pub mod apply;

pub mod diagnose;
pub mod search;
pub mod show;

pub use error::Error;
