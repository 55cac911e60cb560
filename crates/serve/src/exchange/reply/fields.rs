//! The fields of a response, whatever the protocol that they are written in.
//!
//! The length is one of the fields because fields have an order that users see.

use onrush_http::date::DATE_BYTES;
use onrush_http::hop::is_hop_by_hop;
use onrush_http::http2::hpack::Encoder;
use onrush_http::http2::message::{fields_of_lines, write};
use onrush_http::write::HeadWriter;
use onrush_http::{Version, header_is};

/// What is known of a response's body when its head is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyLength {
    /// So many bytes, which may be none.
    Known(u64),
    /// It ends where it ends.
    Unknown,
}

/// What the fields of a server's response follow from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MadeOf {
    /// The head, this date, and this of the length of its body: they are the same where these are.
    Head {
        date: [u8; DATE_BYTES],
        length: Option<BodyLength>,
    },
    /// More than that.
    More,
}

/// Where fields are written.
pub(crate) struct Fields<'b> {
    to: To<'b>,
    length: Option<BodyLength>,
}

/// One for each protocol.
enum To<'b> {
    /// Lines of text (RFC 9112 5).
    Http1(HeadWriter<'b>, Version),
    /// A header block (RFC 7541).
    Http2(&'b mut Encoder, &'b mut Vec<u8>),
    /// Pairs, for who still has to change some of them.
    Pairs(&'b mut Vec<Pair>),
}

/// Name, in lower case, and value.
pub(crate) type Pair = (String, Vec<u8>);

impl<'b> Fields<'b> {
    /// As lines, to a client of this version.
    #[inline]
    pub(crate) fn http1(writer: HeadWriter<'b>, version: Version) -> Self {
        Self {
            to: To::Http1(writer, version),
            length: None,
        }
    }

    /// As a block of `encoder` into `out`.
    #[inline]
    pub(crate) fn http2(encoder: &'b mut Encoder, out: &'b mut Vec<u8>) -> Self {
        Self {
            to: To::Http2(encoder, out),
            length: None,
        }
    }

    /// As pairs into `out`.
    pub(crate) fn pairs(out: &'b mut Vec<Pair>) -> Self {
        Self {
            to: To::Pairs(out),
            length: None,
        }
    }

    /// One field.
    #[inline]
    pub(crate) fn header(&mut self, name: &str, value: &[u8]) -> &mut Self {
        match &mut self.to {
            To::Http1(writer, _) => drop(writer.header(name, value)),
            // What is about a connection of HTTP/1 has no meaning here (RFC 9113 8.2.2).
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

    /// Takes note of what a field says of the body.
    #[inline]
    fn note_length(&mut self, name: &str, value: &[u8]) {
        if header_is(name, "content-length") {
            let text = str::from_utf8(value).ok();
            let length = text.and_then(|text| text.parse().ok());
            self.length = length.map(BodyLength::Known);
        }
    }

    /// One field, whose value is all these `parts` together.
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

    /// Fields that were rendered as lines before, each with its end.
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

    /// How long the body is: `Content-Length`, or what the protocol has for bodies of unknown length.
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
            // It has no chunks: its body ends with the connection.
            (To::Http1(_, Version::Http10), BodyLength::Unknown) => {}
            (To::Http2(..) | To::Pairs(_), BodyLength::Known(length)) => {
                let mut digits = itoa::Buffer::new();
                self.header("content-length", digits.format(length).as_bytes());
            }
            // It ends where its stream says so.
            (To::Http2(..) | To::Pairs(_), BodyLength::Unknown) => {}
        }
        self
    }

    /// What was said of the length, if anything was.
    #[inline]
    pub(super) fn body_length(&self) -> Option<BodyLength> {
        self.length
    }

    /// What has written them as lines, which is how [`Fields::http1`] does.
    #[inline]
    pub(crate) fn into_writer(self) -> HeadWriter<'b> {
        match self.to {
            To::Http1(writer, _) => writer,
            To::Http2(..) | To::Pairs(_) => unreachable!("they are no lines"),
        }
    }
}
