//! All limits of this crate, with reasons.

/// Capacity of [`HeaderSlots`](crate::HeaderSlots), and so the maximum value of `headers_max` without allocation. The
/// defaults of nginx and Apache are in the same range; 100 fields take 3200 bytes of stack, less than one page.
pub const HEADER_SLOTS: usize = 100;

/// Maximum number of empty lines skipped before a request line. RFC 9112 2.2 asks for at least one (old clients end a
/// POST body with an extra CRLF); no client sends more than two by mistake.
pub const EMPTY_LINES_MAX: usize = 2;

/// Maximum announced length of a message. Peers store lengths in signed 64-bit integers, and a length that the next hop
/// reads differently enables smuggling.
pub const LENGTH_MAX: u64 = i64::MAX as u64;

/// Maximum number of digits in a decimal length, enough for `LENGTH_MAX`.
pub const LENGTH_DIGITS_MAX: usize = 19;

/// Maximum number of hexadecimal digits in a chunk size, enough for 64 bits. Leading zeros count, so the line is
/// bounded.
pub const CHUNK_DIGITS_MAX: usize = 16;

/// Maximum size in bytes of all Connection fields of a head. A proxy compares every field with every option in them: 14
/// KiB of options take 3 ms. Real fields have two or three options.
pub const CONNECTION_BYTES_MAX: usize = 512;

/// Maximum size in bytes of a PROXY protocol line with its CRLF: the worst case according to section 2.1 of its
/// specification.
pub const PROXY_V1_BYTES_MAX: usize = 107;

/// Maximum size of a binary PROXY protocol header in bytes. Addresses take at most 232, TLVs a few hundred. Same limit
/// as in nginx.
pub const PROXY_V2_BYTES_MAX: usize = 4096;

/// Maximum number of members in Forwarded or X-Forwarded-For that are searched for the client's address. Each may be
/// looked up in a list of trusted networks, and a head has room for thousands; no chain of proxies has 32.
pub const FORWARDED_MEMBERS_MAX: usize = 32;

/// Maximum number of members in tracestate that are forwarded. With more the field is invalid (W3C Trace Context
/// 3.3.1.1).
pub const TRACE_STATE_MEMBERS_MAX: usize = 32;

/// Maximum size of decoded Basic credentials in bytes: user, colon and password. Password files and the hashes in use
/// stop at 255 each or earlier (bcrypt at 72).
pub const BASIC_CREDENTIALS_BYTES_MAX: usize = 512;

/// Initial size of the dynamic table in each direction of an HTTP/2 connection (RFC 9113 6.5.2).
pub const HPACK_TABLE_BYTES_INITIAL: u32 = 4096;

/// Maximum size in bytes of the encoder's dynamic table, however many the peer allows. The fields that all messages
/// share take a few hundred; more would waste memory on each connection.
pub const HPACK_OWN_TABLE_BYTES_MAX: u32 = 4096;

/// Maximum number of bytes of an HPACK integer after its prefix, enough for 28 bits; no index, length or size that we
/// accept needs more. Zeros count, so an integer is bounded. Same limit as in fluke-hpack.
pub const HPACK_INTEGER_BYTES_MAX: usize = 4;

/// Maximum number of bytes of names that one header block may copy from the dynamic table into new entries. Two bytes
/// of a block can cause a copy of up to 4 KiB: without a limit a block of 16 KiB would take 2 ms. A block of 16 KiB in
/// which every field has a name of 20 bytes copies 64 KiB.
pub const HPACK_COPIED_BYTES_MAX: usize = 256 * 1024;

/// Capacity that an HPACK decoder keeps for the strings of the next block. Nearly all blocks need less; a larger one
/// costs an allocation, which is freed afterwards so that idle connections do not keep it.
pub const HPACK_STRING_BYTES_KEPT: usize = 1024;

/// Cookies shorter than this can be guessed from the length of compressed messages (RFC 7541 7.1.3).
pub const HPACK_COOKIE_GUESSED_BYTES_MAX: usize = 20;

/// Transfer codings accepted in responses (RFC 9112 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codings {
    /// `chunked` only. It is decoded: a proxy removes the coding before it forwards the body.
    Chunked,
    /// All codings, for a client that needs only the end of the body. Without a final `chunked`, the body ends with the
    /// connection (RFC 9112 6.3, item 4).
    Any,
}

/// Limits of one message. The fields are public so that a configuration can set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size in bytes of a head, including empty lines skipped before it; longer heads are refused with 431. 15
    /// KiB: a head and what the parser adds around it must fit one 16 KiB buffer.
    pub head_bytes_max: usize,
    /// Maximum number of fields in a head; a head with more is refused with 431. For requests, values above
    /// [`HEADER_SLOTS`] mean [`HEADER_SLOTS`]; for responses, further fields use allocated memory.
    pub headers_max: usize,
    /// Maximum size in bytes of a request target; longer ones are refused with 414. RFC 9110 4.1 asks for at least
    /// 8000.
    pub target_bytes_max: usize,
    /// Maximum size in bytes of a chunk line: size, extensions and CRLF. 256 leaves room for a signature per chunk (AWS
    /// uses 85 bytes).
    pub chunk_line_bytes_max: usize,
    /// Maximum number of bytes of chunk lines beyond the allowance for their chunks (16 per chunk and twice its size).
    /// Stops a sender that makes us read far more than it delivers; the same rule as in Go's net/http.
    pub chunk_excess_bytes_max: u16,
    /// Maximum size in bytes of all trailer lines together. Trailers are a checksum or two; no known use needs more
    /// than a few hundred.
    pub trailer_bytes_max: usize,
    /// Maximum number of trailer fields.
    pub trailers_max: u16,
    /// Transfer codings accepted in a response.
    pub codings: Codings,
}

impl Limits {
    /// Default limits.
    pub const DEFAULT: Limits = Limits {
        head_bytes_max: 15 * 1024,
        headers_max: HEADER_SLOTS,
        target_bytes_max: 8 * 1024,
        chunk_line_bytes_max: 256,
        chunk_excess_bytes_max: 16 * 1024,
        trailer_bytes_max: 4 * 1024,
        trailers_max: 32,
        codings: Codings::Chunked,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
