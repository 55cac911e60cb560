//! The fields of a response, whatever the protocol that they are written in.

use onrush_http::Version;
use onrush_http::date::DATE_BYTES;
use onrush_http::write::HeadWriter;

/// What is known of a response's body when its head is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyLength {
    /// So many bytes, which may be none.
    Known(u64),
    /// It ends where it ends.
    Unknown,
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
    #[cfg(test)]
    Framed(&'b mut Vec<(String, Vec<u8>)>),
}

impl<'b> Fields<'b> {
    /// As lines, to a client of this version.
    #[inline]
    pub(crate) fn http1(writer: HeadWriter<'b>, version: Version) -> Self {
        Self {
            to: To::Http1(writer, version),
            length: None,
        }
    }

    /// As pairs into `out`.
    #[cfg(test)]
    pub(crate) fn framed(out: &'b mut Vec<(String, Vec<u8>)>) -> Self {
        Self {
            to: To::Framed(out),
            length: None,
        }
    }

    /// One field.
    #[inline]
    pub(crate) fn header(&mut self, name: &str, value: &[u8]) -> &mut Self {
        match &mut self.to {
            To::Http1(writer, _) => drop(writer.header(name, value)),
            #[cfg(test)]
            To::Framed(pairs) => pairs.push((name.to_ascii_lowercase(), value.to_vec())),
        }
        self
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
            #[cfg(test)]
            To::Framed(pairs) => pairs.push((name.to_ascii_lowercase(), parts.concat())),
        }
        self
    }

    /// Fields that were rendered as lines before, each with its end.
    #[inline]
    pub(crate) fn lines(&mut self, lines: &[u8]) -> &mut Self {
        match &mut self.to {
            To::Http1(writer, _) => drop(writer.raw(lines)),
            #[cfg(test)]
            To::Framed(pairs) => pairs.extend(pairs_of(lines)),
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
            #[cfg(test)]
            (To::Framed(pairs), BodyLength::Known(length)) => {
                pairs.push(("content-length".into(), length.to_string().into_bytes()));
            }
            #[cfg(test)]
            (To::Framed(_), BodyLength::Unknown) => {}
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
            #[cfg(test)]
            To::Framed(_) => unreachable!("they are pairs"),
        }
    }
}

/// The fields of such lines.
#[cfg(test)]
pub(crate) fn pairs_of(lines: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let lines = lines.split(|&byte| byte == b'\n');
    lines.filter_map(|line| {
        let at = line.iter().position(|&byte| byte == b':')?;
        let name = str::from_utf8(&line[..at]).expect("a name");
        let value = line[at + 1..].trim_ascii();
        Some((name.to_ascii_lowercase(), value.to_vec()))
    })
}
