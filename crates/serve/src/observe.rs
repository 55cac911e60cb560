//! What a server knows of itself: what each core counts of the requests that have ended and of those under way, and how the
//! cores are asked for it while they serve.
//!
//! ```text
//!   exchange ends ──> Meter, Traffic of its listener, route and group     plain cells of the core's own
//!                 ──> AccessLog, where there is one                          a line, for a thread of its own
//!                 ──> Tracing, where there is any                            a span, likewise
//!   any thread    ──> Inspector ── mail ──> CoreView, by the core itself
//! ```

pub(crate) mod log;
pub(crate) mod meter;
pub(crate) mod record;

pub(crate) mod access_log;
pub(crate) mod cuts;
pub(crate) mod effort;
pub(crate) mod handshakes;
pub(crate) mod latency;
pub(crate) mod live;
pub(crate) mod native;
pub(crate) mod protobuf;
pub(crate) mod registry;
pub(crate) mod responses;
pub(crate) mod route_name;
pub(crate) mod trace;
pub(crate) mod traffic;
pub(crate) mod work;
