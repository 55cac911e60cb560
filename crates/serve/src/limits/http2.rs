//! Every bound of clients that speak HTTP/2, beside those of the protocol itself (`onrush_http::http2::limits`).

use std::time::Duration;

/// Bytes that a connection of HTTP/2 has handed to its socket before more of bodies is written: what goes out in one call.
pub(crate) const HTTP2_UNSENT_MAX: usize = 64 * 1024;

/// Bytes behind those before no more is read of a client that does not take them: heads of responses, and answers to PING, SETTINGS and
/// resets. What is asked for beyond waits in its socket.
pub(crate) const HTTP2_ANSWERS_MAX: usize = 64 * 1024;

/// How long a connection that is to end takes requests of a client that does not answer to its ping: longer than any round trip
/// on earth, and a tenth of the time to finish.
pub(crate) const HTTP2_LEAVING_MAX: Duration = Duration::from_secs(1);

/// How long a connection of HTTP/2 is idle before it gives back memory that it needs for the next request: 5 KiB that a client which
/// asks one by one would need again at once.
pub(crate) const HTTP2_REST_AFTER: Duration = Duration::from_secs(1);

/// Data up to so many bytes is copied behind the frames before it; more travels as the buffer that it came in.
pub(crate) const HTTP2_COPY_MAX: usize = 4096;

/// Bytes of a file in one frame: the largest that a client takes unless it says otherwise (RFC 9113 6.5.2).
pub(crate) const HTTP2_FILE_PIECE: usize = 16 * 1024;

/// Such frames that a stream has ready at once: its window when nothing else is said.
pub(crate) const HTTP2_FILE_PIECES: usize = 4;

/// Streams of a connection that read a file at a time: while what one has read is sent, another reads what is sent next.
pub(crate) const HTTP2_READERS_MAX: usize = 2;

/// What a connection of HTTP/2 keeps of streams that are over, for the next ones: as many as browsers have at a time.
pub(crate) const FLOWS_SPARE_MAX: usize = 32;

/// Bytes of request bodies that a client may have on its way on one connection of HTTP/2 before anybody has read them: four times
/// the window of a stream.
pub(crate) const HTTP2_CONNECTION_WINDOW: u32 = 256 * 1024;

/// Bytes of its response that a stalled stream holds: one receive from a server of HTTP/1, or one stream window of a server of HTTP/2.
/// The listing of a large directory is longer; its stream counts as several stalled streams. Memory that responses share is not counted.
pub(crate) const HTTP2_STREAM_HELD_MAX: usize = 64 * 1024;

/// Bytes dropped unsent after which free memory is returned to the system: the data of 16 stalled streams, or 256 streams without data.
/// Otherwise the allocator keeps it, because of allocations in between that are in use.
pub(crate) const HTTP2_DROPPED_MAX: usize = 1024 * 1024;

/// Memory of a stream that is unfinished when its connection ends: its request and its way to a server take 1.5 KB, and 3.6 KB of resident
/// memory were measured for each of 12,800 streams without responses. Counts as dropped bytes.
pub(crate) const HTTP2_STREAM_BYTES: usize = 4096;

/// Delay before the memory is returned. Returning takes some microseconds per free part, so it is done once for many streams.
pub(crate) const HTTP2_DROPPED_KEPT: Duration = Duration::from_secs(5);

/// Time with little progress after which a stalled stream may be reset when its client address has too many of them. Longer than a
/// retransmission of TCP, and short enough that requests which wait for the stream's server get it within `queue`.
pub(crate) const HTTP2_STALLED_MIN: Duration = Duration::from_secs(1);

/// Bytes that count as progress there. With any byte as progress, a client that opens its windows by one byte a second would hold all
/// streams that it wants; with 1 KiB, each of them costs it 1 KiB/s. A modem of 56 kbit/s takes seven times as many.
pub(crate) const HTTP2_PROGRESS_MIN: u64 = 1024;

/// Bytes of a rendered head whose block a connection keeps until it is idle: twice what those of fixed answers and files have.
pub(crate) const HTTP2_REPEATED_MAX: usize = 512;

/// Bytes of requests' bodies that the streams of a core hold without counting against the windows of their connections: a thousand streams
/// with all of theirs. One that waits for capacity of a server holds 64 KiB at most, so that four would close the window of their
/// connection for an upload that its server reads.
pub(crate) const HTTP2_UPLOADS_HELD_MAX: u64 = 64 * 1024 * 1024;

/// Bytes of a body that came with its head and stays with it, so that its request goes to a server as a whole and may be sent again:
/// one frame of the usual size (RFC 9113 4.2).
pub(crate) const HTTP2_WHOLE_MAX: usize = 16 * 1024;
