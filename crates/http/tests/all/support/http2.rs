//! An HTTP/2 echo server and a client on top of our connections, and properties of arbitrary bytes.

use std::collections::BTreeMap;

use onrush_http::http2::hpack::{Encoder, Indexing};
use onrush_http::http2::{
    CannotOpen, Cause, Connection, Content, End, Event, LocalSettings, Role, Stream, code::Code,
    code::ConnectionError, frame,
};

pub(crate) struct Exchange {
    stream: Stream,
    pub(crate) received: Vec<u8>,
    /// Fields of its head and trailers.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    /// Content to send, from `sent` on.
    content: Vec<u8>,
    sent: usize,
    /// Whether it ended normally.
    pub(crate) is_whole: bool,
    pub(crate) reset: Option<Code>,
}

/// Whether a stream has trailers: every third.
fn has_trailers(id: u32) -> bool {
    id.is_multiple_of(3)
}

/// One end of a connection. The server echoes requests; output goes to `out`.
pub(crate) struct EchoPeer {
    role: Role,
    pub(crate) connection: Connection,
    pub(crate) out: Vec<u8>,
    input: Vec<u8>,
    pub(crate) exchanges: BTreeMap<u32, Exchange>,
    pub(crate) error: Option<ConnectionError>,
}

impl EchoPeer {
    pub(crate) fn new(role: Role, local: LocalSettings) -> Self {
        let mut out = Vec::new();
        EchoPeer {
            role,
            connection: Connection::new(role, local, &mut out),
            out,
            input: Vec::new(),
            exchanges: BTreeMap::new(),
            error: None,
        }
    }

    pub(crate) fn request(&mut self, content: Vec<u8>) -> Result<u32, CannotOpen> {
        let end = match content.is_empty() {
            true => End::Stream,
            false => End::Open,
        };
        let length = content.len().to_string();
        let fields = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            for (name, value) in [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", "example.com"),
                (":path", "/"),
                ("content-length", &*length),
            ] {
                let indexing = Indexing::of(name.as_bytes(), value.as_bytes());
                encoder.field(name.as_bytes(), value.as_bytes(), indexing, out);
            }
        };
        let stream = self
            .connection
            .open(end, Content::Any, &mut self.out, fields)?;
        self.begin(stream, content);
        Ok(stream.id())
    }

    fn begin(&mut self, stream: Stream, content: Vec<u8>) {
        if !content.is_empty() {
            self.connection.ready(stream);
        }
        let exchange = Exchange {
            stream,
            received: Vec::new(),
            fields: Vec::new(),
            content,
            sent: 0,
            is_whole: false,
            reset: None,
        };
        self.exchanges.insert(stream.id(), exchange);
    }

    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        while self.error.is_none() {
            let step = match self.connection.receive(&input[at..], &mut self.out) {
                Ok(step) => step,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            };
            at += step.bytes;
            match step.event {
                Event::NeedMore(_) => break,
                Event::Head {
                    stream,
                    fields,
                    end,
                } => {
                    let said = owned(fields.iter());
                    if self.role == Role::Server {
                        self.begin(stream, Vec::new());
                    }
                    self.take(stream, said, b"", end);
                }
                Event::Data { stream, bytes, end } => {
                    let length = bytes.len() as u32;
                    self.connection.release(stream, length, &mut self.out);
                    self.take(stream, Vec::new(), bytes, end);
                }
                Event::Trailers { stream, fields } => {
                    let said = owned(fields.iter());
                    self.take(stream, said, b"", End::Stream);
                }
                Event::Reset { stream, cause } => {
                    let code = match cause {
                        Cause::Peer(code) => code,
                        Cause::Local(error) => error.code,
                    };
                    if let Some(exchange) = self.exchanges.get_mut(&stream.id()) {
                        exchange.reset = Some(code);
                    }
                }
                Event::DataOfClosed(_)
                | Event::GoAway { .. }
                | Event::Window(_)
                | Event::Settings
                | Event::Pong(_)
                | Event::Nothing => {}
            }
        }
        self.input = input[at..].to_vec();
    }

    fn take(&mut self, stream: Stream, fields: Vec<(String, Vec<u8>)>, bytes: &[u8], end: End) {
        let exchange = self.exchanges.get_mut(&stream.id());
        let exchange = exchange.expect("it has begun");
        exchange.fields.extend(fields);
        exchange.received.extend_from_slice(bytes);
        if end == End::Open {
            return;
        }
        exchange.is_whole = true;
        if self.role == Role::Server {
            self.respond(stream);
        }
    }

    /// Echoes a request: its head now, the rest in turns.
    fn respond(&mut self, stream: Stream) {
        let exchange = self.exchanges.get_mut(&stream.id());
        let exchange = exchange.expect("it has begun");
        exchange.content = exchange.received.clone();
        let end = match exchange.content.is_empty() {
            true => End::Stream,
            false => End::Open,
        };
        let fields = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            encoder.status(200, out);
            encoder.field(b"server", b"onrush", Indexing::Incremental, out);
        };
        let sent = self.connection.head(stream, end, &mut self.out, fields);
        assert!(sent.is_ok() || self.connection.open_streams() == 0 || exchange.reset.is_some());
        self.connection.ready(stream);
    }

    /// Sends data within the windows, in frames of at most `piece` bytes.
    pub(crate) fn pump(&mut self, piece: usize) {
        while let Some(stream) = self.connection.next_ready() {
            let exchange = self.exchanges.get_mut(&stream.id());
            let exchange = exchange.expect("it has begun");
            let rest = &exchange.content[exchange.sent..];
            let bytes = rest.len().min(self.connection.sendable(stream)).min(piece);
            let is_last = bytes == rest.len();
            let end = match is_last && !has_trailers(stream.id()) {
                true => End::Stream,
                false => End::Open,
            };
            let sent = self.connection.data(stream, bytes, end, &mut self.out);
            sent.expect("what is ready is open");
            self.out.extend_from_slice(&rest[..bytes]);
            exchange.sent += bytes;
            if is_last && end == End::Open {
                let fields = |encoder: &mut Encoder, out: &mut Vec<u8>| {
                    encoder.field(b"checksum", b"0", Indexing::Without, out);
                };
                let sent = self.connection.trailers(stream, &mut self.out, fields);
                sent.expect("what is ready is open");
            }
        }
    }

    /// Takes the output since the last call; it counts as sent.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        self.connection.sent();
        std::mem::take(&mut self.out)
    }

    pub(crate) fn reset(&mut self, id: u32) {
        if let Some(exchange) = self.exchanges.get_mut(&id)
            && self.connection.is_open(exchange.stream)
        {
            exchange.reset = Some(Code::CANCEL);
            self.connection
                .reset(exchange.stream, Code::CANCEL, &mut self.out);
        }
    }
}

fn owned<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<(String, Vec<u8>)> {
    fields
        .map(|(name, value)| (name.to_owned(), value.to_vec()))
        .collect()
}

/// Result of receiving bytes after preface and SETTINGS: formatted events, output and error.
#[derive(Debug, PartialEq, Eq)]
struct ReceiveResult {
    events: Vec<String>,
    out: Vec<u8>,
    error: Option<ConnectionError>,
    consumed: usize,
}

/// Checks that the result does not depend on how the input is split, and that replies are bounded and complete frames.
pub(crate) fn check(input: &[u8]) {
    for role in [Role::Server, Role::Client] {
        let whole = heard(role, input, input.len().max(1));
        for piece in [1, 7] {
            assert_eq!(heard(role, input, piece), whole, "in pieces of {piece}");
        }
        let mut out = match role {
            Role::Client => &whole.out[frame::PREFACE.len()..],
            Role::Server => &whole.out[..],
        };
        while let Some(head) = frame::Head::read(out) {
            out = &out[frame::HEAD_BYTES + head.length as usize..];
        }
        assert!(out.is_empty(), "only whole frames are written");
        assert!(
            whole.out.len() <= 64 * 1024 + 8 * input.len(),
            "answers have a bound"
        );
    }
}

fn heard(role: Role, input: &[u8], piece: usize) -> ReceiveResult {
    let mut out = Vec::new();
    let local = LocalSettings {
        concurrent_streams_max: 4,
        list_bytes_max: 400,
        ..LocalSettings::DEFAULT
    };
    let mut connection = Connection::new(role, local, &mut out);
    let mut bytes = match role {
        Role::Server => frame::PREFACE.to_vec(),
        Role::Client => Vec::new(),
    };
    bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(input);
    if role == Role::Client {
        for content in [Content::Any, Content::None] {
            let fields = |encoder: &mut Encoder, out: &mut Vec<u8>| {
                encoder.field(b":method", b"GET", Indexing::Without, out);
            };
            let opened = connection.open(End::Open, content, &mut out, fields);
            assert!(opened.is_ok());
        }
    }
    let mut heard = ReceiveResult {
        events: Vec::new(),
        out,
        error: None,
        consumed: 0,
    };
    let mut there = 0;
    while there < bytes.len() && heard.error.is_none() {
        there = bytes.len().min(there + piece);
        hear(&mut connection, &bytes[..there], &mut heard);
    }
    assert!(connection.open_streams() <= 4);
    if heard.error.is_some() {
        // How much of an invalid frame is consumed depends on the pieces.
        heard.consumed = 0;
    }
    heard
}

fn hear(connection: &mut Connection, bytes: &[u8], heard: &mut ReceiveResult) {
    loop {
        let input = &bytes[heard.consumed..];
        let step = match connection.receive(input, &mut heard.out) {
            Ok(step) => step,
            Err(error) => {
                heard.error = Some(error);
                return;
            }
        };
        heard.consumed += step.bytes;
        let text = match step.event {
            Event::NeedMore(needed) => {
                assert!(needed > input.len() && needed <= 4096);
                assert_eq!(step.bytes, 0);
                return;
            }
            Event::Nothing => {
                assert!(step.bytes > 0);
                continue;
            }
            Event::Head {
                stream,
                fields,
                end,
            } => {
                let fields = owned(fields.iter());
                // Some requests get a response at once.
                if stream.id() % 4 == 1 {
                    let status = |encoder: &mut Encoder, out: &mut Vec<u8>| {
                        encoder.status(200, out);
                    };
                    let _ = connection.head(stream, End::Stream, &mut heard.out, status);
                }
                format!("head {} {fields:?} {end:?}", stream.id())
            }
            Event::Data { stream, bytes, end } => {
                let id = stream.id();
                let start = format!("data {id} Open ");
                let bytes = bytes.escape_ascii();
                match heard.events.last_mut().filter(|it| it.starts_with(&start)) {
                    Some(last) => {
                        last.push_str(&bytes.to_string());
                        *last = last.replacen("Open", &format!("{end:?}"), 1);
                        continue;
                    }
                    None => format!("data {id} {end:?} {bytes}"),
                }
            }
            Event::Trailers { stream, fields } => {
                format!("trailers {} {:?}", stream.id(), owned(fields.iter()))
            }
            Event::Reset { stream, cause } => format!("reset {} {cause:?}", stream.id()),
            Event::DataOfClosed(id) => format!("data of closed {id}"),
            Event::GoAway { last, code } => format!("goaway {last} {code}"),
            Event::Window(stream) => format!("window {:?}", stream.map(Stream::id)),
            Event::Settings => "settings".into(),
            Event::Pong(payload) => format!("pong {payload:?}"),
        };
        heard.events.push(text);
    }
}
