//! Response heads (RFC 9112 4), the counterpart of `request`.
//!
//! Servers are read more leniently than clients where that cannot be used for smuggling: lines may end without CR (RFC
//! 9112 2.2), Content-Length may be repeated with the same value (RFC 9110 8.6), and a 204 may announce a body, after
//! which the connection is not reused. A head written from the parsed one contains none of this.

use crate::diagnosis::{self, LineEnd};
use crate::field::{self, Header, HeaderSlots};
use crate::framing::{self, Framing, FramingFields, Sender};
use crate::http2::hpack::Sensitivity;
use crate::limits::{HEADER_SLOTS, Limits};
use crate::method::Method;
use crate::refusal::{Parsed, Position, Refusal};
use crate::version::{self, VERSION_BYTES, Version};

/// The head of a response, borrowed from the input.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'h, 'b> {
    /// The version whose rules apply.
    pub version: Version,
    /// 100 to 999. A 1xx other than 101 is followed by another head. After a 101 the protocol changes, if
    /// [`upgrade::judge`](crate::upgrade::judge) accepts it.
    pub status: u16,
    /// Reason phrase; empty if missing or not ASCII. Nothing may depend on it (RFC 9112 4).
    pub reason: &'b str,
    /// All fields in the order received, without repeats of Content-Length.
    pub headers: &'h [Header<'b>],
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection can carry another request afterwards; false after a change of protocol.
    pub keep_alive: bool,
    /// Length of the head in the input.
    pub bytes: usize,
    /// Whether the fields may be stored in HPACK tables. HTTP/1 cannot express this.
    pub sensitivity: Sensitivity,
}

/// Parses one response head at the start of `input`. The method of its request decides whether there is a body.
/// Refusals carry 502, the status with which a gateway reports an invalid response.
#[inline]
pub fn parse<'h, 'b>(
    input: &'b [u8],
    slots: &'h mut HeaderSlots<'b>,
    request_method: Method,
    limits: &Limits,
) -> Parsed<ResponseHead<'h, 'b>> {
    let window = &input[..input.len().min(limits.head_bytes_max)];
    match parse_window(window, slots, request_method, limits) {
        Parsed::Partial if window.len() == limits.head_bytes_max => {
            Parsed::Refused(Refusal::new(502, "response head too large"))
        }
        Parsed::Refused(refusal) => Parsed::Refused(refusal.as_bad_gateway()),
        outcome => outcome,
    }
}

#[inline]
fn parse_window<'h, 'b>(
    input: &'b [u8],
    slots: &'h mut HeaderSlots<'b>,
    request_method: Method,
    limits: &Limits,
) -> Parsed<ResponseHead<'h, 'b>> {
    // httparse skips empty lines; the RFC allows them before requests only.
    if let Some(b'\r' | b'\n') = input.first() {
        return Parsed::Refused(Refusal::bad("an empty line before the status line"));
    }
    let room = &mut slots.slots[..limits.headers_max.min(HEADER_SLOTS)];
    let mut response = httparse::Response::new(&mut []);
    match httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        input,
        room,
    ) {
        Ok(httparse::Status::Complete(bytes)) => {
            let line = Line {
                version: Version::of_minor(response.version),
                status: response.code.unwrap_or(0), // set in every complete response; 0 would be refused
                reason: response.reason.unwrap_or(""),
            };
            judge(
                &input[..bytes],
                line,
                response.headers,
                (request_method, limits),
            )
            .into()
        }
        Ok(httparse::Status::Partial) => Parsed::Partial,
        Err(httparse::Error::Version) => {
            parse_newer(input, &mut slots.spare, request_method, limits)
        }
        Err(httparse::Error::TooManyHeaders) if limits.headers_max > HEADER_SLOTS => {
            parse_many(input, &mut slots.spare, request_method, limits)
        }
        Err(error) => Parsed::Refused(diagnosis::diagnose(input, LineEnd::Lenient, error)),
    }
}

struct Line<'b> {
    version: Version,
    status: u16,
    reason: &'b str,
}

/// Parses a head whose version httparse rejects: 1.2 to 1.9 are processed as 1.1 (RFC 9110 2.5).
#[cold]
fn parse_newer<'h, 'b>(
    head: &'b [u8],
    spare: &'h mut Vec<Header<'b>>,
    request_method: Method,
    limits: &Limits,
) -> Parsed<ResponseHead<'h, 'b>> {
    match version::check_unknown(head) {
        Parsed::Complete(()) => {}
        Parsed::Partial => return Parsed::Partial,
        Parsed::Refused(refusal) => return Parsed::Refused(diagnosis::or_tls(head, refusal)),
    }
    parse_many(head, spare, request_method, limits)
}

/// Parses a head with more fields than slots, or with a newer version.
#[cold]
fn parse_many<'h, 'b>(
    head: &'b [u8],
    spare: &'h mut Vec<Header<'b>>,
    request_method: Method,
    limits: &Limits,
) -> Parsed<ResponseHead<'h, 'b>> {
    let Some(line_feed) = memchr::memchr(b'\n', head) else {
        return Parsed::Partial;
    };
    let (line, fields) = head.split_at(line_feed + 1);
    // The caller checked the version, except for its last digit.
    let (version, line) = line.split_at(VERSION_BYTES);
    let minor = version[VERSION_BYTES - 1] - b'0';
    let Some(line) = line_of(Version::of_minor(Some(minor)), line) else {
        return Parsed::Refused(MALFORMED_LINE);
    };
    match field::parse_into_spare(fields, spare, limits) {
        Parsed::Complete((bytes, headers)) => judge(
            &head[..line_feed + 1 + bytes],
            line,
            headers,
            (request_method, limits),
        )
        .into(),
        Parsed::Partial => Parsed::Partial,
        Parsed::Refused(refusal) => Parsed::Refused(refusal),
    }
}

const MALFORMED_LINE: Refusal = Refusal::bad("malformed status line").at(Position::Line(1));

/// Parses ` 200 OK\r\n`. Reason, preceding space and CR are optional, as in httparse.
fn line_of(version: Version, text: &[u8]) -> Option<Line<'_>> {
    let text = text.strip_suffix(b"\n")?;
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let [
        b' ',
        a @ b'0'..=b'9',
        b @ b'0'..=b'9',
        c @ b'0'..=b'9',
        reason @ ..,
    ] = text
    else {
        return None;
    };
    let reason = match reason {
        [] => reason,
        [b' ', reason @ ..] => reason,
        _ => return None,
    };
    if !field::is_field_value(reason) {
        return None;
    }
    let [a, b, c] = [a, b, c].map(|digit| u16::from(digit - b'0'));
    let reason = str::from_utf8(reason)
        .ok()
        .filter(|reason| reason.is_ascii())
        .unwrap_or("");
    Some(Line {
        version,
        status: a * 100 + b * 10 + c,
        reason,
    })
}

/// Checks a tokenized head. `head` is exactly the bytes of the head; `headers` point into it.
#[inline]
fn judge<'h, 'b>(
    head: &'b [u8],
    line: Line<'b>,
    headers: &'h mut [Header<'b>],
    (request_method, limits): (Method, &Limits),
) -> Result<ResponseHead<'h, 'b>, Refusal> {
    if line.status < 100 {
        return Err(Refusal::bad("a status below 100").at(Position::Line(1)));
    }
    let mut fields = FramingFields::of(Sender::Server);
    for header in headers.iter() {
        fields.note(head, header)?;
    }
    let announced = fields.announced_framing(line.version, limits.codings)?;
    let framing = framing(line.status, request_method, announced)?;
    let is_last = framing == Framing::UntilClose
        || changes_protocol(line.status, request_method)
        // The announced body may or may not follow.
        || (line.status == 204 && !matches!(announced, Framing::None | Framing::Length(0)));
    Ok(ResponseHead {
        version: line.version,
        status: line.status,
        reason: line.reason,
        headers: match fields.repeats_length() {
            true => framing::keep_one_length(headers),
            false => headers,
        },
        framing,
        keep_alive: !is_last && fields.keep_alive(line.version),
        bytes: head.len(),
        sensitivity: Sensitivity::Unmarked,
    })
}

/// Whether the bytes after the head are no longer HTTP (RFC 9110 9.3.6, 15.2.2).
#[inline]
fn changes_protocol(status: u16, request_method: Method) -> bool {
    status == 101 || (request_method == Method::Connect && matches!(status, 200..=299))
}

/// RFC 9112 6.3, items 1, 2 and 8.
#[inline]
fn framing(status: u16, request_method: Method, announced: Framing) -> Result<Framing, Refusal> {
    match (status, request_method) {
        // RFC 9110 8.6, RFC 9112 6.1: these must not announce a body. If one does, the body may or may not follow, so
        // the start of the final response is unknown. A length of 0 is common and harmless.
        (100..=199, _) => match announced {
            Framing::None | Framing::Length(0) => Ok(Framing::None),
            _ => Err(Refusal::bad("an interim response that announces a body")),
        },
        (204 | 304, _) | (_, Method::Head) => Ok(Framing::None),
        (200..=299, Method::Connect) => Ok(Framing::None),
        _ if announced == Framing::None => Ok(Framing::UntilClose),
        _ => Ok(announced),
    }
}
