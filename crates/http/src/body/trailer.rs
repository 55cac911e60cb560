//! Trailer fields, after the last chunk (RFC 9112 7.1.2).

use crate::field;
use crate::framing::Sender;
use crate::refusal::Refusal;

pub(super) const TRAILERS_TOO_LARGE: Refusal = Refusal::new(431, "trailers too large");

pub(super) struct TrailerLine {
    pub(super) bytes: usize,
    pub(super) name_bytes: usize,
    /// Forbidden as a trailer.
    pub(super) is_surplus: bool,
}

impl TrailerLine {
    /// Parses a line without its LF. A client must not send a field that takes effect too late (RFC 9110 6.5.1).
    pub(super) fn parse(line: &[u8], sender: Sender) -> Result<TrailerLine, Refusal> {
        const MALFORMED: Refusal = Refusal::bad("malformed trailer");
        let Some(colon) = memchr::memchr(b':', line) else {
            return Err(MALFORMED);
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        let [value @ .., b'\r'] = value else {
            return Err(MALFORMED);
        };
        if !field::is_token(name) || !field::is_field_value(value) {
            return Err(MALFORMED);
        }
        let is_forbidden = is_forbidden(name, sender);
        if is_forbidden && sender == Sender::Client {
            return Err(Refusal::bad("a field that must not be a trailer"));
        }
        Ok(TrailerLine {
            bytes: line.len() + 1,
            name_bytes: colon,
            is_surplus: is_forbidden,
        })
    }
}

/// Whether `name` is forbidden as a trailer in a message of `sender`.
pub(crate) fn is_forbidden(name: &[u8], sender: Sender) -> bool {
    let is_in = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|forbidden| name.eq_ignore_ascii_case(forbidden.as_bytes()))
    };
    is_in(&FORBIDDEN) || sender == Sender::Client && is_in(&FORBIDDEN_IN_REQUESTS)
}

/// Fields that frame a message or control the connection; useless as trailers, and the next hop might merge them.
const FORBIDDEN: [&str; 10] = [
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "content-type",
    "content-range",
    "trailer",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
];

/// Fields that route a request or identify its sender. RFC 9110 6.5.1 warns of authentication fields, and the fields
/// about the client would let anybody impersonate a proxy. In a response they have no such meaning, and gRPC returns
/// metadata under any name.
const FORBIDDEN_IN_REQUESTS: [&str; 8] = [
    "host",
    "expect",
    "authorization",
    "proxy-authorization",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];
