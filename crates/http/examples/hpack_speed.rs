//! Prints nanoseconds per header block, decoded and parsed, and encoded, for small messages and for messages of a
//! browser and nginx. The first block of a connection, which fills the tables, is not counted. `cargo run --release -p
//! onrush-http --example hpack_speed`

use std::hint::black_box;
use std::time::Instant;

use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Decoder, Encoder};
use onrush_http::http2::message::{ExtendedConnect, MoreFrames, request, response};
use onrush_http::{HeaderSlots, Limits, Method};

type Fields = &'static [(&'static str, &'static str)];

/// The request of h2load.
const SMALL: Fields = &[
    (":path", "/"),
    (":scheme", "https"),
    (":authority", "127.0.0.1:8443"),
    (":method", "GET"),
    ("user-agent", "h2load nghttp2/1.52.0"),
];
const BROWSER: Fields = &[
    (":method", "GET"),
    (":authority", "www.example.com"),
    (":scheme", "https"),
    (":path", "/assets/app.js?v=1.2.3"),
    (
        "sec-ch-ua",
        "\"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\"",
    ),
    ("sec-ch-ua-mobile", "?0"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
    ),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("accept", "*/*"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-dest", "script"),
    ("referer", "https://www.example.com/"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9,de;q=0.8"),
    (
        "cookie",
        "session=0123456789abcdef0123456789abcdef; theme=dark",
    ),
];
const RESPONSE: Fields = &[
    (":status", "200"),
    ("server", "onrush"),
    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("content-type", "text/plain"),
    ("content-length", "6"),
];
const NGINX: Fields = &[
    (":status", "200"),
    ("server", "nginx"),
    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("content-type", "text/html"),
    ("content-length", "612"),
    ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("etag", "\"6578-264\""),
    ("accept-ranges", "bytes"),
];

const ROUNDS: usize = 7;
const CALLS: u32 = 200_000;
const LIST_BYTES_MAX: u32 = 16 * 1024;

fn main() {
    for (name, fields) in [("small", SMALL), ("browser", BROWSER)] {
        decode("request", name, fields, read_request);
        encode("request", name, fields);
    }
    for (name, fields) in [("small", RESPONSE), ("nginx", NGINX)] {
        decode("response", name, fields, read_response);
        encode("response", name, fields);
    }
}

fn decode(kind: &str, name: &str, fields: Fields, read: fn(&FieldSection) -> usize) {
    let mut encoder = Encoder::new();
    let (mut first, mut next) = (Vec::new(), Vec::new());
    write(&mut encoder, fields, &mut first);
    write(&mut encoder, fields, &mut next);
    for (what, block) in [("first", &first), ("next", &next)] {
        let (mut decoder, mut section) = (Decoder::new(4096), FieldSection::default());
        let mut decode = |block: &[u8]| {
            let decoded = decoder.decode(black_box(block), LIST_BYTES_MAX, &mut section);
            decoded.expect("what is encoded is decoded");
            assert_eq!(read(&section), fields.len());
        };
        decode(&first);
        report(kind, name, what, block.len(), || decode(block));
    }
}

fn encode(kind: &str, name: &str, fields: Fields) {
    let mut encoder = Encoder::new();
    let mut out = Vec::new();
    write(&mut encoder, fields, &mut out);
    let bytes = write(&mut encoder, fields, &mut out);
    report(kind, name, "encoded", bytes, || {
        assert_eq!(write(&mut encoder, black_box(fields), &mut out), bytes);
    });
}

/// Prints the best of several rounds, since other work on the machine only adds time.
fn report(kind: &str, name: &str, what: &str, bytes: usize, mut call: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    println!("{kind:8} {name:8} {what:8} {bytes:4} bytes {best:7.1} ns");
}

#[inline(never)]
fn write(encoder: &mut Encoder, fields: Fields, out: &mut Vec<u8>) -> usize {
    out.clear();
    encoder.begin(out);
    for (name, value) in fields {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        match name {
            b":status" => encoder.status(200, out),
            _ => encoder.field_with_default_indexing(name, value, out),
        }
    }
    out.len()
}

#[inline(never)]
fn read_request(section: &FieldSection) -> usize {
    let mut slots = HeaderSlots::new();
    let (limits, extended) = (&Limits::DEFAULT, ExtendedConnect::Unknown);
    let request = request(section, &mut slots, MoreFrames::Nothing, extended, limits);
    let head = request.expect("it is a request").head;
    black_box(&head).headers.len() + 4
}

#[inline(never)]
fn read_response(section: &FieldSection) -> usize {
    let mut slots = HeaderSlots::new();
    let limits = &Limits::DEFAULT;
    let response = response(section, &mut slots, Method::Get, MoreFrames::More, limits);
    let head = response.expect("it is a response");
    black_box(&head).headers.len() + 1
}
