//! Load generator: sends requests over HTTP/1.1, HTTP/2, gRPC, memcached or plain TCP, measures rate and latency of the
//! responses, and reports whether the generator itself was the limit.
//!
//! ```text
//!  Options ──> plan::Plan ──> run::start ──> run/part.rs, once per core ──> report::Report
//!                                              └─ connection.rs, once per connection:
//!                                                 wait for the pace -> send -> receive -> record
//! ```
//!
//! Each core has its own counters, and once a second sends a copy of them to the thread that waits in
//! [`run::Running::finish`]. [`pace`] is pure: it decides from its state and the time what to send and when to stop.
//!
//! A room, a module at the top of the crate, uses only rooms below it:
//!
//! | room | contents |
//! |---|---|
//! | `run` | starts the cores of a run and follows it; live view and metrics |
//! | `dialect` | output in the format of h1load, h2load, wrk and mcblaster |
//! | `compare`, `merge` | several results |
//! | `packets` | the generator of test packets, with its own plan and report |
//! | `report` | a result as JSON, text, HTML and CSV |
//! | `connection` | tasks that send requests and receive responses, and their shared state on a core |
//! | `verdict` | whether a result is valid, and the user's thresholds |
//! | `record` | counters and histograms of a core; CPU times of the machine during the run |
//! | `plan` | checked options |
//! | `journey` | journeys of users, read from a file |
//! | `protocol` | bytes of each protocol: requests out, responses in |
//! | `requests` | which requests are sent: URLs, templates, data, gRPC calls, memcached keys |
//! | `pace` | due times of requests, the end of a run, clocks and the target |
//! | `limits` | bounds with their reasons |
//!
//! # Invariants
//!
//! - Percentiles are never averaged: histograms are added up.
//! - A latency counts from the moment at which the request should have started. If it counted from the send, a server that
//!   stalls would also stop the generator, and the requests that users would have sent meanwhile would be missing from
//!   the percentiles (coordinated omission). The moment follows from the request's number, so rounding does not accumulate.
//! - Everything about a request follows from its number in the run, so threads and generators need no communication.
//! - A thread does slow one-time work (memory, random numbers) before its first connection begins, because the connect
//!   time would include it (`run/part.rs`).
//! - Each receive has a time stamp of its own, not one for a batch of connections. Cores share nothing while they
//!   measure.
//! - `pace`, `record`, `verdict` and `merge` do not depend on a protocol: the outcome of a response is counted by
//!   number, and gets its name in results.
//! - For datagrams, sent = received + lost. A lost datagram is in exactly one counter, or unaccounted.
#![forbid(unsafe_code)]

pub mod compare;
mod connection;
pub mod dialect;
pub mod journey;
pub mod limits;
pub mod merge;
pub mod pace;
pub mod packets;
pub mod plan;
mod protocol;
mod record;
pub mod report;
pub mod requests;
pub mod run;
pub mod verdict;

pub use pace::{error, stop, target, wall_clock};
pub use plan::reach;
pub use protocol::{bytes, fuzz};
pub use record::{evidence, figures, history, incomplete_waits, times};
pub use report::{csv, find_max, hdr, html, snapshot};
pub use requests::{grpc, memcached};
pub use run::{exposition, live, populate, selftest};
pub use verdict::threshold;

// For callers that fill in `Options`.
pub use onrush_engine::Io;
pub use onrush_tls::{Cipher, ClientSetup, Group, Resume, Verify, Version};
