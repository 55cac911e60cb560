//! An application behind a proxy: responds with its name and the received request, and speaks WebSocket.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use crate::program::{Client, ShutdownWrite, TIMEOUT};

/// Runs until the tests end.
pub(crate) struct Application {
    pub(crate) address: String,
}

impl Application {
    /// Responds to every request with its name and the request head, and with the fields that the request lists in
    /// `X-Answer`, separated by bars. It closes the connection instead if its name is in `X-Close`. WebSocket clients
    /// get their own messages back.
    pub(crate) fn start(name: &'static str) -> Application {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Ignore errors: the peer decides why a connection ends.
                thread::spawn(move || serve_connection(stream, name));
            }
        });
        Application { address }
    }
}

/// An application that holds requests back: it responds only to `/now`.
pub(crate) struct HoldingServer {
    pub(crate) address: String,
    held: Receiver<TcpStream>,
}

impl HoldingServer {
    /// Runs until the tests end.
    pub(crate) fn start() -> HoldingServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let (hold, held) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hold = hold.clone();
                // Ignore errors, as above.
                thread::spawn(move || respond_now(stream, &hold));
            }
        });
        HoldingServer { address, held }
    }

    /// Connection of the next request that waits for its response.
    pub(crate) fn next(&self) -> TcpStream {
        let held = self.held.recv_timeout(TIMEOUT);
        held.expect("a request without a response")
    }
}

fn respond_now(mut stream: TcpStream, hold: &Sender<TcpStream>) -> io::Result<()> {
    let mut received = Vec::new();
    while let Some(head) = receive_head(&mut stream, &mut received)? {
        if !head.starts_with("GET /now ") {
            // Ignore the error: the test may have ended.
            let _ = hold.send(stream);
            return Ok(());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnow")?;
    }
    Ok(())
}

fn serve_connection(mut stream: TcpStream, name: &str) -> io::Result<()> {
    let mut received = Vec::new();
    while let Some(head) = receive_head(&mut stream, &mut received)? {
        if has_field(&head, "upgrade", "websocket") {
            return echo_frames(stream, &head, received);
        }
        if has_field(&head, "x-close", name) {
            return Ok(());
        }
        let length = name.len() + 1 + head.len();
        let asked = head.lines().filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("x-answer").then_some(value)
        });
        let fields = asked.flat_map(|list| list.split('|'));
        let fields: String = fields
            .map(|field| format!("{}\r\n", field.trim()))
            .collect();
        let response =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{name}\n{head}");
        stream.write_all(response.as_bytes())?;
    }
    Ok(())
}

/// Next head in the received bytes; `None` at the end.
fn receive_head(stream: &mut impl Read, received: &mut Vec<u8>) -> io::Result<Option<String>> {
    const END: &[u8] = b"\r\n\r\n";
    loop {
        let end = received.windows(END.len()).position(|window| window == END);
        if let Some(at) = end {
            let head: Vec<u8> = received.drain(..at + END.len()).collect();
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            count => received.extend_from_slice(&piece[..count]),
        }
    }
}

/// Whether a head has this field, in any case: some proxies write all names in lower case.
fn has_field(head: &str, name: &str, value: &str) -> bool {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .any(|(its_name, its_value)| {
            its_name.eq_ignore_ascii_case(name) && its_value.eq_ignore_ascii_case(value)
        })
}

// The handshake and frames of RFC 6455, sections 1.3 and 5.7.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const HELLO_MASKED: &[u8] = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
const HELLO: &[u8] = b"\x81\x05Hello";
const CLOSE_MASKED: &[u8] = b"\x88\x82\x37\xfa\x21\x3d\x34\x12";
const CLOSE: &[u8] = b"\x88\x02\x03\xe8";
const OPCODE_CLOSE: u8 = 0x8;

/// Echoes every frame, unmasked, up to and including the close frame.
fn echo_frames(mut stream: TcpStream, head: &str, received: Vec<u8>) -> io::Result<()> {
    assert!(has_field(head, "sec-websocket-key", KEY), "{head}");
    let grant = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    );
    stream.write_all(grant.as_bytes())?;
    let mut sender = stream.try_clone()?;
    let mut frames = received.as_slice().chain(stream);
    loop {
        let mut head = [0; 6];
        frames.read_exact(&mut head)?;
        let [kind, length, mask @ ..] = head;
        assert!((0x80..=0xfd).contains(&length), "a short frame with a mask");
        let length = length & 0x7f;
        let mut payload = vec![0; length.into()];
        frames.read_exact(&mut payload)?;
        for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
        sender.write_all(&[&[kind, length], payload.as_slice()].concat())?;
        if kind & 0xf == OPCODE_CLOSE {
            return Ok(());
        }
    }
}

/// A WebSocket exchange at `path`, from the handshake to the close.
pub(crate) fn exchange_over_websocket<S: Read + Write + ShutdownWrite>(
    client: &mut Client<S>,
    path: &str,
) {
    open_websocket(client, path);
    echo_frame(client);
    echo_frame(client);
    echoed(client, CLOSE_MASKED, CLOSE);
    client.0.end();
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).expect("an orderly end");
    assert_eq!(rest, b"");
}

/// Performs the WebSocket handshake at `path`.
pub(crate) fn open_websocket<S: Read + Write>(client: &mut Client<S>, path: &str) {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    let stream = &mut client.0;
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut received = Vec::new();
    let head = receive_head(stream, &mut received).expect("it comes");
    let head = head.expect("a response");
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    for (name, value) in [
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("sec-websocket-accept", ACCEPT),
    ] {
        assert!(has_field(&head, name, value), "{name}: {value} in {head}");
    }
}

pub(crate) fn echo_frame<S: Read + Write>(client: &mut Client<S>) {
    echoed(client, HELLO_MASKED, HELLO);
}

fn echoed<S: Read + Write>(client: &mut Client<S>, frame: &[u8], expected: &[u8]) {
    client.0.write_all(frame).expect("it is taken");
    let mut echo = vec![0; expected.len()];
    client.0.read_exact(&mut echo).expect("it comes");
    assert_eq!(echo, expected);
}
