//! Decides from its fields where a message's body ends (RFC 9112 6), and whether the connection persists after it (RFC
//! 9112 9.3). Prevents request smuggling; a message with both Content-Length and Transfer-Encoding is refused. HTTP/2
//! messages are checked in `http2/message.rs`.

use crate::diagnosis;
use crate::field::{self, Header};
use crate::limits::{CONNECTION_BYTES_MAX, Codings, LENGTH_DIGITS_MAX, LENGTH_MAX};
use crate::refusal::Refusal;
use crate::version::Version;

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// A number of bytes.
    Length(u64),
    /// Chunks up to an empty one, then trailers.
    Chunked,
    /// Everything up to the end of the connection; in responses only.
    UntilClose,
}

/// Sender of a message. Requests are read strictly: a proxy in front of us may send requests of several clients on one
/// connection, and must see the same boundaries between them. Responses are normalized before they are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
}

/// Framing and connection fields of one head, collected in order.
pub(crate) struct FramingFields {
    sender: Sender,
    content_length: Option<u64>,
    repeats_length: bool,
    coding: Coding,
    /// Bytes of all Connection fields; <= `CONNECTION_BYTES_MAX`.
    connection_bytes: usize,
    close: bool,
    keep_alive: bool,
}

/// Transfer codings seen so far. Only `Chunked` is decoded.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    Absent,
    Chunked,
    /// Another coding, not yet followed by chunked.
    Unknown,
    /// Another coding, followed by a final chunked.
    UnknownInChunked,
}

impl FramingFields {
    #[inline]
    pub(crate) fn of(sender: Sender) -> FramingFields {
        FramingFields {
            sender,
            content_length: None,
            repeats_length: false,
            coding: Coding::Absent,
            connection_bytes: 0,
            close: false,
            keep_alive: false,
        }
    }

    /// Records a field if it concerns framing or the connection. `header` was parsed from `head`.
    #[inline]
    pub(crate) fn note(&mut self, head: &[u8], header: &Header<'_>) -> Result<(), Refusal> {
        let noted = match header.name.len() {
            10 if field::header_is(header.name, "connection") => self.note_connection(header.value),
            14 if field::header_is(header.name, "content-length") => {
                self.note_content_length(head, header)
            }
            17 if field::header_is(header.name, "transfer-encoding") => {
                self.note_coding(head, header)
            }
            _ => return Ok(()),
        };
        noted.map_err(|refusal| refusal.at(diagnosis::line_of(head, header)))
    }

    fn note_connection(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.connection_bytes += value.len();
        if self.connection_bytes > CONNECTION_BYTES_MAX {
            return Err(Refusal::bad("too many connection options"));
        }
        for option in field::token_list(value) {
            match option.len() {
                5 if option.eq_ignore_ascii_case(b"close") => self.close = true,
                10 if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// RFC 9112 6.3 lets a recipient accept identical repeats ("5, 5" or two fields). They are accepted from servers,
    /// because only one is forwarded. In requests they are refused: no correct client sends them, and a proxy in front
    /// of us may have used the first, the last or the sum.
    fn note_content_length(&mut self, head: &[u8], header: &Header<'_>) -> Result<(), Refusal> {
        refuse_tabs(head, header)?;
        let length = match (decimal(header.value), self.sender) {
            (Some(length), _) => length,
            (None, Sender::Server) => {
                self.repeats_length = true;
                same_decimal(header.value)?
            }
            (None, Sender::Client) => return Err(MALFORMED_LENGTH),
        };
        match (self.content_length, self.sender) {
            (None, _) => self.content_length = Some(length),
            (Some(_), Sender::Client) => return Err(Refusal::bad("repeated Content-Length")),
            (Some(earlier), Sender::Server) if earlier != length => return Err(LENGTHS_DIFFER),
            (Some(_), Sender::Server) => self.repeats_length = true,
        }
        Ok(())
    }

    /// Whether Content-Length is repeated with the same value, in one field or in several.
    #[inline]
    pub(crate) fn repeats_length(&self) -> bool {
        self.repeats_length
    }

    fn note_coding(&mut self, head: &[u8], header: &Header<'_>) -> Result<(), Refusal> {
        refuse_tabs(head, header)?;
        // Empty list members are not skipped: they are valid but used only to confuse parsers.
        for member in header.value.split(|&byte| byte == b',') {
            self.coding = self.coding.then(field::trim(member))?;
        }
        Ok(())
    }

    /// Framing according to the fields, of a message that may have a body (RFC 9112 6.3, items 3 to 6).
    #[inline]
    pub(crate) fn announced_framing(
        &self,
        version: Version,
        codings: Codings,
    ) -> Result<Framing, Refusal> {
        match (self.coding, self.content_length) {
            (Coding::Absent, None) => Ok(Framing::None),
            (Coding::Absent, Some(length)) => Ok(Framing::Length(length)),
            (_, Some(_)) => Err(Refusal::bad("both Content-Length and Transfer-Encoding")),
            (coding, None) => coding.framing(version, codings),
        }
    }

    /// RFC 9112 9.3: `close` takes precedence over the version's default.
    #[inline]
    pub(crate) fn keep_alive(&self, version: Version) -> bool {
        match version {
            // HTTP/2 has no such fields; its connections persist.
            Version::Http11 | Version::Http2 => !self.close,
            Version::Http10 => self.keep_alive && !self.close,
        }
    }
}

impl Coding {
    /// Adds a coding on top (RFC 9112 6.1).
    fn then(self, coding: &[u8]) -> Result<Coding, Refusal> {
        if matches!(self, Coding::Chunked | Coding::UnknownInChunked) {
            return Err(Refusal::bad("a transfer coding after chunked"));
        }
        if coding.eq_ignore_ascii_case(b"chunked") {
            return Ok(if self == Coding::Absent {
                Coding::Chunked
            } else {
                Coding::UnknownInChunked
            });
        }
        // Codings with parameters are refused here too: chunked has none (RFC 9112 7.1) and no other is supported.
        if !field::is_token(coding) {
            return Err(Refusal::bad("malformed Transfer-Encoding"));
        }
        Ok(Coding::Unknown)
    }

    fn framing(self, version: Version, codings: Codings) -> Result<Framing, Refusal> {
        if version == Version::Http10 {
            // RFC 9112 6.1: framing is faulty with any coding; recipients that support only 1.0 ignore the field.
            return Err(Refusal::bad("Transfer-Encoding in HTTP/1.0"));
        }
        match (self, codings) {
            (Coding::Absent, _) => Ok(Framing::None),
            (Coding::Chunked, _) | (Coding::UnknownInChunked, Codings::Any) => Ok(Framing::Chunked),
            (Coding::Unknown, Codings::Any) => Ok(Framing::UntilClose),
            // RFC 9112 6.3 item 4: without a final chunked the end is unknown.
            (Coding::Unknown, Codings::Chunked) => {
                Err(Refusal::bad("the final transfer coding is not chunked"))
            }
            // RFC 9112 6.1: an unsupported coding.
            (Coding::UnknownInChunked, Codings::Chunked) => {
                Err(Refusal::new(501, "unknown transfer coding"))
            }
        }
    }
}

/// Refuses tabs around the value of a framing field. The grammar allows them as white space, but some recipients then
/// do not recognize the field.
fn refuse_tabs(head: &[u8], header: &Header<'_>) -> Result<(), Refusal> {
    let start = field::offset(head, header.name.as_bytes());
    let line = &head[start..];
    let end = memchr::memchr(b'\n', line).unwrap_or(line.len());
    match memchr::memchr(b'\t', &line[..end]) {
        None => Ok(()),
        Some(_) => Err(Refusal::bad("a tab in a framing field")),
    }
}

const MALFORMED_LENGTH: Refusal = Refusal::bad("malformed Content-Length");
const LENGTHS_DIFFER: Refusal = Refusal::bad("different Content-Length values");

/// The value of a list whose members are all equal (RFC 9110 8.6). An empty member is malformed.
#[cold]
pub(crate) fn same_decimal(list: &[u8]) -> Result<u64, Refusal> {
    let mut lengths = list
        .split(|&byte| byte == b',')
        .map(|member| decimal(field::trim(member)).ok_or(MALFORMED_LENGTH));
    let first = lengths.next().unwrap_or(Err(MALFORMED_LENGTH))?;
    for length in lengths {
        if length? != first {
            return Err(LENGTHS_DIFFER);
        }
    }
    Ok(first)
}

/// Reduces all Content-Length fields, whose values are known to be equal, to one field with one number.
#[cold]
pub(crate) fn keep_one_length<'h, 'b>(headers: &'h mut [Header<'b>]) -> &'h [Header<'b>] {
    let (mut kept, mut is_seen) = (0, false);
    for at in 0..headers.len() {
        let mut header = headers[at];
        if field::header_is(header.name, "content-length") {
            if std::mem::replace(&mut is_seen, true) {
                continue;
            }
            let end = memchr::memchr(b',', header.value).unwrap_or(header.value.len());
            header.value = field::trim(&header.value[..end]);
        }
        headers[kept] = header;
        kept += 1;
    }
    &headers[..kept]
}

/// 1*DIGIT up to `LENGTH_MAX` (RFC 9110 8.6); no sign, no space, no list.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > LENGTH_DIGITS_MAX {
        return None;
    }
    let mut number = 0u64;
    for &byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        // Cannot overflow: a number of LENGTH_DIGITS_MAX nines is below 2^64.
        number = number * 10 + u64::from(byte - b'0');
    }
    (number <= LENGTH_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn content_length_is_decimal_within_63_bits() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"9223372036854775807"), Some(i64::MAX as u64));
        for bad in [
            "",
            "9223372036854775808",
            "9999999999999999999",
            "+1",
            "-1",
            "1 ",
            "0x1",
            "1,1",
            "00000000000000000001",
        ] {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad}");
        }
    }
}
