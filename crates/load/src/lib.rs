//! Makes HTTP/1.1 requests and tells the truth about the responses: how many, how fast, how late, and whether this
//! program was itself the limit.
//!
//! ```text
//!  Options ──> plan::Plan ──> run::start ──> part.rs, once per core ──> report::Report
//!                                              └─ connection.rs, once per connection:
//!                                                 wait for the pace -> send -> receive -> record
//!                                                 (socket.rs, where requests are datagrams)
//! ```
//!
//! Each core counts for itself; once a second it sends a copy of its counters to the thread that waits in
//! [`run::Running::finish`]. Policy ([`pace`], [`stop`]) is pure: state and `now` in, a choice out.
#![forbid(unsafe_code)]

pub mod bytes;
pub mod plan;
pub mod reach;
pub mod target;

pub mod pace;
pub mod stop;

pub mod moment;
mod part;
pub mod populate;
pub mod run;
mod seconds;

pub mod grpc;
pub mod memcached;
pub mod requests;

mod connection;
mod core_run;
mod duplex;
mod http2;
pub mod journey;
mod protocol;
mod socket;
mod stream;

pub mod packets;

mod backlog;
mod dispatch;
mod gate;

mod failure;
mod greeting;
mod record;
mod rows;
mod silence;
mod standing;
mod work;

pub mod history;
mod host;
pub mod times;
pub mod unanswered;
pub mod wall_clock;

mod certainty;
pub mod compare;
pub mod csv;
pub mod dialect;
pub mod evidence;
pub mod exposition;
pub mod figures;
pub mod find_max;
pub mod hdr;
pub mod html;
pub mod live;
pub mod merge;
mod ordered;
mod provenance;
pub mod report;
pub mod threshold;
pub mod verdict;

pub mod selftest;
pub mod untrusted;

pub mod error;
pub mod limits;

// For whoever fills in `Options` without depending on the engine and on TLS.
pub use onrush_engine::Io;
pub use onrush_tls::{Cipher, ClientSetup, Group, Resume, Verify, Version};
