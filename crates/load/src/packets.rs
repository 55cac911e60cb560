//! Sends test datagrams and accounts for them: how many were sent, how many arrived, how late, and where the others
//! were lost. The target is a sink that counts (`onrush serve --sink`), an echo, or any other receiver of datagrams.
//!
//! ```text
//!  Options ──> plan.rs ──> run.rs ──> part.rs, once per core ──> report.rs
//!                                       └─ flow.rs, once per socket:
//!                                          departure (size, schedule) -> send
//!                                          receive -> flight -> counts
//! ```
//! Pace, end of the run, histograms and searches are shared with the rest of this crate, which sends requests.
//!
//! A flow sends by its own schedule and matches echoes by sequence number, so a lost datagram delays no other. The
//! target reports its counters before and after the run (`report_request.rs`). `loss.rs` attributes losses by the counters
//! of both ends; `path.rs` binds sockets to interfaces; `frames.rs` sends frames that bypass the flow's socket.

mod counts;
pub mod departure;
mod flight;
mod flow;
mod frames;
mod kernel;
mod limits;
mod link;
mod loss;
pub mod origin;
pub(crate) mod part;
pub mod path;
pub mod plan;
pub mod report;
mod report_request;
pub mod run;
mod schedule;
mod sending;
pub mod size;
mod target_reports;
mod task;
pub mod text;
mod verdict;

pub use plan::{Direction, Options, Plan};
