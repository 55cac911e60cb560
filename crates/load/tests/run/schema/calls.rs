//! JSON of gRPC runs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use onrush_load::merge::merge;

use super::{checked, halves};
use crate::options;

/// HTTP/2 frame (RFC 9113 4.1).
fn frame(kind: u8, flags: u8, stream: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("it is a short one");
    let mut frame = vec![0, 0, length, kind, flags];
    frame.extend(stream);
    frame.extend(payload);
    frame
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Literal field without indexing (RFC 7541 6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        field.push(u8::try_from(text.len()).expect("it is a short one"));
        field.extend(text.as_bytes());
    }
    field
}

/// Responds to the requests of a connection in turn: OK, NOT_FOUND, and an HTTP status outside of gRPC.
fn respond(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface)?;
    stream.write_all(&frame(SETTINGS, 0, [0; 4], &[]))?;
    for turn in 0.. {
        let of = next_request(stream)?;
        let status = |indexed: u8| {
            let mut head = vec![indexed];
            head.extend(literal("content-type", "application/grpc"));
            head
        };
        // 200 and 404 are entries 8 and 13 of the static table (RFC 7541 A).
        let (fine, absent) = (status(0x88), status(0x8d));
        let end = |code: &str| {
            let trailers = literal("grpc-status", code);
            frame(HEADERS, END_STREAM | END_HEADERS, of, &trailers)
        };
        let said = match turn % 3 {
            0 => [
                frame(HEADERS, END_HEADERS, of, &fine),
                frame(DATA, 0, of, &[0; 5]),
                end("0"),
            ]
            .concat(),
            1 => [frame(HEADERS, END_HEADERS, of, &fine), end("5")].concat(),
            _ => frame(HEADERS, END_STREAM | END_HEADERS, of, &absent),
        };
        stream.write_all(&said)?;
    }
    Ok(())
}

fn next_request(stream: &mut TcpStream) -> std::io::Result<[u8; 4]> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, of @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        std::io::copy(&mut stream.take(length.into()), &mut std::io::sink())?;
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return Ok(of);
        }
    }
}

fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("grpc://{}/a.B/C", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || respond(&mut stream));
        }
    });
    url
}

#[test]
fn grpc_conforms_to_schema() {
    // Enough calls for both halves to run at the same time.
    const CALLS: u64 = 20_000;
    let url = &server();
    let parts = halves(|| {
        let mut options = options(url, CALLS);
        options.streams = Some(1);
        options
    });
    for part in &parts {
        let json = checked(&part.report);
        for said in ["OK", "NOT_FOUND", "HTTP 404"] {
            assert!(json["statuses"][said].as_u64() > Some(0), "{said}: {json}");
        }
    }
    let json = checked(&merge(&parts).unwrap());
    assert_eq!(json["requests"], CALLS);
    let said = json["statuses"].as_object().unwrap();
    assert_eq!(said.len(), 3, "{json}");
}
