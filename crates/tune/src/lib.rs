//! Reads a machine's configuration, finds its bottlenecks, and plans, applies and undoes changes: interrupt affinity,
//! steering masks, queues, sysctls.
//!
//! Data flows through the modules in this order: `tree` (source of facts) -> `facts` -> `advise` -> `apply`. Only the
//! changes in a plan are made.
//!
//! `tree.rs` is a root directory or a snapshot of one. In `advise/`, `placement.rs` assigns CPUs to roles, `budget.rs`
//! cores to interfaces, and `queue_cpus.rs` CPUs to queues. `diagnose/` finds the exhausted resource, or in
//! `conclusion.rs` explains why none was found. `search/` tries settings and measures each with a command of the user.
//!
//! # Invariants
//!
//! - `advise/`, `diagnose/` and `show.rs` are pure.
//! - Before each change the old value is written to the journal, on disk.
//! - Interrupts are identified by device, queue and role, never by number; threads by number and start time. Cores are
//!   ordered by their position in the topology, never by CPU number.
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
