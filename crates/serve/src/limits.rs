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

/// Files up to this size are kept in memory, ready to be sent in one call with their head: half a buffer, so that a
/// few pipelined answers still share one. Above, sendfile(2) costs less than the copies it saves.
pub(crate) const FILE_HELD_MAX: usize = 8 * 1024;

/// Files a core remembers for each route that serves files: more than the hot part of most sites; with the next bound
/// at most 32 MiB of content, and about 1 KiB each for heads and names.
pub(crate) const FILES_MAX: usize = 4096;

/// Of those, larger ones: each keeps a descriptor open. A process has 1,024 at the very least, and connections need
/// them more.
pub(crate) const FILES_OPEN_MAX: usize = 256;

/// How old the knowledge of a file may be before it is looked at again: a changed file is noticed within this time.
pub(crate) const FILE_CHECK: Duration = Duration::from_secs(1);

/// A file that nobody asks for is forgotten after this time at least and twice as long at most, so that the space of a
/// deleted one is not held for ever.
pub(crate) const FILE_IDLE: Duration = Duration::from_secs(30);

/// A file changed this recently by its own time may change again without its times showing it: coarse clocks of older
/// kernels tick every 10 ms, those of FAT every 2 s.
pub(crate) const FILE_SETTLED_SECONDS: u64 = 3;

/// Attempts to read a small file that changes while it is read; then the last reading is served, and not kept.
pub(crate) const FILE_READS_MAX: usize = 3;

/// Ranges in one request; Apache's bound is 200. Viewers of documents ask for some dozens. Ranges are joined where they
/// overlap, so this bounds the heads of parts, not bytes sent twice.
pub(crate) const RANGES_MAX: usize = 100;

/// Ranges apart by no more than this are sent as one: the head of a part is longer.
pub(crate) const RANGE_GAP: u64 = 80;

/// The longest synthetic body: 1 EiB. Six times as much, in chunks, still fits 64 bits.
pub(crate) const SYNTHETIC_BYTES_MAX: u64 = 1 << 60;

/// The longest a synthetic answer waits: an hour outlasts every timeout there is to be tested.
pub(crate) const SYNTHETIC_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// Bytes of a synthetic body after which others get their turn, as with sendfile.
pub(crate) const SYNTHETIC_BYTES_PER_TURN: usize = 512 * 1024;

/// Descriptors each core opens at its start: its driver's, its wake-up twice, and one to spare.
pub(crate) const DESCRIPTORS_PER_CORE: u64 = 4;

/// Descriptors of the process itself: standard streams, signals, the resolver, a library being loaded.
pub(crate) const DESCRIPTORS_OF_PROGRAM: u64 = 12;

/// How often an address in use is asked for before that is an error. A killed server that used io_uring held its
/// listeners for up to 12 ms more (Linux 6.18); ten times that is still at once for a person.
pub(crate) const CLAIM_ATTEMPTS: u32 = 6;

/// Pause between two of these attempts.
pub(crate) const CLAIM_PAUSE: Duration = Duration::from_millis(25);

/// Bytes of the fields that a route adds to an answer, with what their variables stand for: a head of our own and they
/// fit one buffer.
pub(crate) const ANSWER_LINES_BYTES_MAX: usize = 4 * 1024;

/// The longest place that a redirect leads to: the longest target, and a host before it. With the rest of the head it
/// fits [`HEAD_BYTES_MAX`](crate::respond::HEAD_BYTES_MAX).
pub(crate) const LOCATION_BYTES_MAX: usize = 10 * 1024;

/// Memory for parts of requests that a core keeps for later ones: what a few hundred requests at a time need. Each has
/// some hundred bytes, and [`ANSWER_LINES_BYTES_MAX`] at most.
pub(crate) const KEPT_SPARE_MAX: usize = 256;
