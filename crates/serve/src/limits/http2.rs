//! Limits for HTTP/2 clients. Limits of the protocol itself are in `onrush_http::http2::limits`.

use std::time::Duration;

/// Number of unsent bytes of an HTTP/2 connection at which no more body data is written: the size of one send.
pub(crate) const HTTP2_UNSENT_MAX: usize = 64 * 1024;

/// Number of further unsent bytes at which nothing more is read from a client that does not receive: heads of
/// responses, and answers to PING, SETTINGS and resets. Later requests wait in the socket.
pub(crate) const HTTP2_ANSWERS_MAX: usize = 64 * 1024;

/// Time for which a closing connection accepts requests if its PING is not answered: longer than any round trip.
pub(crate) const HTTP2_GOAWAY_WAIT: Duration = Duration::from_secs(1);

/// Idle time after which an HTTP/2 connection frees memory that it needs for the next request: 5 KiB, which a client
/// that sends one request after another would need again at once.
pub(crate) const HTTP2_FREE_MEMORY_AFTER: Duration = Duration::from_secs(1);

/// Data up to this size is copied after the previous frames; larger data is sent from its receive buffer.
pub(crate) const HTTP2_COPY_MAX: usize = 4096;

/// Maximum number of bytes of a file per frame: the largest frame that a client accepts by default (RFC 9113 6.5.2).
pub(crate) const HTTP2_FILE_PIECE: usize = 16 * 1024;

/// Maximum number of frames of a file that a stream prepares at once: the default window.
pub(crate) const HTTP2_FILE_PIECES: usize = 4;

/// Maximum number of streams per connection that read files at the same time: while the data of one is sent, another
/// reads.
pub(crate) const HTTP2_READERS_MAX: usize = 2;

/// Maximum number of finished streams that an HTTP/2 connection keeps for reuse: as many as browsers have open at a
/// time.
pub(crate) const FLOWS_SPARE_MAX: usize = 32;

/// Connection window for request bodies: four times the window of a stream.
pub(crate) const HTTP2_CONNECTION_WINDOW: u32 = 256 * 1024;

/// Maximum number of response bytes that a stalled stream holds: one receive from an HTTP/1 server, or one stream
/// window of an HTTP/2 server. A longer one (a large directory's listing) counts as several streams; shared memory does
/// not count.
pub(crate) const HTTP2_STREAM_HELD_MAX: usize = 64 * 1024;

/// Number of bytes dropped unsent after which free memory is returned to the system: the data of 16 stalled streams, or
/// 256 streams without data. Otherwise the allocator would keep it, because other allocations in between are in use.
pub(crate) const HTTP2_DROPPED_MAX: usize = 1024 * 1024;

/// Memory of a stream that is unfinished when its connection ends: request and forwarding state take 1.5 KB, and 3.6 KB
/// of resident memory were measured for each of 12,800 streams without responses. Counts as dropped bytes.
pub(crate) const HTTP2_STREAM_BYTES: usize = 4096;

/// Delay before free memory is returned to the system, once for many streams: it takes some microseconds per free part.
pub(crate) const HTTP2_TRIM_DELAY: Duration = Duration::from_secs(5);

/// Time with little progress after which a stalled stream may be reset if its client address has too many of them:
/// longer than a TCP retransmission, and short enough for requests that wait in the queue for the stream's server.
pub(crate) const HTTP2_STALLED_MIN: Duration = Duration::from_secs(1);

/// Number of bytes that count as progress. If any byte did, a client that opens its windows by one byte a second could
/// hold any number of streams; with 1 KiB, each costs it 1 KiB/s. A modem of 56 kbit/s transfers seven times as much.
pub(crate) const HTTP2_PROGRESS_MIN: u64 = 1024;

/// Largest rendered head whose encoded block a connection keeps: twice that of fixed responses and files.
pub(crate) const HTTP2_CACHED_HEAD_MAX: usize = 512;

/// Maximum number of bytes of request bodies that the streams of a core hold without counting against the windows of
/// their connections: a thousand streams with full windows. A stream that waits for capacity of a server holds up to 64
/// KiB, so four would close the connection's window for an upload that its server reads.
pub(crate) const HTTP2_UPLOADS_HELD_MAX: u64 = 64 * 1024 * 1024;

/// Largest body that arrived with its head and is kept with it, so that the request is sent to a server as a whole and
/// may be sent again: one frame of the usual size (RFC 9113 4.2).
pub(crate) const HTTP2_WHOLE_MAX: usize = 16 * 1024;
