//! Reads a machine, names its limits, and plans, applies and undoes changes: CPUs of interrupts, masks, queues, settings.
//!
//! The reading order of the modules is the order of the work: `tree` (the source of facts) -> `facts` -> `advise` (pure) -> `apply`. Only changes that
//! a plan names are made.
//!
//! `tree.rs` is a root directory or a snapshot of one. In `advise/`, `placement.rs` decides which CPUs do what,
//! `budget.rs` how many cores each interface gets, and `queue_cpus.rs` which CPUs its queues use. `diagnose/` names
//! the full resource, or with `conclusion.rs` why none was found. `search/` tries settings against a measurement of
//! the user.
//!
//! # Invariants
//!
//! - `advise/`, `diagnose/` and `show.rs` are pure.
//! - Before each change the old value is in the journal, on disk.
//! - Interrupts are identified by device, queue and role, never by their number; threads by their number and start time. Cores
//!   are ordered by their position in the topology, never by the numbers of their CPUs.
#![forbid(unsafe_code)]

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
