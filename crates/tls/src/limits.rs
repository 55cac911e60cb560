//! Bounds of this crate, each with its reason.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Maximum size of a record's plaintext in bytes (RFC 8446 5.1).
pub(crate) const PLAINTEXT_MAX: usize = 16 * 1024;

/// Maximum size in bytes of a record after its header (RFC 8446 5.2). TLS 1.2's larger limit (RFC 5246 6.2.3) is not
/// needed by its ciphers.
pub(crate) const CIPHERTEXT_MAX: usize = PLAINTEXT_MAX + 256;

/// Maximum number of records encrypted before the first is sent: as many bytes as one send of a plain connection, held
/// for a slow reader.
pub(crate) const RECORDS_PER_SEND: usize = 4;

/// Maximum number of records that one AES-GCM key may protect (RFC 8446 5.5 allows 2^24.5 full records).
pub(crate) const GCM_RECORDS_MAX: u64 = 1 << 24;

/// Maximum size of a key in bytes: AES-256 and ChaCha20 (RFC 8446 B.4).
pub(crate) const KEY_BYTES_MAX: usize = 32;

/// Maximum size of a traffic secret in bytes: SHA-384 (RFC 8446 7.1).
pub(crate) const SECRET_BYTES_MAX: usize = 48;

/// Expanded keys that a thread keeps, for the 1,024 connections used last: 1.2 MiB, about the size of a CPU's L2
/// cache. With more busy connections, expanding keys again adds 0.3 us to a request of about 5 us.
pub(crate) const EXPANDED_KEYS_MAX: usize = 2048;

/// Maximum size of incomplete handshake messages in bytes: rustls refuses longer ones; a chain of ten large
/// certificates needs half.
pub(crate) const HANDSHAKE_BYTES_MAX: usize = 64 * 1024 + 4;

/// Maximum number of bytes of encrypted early data that are skipped (RFC 8446 4.2.10): a client may have a ticket of
/// another server that accepts early data. OpenSSL and nginx allow 16 KiB before encryption, in any number of records.
pub(crate) const EARLY_DATA_BYTES_MAX: usize = 32 * 1024;

/// As [`EARLY_DATA_BYTES_MAX`], including record headers: limits records without content.
pub(crate) const EARLY_RECORD_BYTES_MAX: usize = 2 * EARLY_DATA_BYTES_MAX;

/// Maximum size in bytes of a message after the handshake, such as a ticket, which may contain a whole session and a
/// client's certificates. One buffer is enough for the largest ticket of this crate, and larger than any of OpenSSL's.
pub(crate) const POST_HANDSHAKE_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of KeyUpdates that a peer may send while neither side sends data: each costs a key schedule.
pub(crate) const KEY_UPDATES_MAX: u32 = 16;

/// Key schedules that a peer may cause in one turn: 0.3 ms, similar to the turns of other tasks. One more than the
/// engine's 64 operations per task, so that reaching it always makes the task yield.
pub(crate) const KEY_SCHEDULES_PER_TURN: u16 = 65;

/// Maximum number of records without data that a peer may send while neither side sends data: empty ones, warnings,
/// tickets, requests for renegotiation, parts of messages. They cost time without progress.
pub(crate) const IDLE_RECORDS_MAX: u32 = 64;

/// Maximum number of renegotiations that a TLS 1.2 client may request: one, because it may not yet know that they are
/// refused.
pub(crate) const RENEGOTIATIONS_MAX: u8 = 1;

/// Number of tickets issued after a full handshake: browsers open several connections at once, and each ticket is for
/// one connection (RFC 8446 C.4). OpenSSL issues the same number.
pub(crate) const TICKETS: usize = 2;

/// Time for which a session may be resumed after its full handshake: a day. RFC 8446 4.6.1 allows seven.
pub(crate) const SESSION_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of servers whose tickets a connector stores, 2 KB each: more than any group has.
pub(crate) const SESSIONS_MAX: usize = 1024;

/// Bits of RSA keys that aws-lc supports.
pub(crate) const RSA_BITS_SUPPORTED: RangeInclusive<usize> = 2048..=8192;

/// Maximum number of characters shown of a certificate's name in messages: real distinguished names have up to 150.
pub(crate) const NAME_CHARS_MAX: usize = 200;

/// Maximum number of names shown of a certificate in messages: enough to identify it.
pub(crate) const NAMES_SHOWN_MAX: usize = 5;

/// Time for a client that sent plain HTTP to read the response, which states that this port requires TLS.
pub(crate) const REFUSAL_LINGER: Duration = Duration::from_secs(1);

/// Maximum number of bytes of such a request that are read in [`REFUSAL_LINGER`]: closing with unread bytes could lose
/// the response.
pub(crate) const REFUSAL_LINGER_BYTES: usize = 64 * 1024;

/// Interval at which certificate files are checked. A renewal comes weeks before the old certificate expires.
pub(crate) const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum size of a PEM file in bytes: bundles of all public authorities have 250 KB.
pub(crate) const PEM_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum size of an OCSP response in bytes: public authorities send 0.5 to 3 KB, and each full handshake includes the
/// response.
pub(crate) const STAPLE_BYTES_MAX: u64 = 16 * 1024;

/// Maximum size of a file of revocation lists in bytes: a million revoked certificates take about 35 MB.
pub(crate) const REVOCATION_LIST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Validity of a generated certificate in days, below the 398 days that browsers accept.
pub(crate) const SELF_SIGNED_DAYS: u64 = 365;
