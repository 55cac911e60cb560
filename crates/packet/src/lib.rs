//! Messages between both ends of a run of test packets, and the counters of the receiving end; the frame of memcached's datagrams
//! (`memcached.rs`). Pure: no I/O and no clock; times are nanoseconds that the caller has measured.
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
