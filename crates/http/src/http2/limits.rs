//! Every bound of HTTP/2, with its reason. What a configuration may change stands in
//! [`LocalSettings`](super::settings::LocalSettings).

use std::time::Duration;

/// Bytes of a frame that [`receive`](super::Connection::receive) may want at once, its head included: frames of the
/// connection and field blocks in one piece are read where they lie, longer blocks are joined in a buffer and DATA goes
/// on in pieces. A quarter of a receive buffer of 16 KiB; heads of browsers have some hundred bytes.
pub const FRAME_WHOLE_BYTES_MAX: usize = 4096;

/// Settings in one frame. RFC 9113 and its extensions have nine, and clients add one or two that mean nothing; what
/// repeats hundreds of them costs more than it says.
pub const SETTINGS_PER_FRAME_MAX: u32 = 64;

/// Bytes of the value in PRIORITY_UPDATE; what is longer is ignored. `u=0, i` has six, extensions may add some.
pub const PRIORITY_BYTES_MAX: u32 = 256;

/// Streams that a peer may give a priority before it opens them. RFC 9218 7.1 asks to keep some; browsers say it in the
/// head.
pub const PRIORITIES_AHEAD_MAX: usize = 4;

/// Bytes of a request head whose header block a client keeps and sends again. A browser's head with a cookie or two is smaller.
pub const REPEATED_HEAD_BYTES_MAX: usize = 2048;

/// Streams that a client opens before the server has said how many it takes. RFC 9113 6.5.2 advises servers to take 100 at
/// least; those beyond what it takes would be refused.
pub const STREAMS_BEFORE_SETTINGS: u32 = 100;

/// Bytes of a field block before it is decoded (CVE-2024-27316: CONTINUATION without end). What is decoded is bounded by
/// `list_bytes_max` and refused politely; this is the bound on what is kept to find out. nginx takes 32 KiB of fields at
/// most, which Huffman coding never lengthens in a sane encoder; twice of that.
pub const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// Fields of a section that are kept, and one more, by which it is known to be too large. A head has `HEADER_SLOTS` (100) at most;
/// cookies count as one only when all of them are there, and browsers send each by itself.
pub const FIELDS_KEPT_MAX: usize = 256;

/// Bytes of a block that is kept to be known when it comes again: heads whose fields are mostly in the table.
pub const HPACK_REPEATED_BLOCK_MAX: usize = 512;

/// Bytes of its fields that are kept with it.
pub const HPACK_REPEATED_FIELDS_MAX: usize = 2048;

/// What a single block may have us do in [excess](super::fields::FieldSection): fields beyond those that are kept, at 4 ns each, and KiB of
/// names copied from the table. Decoding stops there, and the connection ends: without a bound, 64 KiB of references cost
/// as much as 150 requests. A client whose cookies have grown beyond `list_bytes_max` has some dozens.
pub const EXCESS_PER_BLOCK_MAX: u32 = 1000;

/// CONTINUATION frames of a block: with the smallest frame size that can be asked for, 16 KiB, `BLOCK_BYTES_MAX` needs
/// four. Peers that cut smaller are known (tests of proxies), and take 1 KiB at least.
pub const CONTINUATIONS_MAX: u16 = 64;

/// Bytes of answers to the peer's frames (acknowledgements, PING, resets, windows) that it has not read (CVE-2019-9512,
/// 9515). One receive buffer of PINGs makes 16 KiB of answers; twice of that, so that a burst passes.
pub const CONTROL_UNSENT_BYTES_MAX: u32 = 32 * 1024;

/// Streams that the peer may reset before they are served, ahead of what good work and time give back (CVE-2023-44487).
/// A browser that is closed or leaves a page resets all of its open streams, 100 at a time. A proxy or a client of gRPC resets
/// each call whose deadline has passed: all calls, when the server hangs. A stream that is refused because too many are open
/// costs as much. Each costs about ten microseconds, so all of them take a hundredth of a second.
pub const RESETS_AHEAD_MAX: u32 = 1000;

/// Stream errors of the peer that make us reset (CVE-2025-8671), in the same way. Correct peers make none at all, but for
/// streams above the bound of concurrent ones before they know of it.
pub const STREAM_ERRORS_AHEAD_MAX: u32 = 200;

/// Frames that carry nothing or little, ahead of what good work and time give back: empty DATA, windows opened by a few
/// bytes, priorities, settings, PING, frames of streams that are gone, and fields beyond what a head may have (CVE-2019-9511, 9513, 9516, 9518). A PING for each
/// frame of data, as some clients measure, stays below it.
pub const CHATTER_AHEAD_MAX: u32 = 2000;

/// Frames of chatter that a served stream gives back: a client may say a priority, a window and a reset for each.
pub const CHATTER_PER_STREAM: u32 = 8;

/// Frames of chatter that DATA gives back at most, in either direction: windows of stream and connection, and a PING, with one
/// to spare.
pub const CHATTER_PER_DATA: u32 = 4;

/// Bytes of received DATA below which it is no good work.
pub const DATA_GOOD_BYTES: usize = 256;

/// Bytes of DATA that we send for each frame of chatter that they give back. A peer that opens its window by one byte at a time
/// makes us send frames of one byte (CVE-2019-9511). A small device may open it by what it has just read: 8 bytes of
/// frames for each of data, as nginx has it, are one of 13 for two.
pub const DATA_BYTES_PER_CHATTER: usize = 2;

/// Bytes by which a window is opened that was worth a frame. Go's client does so from 4,096 on, nginx and browsers by much more.
pub const WINDOW_GOOD_BYTES: u32 = 1024;

/// Reset tokens given back per second, unless the configuration has another number. A connection with 100 calls at a time and
/// deadlines of 10 ms makes this many resets when its server hangs; the same client may make ten times as many requests that
/// get a response. At ten microseconds each, the resets cost a tenth of a CPU.
pub const RESETS_PER_SECOND: u32 = 10_000;

/// Interval at which tokens are given back. It is short compared with a second, so that a small stock of tokens is enough, and
/// each rate below is a whole number of tokens per tick.
pub const GUARD_TICK: Duration = Duration::from_millis(100);

/// Stream errors that a second gives back.
pub const STREAM_ERRORS_PER_SECOND: u32 = 10;

/// Frames of chatter that a second gives back: a PING for each of 50 round trips a second, and as many windows.
pub const CHATTER_PER_SECOND: u32 = 100;
