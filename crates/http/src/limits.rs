//! Every bound of this crate, with its reason.

/// Places for header fields in [`HeaderSlots`](crate::HeaderSlots): the most any `headers_max` can ask for. nginx's
/// and Apache's defaults are in the same range; 100 of them take 3200 bytes of stack, below one page.
pub const HEADER_SLOTS: usize = 100;

/// Empty lines skipped before a request line. RFC 9112 2.2 asks for at least one (old clients end a POST body with
/// an extra CRLF); more than two is nothing a client does by mistake.
pub const EMPTY_LINES_MAX: usize = 2;

/// The longest message a length may announce. Peers keep lengths in signed 64-bit numbers, and a length that means
/// something else to the next hop is a way to smuggle.
pub const LENGTH_MAX: u64 = i64::MAX as u64;

/// Digits of a decimal length: what `LENGTH_MAX` needs.
pub const LENGTH_DIGITS_MAX: usize = 19;

/// Hexadecimal digits of a chunk size: what 64 bits need. Leading zeros count, so a size cannot be an endless line.
pub const CHUNK_DIGITS_MAX: usize = 16;

/// Bytes of all Connection fields of a head. A proxy compares every field with every option named there: 14 KiB of
/// options cost it 3 ms. Real ones name two or three.
pub const CONNECTION_BYTES_MAX: usize = 512;

/// Bytes of a PROXY protocol line with its CRLF: the worst case that section 2.1 of its specification works out.
pub const PROXY_V1_BYTES_MAX: usize = 107;

/// Bytes of a binary PROXY protocol header. Addresses take at most 232, what is known to be told beside them a few
/// hundred; 64 KiB could be announced. nginx draws the line here, too.
pub const PROXY_V2_BYTES_MAX: usize = 4096;

/// Members of Forwarded or X-Forwarded-For that are looked at for the client's address. Each may be asked about in a list
/// of trusted networks, and a head has room for thousands; no chain of proxies has 32.
pub const FORWARDED_MEMBERS_MAX: usize = 32;

/// Members of tracestate that pass: the bound of W3C Trace Context (3.3.1.1), beyond which the field is not valid.
pub const TRACE_STATE_MEMBERS_MAX: usize = 32;

/// Bytes of decoded Basic credentials, user, colon and password. Files of passwords and the hashes in use stop at 255 each
/// or earlier (bcrypt takes 72).
pub const BASIC_CREDENTIALS_BYTES_MAX: usize = 512;

/// Bytes of the dynamic table with which each direction of an HTTP/2 connection begins (RFC 9113 6.5.2).
pub const HPACK_TABLE_BYTES_INITIAL: u32 = 4096;

/// Bytes of the dynamic table that we fill, however large a peer's may be. What is the same in all messages takes a few
/// hundred; more would be memory of each connection for nothing.
pub const HPACK_OWN_TABLE_BYTES_MAX: u32 = 4096;

/// Bytes of an HPACK integer behind its prefix: what 28 bits need, and no index, length or size of ours is beyond. Zeros count,
/// so an integer cannot be endless. fluke-hpack draws the line here, too.
pub const HPACK_INTEGER_BYTES_MAX: usize = 4;

/// Bytes of names that one header block may have us copy from the dynamic table into a new entry of it. Two bytes of a block
/// ask for a copy of up to 4 KiB: without a bound 16 KiB of them would cost 2 ms. A block of that size whose every field
/// has a name of 20 bytes copies 64 KiB.
pub const HPACK_COPIED_BYTES_MAX: usize = 256 * 1024;

/// Bytes in which an HPACK decoder keeps room for the strings of the next block. Nearly all are shorter; one that needs more
/// pays with an allocation, and no connection that waits holds on to it.
pub const HPACK_STRING_BYTES_KEPT: usize = 1024;

/// A cookie shorter than this can be guessed by trying, with the length of what is sent as the judge (RFC 7541 7.1.3).
pub const HPACK_COOKIE_GUESSED_BYTES_MAX: usize = 20;

/// Transfer codings accepted in responses (RFC 9112 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codings {
    /// `chunked` alone, which is decoded: a proxy removes the coding before it forwards the body.
    Chunked,
    /// All, for a client that needs only the end of the body. Without a final `chunked`, the body ends with the connection
    /// (RFC 9112 6.3, item 4).
    Any,
}

/// What one message may ask of us. The fields are public so that a configuration can set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head from its first byte (skipped empty lines included) to its last. A longer one gets a 431.
    /// 15 KiB: a head and what the reader adds around it must fit one 16 KiB buffer.
    pub head_bytes_max: usize,
    /// Fields of a head; more get a 431. For requests, values above [`HEADER_SLOTS`] mean [`HEADER_SLOTS`]; for responses,
    /// further fields use allocated memory.
    pub headers_max: usize,
    /// Bytes of a request target; more get a 414. RFC 9110 4.1 asks for at least 8000.
    pub target_bytes_max: usize,
    /// Bytes of a chunk's line: its size, its extensions and CRLF. Nobody is known to use extensions; 256 leaves
    /// room for a signature per chunk (AWS uses 85 bytes).
    pub chunk_line_bytes_max: usize,
    /// Bytes of chunk lines beyond what the chunks' payload pays for (16 a chunk and twice its size). It stops
    /// a sender that makes us read far more than it delivers; the same rule as Go's net/http.
    pub chunk_excess_bytes_max: u16,
    /// Bytes of all trailer lines together. A checksum or two; no known user needs more than a few hundred.
    pub trailer_bytes_max: usize,
    /// Number of trailer fields, for the same reason.
    pub trailers_max: u16,
    /// Transfer codings accepted in a response.
    pub codings: Codings,
}

impl Limits {
    /// The bounds used unless a configuration says otherwise.
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
