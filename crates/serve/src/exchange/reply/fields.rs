//! Writer of response header fields, independent of the protocol.
//!
//! The length is written with the fields because users see their order.

use onrush_http::date::DATE_BYTES;
use onrush_http::hop::is_hop_by_hop;
use onrush_http::http2::hpack::Encoder;
use onrush_http::http2::message::{fields_of_lines, write};
use onrush_http::write::HeadWriter;
use onrush_http::{Version, header_is};

/// Length of a response body, as far as known when the head is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyLength {
    Known(u64),
    /// The body ends with a protocol-specific end marker.
    Unknown,
}

/// The inputs that determine the fields of a server's response, so that an encoded head can be reused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HeadInputs {
    /// The head, this date and this body length: with the same inputs, the fields are the same.
    Head {
        date: [u8; DATE_BYTES],
        length: Option<BodyLength>,
    },
    /// Further inputs; the head cannot be reused.
    Other,
}

pub(crate) struct Fields<'b> {
    to: To<'b>,
    length: Option<BodyLength>,
}

/// The output format.
enum To<'b> {
    /// Field lines (RFC 9112 5).
    Http1(HeadWriter<'b>, Version),
    /// A field block (RFC 7541).
    Http2(&'b mut Encoder, &'b mut Vec<u8>),
    /// Pairs, for later edits.
    Pairs(&'b mut Vec<Pair>),
}

/// Lower-case name, and value.
pub(crate) type Pair = (String, Vec<u8>);

impl<'b> Fields<'b> {
    /// Writes lines for a client of this version.
    #[inline]
    pub(crate) fn http1(writer: HeadWriter<'b>, version: Version) -> Self {
        Self {
            to: To::Http1(writer, version),
            length: None,
        }
    }

    /// Encodes a field block with `encoder` into `out`.
    #[inline]
    pub(crate) fn http2(encoder: &'b mut Encoder, out: &'b mut Vec<u8>) -> Self {
        Self {
            to: To::Http2(encoder, out),
            length: None,
        }
    }

    pub(crate) fn pairs(out: &'b mut Vec<Pair>) -> Self {
        Self {
            to: To::Pairs(out),
            length: None,
        }
    }

    #[inline]
    pub(crate) fn header(&mut self, name: &str, value: &[u8]) -> &mut Self {
        match &mut self.to {
            To::Http1(writer, _) => drop(writer.header(name, value)),
            // HTTP/2 has no connection-specific fields (RFC 9113 8.2.2).
            To::Http2(..) | To::Pairs(_) if is_hop_by_hop(name) => {}
            To::Http2(encoder, out) => {
                write::field(name, value, encoder, out);
                self.note_length(name, value);
            }
            To::Pairs(pairs) => {
                pairs.push((name.to_ascii_lowercase(), value.to_vec()));
                self.note_length(name, value);
            }
        }
        self
    }

    /// Records the body length if the field is `Content-Length`.
    #[inline]
    fn note_length(&mut self, name: &str, value: &[u8]) {
        if header_is(name, "content-length") {
            let text = str::from_utf8(value).ok();
            let length = text.and_then(|text| text.parse().ok());
            self.length = length.map(BodyLength::Known);
        }
    }

    /// Writes one field whose value is the concatenation of `parts`.
    pub(crate) fn header_of(&mut self, name: &str, parts: &[&[u8]]) -> &mut Self {
        match &mut self.to {
            To::Http1(writer, _) => {
                writer.raw(name.as_bytes()).raw(b": ");
                for part in parts {
                    writer.raw(part);
                }
                writer.raw(b"\r\n");
            }
            To::Http2(..) | To::Pairs(_) => drop(self.header(name, &parts.concat())),
        }
        self
    }

    /// Writes field lines that were rendered before, each with its CRLF.
    #[inline]
    pub(crate) fn lines(&mut self, lines: &[u8]) -> &mut Self {
        match &mut self.to {
            To::Http1(writer, _) => drop(writer.raw(lines)),
            To::Http2(..) | To::Pairs(_) => {
                for (name, value) in fields_of_lines(lines) {
                    self.header(name, value);
                }
            }
        }
        self
    }

    /// `Date`, from [`date::format`](onrush_http::date::format).
    #[inline]
    pub(crate) fn date(&mut self, date: &[u8; DATE_BYTES]) -> &mut Self {
        self.header("Date", date)
    }

    /// Writes the body length: `Content-Length`, or `Transfer-Encoding: chunked` on HTTP/1.1 if it is unknown.
    #[inline]
    pub(crate) fn length(&mut self, length: BodyLength) -> &mut Self {
        self.length = Some(length);
        match (&mut self.to, length) {
            (To::Http1(writer, _), BodyLength::Known(length)) => {
                writer.content_length(length);
            }
            (To::Http1(writer, Version::Http11 | Version::Http2), BodyLength::Unknown) => {
                writer.chunked();
            }
            // HTTP/1.0 has no chunks: the body ends with the connection.
            (To::Http1(_, Version::Http10), BodyLength::Unknown) => {}
            (To::Http2(..) | To::Pairs(_), BodyLength::Known(length)) => {
                let mut digits = itoa::Buffer::new();
                self.header("content-length", digits.format(length).as_bytes());
            }
            // END_STREAM ends the body.
            (To::Http2(..) | To::Pairs(_), BodyLength::Unknown) => {}
        }
        self
    }

    /// The body length, if any field has set it.
    #[inline]
    pub(super) fn body_length(&self) -> Option<BodyLength> {
        self.length
    }

    /// The underlying writer of [`Fields::http1`].
    #[inline]
    pub(crate) fn into_writer(self) -> HeadWriter<'b> {
        match self.to {
            To::Http1(writer, _) => writer,
            To::Http2(..) | To::Pairs(_) => {
                unreachable!("HTTP/2 and pairs have no writer of lines")
            }
        }
    }
}
