//! Encodes an HTTP/1.1 request head as a header block: request line and `Host` become pseudo-fields, and hop-by-hop
//! fields are removed (RFC 9113 8.2.2, 8.3.1). The head was written by this program and is not validated.

use memchr::{memchr, memmem};

use super::field_lines::fields_of_lines;
use super::write::field;
use crate::field::{header_is, token_list};
use crate::headers::hop::is_hop_by_hop;
use crate::http2::hpack::{Encoder, Indexing};

/// Request head, borrowed from its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines<'t> {
    method: &'t [u8],
    path: &'t [u8],
    /// `Name: value` lines with their CRLF.
    fields: &'t [u8],
}

impl<'t> Lines<'t> {
    /// Parses the head at the start of `text`.
    ///
    /// # Panics
    /// If no empty line ends it.
    pub fn of(text: &'t [u8]) -> Lines<'t> {
        Self::whole(split_head(text).0)
    }

    /// Parses a head that is all of `text`, including the empty line at the end.
    ///
    /// # Panics
    /// If it has no lines.
    pub fn whole(text: &'t [u8]) -> Lines<'t> {
        debug_assert!(text.ends_with(b"\r\n\r\n"));
        let head = &text[..text.len() - 2];
        let line_end = memchr(b'\n', head).expect("each line of a head has an end");
        let (line, fields) = (&head[..line_end - 1], &head[line_end + 1..]);
        let mut words = line.split(|&byte| byte == b' ');
        let mut word = || words.next().unwrap_or_default();
        Lines {
            method: word(),
            path: word(),
            fields,
        }
    }

    /// Value of Host; empty if missing.
    fn authority(&self) -> &'t [u8] {
        let host = self.fields().find(|(name, _)| header_is(name, "host"));
        host.map_or(b"", |(_, value)| value)
    }

    /// All input of [`Lines::put_fields`].
    pub fn fields_text(&self) -> &'t [u8] {
        self.fields
    }

    fn fields(&self) -> impl Iterator<Item = (&'t str, &'t [u8])> + use<'t> {
        fields_of_lines(self.fields)
    }

    /// Appends the block, for a server with `scheme`.
    pub fn put(
        &self,
        scheme: &str,
        path_indexing: Indexing,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        self.put_start(scheme, path_indexing, encoder, out);
        self.put_fields(encoder, out);
    }

    /// Appends the pseudo-fields made from the request line.
    pub fn put_start(
        &self,
        scheme: &str,
        path_indexing: Indexing,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        const KEPT: Indexing = Indexing::Incremental;
        encoder.field(b":method", self.method, KEPT, out);
        encoder.field(b":scheme", scheme.as_bytes(), KEPT, out);
        encoder.field(b":path", self.path, path_indexing, out);
    }

    /// Appends the other fields, `:authority` first.
    pub fn put_fields(&self, encoder: &mut Encoder, out: &mut Vec<u8>) {
        let authority = self.authority();
        // An empty Host means that the field was removed (RFC 9113 8.3.1).
        if !authority.is_empty() {
            encoder.field(b":authority", authority, Indexing::Incremental, out);
        }
        let mut takes_trailers = false;
        for (name, value) in self.fields() {
            if header_is(name, "te") {
                let is_said = |member: &[u8]| member.eq_ignore_ascii_case(b"trailers");
                takes_trailers |= token_list(value).any(is_said);
            } else if !is_hop_by_hop(name) && !header_is(name, "host") {
                field(name, value, encoder, out);
            }
        }
        // The only value that TE may have here (RFC 9113 8.2.2).
        if takes_trailers {
            field("te", b"trailers", encoder, out);
        }
    }

    /// Fields of an extended CONNECT for `protocol` (RFC 8441 4) that replaces this Upgrade request: names in lower
    /// case, and values, in order. Sec-WebSocket-Key is removed, since HTTP/2 does not use it (RFC 8441 5).
    pub fn connect<'a>(
        &'a self,
        protocol: &'a str,
        scheme: &'a str,
    ) -> impl Iterator<Item = (String, &'a [u8])> {
        let pseudo = [
            (":method", &b"CONNECT"[..]),
            (":protocol", protocol.as_bytes()),
            (":scheme", scheme.as_bytes()),
            (":path", self.path),
            (":authority", self.authority()),
        ];
        let pseudo = pseudo.into_iter();
        let pseudo = pseudo.filter(|(name, value)| *name != ":authority" || !value.is_empty());
        const LEFT_OUT: [&str; 3] = ["host", "te", "sec-websocket-key"];
        let is_sent = |(name, _): &(&str, &[u8])| {
            !is_hop_by_hop(name) && !LEFT_OUT.iter().any(|it| header_is(name, it))
        };
        let all = pseudo.chain(self.fields().filter(is_sent));
        all.map(|(name, value)| (name.to_ascii_lowercase(), value))
    }

    /// Appends the block of [`Lines::connect`].
    pub fn put_connect(
        &self,
        protocol: &str,
        scheme: &str,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        for (name, value) in self.connect(protocol, scheme) {
            match &name[..] {
                ":method" | ":protocol" | ":scheme" | ":authority" => {
                    encoder.field(name.as_bytes(), value, Indexing::Incremental, out);
                }
                ":path" => encoder.field(name.as_bytes(), value, Indexing::Without, out),
                _ => field(&name, value, encoder, out),
            }
        }
    }
}

/// Splits a request into its head, including the empty line, and its body.
///
/// # Panics
/// If no empty line ends the head.
pub fn split_head(text: &[u8]) -> (&[u8], &[u8]) {
    let fields_end = memmem::find(text, b"\r\n\r\n").expect("a head ends with an empty line");
    text.split_at(fields_end + 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::{Connection, Content, End, Event, LocalSettings, Role};

    /// Fields that a server decodes from the block of `text`.
    fn read(text: &str) -> Vec<(String, String)> {
        read_put(text, |lines, encoder, out| {
            lines.put("https", Indexing::Without, encoder, out);
        })
    }

    fn read_put(
        text: &str,
        put: impl FnOnce(&Lines<'_>, &mut Encoder, &mut Vec<u8>),
    ) -> Vec<(String, String)> {
        let lines = Lines::of(text.as_bytes());
        let settings = LocalSettings::DEFAULT;
        let mut out = Vec::new();
        let mut client = Connection::new(Role::Client, settings, &mut out);
        let opened = client.open(End::Open, Content::Any, &mut out, |encoder, out| {
            put(&lines, encoder, out);
        });
        opened.expect("a stream may be open");
        let mut server = Connection::new(Role::Server, settings, &mut Vec::new());
        let mut at = 0;
        loop {
            let step = server.receive(&out[at..], &mut Vec::new()).unwrap();
            at += step.bytes;
            if let Event::Head { fields, .. } = step.event {
                assert_eq!(fields.flaw(), None);
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let fields = fields.iter();
                return fields
                    .map(|(name, value)| (name.to_owned(), text(value)))
                    .collect();
            }
        }
    }

    #[test]
    fn http1_request_head_converts_to_http2() {
        let fields = read(concat!(
            "POST /a?b=c HTTP/1.1\r\n",
            "Host: x:81\r\n",
            "Accept:  */* \r\n",
            "X-One: 1\r\n",
            "Connection: keep-alive, upgrade\r\n",
            "Keep-Alive: 5\r\n",
            "TE: gzip, trailers\r\n",
            "Transfer-Encoding: chunked\r\n",
            "\r\n",
            "2\r\nok\r\n0\r\n\r\n",
        ));
        let expected = [
            (":method", "POST"),
            (":scheme", "https"),
            (":path", "/a?b=c"),
            (":authority", "x:81"),
            ("accept", "*/*"),
            ("x-one", "1"),
            ("te", "trailers"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields, expected);
    }

    #[test]
    fn split_head_separates_head_and_body() {
        let (head, body) = split_head(b"PUT / HTTP/1.1\r\nContent-Length: 4\r\n\r\n\r\n\r\n");
        assert!(head.ends_with(b"Length: 4\r\n\r\n"));
        assert_eq!(body, b"\r\n\r\n");
    }

    #[test]
    fn websocket_upgrade_becomes_extended_connect() {
        let text = concat!(
            "GET /chat?a=b HTTP/1.1\r\n",
            "Host: x:81\r\n",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            "Sec-WebSocket-Version: 13\r\n",
            "Sec-WebSocket-Protocol: chat\r\n",
            "Connection: upgrade, TE\r\n",
            "Upgrade: websocket\r\n",
            "TE: trailers\r\n",
            "Via: 1.1 onrush\r\n",
            "\r\n",
        );
        let fields = read_put(text, |lines, encoder, out| {
            lines.put_connect("websocket", "https", encoder, out);
        });
        let expected = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":path", "/chat?a=b"),
            (":authority", "x:81"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "chat"),
            ("via", "1.1 onrush"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields, expected);
    }

    #[test]
    fn request_without_host_has_no_authority() {
        let fields = read("GET / HTTP/1.1\r\nHost: \r\n\r\n");
        let names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, [":method", ":scheme", ":path"]);
    }
}
