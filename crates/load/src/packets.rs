//! Sends test datagrams and tells the truth about them: how many left, how many came, how late, and where the others were
//! lost. The far end is a sink that counts (`onrush serve --sink`), an echo, or anything that takes datagrams.
//!
//! ```text
//!  Options ──> plan.rs ──> run.rs ──> part.rs, once per core ──> report.rs
//!                                       └─ flow.rs, once per socket:
//!                                          departure (size, schedule) -> send
//!                                          receive -> flight -> counts
//! ```
//! Requests over streams are made by the other half of this crate; what both need (pace, stop, histograms, searches) is the
//! same.
//!
//! A flow sends by a schedule of its own and matches echoes by number, so a lost datagram delays no other. The
//! receiving end is asked before and after the run what it has counted (`inquiry.rs`). `account.rs` attributes losses
//! by the counters of both ends; `path.rs` binds sockets to interfaces; `frames.rs` sends frames past the flow's
//! socket.

mod account;
mod counts;
pub mod departure;
mod far;
mod flight;
mod flow;
mod frames;
mod inquiry;
mod kernel;
mod limits;
mod link;
pub mod origin;
pub(crate) mod part;
pub mod path;
pub mod plan;
pub mod report;
pub mod run;
mod schedule;
mod sending;
pub mod size;
mod task;
pub mod text;
mod verdict;

pub use plan::{Options, Plan, Way};
