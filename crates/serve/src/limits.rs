//! Every bound of the server, each with its reason.

use std::time::Duration;

/// Buffers of answers queued before they are sent, while more pipelined requests wait: 64 KiB goes out in one call, and
/// a client that pipelines without reading costs no more than that.
pub(crate) const OUTPUT_BUFFERS_MAX: usize = 4;

/// How long a connection that is closed early is still read, so that the answer is not lost to a reset (RFC 9112 9.6).
/// nginx's lingering_timeout is 5 s; what matters is one round trip.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// Bytes read and thrown away while lingering; a client that sends more learns by a reset.
pub(crate) const LINGER_BYTES: usize = 1024 * 1024;

/// Pause after the process ran out of descriptors, so that the accept loop does not spin.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections accepted in a row before the others get their turn.
pub(crate) const ACCEPTS_PER_TURN: usize = 64;

/// The `Date` of an answer may lag this much; the field has a resolution of one second.
pub(crate) const DATE_LAG: Duration = Duration::from_millis(100);

/// Log lines per second and core about failed requests; more are counted and summed up. A server that is down must not
/// turn into a full disk.
pub(crate) const LOG_LINES_PER_SECOND: u32 = 10;

/// How often pools look for connections that have been idle too long.
pub(crate) const POOL_SWEEP: Duration = Duration::from_secs(1);
