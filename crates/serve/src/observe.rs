//! Metrics, access log and traces: counters that each core keeps for ended requests and requests in flight, and queries
//! of them while the server runs.
//!
//! ```text
//!   exchange ends ──> Meter, Traffic of its listener, route and group     plain cells of the core
//!                 ──> AccessLog, if configured                               a line, for the log's thread
//!                 ──> Tracing, if configured                                 a span, for the exporter's thread
//!   any thread    ──> Inspector ── mail ──> CoreView, built by the core itself
//! ```

pub(crate) mod log;
pub(crate) mod meter;
pub(crate) mod record;

pub(crate) mod access_log;
pub(crate) mod close_counts;
pub(crate) mod forwarding_times;
pub(crate) mod handshakes;
pub(crate) mod in_flight;
pub(crate) mod latency;
pub(crate) mod native;
pub(crate) mod protobuf;
pub(crate) mod registry;
pub(crate) mod responses;
pub(crate) mod route_name;
pub(crate) mod trace;
pub(crate) mod traffic;
pub(crate) mod work;
