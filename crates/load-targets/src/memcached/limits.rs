//! Limits of memcached's protocol.

/// Maximum number of words parsed in a command, except for the keys of gets: memcached's limit (`MAX_TOKENS` minus the
/// terminator).
pub(super) const WORDS_MAX: usize = 23;

/// Maximum size in bytes of an incomplete line, except for the keys of gets: memcached's limit. No command is longer,
/// and the remaining input fits in a buffer.
pub(super) const LINE_MAX: usize = 2048;

/// Maximum number of bytes of responses written before they are sent. 64 KiB are sent in one call, and a client that
/// does not read costs no more than this and one value.
pub(super) const ANSWERS_MAX: usize = 64 * 1024;

/// Maximum size of a response over UDP in bytes: four values of the default maximum. A response is complete before its
/// first datagram is sent, since each datagram contains their number.
pub(super) const DATAGRAM_ANSWER_MAX: usize = 4 << 20;

/// Maximum memory allocated for a value before it arrives: a client that announces a gigabyte and sends nothing costs
/// no more.
pub(super) const VALUE_PREALLOCATED_MAX: usize = 64 * 1024;

/// Maximum length of a key in bytes, as in memcached.
pub(super) const KEY_BYTES_MAX: usize = 250;
