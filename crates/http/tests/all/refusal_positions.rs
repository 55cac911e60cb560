//! Reasons and positions of refusals.

use onrush_http::body::BodyReader;
use onrush_http::{
    Framing, HeaderSlots, Limits, Method, Parsed, Position, Refusal, request, response,
};

fn of_response(head: &str) -> Refusal {
    let mut slots = HeaderSlots::new();
    match response::parse(head.as_bytes(), &mut slots, Method::Get, &Limits::DEFAULT) {
        Parsed::Refused(refusal) => refusal,
        other => panic!("{head:?} came to {other:?}"),
    }
}

fn of_request(head: &str) -> Refusal {
    let mut slots = HeaderSlots::new();
    match request::parse(head.as_bytes(), &mut slots, &Limits::DEFAULT) {
        Parsed::Refused(refusal) => refusal,
        other => panic!("{head:?} came to {other:?}"),
    }
}

fn of_body(mut reader: BodyReader, body: &str) -> Refusal {
    let refused = reader.skip(body.as_bytes(), &Limits::DEFAULT);
    refused.expect_err("it is no body")
}

#[test]
fn refused_response_reports_line() {
    let ok = "HTTP/1.1 200 OK\r\n";
    for (fields, wanted) in [
        (
            "X : y\r\n\r\n",
            "white space within or after a field name (line 2 of the head)",
        ),
        (
            "X: y\r\n z\r\n\r\n",
            "a field folded over lines (line 3 of the head)",
        ),
        (
            "X: y\r\nnonsense\r\n\r\n",
            "a field without a colon (line 3 of the head)",
        ),
        ("X: y\0\r\n\r\n", "a NUL (line 2 of the head)"),
        (
            "Content-Length: 5\r\nX: y\r\nContent-Length: 6\r\n\r\n",
            "different Content-Length values (line 4 of the head)",
        ),
        (
            "X: y\nContent-Length: x\n\n",
            "malformed Content-Length (line 3 of the head)",
        ),
        (
            "Transfer-Encoding: gzip\r\n\r\n",
            "the final transfer coding is not chunked",
        ),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "both Content-Length and Transfer-Encoding",
        ),
    ] {
        let refusal = of_response(&format!("{ok}{fields}"));
        assert_eq!((refusal.status, &*refusal.to_string()), (502, wanted));
    }
    for (head, wanted) in [
        (
            "\u{15}\u{3}\u{3}\0\u{2}\u{2}\u{32}",
            "it looks like TLS, but this port is for plain HTTP",
        ),
        (
            "SSH-2.0-x\r\n\r\n",
            "malformed HTTP version (line 1 of the head)",
        ),
        (
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "malformed status line (line 1 of the head)",
        ),
        (
            "HTTP/1.1 099 OK\r\n\r\n",
            "a status below 100 (line 1 of the head)",
        ),
        (
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "an empty line before the status line",
        ),
    ] {
        assert_eq!(of_response(head).to_string(), wanted);
    }
}

#[test]
fn refused_request_reports_line() {
    for (head, wanted) in [
        (
            "\u{16}\u{3}\u{1}\u{1}\0\u{1}\0\0\u{7f}\u{3}\u{3}",
            "it looks like TLS, but this port is for plain HTTP",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
            "a line ends without CR (line 2 of the head)",
        ),
        (
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "a line ends without CR (line 1 of the head)",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
            "white space within or after a field name (line 3 of the head)",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "repeated Content-Length (line 4 of the head)",
        ),
    ] {
        assert_eq!(of_request(head).to_string(), wanted);
    }
}

#[test]
fn refused_body_reports_chunk_or_trailer() {
    let client = || BodyReader::new(Framing::Chunked);
    let server = || BodyReader::of_response(Framing::Chunked);
    for (reader, body, place, reason) in [
        (
            client(),
            "5\r\nhello\r\n5 \r\n",
            Position::Chunk(2),
            "white space at the end of a chunk line",
        ),
        (
            server(),
            "5\r\nhello!\r\n",
            Position::Chunk(1),
            "no CRLF after a chunk",
        ),
        (
            server(),
            "5\r\nhello\r\n5\nhello",
            Position::Chunk(2),
            "a chunk line ends without CR",
        ),
        (
            server(),
            "x\r\n",
            Position::Chunk(1),
            "a chunk line without a size",
        ),
        (
            client(),
            "5;\r\n",
            Position::Chunk(1),
            "a chunk extension without a name",
        ),
        (
            client(),
            "5;a=\r\n",
            Position::Chunk(1),
            "a chunk extension without a value",
        ),
        (
            client(),
            "5;a=\"\r\n",
            Position::Chunk(1),
            "a quoted chunk extension without its end",
        ),
        (
            client(),
            "5;a b\r\n",
            Position::Chunk(1),
            "malformed chunk extension",
        ),
        (
            client(),
            "0\r\nX: y\r\nnonsense\r\n",
            Position::Trailer(2),
            "malformed trailer",
        ),
        (
            client(),
            "0\r\nHost: y\r\n",
            Position::Trailer(1),
            "a field that must not be a trailer",
        ),
    ] {
        let refusal = of_body(reader, body);
        assert_eq!(
            (refusal.position, refusal.reason),
            (place, reason),
            "{body:?}"
        );
    }
}
