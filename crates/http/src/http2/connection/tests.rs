//! Rules of RFC 9113, each with frames that violate it; cases from h2spec 2.2.1 carry its numbers.

mod body;
mod client;
mod floods;
mod rules;
mod sending;

use super::Connection;
use super::event::{Cause, Event};
use crate::http2::code::{Code, ConnectionError};
use crate::http2::frame::{HEAD_BYTES, Head, Kind, PREFACE};
use crate::http2::hpack::Encoder;
use crate::http2::settings::{LocalSettings, Role};
use crate::http2::stream::{End, Stream};

const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// `GET http://a/` as HPACK.
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];
/// `POST http://a/`.
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x41, 0x01, b'a'];

/// A frame as the sender writes it, valid or not.
fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind.number(), flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn get(stream: u32) -> Vec<u8> {
    frame(Kind::Headers, END_STREAM | END_HEADERS, stream, GET)
}

fn post(stream: u32) -> Vec<u8> {
    frame(Kind::Headers, END_HEADERS, stream, POST)
}

fn post_of_length(stream: u32, length: &str) -> Vec<u8> {
    let mut block = POST.to_vec();
    // content-length has index 28 in the static table; its value follows.
    block.extend([0x0f, 28 - 15, length.len() as u8]);
    block.extend(length.as_bytes());
    frame(Kind::Headers, END_HEADERS, stream, &block)
}

fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(Kind::Data, flags, stream, bytes)
}

fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(Kind::WindowUpdate, 0, stream, &increment.to_be_bytes())
}

fn reset(stream: u32) -> Vec<u8> {
    frame(Kind::Reset, 0, stream, &8u32.to_be_bytes())
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(Kind::Settings, 0, 0, &payload)
}

fn settings() -> Vec<u8> {
    frame(Kind::Settings, 0, 0, b"")
}

/// Event, reduced to what the tests compare.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TestEvent {
    Head(u32, End),
    Data(u32, Vec<u8>, End),
    Trailers(u32),
    Reset(u32, Code),
    Failed(u32, Code),
    DataOfClosed(u32),
    GoAway(u32, Code),
    Window(Option<u32>),
    Settings,
    Pong([u8; 8]),
}

/// One end of a connection; the test is its peer.
struct TestConnection {
    connection: Connection,
    out: Vec<u8>,
    input: Vec<u8>,
    seen: Vec<TestEvent>,
    streams: Vec<Stream>,
    error: Option<ConnectionError>,
    /// Maximum of `NeedMore`.
    needed_max: usize,
}

impl TestConnection {
    fn new(role: Role, local: LocalSettings) -> Self {
        let mut out = Vec::new();
        TestConnection {
            connection: Connection::new(role, local, &mut out),
            out,
            input: Vec::new(),
            seen: Vec::new(),
            streams: Vec::new(),
            error: None,
            needed_max: 0,
        }
    }

    /// Server that has received the preface and SETTINGS.
    fn server() -> Self {
        let mut side = TestConnection::new(Role::Server, LocalSettings::DEFAULT);
        side.receive_bytes(PREFACE);
        side.receive_bytes(&settings());
        side.receive_bytes(&frame(Kind::Settings, ACK, 0, b""));
        side.forget();
        side
    }

    /// Client that has received SETTINGS.
    fn client() -> Self {
        let mut side = TestConnection::new(Role::Client, LocalSettings::DEFAULT);
        side.receive_bytes(&settings());
        side.forget();
        side
    }

    fn forget(&mut self) {
        self.out.clear();
        self.seen.clear();
        self.connection.sent();
    }

    /// Receives these bytes after those not consumed yet. Data is released at once.
    fn receive_bytes(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let mut at = 0;
        while self.error.is_none() {
            let input = &self.input[at..];
            let step = match self.connection.receive(input, &mut self.out) {
                Ok(step) => step,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            };
            at += step.bytes;
            let seen = match step.event {
                Event::NeedMore(bytes) => {
                    assert!(bytes > input.len(), "it asks for what is there");
                    self.needed_max = self.needed_max.max(bytes);
                    break;
                }
                Event::Nothing => continue,
                Event::Head { stream, end, .. } => {
                    self.streams.push(stream);
                    TestEvent::Head(stream.id(), end)
                }
                Event::Data { stream, bytes, end } => {
                    let length = bytes.len() as u32;
                    self.connection.release(stream, length, &mut self.out);
                    TestEvent::Data(stream.id(), bytes.to_vec(), end)
                }
                Event::Trailers { stream, .. } => TestEvent::Trailers(stream.id()),
                Event::Reset { stream, cause } => match cause {
                    Cause::Peer(code) => TestEvent::Reset(stream.id(), code),
                    Cause::Local(error) => TestEvent::Failed(stream.id(), error.code),
                },
                Event::DataOfClosed(id) => TestEvent::DataOfClosed(id),
                Event::GoAway { last, code } => TestEvent::GoAway(last, code),
                Event::Window(stream) => TestEvent::Window(stream.map(Stream::id)),
                Event::Settings => TestEvent::Settings,
                Event::Pong(payload) => TestEvent::Pong(payload),
            };
            self.see(seen);
        }
        self.input.drain(..at);
    }

    /// Joins pieces of data, so that the result does not depend on how they were split.
    fn see(&mut self, seen: TestEvent) {
        if let (Some(TestEvent::Data(id, bytes, end @ End::Open)), TestEvent::Data(next, more, now)) =
            (self.seen.last_mut(), &seen)
            && id == next
        {
            bytes.extend_from_slice(more);
            *end = *now;
            return;
        }
        self.seen.push(seen);
    }

    fn stream(&self, id: u32) -> Stream {
        let found = self.streams.iter().rev().find(|stream| stream.id() == id);
        *found.expect("its head has come")
    }

    fn respond(&mut self, id: u32) {
        let stream = self.stream(id);
        let fields = |encoder: &mut Encoder, out: &mut Vec<u8>| encoder.status(204, out);
        let sent = self
            .connection
            .head(stream, End::Stream, &mut self.out, fields);
        assert_eq!(sent, Ok(()));
    }

    fn frames(&mut self) -> Vec<(Head, Vec<u8>)> {
        let out = std::mem::take(&mut self.out);
        frames_of(&out)
    }

    /// Streams that were reset, with codes.
    fn resets(&mut self) -> Vec<(u32, Code)> {
        let frames = self.frames().into_iter();
        let resets = frames.filter(|(head, _)| head.kind == Kind::Reset);
        resets
            .map(|(head, payload)| (head.stream, code_of(&payload)))
            .collect()
    }
}

fn frames_of(mut out: &[u8]) -> Vec<(Head, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(head) = Head::read(out) {
        let end = HEAD_BYTES + head.length as usize;
        frames.push((head, out[HEAD_BYTES..end].to_vec()));
        out = &out[end..];
    }
    assert!(out.is_empty(), "frames are written whole");
    frames
}

fn code_of(payload: &[u8]) -> Code {
    Code(u32::from_be_bytes(payload[..4].try_into().expect("four")))
}
