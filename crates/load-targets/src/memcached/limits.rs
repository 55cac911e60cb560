//! The bounds of memcached's protocol, each with its reason.

/// Words of a command that are looked at, but for the keys of a `get`: memcached's number (`MAX_TOKENS`, less the end).
pub(super) const WORDS_MAX: usize = 23;

/// Bytes of a line without an end that are waited for, but for the keys of a `get`: memcached's number. No command is longer, and
/// what is left of the input has room in a buffer.
pub(super) const LINE_MAX: usize = 2048;

/// Bytes of answers that are written before they are sent: 64 KiB goes out in one call, and a client that asks without reading
/// costs no more than that and one value.
pub(super) const ANSWERS_MAX: usize = 64 * 1024;

/// Bytes of an answer over UDP: four of the longest values that a server takes when nothing is said. All of it is there before its
/// first datagram leaves, which says how many there are.
pub(super) const DATAGRAM_ANSWER_MAX: usize = 4 << 20;

/// Memory that a value gets before it has come: a client that announces a gigabyte and sends nothing costs no more than this.
pub(super) const VALUE_AHEAD: usize = 64 * 1024;

/// Maximum length of a key in bytes, as in memcached.
pub(super) const KEY_BYTES_MAX: usize = 250;
