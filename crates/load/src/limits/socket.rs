//! Limits of requests over UDP.

use std::time::Duration;

/// Request ids over UDP: 16 bits (doc/protocol.txt). Each takes two bytes.
pub(crate) const IDS_MAX: usize = 1 << 16;

/// Ids of all sockets of a run: 8 MiB. The fewer ids a socket has, the sooner a late response is taken for that of a
/// later request.
pub(crate) const IDS_ALL_MAX: u64 = 1 << 22;

/// Minimum of ids per socket, for any number of sockets.
pub(crate) const IDS_MIN: usize = 16;

/// Ids per request in flight: most ids are not reused soon, so that late responses can be recognized.
pub(crate) const IDS_PER_REQUEST: u64 = 4;

/// Bytes of out-of-order datagrams that a core holds until the earlier ones arrive: 64 responses with the largest
/// values. A delayed datagram is overtaken by the datagrams of a few other responses.
pub(crate) const HELD_BYTES_MAX: usize = 64 << 20;

/// Interval between the datagrams that check before a run whether a server responds over UDP. Three seconds exceed the
/// delay of any queue on the path, and three datagrams are not lost by chance.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of probe datagrams; see [`PROBE_TIMEOUT`].
pub(crate) const PROBES_MAX: u32 = 3;

/// Requests in flight over UDP while keys are stored before a run: with their bytes they fit in a server's default
/// receive buffer (212,992 bytes; a short datagram takes 768).
pub(crate) const FILL_DATAGRAMS: u64 = 64;

/// Maximum bytes of the requests in flight over UDP while keys are stored; see [`FILL_DATAGRAMS`].
pub(crate) const FILL_DATAGRAM_BYTES: u64 = 64 * 1024;
