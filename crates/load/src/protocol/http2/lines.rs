//! A request of HTTP/1.1 as a block of HTTP/2: its first line and `Host` become pseudo-fields, and what is about a connection
//! of HTTP/1 is left out (RFC 9113 8.2.2, 8.3.1). What is read here was written by this program.

use memchr::{memchr, memmem};
use onrush_http::header_is;
use onrush_http::hop::is_hop_by_hop;
use onrush_http::http2::hpack::{Encoder, Indexing};
use onrush_http::http2::message::write;

/// The head of a request, as it lies in its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lines<'t> {
    method: &'t [u8],
    path: &'t [u8],
    authority: &'t [u8],
    /// `Name: value`, each line with its end.
    fields: &'t [u8],
}

impl<'t> Lines<'t> {
    /// The head of `text`, and the body behind it.
    pub(super) fn split(text: &'t [u8]) -> (Lines<'t>, &'t [u8]) {
        let head_end = memmem::find(text, b"\r\n\r\n").expect("a head ends with an empty line");
        let (head, body) = (&text[..head_end + 2], &text[head_end + 4..]);
        let line_end = memmem::find(head, b"\r\n").expect("each line of a head has an end");
        let (line, fields) = (&head[..line_end], &head[line_end + 2..]);
        let mut words = line.split(|&byte| byte == b' ');
        let mut word = || words.next().unwrap_or_default();
        let mut lines = Lines {
            method: word(),
            path: word(),
            authority: b"",
            fields,
        };
        let host = lines.fields().find(|(name, _)| header_is(name, "host"));
        lines.authority = host.map_or(b"", |(_, value)| value);
        (lines, body)
    }

    /// Names and values.
    fn fields(&self) -> impl Iterator<Item = (&'t str, &'t [u8])> + use<'t> {
        let mut rest = self.fields;
        std::iter::from_fn(move || {
            let end = memmem::find(rest, b"\r\n")?;
            let line = &rest[..end];
            rest = &rest[end + 2..];
            let colon = memchr(b':', line)?;
            let name = std::str::from_utf8(&line[..colon]).expect("names are tokens");
            Some((name, line[colon + 1..].trim_ascii()))
        })
    }

    /// Those that HTTP/2 has, but for `te`.
    fn fields_kept(&self) -> impl Iterator<Item = (&'t str, &'t [u8])> + use<'t> {
        let fields = self.fields();
        fields.filter(|(name, _)| !is_hop_by_hop(name) && !header_is(name, "host"))
    }

    /// Whether trailers are taken, which is all that `te` may say.
    fn takes_trailers(&self) -> bool {
        let mut fields = self.fields();
        fields.any(|(name, value)| {
            header_is(name, "te") && memmem::find(value, b"trailers").is_some()
        })
    }

    /// Appends the block.
    pub(super) fn put(
        &self,
        scheme: &str,
        path_indexing: Indexing,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        put_start(self, scheme, path_indexing, encoder, out);
        for (name, value) in self.fields_kept() {
            write::field(name, value, encoder, out);
        }
        if self.takes_trailers() {
            write::field("te", b"trailers", encoder, out);
        }
    }

    /// What the block is made from, for as long as it is needed.
    pub(super) fn keep(&self) -> Fields {
        let fields = self.fields_kept();
        let trailers = self
            .takes_trailers()
            .then_some(("te", b"trailers".as_slice()));
        let fields = fields.chain(trailers).map(|(name, value)| Field {
            name: name.to_ascii_lowercase().into_bytes().into(),
            value: value.into(),
        });
        Fields {
            method: self.method.into(),
            path: self.path.into(),
            authority: self.authority.into(),
            fields: fields.collect(),
        }
    }
}

/// A block that is written again and again, for whatever state its connection's table is in.
pub(super) struct Fields {
    method: Box<[u8]>,
    path: Box<[u8]>,
    authority: Box<[u8]>,
    fields: Box<[Field]>,
}

struct Field {
    /// In lower case.
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Fields {
    /// Appends it.
    pub(super) fn put(
        &self,
        scheme: &str,
        path_indexing: Indexing,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        let start = Lines {
            method: &self.method,
            path: &self.path,
            authority: &self.authority,
            fields: b"",
        };
        put_start(&start, scheme, path_indexing, encoder, out);
        for field in &self.fields {
            encoder.usual_field(&field.name, &field.value, out);
        }
    }
}

/// Appends the pseudo-fields.
fn put_start(
    lines: &Lines<'_>,
    scheme: &str,
    path_indexing: Indexing,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) {
    const KEPT: Indexing = Indexing::Incremental;
    encoder.field(b":method", lines.method, KEPT, out);
    encoder.field(b":scheme", scheme.as_bytes(), KEPT, out);
    encoder.field(b":path", lines.path, path_indexing, out);
    // A Host of no bytes is one that was taken out (RFC 9113 8.3.1).
    if !lines.authority.is_empty() {
        encoder.field(b":authority", lines.authority, KEPT, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_http::http2::{Connection, Content, End, Event, LocalSettings, Role};

    /// What a server reads of the block of `text`, written in both ways, and the body behind it.
    fn read(text: &str) -> (Vec<(String, String)>, String) {
        let (lines, body) = Lines::split(text.as_bytes());
        let kept = lines.keep();
        let settings = LocalSettings::DEFAULT;
        let mut out = Vec::new();
        let mut client = Connection::new(Role::Client, settings, &mut out);
        let kept_indexing = Indexing::Incremental;
        for round in 0..2 {
            let opened = client.open(
                End::Open,
                Content::Any,
                &mut out,
                |encoder, out| match round {
                    0 => lines.put("https", Indexing::Without, encoder, out),
                    _ => kept.put("https", kept_indexing, encoder, out),
                },
            );
            opened.expect("two streams may be open");
        }
        let mut server = Connection::new(Role::Server, settings, &mut Vec::new());
        let (mut at, mut heads) = (0, Vec::new());
        loop {
            let step = server.receive(&out[at..], &mut Vec::new()).unwrap();
            at += step.bytes;
            match step.event {
                Event::NeedMore(_) => break,
                Event::Head { fields, .. } => {
                    assert_eq!(fields.flaw(), None);
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    let fields = fields.iter();
                    heads.push(
                        fields
                            .map(|(name, value)| (name.to_owned(), text(value)))
                            .collect(),
                    );
                }
                _ => {}
            }
        }
        let [one, other]: [Vec<(String, String)>; 2] = heads.try_into().unwrap();
        assert_eq!(one, other);
        (one, String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn a_head_of_http_1_is_said_in_the_words_of_http_2() {
        let (fields, body) = read(concat!(
            "POST /a?b=c HTTP/1.1\r\n",
            "Host: x:81\r\n",
            "Accept:  */* \r\n",
            "X-One: 1\r\n",
            "Connection: keep-alive, upgrade\r\n",
            "Keep-Alive: 5\r\n",
            "TE: gzip, trailers\r\n",
            "Content-Length: 2\r\n",
            "\r\n",
            "ok",
        ));
        let expected = [
            (":method", "POST"),
            (":scheme", "https"),
            (":path", "/a?b=c"),
            (":authority", "x:81"),
            ("accept", "*/*"),
            ("x-one", "1"),
            ("content-length", "2"),
            ("te", "trailers"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!((&fields[..], &*body), (&expected[..], "ok"));
    }

    #[test]
    fn a_request_without_host_has_no_authority() {
        let (fields, body) = read("GET / HTTP/1.1\r\nHost: \r\n\r\n");
        let names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
        assert_eq!(
            (&names[..], &*body),
            (&[":method", ":scheme", ":path"][..], "")
        );
    }
}
