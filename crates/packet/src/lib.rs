//! Messages between sender and receiver of a run with test packets, the receiver's counters, and the frame of
//! memcached's UDP protocol (`memcached.rs`). No I/O and no clock: callers pass times in nanoseconds.
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
