//! Prints the protocol's cost in nanoseconds per request on an HTTP/2 server: batches of 32 requests, each with a short
//! response. `cargo run --release -p onrush-http --example http2_speed`

use std::hint::black_box;
use std::time::{Duration, Instant};

use onrush_http::http2::hpack::{Encoder, Indexing};
use onrush_http::http2::{Connection, Content, End, Event, LocalSettings, Role, Stream};

const ROUNDS: usize = 7;
const BATCHES: u32 = 20_000;
const STREAMS: usize = 32;
const CONTENT: &[u8] = b"Hello, world\n";

const LOAD: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "127.0.0.1:8080"),
    (":path", "/"),
    ("user-agent", "h2load nghttp2/1.59.0"),
];
const BROWSER: &[(&str, &str)] = &[
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
    ("priority", "u=1, i"),
];

fn main() {
    for (name, request) in [("load", LOAD), ("browser", BROWSER)] {
        let best = (0..ROUNDS).map(|_| run(request)).min();
        let best = best.expect("there are rounds").as_secs_f64();
        let requests = f64::from(BATCHES) * STREAMS as f64;
        println!("{name:8} {:7.1} ns a request", best * 1e9 / requests);
    }
}

/// Time spent by the server on all batches, without the client's.
fn run(request: &[(&str, &str)]) -> Duration {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let local = LocalSettings::DEFAULT;
    let mut client = Connection::new(Role::Client, local, &mut up);
    let mut server = Connection::new(Role::Server, local, &mut down);
    let mut streams = Vec::new();
    let mut time = Duration::ZERO;
    for _ in 0..BATCHES {
        for _ in 0..STREAMS {
            let fields = |encoder: &mut Encoder, out: &mut Vec<u8>| put(request, encoder, out);
            let opened = client.open(End::Stream, Content::Any, &mut up, fields);
            opened.expect("the server takes a hundred streams");
        }
        let start = Instant::now();
        let served = serve(&mut server, black_box(&up), &mut streams, &mut down);
        time += start.elapsed();
        assert_eq!(served, STREAMS);
        up.clear();
        hear(&mut client, &down, &mut up);
        down.clear();
    }
    time
}

#[inline(never)]
fn serve(
    server: &mut Connection,
    input: &[u8],
    streams: &mut Vec<Stream>,
    out: &mut Vec<u8>,
) -> usize {
    let mut at = 0;
    streams.clear();
    loop {
        let step = server.receive(&input[at..], out);
        let step = step.expect("the client makes no mistake");
        at += step.bytes;
        match step.event {
            Event::NeedMore(_) => break,
            Event::Head { stream, fields, .. } => {
                black_box(fields.len());
                streams.push(stream);
            }
            _ => {}
        }
    }
    for &stream in &*streams {
        let sent = server.head(stream, End::Open, out, |encoder, out| {
            encoder.status(200, out);
            encoder.field(b"server", b"onrush", Indexing::Incremental, out);
            let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
            encoder.field(b"date", date, Indexing::Incremental, out);
            encoder.field(b"content-type", b"text/plain", Indexing::Incremental, out);
            encoder.field(b"content-length", b"13", Indexing::Without, out);
        });
        sent.expect("it is open");
        let sent = server.data(stream, CONTENT.len(), End::Stream, out);
        sent.expect("it is open");
        out.extend_from_slice(CONTENT);
    }
    server.sent();
    streams.len()
}

fn hear(client: &mut Connection, input: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    loop {
        let step = client.receive(&input[at..], out);
        let step = step.expect("the server makes no mistake");
        at += step.bytes;
        match step.event {
            Event::NeedMore(_) => break,
            Event::Data { stream, bytes, .. } => client.release(stream, bytes.len() as u32, out),
            _ => {}
        }
    }
    client.sent();
}

fn put(fields: &[(&str, &str)], encoder: &mut Encoder, out: &mut Vec<u8>) {
    for (name, value) in fields {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        encoder.field(name, value, Indexing::of(name, value), out);
    }
}
