//! All limits of HTTP/2, with reasons. Configurable ones are in [`LocalSettings`](super::settings::LocalSettings).

use std::time::Duration;

/// Maximum size in bytes of a frame, with its header, that [`receive`](super::Connection::receive) needs at once.
/// Connection frames and field blocks in one piece are read in place; longer blocks are joined in a buffer, and DATA is
/// processed in pieces. A quarter of a receive buffer of 16 KiB; browsers' heads have a few hundred bytes.
pub const FRAME_WHOLE_BYTES_MAX: usize = 4096;

/// Maximum number of settings in one frame. RFC 9113 and its extensions define nine, and clients add one or two
/// reserved ones.
pub const SETTINGS_PER_FRAME_MAX: u32 = 64;

/// Maximum size of the value in PRIORITY_UPDATE in bytes; longer ones are ignored. `u=0, i` has six, extensions may add
/// a few.
pub const PRIORITY_BYTES_MAX: u32 = 256;

/// Maximum number of priorities stored for streams not open yet. RFC 9218 7.1 asks to keep some; browsers send them in
/// the head.
pub const EARLY_PRIORITIES_MAX: usize = 4;

/// Maximum size in bytes of a request head whose header block a client stores to send it again. Most browsers' heads
/// are smaller.
pub const REPEATED_HEAD_BYTES_MAX: usize = 2048;

/// Maximum number of streams that a client opens before the server's SETTINGS arrive. RFC 9113 6.5.2 advises servers to
/// allow at least 100; streams above the server's limit would be refused.
pub const STREAMS_BEFORE_SETTINGS: u32 = 100;

/// Maximum size in bytes of a field block before decoding (CVE-2024-27316: endless CONTINUATION). Decoded fields are
/// limited by `list_bytes_max` and refused with a response; this limits the memory needed to get there. Twice the 32
/// KiB of fields that nginx accepts, which a sensible Huffman encoder never exceeds.
pub const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of fields stored of a section; one more marks the section as too large. A head has at most
/// `HEADER_SLOTS` (100), but cookies, which browsers send one by one, are joined only at the end.
pub const FIELDS_KEPT_MAX: usize = 256;

/// Maximum size in bytes of a header block that is stored to recognize its repetition: enough for heads whose fields
/// are mostly in the table.
pub const HPACK_REPEATED_BLOCK_MAX: usize = 512;

/// Maximum size in bytes of the decoded fields stored with such a header block.
pub const HPACK_REPEATED_FIELDS_MAX: usize = 2048;

/// [Excess](super::fields::FieldSection) of a single block: fields beyond the stored ones, at 4 ns each, and KiB of
/// names copied from the table. Above it, decoding stops and the connection ends: without a limit, 64 KiB of references
/// cost as much as 150 requests. A client whose cookies exceed `list_bytes_max` has a few dozen.
pub const EXCESS_PER_BLOCK_MAX: u32 = 1000;

/// Maximum number of CONTINUATION frames in a block. At the minimum SETTINGS_MAX_FRAME_SIZE, 16 KiB, `BLOCK_BYTES_MAX`
/// needs four. Some peers (tests of proxies) use smaller frames, of at least 1 KiB.
pub const CONTINUATIONS_MAX: u16 = 64;

/// Maximum size in bytes of replies (acknowledgements, PING, resets, windows) that the peer has not read
/// (CVE-2019-9512, 9515). PINGs that fill a receive buffer cause 16 KiB of replies; twice that leaves room for a burst.
pub const CONTROL_UNSENT_BYTES_MAX: u32 = 32 * 1024;

/// Number of streams that the peer may reset in a burst before they are served (CVE-2023-44487). A browser that is
/// closed or leaves a page resets all of its open streams, 100 at a time. A proxy or a gRPC client resets each call
/// whose deadline has passed: all calls, when the server hangs. A stream refused because too many are open costs as
/// much. Each costs about ten microseconds, so a burst takes a hundredth of a second.
pub const RESETS_AHEAD_MAX: u32 = 1000;

/// Number of stream errors in a burst for which the connection stays open: each makes us reset a stream
/// (CVE-2025-8671). Correct peers cause none, except for streams above the limit of concurrent ones before they receive
/// it.
pub const STREAM_ERRORS_AHEAD_MAX: u32 = 200;

/// Number of unproductive frames allowed in a burst: empty DATA, small window updates, priorities, settings, PING,
/// frames of closed streams, and fields beyond the limit of a head (CVE-2019-9511, 9513, 9516, 9518). Clients that send
/// a PING for each DATA frame, to measure latency, stay below it.
pub const UNPRODUCTIVE_FRAMES_BURST_MAX: u32 = 2000;

/// Number of chatter tokens returned by a served stream: a client may send a priority, a window update and a reset for
/// each.
pub const CHATTER_PER_STREAM: u32 = 8;

/// Maximum number of chatter tokens returned by a DATA frame: updates of both windows, a PING, and one spare.
pub const CHATTER_PER_DATA: u32 = 4;

/// Minimum number of bytes of received DATA that return tokens.
pub const DATA_GOOD_BYTES: usize = 256;

/// Number of bytes of sent DATA per chatter token returned. A peer that opens its window by one byte at a time makes us
/// send frames of one byte (CVE-2019-9511). A small device may open it by what it has just read: 8 bytes of frames per
/// byte of data, nginx's limit, correspond to one frame of 13 bytes per two bytes.
pub const DATA_BYTES_PER_CHATTER: usize = 2;

/// Minimum increment of a productive window update. Go's client sends 4,096 or more, nginx and browsers much more.
pub const WINDOW_GOOD_BYTES: u32 = 1024;

/// Default number of reset tokens returned per second. A connection with 100 concurrent calls and deadlines of 10 ms
/// makes this many resets when its server hangs; the same client may make ten times as many requests that get a
/// response. At ten microseconds each, the resets take a tenth of a CPU.
pub const RESETS_PER_SECOND: u32 = 10_000;

/// Interval at which tokens are returned. It is short compared with a second, so that small buckets suffice, and each
/// rate below is a whole number of tokens per tick.
pub const GUARD_TICK: Duration = Duration::from_millis(100);

/// Number of stream error tokens returned per second.
pub const STREAM_ERRORS_PER_SECOND: u32 = 10;

/// Number of chatter tokens returned per second: a PING and a window update for each of 50 round trips a second.
pub const CHATTER_PER_SECOND: u32 = 100;
