//! Bounds of requests over HTTP/2, each with its reason.

use crate::limits::http1::RESPONSE_LIMITS;

/// Requests of a connection that are to be on their way at once: beyond what any server takes (100 to 1000), and each has a task
/// of its own.
pub(crate) const STREAMS_MAX: u64 = 65_536;

/// Different paths that the tables of connections keep: each takes 32 bytes and its own in a table of 4096 as a rule, beside
/// fields that all requests have. With more of them each would push another out before it comes again.
pub(crate) const PATHS_KEPT_MAX: usize = 16;

/// Request heads that the connections of a core keep with their header blocks, about 1 KB each. They are shared out between the
/// connections; each has at least [`PATHS_KEPT_MAX`]. A request whose head is kept takes 20 to 30 ns for it, others 0.2 to 3 us.
pub(crate) const HEADS_KEPT_MAX: usize = 4096;

/// Bytes of a window, of a stream and of a connection: 1 GiB, so that what is received is all there is to do for it, and no
/// server waits for WINDOW_UPDATE. Nothing is kept of what comes.
pub(crate) const WINDOW_BYTES: u32 = 1 << 30;

/// Bytes of a decoded field section, which counts 32 for each field (RFC 9113 6.5.2): heads of the size that HTTP/1 takes.
pub(crate) const LIST_BYTES_MAX: u32 =
    (RESPONSE_LIMITS.head_bytes_max + 32 * RESPONSE_LIMITS.headers_max) as u32;

/// Bytes that are written before they are sent, but for the last frame: what a socket takes at once.
pub(crate) const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Connections one behind the other that respond to nobody and end with GOAWAY, for a request that each of them left untouched: then it
/// has failed. A server that restarts says GOAWAY on one, and those behind a balancer that restart together on a few; with the pauses
/// between them these take a sixth of a second.
pub(crate) const VAIN_CONNECTIONS_MAX: u32 = 5;

/// How often within a timeout it is looked for streams on which nothing happens: a timeout is late by this part of itself at
/// most.
pub(crate) const LOOKS_PER_TIMEOUT: u32 = 8;
