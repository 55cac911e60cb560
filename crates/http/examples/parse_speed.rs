//! Prints nanoseconds per parsed head: the requests of a load generator and of a browser, and two responses. `cargo run
//! --release -p onrush-http --example parse_speed`

use std::hint::black_box;
use std::time::Instant;

use onrush_http::{HeaderSlots, Limits, Method, Parsed, request, response};

const WRK: &str = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
const CURL: &str = "GET /index.html HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n";
const POST: &str = "POST /api/items HTTP/1.1\r\nHost: example.com\r\nConnection: keep-alive\r\nContent-Length: 128\r\n\
    Content-Type: application/json\r\n\r\n";
const BROWSER: &str = "GET /assets/app.js?v=1.2.3 HTTP/1.1\r\nHost: www.example.com\r\nConnection: keep-alive\r\n\
    sec-ch-ua: \"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\"\r\nsec-ch-ua-mobile: ?0\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36\r\n\
    sec-ch-ua-platform: \"Linux\"\r\nAccept: */*\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\n\
    Sec-Fetch-Dest: script\r\nReferer: https://www.example.com/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\r\n";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const NGINX: &str = "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/html\r\n\
    Content-Length: 612\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n\
    ETag: \"6578-264\"\r\nAccept-Ranges: bytes\r\n\r\n";

const ROUNDS: usize = 7;
const CALLS: u32 = 500_000;

fn main() {
    for (name, head) in [
        ("wrk", WRK),
        ("curl", CURL),
        ("post", POST),
        ("browser", BROWSER),
    ] {
        report("request", name, head, parse_request);
    }
    for (name, head) in [("small", RESPONSE), ("nginx", NGINX)] {
        report("response", name, head, parse_response);
    }
}

/// Prints the best of several rounds, since other work on the machine only adds time.
fn report(kind: &str, name: &str, head: &str, parse: fn(&[u8]) -> usize) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            assert_eq!(parse(black_box(head.as_bytes())), head.len());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    println!("{kind:8} {name:8} {:4} bytes {best:7.1} ns", head.len());
}

#[inline(never)]
fn parse_request(input: &[u8]) -> usize {
    let mut slots = HeaderSlots::new();
    match request::parse(input, &mut slots, &Limits::DEFAULT) {
        Parsed::Complete(head) => black_box(&head).bytes,
        Parsed::Partial | Parsed::Refused(_) => 0,
    }
}

#[inline(never)]
fn parse_response(input: &[u8]) -> usize {
    let mut slots = HeaderSlots::new();
    match response::parse(input, &mut slots, Method::Get, &Limits::DEFAULT) {
        Parsed::Complete(head) => black_box(&head).bytes,
        Parsed::Partial | Parsed::Refused(_) => 0,
    }
}
