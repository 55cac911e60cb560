//! Request heads (RFC 9112 3).

use crate::diagnosis::{self, LineEnd};
use crate::field::{self, Header, HeaderSlots};
use crate::framing::{Framing, FramingFields, Sender};
use crate::http2::hpack::Sensitivity;
use crate::limits::{Codings, EMPTY_LINES_MAX, HEADER_SLOTS, Limits};
use crate::method::Method;
use crate::refusal::{Parsed, Refusal};
use crate::target::{self, Authority};
use crate::version::{self, VERSION_BYTES, Version};

/// The head of a request, borrowed from the input.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'h, 'b> {
    /// The parsed method, for comparisons; `Method::Other` if it is unknown.
    pub method: Method,
    /// The method as received.
    pub method_text: &'b str,
    /// The target as received.
    pub target: &'b str,
    /// The target's path without its query: `/` for an absolute form without a path, `*` for the asterisk form, empty
    /// for CONNECT. Neither decoded nor normalized.
    pub path: &'b str,
    /// Query after the first `?`, if any.
    pub query: Option<&'b str>,
    /// Effective `host[:port]`: the target's authority takes precedence over the Host field (RFC 9112 3.2.2). `None`
    /// only in HTTP/1.0 without Host; empty if the Host field is empty.
    pub authority: Option<&'b str>,
    /// The version whose rules apply.
    pub version: Version,
    /// All fields in the order received.
    pub headers: &'h [Header<'b>],
    /// How the body ends: never `UntilClose`.
    pub framing: Framing,
    /// Whether the client allows the connection to persist.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends a non-empty body.
    pub expect_continue: bool,
    /// Length of the head in the input, including empty lines skipped before it.
    pub bytes: usize,
    /// Whether the fields may be stored in HPACK tables. HTTP/1 cannot express this.
    pub sensitivity: Sensitivity,
}

/// Parses one request head at the start of `input`. After `Partial`, call again with the same bytes and more appended;
/// at `limits.head_bytes_max` bytes the result is always `Complete` or `Refused`.
#[inline]
pub fn parse<'h, 'b>(
    input: &'b [u8],
    slots: &'h mut HeaderSlots<'b>,
    limits: &Limits,
) -> Parsed<RequestHead<'h, 'b>> {
    // Bytes beyond the limit are ignored, so that the result does not depend on how many have arrived.
    let window = &input[..input.len().min(limits.head_bytes_max)];
    match parse_window(window, slots, limits) {
        Parsed::Partial if window.len() == limits.head_bytes_max => {
            Parsed::Refused(too_large(window))
        }
        outcome => outcome,
    }
}

#[inline]
fn parse_window<'h, 'b>(
    input: &'b [u8],
    slots: &'h mut HeaderSlots<'b>,
    limits: &Limits,
) -> Parsed<RequestHead<'h, 'b>> {
    let skipped = match input.first() {
        Some(b'\r' | b'\n') => match empty_lines(input) {
            Parsed::Complete(skipped) => skipped,
            Parsed::Partial => return Parsed::Partial,
            Parsed::Refused(refusal) => return Parsed::Refused(refusal),
        },
        _ => 0,
    };
    let head = &input[skipped..];
    let room = &mut slots.slots[..limits.headers_max.min(HEADER_SLOTS)];
    let mut request = httparse::Request::new(&mut []);
    let outcome = request.parse_with_uninit_headers(head, room);
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return outcome.map_or_else(
            |error| Parsed::Refused(diagnosis::diagnose(head, LineEnd::Strict, error)),
            |_| Parsed::Partial,
        );
    };
    let line = Line {
        method,
        target,
        version: Version::of_minor(request.version),
    };
    match outcome {
        Ok(httparse::Status::Complete(bytes)) => {
            judge(&head[..bytes], skipped, line, request.headers, limits).into()
        }
        Ok(httparse::Status::Partial) => Parsed::Partial,
        Err(httparse::Error::Version) => parse_newer(head, skipped, line, &mut slots.spare, limits),
        Err(error) => Parsed::Refused(diagnosis::diagnose(head, LineEnd::Strict, error)),
    }
}

/// Skips a few empty lines before the request line (RFC 9112 2.2).
#[cold]
fn empty_lines(input: &[u8]) -> Parsed<usize> {
    let mut skipped = 0;
    loop {
        match input[skipped..] {
            [] | [b'\r'] if skipped < 2 * EMPTY_LINES_MAX => return Parsed::Partial,
            [] => return Parsed::Partial,
            [b'\r', b'\n', ..] if skipped < 2 * EMPTY_LINES_MAX => skipped += 2,
            [b'\r' | b'\n', ..] => return Parsed::Refused(Refusal::bad("malformed request line")),
            _ => return Parsed::Complete(skipped),
        }
    }
}

/// 414 if not even the request line fits, else 431.
#[cold]
fn too_large(window: &[u8]) -> Refusal {
    let start = window
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))
        .unwrap_or(0);
    match memchr::memchr(b'\n', &window[start..]) {
        None => Refusal::new(414, "request line too long"),
        Some(_) => Refusal::new(431, "request head too large"),
    }
}

#[derive(Clone, Copy)]
struct Line<'b> {
    method: &'b str,
    target: &'b str,
    version: Version,
}

/// Parses a head whose version httparse rejects: 1.2 to 1.9 are processed as 1.1 (RFC 9110 2.5).
#[cold]
fn parse_newer<'h, 'b>(
    head: &'b [u8],
    skipped: usize,
    line: Line<'b>,
    spare: &'h mut Vec<Header<'b>>,
    limits: &Limits,
) -> Parsed<RequestHead<'h, 'b>> {
    let version = &head[field::offset(head, line.target.as_bytes()) + line.target.len() + 1..];
    match version::check_unknown(version) {
        Parsed::Complete(()) => {}
        Parsed::Partial => return Parsed::Partial,
        Parsed::Refused(refusal) => return Parsed::Refused(refusal),
    }
    let fields = match version[VERSION_BYTES..] {
        [] | [b'\r'] => return Parsed::Partial,
        [b'\r', b'\n', ref fields @ ..] => fields,
        _ => return Parsed::Refused(Refusal::bad("malformed end of line")),
    };
    match field::parse_into_spare(fields, spare, limits) {
        Parsed::Complete((bytes, headers)) => {
            let bytes = field::offset(head, fields) + bytes;
            judge(
                &head[..bytes],
                skipped,
                Line {
                    version: Version::Http11,
                    ..line
                },
                headers,
                limits,
            )
            .into()
        }
        Parsed::Partial => Parsed::Partial,
        Parsed::Refused(refusal) => Parsed::Refused(refusal),
    }
}

/// Checks a tokenized head. `head` is exactly the bytes of the head; `headers` point into it.
#[inline]
fn judge<'h, 'b>(
    head: &'b [u8],
    skipped: usize,
    line: Line<'b>,
    headers: &'h [Header<'b>],
    limits: &Limits,
) -> Result<RequestHead<'h, 'b>, Refusal> {
    if !head.ends_with(b"\r\n\r\n") {
        return Err(bare_lf(head));
    }
    if line.target.len() > limits.target_bytes_max {
        return Err(Refusal::new(414, "request target too long"));
    }
    let method = Method::of(line.method);
    let target = target::parse(method, line.target)?;
    let mut fields = FramingFields::of(Sender::Client);
    let mut host = None;
    let mut expects_continue = false;
    for header in headers {
        if !field::follows_crlf(head, header) {
            return Err(bare_lf(head));
        }
        match header.name.len() {
            4 if field::header_is(header.name, "host") => host = Some(host_of(header, host)?),
            6 if field::header_is(header.name, "expect") => {
                expects_continue |= expectation(header, line.version)?
            }
            _ => fields.note(head, header)?,
        }
    }
    match host {
        // RFC 9112 3.2.
        None if line.version == Version::Http11 => return Err(Refusal::bad("no Host field")),
        // An empty Host means that the target has no authority (RFC 9112 3.2), but this target has one.
        Some("") if target.authority.is_some() => return Err(Refusal::bad("an empty Host field")),
        Some(_) | None => {}
    }
    let framing = fields.announced_framing(line.version, Codings::Chunked)?;
    Ok(RequestHead {
        method,
        method_text: line.method,
        target: line.target,
        path: target.path,
        query: target.query,
        authority: target.authority.or(host),
        version: line.version,
        headers,
        framing,
        keep_alive: fields.keep_alive(line.version),
        expect_continue: expects_continue && !matches!(framing, Framing::None | Framing::Length(0)),
        bytes: skipped + head.len(),
        sensitivity: Sensitivity::Unmarked,
    })
}

/// Refusal at the first line of `head` that ends without CR.
#[cold]
fn bare_lf(head: &[u8]) -> Refusal {
    let refusal = Refusal::bad("a line ends without CR");
    diagnosis::of_lines(head, LineEnd::Strict, refusal)
}

/// Parses the only Host field (RFC 9112 3.2).
#[inline]
fn host_of<'b>(header: &Header<'b>, earlier: Option<&str>) -> Result<&'b str, Refusal> {
    const MALFORMED: Refusal = Refusal::bad("malformed Host field");
    if earlier.is_some() {
        return Err(Refusal::bad("repeated Host field"));
    }
    match Authority::parse(header.value) {
        None => return Err(MALFORMED),
        // Empty is allowed, for targets without an authority; a port without a host is not (RFC 9110 4.2.1).
        Some(Authority { host_bytes: 0, .. }) if !header.value.is_empty() => return Err(MALFORMED),
        Some(_) => {}
    }
    str::from_utf8(header.value).map_err(|_| MALFORMED)
}

/// Whether Expect asks for `100-continue`, the only defined expectation (RFC 9110 10.1.1). HTTP/1.0 ignores the field.
#[cold]
pub(crate) fn expectation(header: &Header<'_>, version: Version) -> Result<bool, Refusal> {
    if version == Version::Http10 {
        return Ok(false);
    }
    let mut expects_continue = false;
    for member in field::token_list(header.value) {
        if !member.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::new(417, "unknown expectation"));
        }
        expects_continue = true;
    }
    Ok(expects_continue)
}
