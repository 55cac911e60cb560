//! Limits of requests over HTTP/2.

use crate::limits::http1::RESPONSE_LIMITS;

/// Concurrent requests of a connection: more than any server accepts (100 to 1000). Each has its own task.
pub(crate) const STREAMS_MAX: u64 = 65_536;

/// Distinct paths kept in a connection's dynamic table (HPACK). An entry takes 32 bytes plus the path in a table of
/// usually 4096 bytes, next to fields that all requests have. With more paths each would be evicted before it is used
/// again.
pub(crate) const PATHS_KEPT_MAX: usize = 16;

/// Request heads that the connections of a core keep with their header blocks, about 1 KB each. They are divided among
/// the connections, and each has at least [`PATHS_KEPT_MAX`]. Encoding a kept head takes 20 to 30 ns, others 0.2 to 3
/// us.
pub(crate) const HEADS_KEPT_MAX: usize = 4096;

/// Bytes of the flow-control windows of streams and connections: 1 GiB, so that no server waits for WINDOW_UPDATE.
/// Received data is discarded at once.
pub(crate) const WINDOW_BYTES: u32 = 1 << 30;

/// Bytes of a decoded field section, where each field counts 32 more (RFC 9113 section 6.5.2): heads of the size
/// accepted over HTTP/1.
pub(crate) const LIST_BYTES_MAX: u32 =
    (RESPONSE_LIMITS.head_bytes_max + 32 * RESPONSE_LIMITS.headers_max) as u32;

/// Bytes of frames, not counting the last one, that are written before they are sent: what a socket accepts at once.
pub(crate) const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Consecutive connections that end with GOAWAY without a response and without having processed a request, after which
/// the request fails. A restarting server sends GOAWAY on one, and servers restarting together behind a balancer on a
/// few. With the pauses between them these take a sixth of a second.
pub(crate) const GOAWAY_RETRIES_MAX: u32 = 5;

/// Checks for idle streams per timeout: a timeout is detected late by at most this fraction of it.
pub(crate) const CHECKS_PER_TIMEOUT: u32 = 8;
