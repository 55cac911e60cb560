//! What both ends of a run of test packets say to each other, and what the receiving end counts; and the frame of memcached's
//! datagrams, which both ends have, too (`memcached.rs`). Pure: no I/O and no clock; times come in as nanoseconds that somebody else
//! measured.
//!
//! ```text
//!  load udp://  ── Data (run, flow, sequence, time) ──> sink: Tally of the flow
//!               ── Question (run, flow) ──────────────> sink
//!               <───────────── Report (the Tally), no longer than its question ──
//! ```
//!
//! Each datagram that arrives is counted as exactly one of received, duplicated and too late.
#![forbid(unsafe_code)]

pub mod frame;
pub mod header;
pub mod memcached;
pub mod report;
pub mod tally;
pub mod window;

pub mod untrusted;

pub mod limits;
