//! What holds for any bytes, and for any message made by the rules: proptest looks for exceptions.

mod support;

use onrush_http::{Framing, Limits, Parsed, Version, write};
use proptest::collection::vec;
use proptest::prelude::*;
use support::check;
use support::drive::{self, End, Event};

proptest! {
    #[test]
    fn any_bytes_are_read_as_the_reference_reads_them(input in vec(any::<u8>(), 0..200)) {
        check::request(&input);
        check::response(&input);
        check::chunked(&input);
        check::pipeline(&input);
    }

    #[test]
    fn scraps_of_http_are_read_as_the_reference_reads_them(scraps in vec(scrap(), 0..24)) {
        let input = scraps.concat();
        check::request(input.as_bytes());
        check::response(input.as_bytes());
        check::chunked(input.as_bytes());
        check::pipeline(input.as_bytes());
    }

    #[test]
    fn a_head_made_by_the_rules_is_read_back(
        method in "[A-Z]{1,8}", path in "/[a-z0-9/%._-]{0,40}", query in proptest::option::of("[a-z0-9=&?/]{0,20}"),
        host in "[a-z0-9.-]{1,20}(:[0-9]{1,4})?", fields in vec(field(), 0..20), length in proptest::option::of(0u64..1 << 40),
    ) {
        prop_assume!(method != "CONNECT");
        let target = query.as_ref().map_or(path.clone(), |query| format!("{path}?{query}"));
        let mut out = [0; 8192];
        let mut writer = write::HeadWriter::new(&mut out);
        writer.request_line(&method, &target).header("Host", host.as_bytes());
        for (name, value) in &fields {
            writer.header(name, value);
        }
        if let Some(length) = length {
            writer.content_length(length);
        }
        let bytes = writer.end().finish().expect("8 KiB are enough");
        let input = &out[..bytes];
        check::request(input);
        let Parsed::Complete(head) = drive::request_head(input, &Limits::DEFAULT) else {
            panic!("not complete: {}", input.escape_ascii());
        };
        prop_assert_eq!(head.bytes, bytes);
        prop_assert_eq!((head.method, head.target, head.path, head.query), (method, target, path, query));
        prop_assert_eq!((head.authority, head.version, head.keep_alive), (Some(host), Version::Http11, true));
        prop_assert_eq!(head.framing, length.map_or(Framing::None, Framing::Length));
        prop_assert_eq!(&head.headers[1..=fields.len()], &fields[..]);
    }

    #[test]
    fn chunks_written_are_read_back(chunks in vec(vec(any::<u8>(), 1..80), 0..8), behind in vec(any::<u8>(), 0..8)) {
        let mut input = Vec::new();
        for chunk in &chunks {
            let mut line = [0; write::CHUNK_HEAD_BYTES_MAX];
            let bytes = write::chunk_head(&mut line, chunk.len() as u64).expect("it is the longest");
            input.extend_from_slice(&line[..bytes]);
            input.extend_from_slice(chunk);
            input.extend_from_slice(write::CHUNK_END);
        }
        input.extend_from_slice(write::LAST_CHUNK);
        let bytes = input.len();
        input.extend_from_slice(&behind);
        let body = check::pieces_agree(Framing::Chunked, &input, &Limits::DEFAULT);
        prop_assert_eq!((body.end, body.consumed, body.payload), (End::Complete, bytes, chunks.concat()));
    }

    #[test]
    fn pieces_of_any_size_come_to_the_same_events(scraps in vec(message(), 0..6), sizes in vec(1usize..60, 1..40)) {
        let input = scraps.concat();
        let mut pieces = Vec::new();
        let mut rest = input.as_bytes();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, behind) = rest.split_at(rest.len().min(*size));
            pieces.push(piece);
            rest = behind;
        }
        let whole = check::pipeline(input.as_bytes());
        prop_assert_eq!(&drive::pipeline(pieces, &Limits::DEFAULT), &whole);
        let messages = whole.iter().filter(|event| matches!(event, Event::Message { .. })).count();
        prop_assert_eq!((messages, whole.len()), (scraps.len(), scraps.len()));
    }
}

/// A field that says nothing about framing, Host, Expect or the connection.
fn field() -> impl Strategy<Value = (String, Vec<u8>)> {
    (
        "x-[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}",
        "([!-~]([ -~\\t]{0,30}[!-~])?)?",
    )
        .prop_map(|(name, value)| (name, value.into()))
}

/// A whole request with its body.
fn message() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,9}".prop_map(|path| format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")),
        "[a-zA-Z\r\n: 0-9]{0,40}".prop_map(|body| {
            format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        }),
        "[a-zA-Z\r\n: 0-9]{1,40}".prop_map(|body| {
            let size = body.len();
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{size:x};x=y\r\n{body}\r\n0\r\nX: y\r\n\r\n")
        }),
    ]
}

/// What messages are made of, sound and unsound.
fn scrap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "GET / HTTP/1.1\r\n",
            "POST /a?b HTTP/1.0\r\n",
            "GET http://a/ HTTP/1.1\r\n",
            "HTTP/1.1 200 OK\r\n",
            "\0HTTP/1.1 204 \r\n",
            "Host: a\r\n",
            "Host: a\r\n\r\n",
            "Content-Length: 5\r\n",
            "Content-Length:",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding:",
            "chunked",
            "Connection: close\r\n",
            "Expect: 100-continue\r\n",
            "X: y\r\n",
            "X",
            ":",
            " ",
            "\t",
            "\r\n",
            "\r\n\r\n",
            "\r",
            "\n",
            "\0",
            "\x7f",
            ",",
            ";",
            "5",
            "0",
            "0\r\n\r\n",
            "5\r\nhello\r\n",
            "a=b",
            "HTTP/1.2",
            "GET",
            "/",
            "*",
            "OPTIONS * HTTP/1.1\r\n",
            "CONNECT a:1 HTTP/1.1\r\n",
            "é",
            "[::1]",
            "@",
            "#",
            "1\r\nx\r\n",
        ][..],
    )
}
