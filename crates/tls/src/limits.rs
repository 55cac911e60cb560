//! Every bound of this crate, each with its reason.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Bytes of a record's plaintext (RFC 8446 5.1).
pub(crate) const PLAINTEXT_MAX: usize = 16 * 1024;

/// Bytes of a record behind its header (RFC 8446 5.2). TLS 1.2 allows more (RFC 5246 6.2.3), which none of its ciphers
/// here makes use of.
pub(crate) const CIPHERTEXT_MAX: usize = PLAINTEXT_MAX + 256;

/// Records sealed before the first of them is sent: as many bytes as a send of a plain connection has, and as much
/// memory as a slow reader of a large response costs.
pub(crate) const RECORDS_PER_SEND: usize = 4;

/// Records that one AES-GCM key may protect (RFC 8446 5.5 has 2^24.5 of full size).
pub(crate) const GCM_RECORDS_MAX: u64 = 1 << 24;

/// Bytes of a key: those of AES-256 and ChaCha20 (RFC 8446 B.4).
pub(crate) const KEY_BYTES_MAX: usize = 32;

/// Bytes of a traffic secret: a hash of SHA-384 (RFC 8446 7.1).
pub(crate) const SECRET_BYTES_MAX: usize = 48;

/// Expanded keys that a thread keeps: those of the 1,024 connections that were used last, 1.2 MiB, which is about what a
/// CPU's second-level cache holds. Where more are busy, a request pays 0.3 us of some 5 for keys that are made again.
pub(crate) const EXPANDED_KEYS_MAX: usize = 2048;

/// Bytes of handshake messages that may arrive before they are complete: rustls refuses longer ones, and a chain of ten
/// large certificates has half of it.
pub(crate) const HANDSHAKE_BYTES_MAX: usize = 64 * 1024 + 4;

/// Bytes of early data that are skipped, encrypted (RFC 8446 4.2.10): a client may hold a ticket of another server that
/// takes early data. OpenSSL and nginx let their clients send 16 KiB before encryption, in as many records as they like.
pub(crate) const EARLY_DATA_BYTES_MAX: usize = 32 * 1024;

/// The same with the headers of the records: bounds those that are nothing else.
pub(crate) const EARLY_RECORD_BYTES_MAX: usize = 2 * EARLY_DATA_BYTES_MAX;

/// Bytes of a message behind the handshake: a ticket, which a server may fill with a whole session and a client's
/// certificates. One buffer is what the largest of ours needs and more than any of OpenSSL's.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// New keys that a peer may announce while neither side sends any data: each costs us a key schedule.
pub(crate) const KEY_UPDATES_MAX: u32 = 16;

/// Key schedules that a peer may cause before the others get their turn: 0.3 ms, what others do at a time, too. More than
/// the engine lets a task do in a row, so that the kernel has its turn as well.
pub(crate) const SCHEDULES_PER_TURN: u16 = 65;

/// Records without data that a peer may send while neither side sends any: empty ones, warnings, tickets, wishes for a
/// new handshake, parts of messages. They cost us and bring nobody on.
pub(crate) const IDLE_RECORDS_MAX: u32 = 64;

/// New handshakes that a TLS 1.2 client may ask for in vain. One is what a client that has not been told yet asks for.
pub(crate) const RENEGOTIATIONS_MAX: u8 = 1;

/// Tickets given out after a full handshake: browsers open several connections at a time and a ticket is for one of
/// them (RFC 8446 C.4). OpenSSL has the same number.
pub(crate) const TICKETS: usize = 2;

/// How long a session may be resumed after its full handshake, in which the client proved who it is: as long as a day's
/// work. RFC 8446 4.6.1 allows seven days.
pub(crate) const SESSION_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Servers whose tickets a connector remembers: more than any group has, 2 KB each.
pub(crate) const SESSIONS_MAX: usize = 1024;

/// Bits of an RSA key, as aws-lc takes them.
pub(crate) const RSA_BITS_TAKEN: RangeInclusive<usize> = 2048..=8192;

/// Characters of a name in a certificate that are written about: distinguished names of real ones have up to 150.
pub(crate) const NAME_CHARS_MAX: usize = 200;

/// Names of a certificate that are written about: enough to see whose it is.
pub(crate) const NAMES_SHOWN_MAX: usize = 5;

/// How long a client that spoke plain HTTP may take to read that this port speaks TLS.
pub(crate) const REFUSAL_LINGER: Duration = Duration::from_secs(1);

/// What of such a client's request is read while it does: closing with bytes unread would lose the response.
pub(crate) const REFUSAL_LINGER_BYTES: usize = 64 * 1024;

/// How often files of certificates are looked at. A renewal is weeks ahead of the end of the old one.
pub(crate) const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of a PEM file: whole bundles of all public authorities have 250 KB.
pub(crate) const PEM_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes of an OCSP response: public authorities send 0.5 to 3 KB, and each full handshake includes the response.
pub(crate) const STAPLE_BYTES_MAX: u64 = 16 * 1024;

/// Bytes of a file of revocation lists: a million revoked certificates have some 35 MB.
pub(crate) const REVOCATION_LIST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Days that a certificate made on request is valid: long enough to forget about, short enough that browsers, which
/// refuse more than 398 days, take it.
pub(crate) const SELF_SIGNED_DAYS: u64 = 365;
