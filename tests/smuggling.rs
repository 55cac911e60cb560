//! Request smuggling: no ambiguous request gets two responses, or takes a second request past the first.

use crate::peer::Peer;
use crate::program::{Serve, drivers};

/// The request that an attacker tries to hide.
const SECOND: &str = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

/// Bytes of each attempt; `{second}` is replaced by the hidden request, `{n}` by its length.
const ATTEMPTS: &[&str] = &[
    // Two framings at once.
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n{second}\r\n0\r\n\r\n",
    "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n{second}",
    // Obfuscated Transfer-Encoding.
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding\r\n : chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nTransfer_Encoding: chunked\r\n\r\n{second}",
    // Invalid or repeated lengths.
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: {n}\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\nContent-Length: 0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0, {n}\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0 0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\n Content-Length: 0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n{second}",
    // Chunks longer or shorter than their size.
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0 \r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\n\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a\rb\r\nx\r\n0\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: {n}\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX y\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n X: y\r\n\r\n{second}",
    // Bodies that are valid with any method or Connection.
    "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\n\r\n{second}",
    "DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\n\r\n{second}",
    "OPTIONS / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\n\r\n{second}",
    "PURGE / HTTP/1.1\r\nHost: h\r\nContent-Length: {n}\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nConnection: Content-Length\r\nContent-Length: {n}\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n{second}",
    "POST / HTTP/1.0\r\nHost: h\r\n\r\n{second}",
    "POST / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: upgrade\r\nContent-Length: {n}\r\n\r\n{second}",
    "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\nConnection: close\r\n\r\n{second}",
    // Malformed heads.
    "GET / HTTP/1.1\r\nHost: h\r\nX: \0y\r\n\r\n{second}",
    "GET / HTTP/1.1\r\nHost: h\r\nX\0: y\r\n\r\n{second}",
    "GET / HTTP/1.1\nHost: h\n\n{second}",
    "GET / HTTP/1.1\r\nHost: h\r\n\n{second}",
    "GET / HTTP/1.1\r\nHost: h\r\n\r{second}",
    "GET / HTTP/1.1\r\nHost: h\r\nHost: other\r\n\r\n{second}",
    "GET / HTTP/1.1\r\nHost: h, other\r\n\r\n{second}",
    "GET / HTTP/1.1\r\nHost: h/x\r\n\r\n{second}",
    "GET / HTTP/1.1\r\n\r\n{second}",
    "GET / HTTP/1.1 \r\nHost: h\r\n\r\n{second}",
    "GET  / HTTP/1.1\r\nHost: h\r\n\r\n{second}",
    "GET / x HTTP/1.1\r\nHost: h\r\n\r\n{second}",
    "GET /\tHTTP/1.1\r\nHost: h\r\n\r\n{second}",
    "GET /\r\nHost: h\r\n\r\n{second}",
    "GET / HTTP/0.9\r\nHost: h\r\n\r\n{second}",
    "GET / HTTP/2.0\r\nHost: h\r\n\r\n{second}",
    "GET / HTTP/1.10\r\nHost: h\r\n\r\n{second}",
    "GET / HTTP/1.1\r\nHost: h\r\n: y\r\n\r\n{second}",
    "GET / HTTP/1.1\r\nHost: h\r\nX y: z\r\n\r\n{second}",
    "G\u{e4}T / HTTP/1.1\r\nHost: h\r\n\r\n{second}",
    "GET http://a@h/ HTTP/1.1\r\nHost: h\r\n\r\n{second}",
];

fn bytes(attempt: &str) -> String {
    attempt
        .replace("{n}", &SECOND.len().to_string())
        .replace("{second}", SECOND)
}

/// Number of responses without 1xx.
fn responses(received: &str) -> usize {
    received.matches("HTTP/1.1 ").count() - received.matches("HTTP/1.1 1").count()
}

#[test]
fn smuggling_attempts_get_one_response_from_server() {
    for io in drivers() {
        let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
        for attempt in ATTEMPTS {
            let received = serve.connect().exchange(bytes(attempt).as_bytes());
            assert_eq!(responses(&received), 1, "{attempt:?}: {received}");
        }
        assert_eq!(serve.stop().requests(), ATTEMPTS.len() as u64);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn smuggling_attempts_get_one_response_through_proxy() {
    let nginx = Peer::nginx();
    let serve = Serve::start(&["--forward", &nginx.server()]);
    let mut well = 0;
    for attempt in ATTEMPTS {
        let received = serve.connect().exchange(bytes(attempt).as_bytes());
        assert_eq!(responses(&received), 1, "{attempt:?}: {received}");
        well += u64::from(received.starts_with("HTTP/1.1 200 "));
        // Bytes left on the connection to nginx must not become a response to another client.
        let next = serve
            .connect()
            .exchange(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(
            next.ends_with("nginx was asked for GET /next\n"),
            "{attempt:?}: {next}"
        );
    }
    serve.stop();
    let log = nginx.log();
    assert!(!log.contains("smuggled"), "{log}");
    let asked = log.lines().filter(|line| !line.contains("/next")).count() as u64;
    assert!(well > 0 && asked >= well, "{log}");
}
