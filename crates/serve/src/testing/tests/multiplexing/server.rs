//! An HTTP/2 server controlled by a callback of the test.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use onrush_engine::{Input, Stream};
use onrush_http::http2::code::Code;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Encoder, Sensitivity};
use onrush_http::http2::{self, Connection, End, Event, LocalSettings, Role};

use crate::testing::harness::{PATIENCE, TestCore, send_bytes};
use crate::testing::tests::http2::indexing_of;

/// A request as received by the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) fields: BTreeMap<String, String>,
    pub(super) sensitivity: Sensitivity,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<(String, String)>,
    /// Number of its connection, from 0.
    pub(super) connection: usize,
}

impl Asked {
    pub(super) fn path(&self) -> &str {
        &self.fields[":path"]
    }
}

/// The server's reaction to a request.
pub(super) enum Reaction {
    Respond(Response),
    /// A response, and GOAWAY.
    RespondLast(Response),
    /// A response, after responses to all streams that were reset: the server had sent them before it received the
    /// resets.
    RespondAfterReset(Response),
    /// A response whose stream is reset after the data.
    Cut(Response, Code),
    Reset(Code),
    /// GOAWAY, and the request is not processed.
    GoAway,
    /// The connection is closed.
    Close,
    /// Nothing.
    Hold,
}

#[derive(Clone, Default)]
pub(super) struct Response {
    pub(super) interim: Vec<u16>,
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<(String, String)>,
}

impl Response {
    pub(super) fn ok(body: &str) -> Response {
        Response {
            status: 200,
            body: body.into(),
            ..Response::default()
        }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Response {
        self.fields.push((name.into(), value.into()));
        self
    }

    pub(super) fn trailer(mut self, name: &str, value: &str) -> Response {
        self.trailers.push((name.into(), value.into()));
        self
    }
}

type Decide = Rc<dyn Fn(&Asked) -> Reaction>;

/// Observations of the server.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) connections: Cell<usize>,
    /// Number of closed connections.
    pub(super) ended: Cell<usize>,
    /// Maximum number of concurrent streams on a connection.
    pub(super) streams_most: Cell<usize>,
    pub(super) asked: RefCell<Vec<Asked>>,
    /// Codes of streams reset by the peer.
    pub(super) resets: RefCell<Vec<Code>>,
}

/// Starts a server that allows this many concurrent streams.
pub(super) fn serve(
    site: &TestCore,
    streams_max: u32,
    decide: impl Fn(&Asked) -> Reaction + 'static,
) -> (SocketAddr, Rc<Seen>) {
    let (listener, address) = site.listen();
    let (seen, decide): (Rc<Seen>, Decide) = (Rc::default(), Rc::new(decide));
    let (core, known) = (site.core.clone(), Rc::clone(&seen));
    site.core.spawn(async move {
        while let Ok(stream) = listener.accept().await {
            stream.set_deadline(Some(core.now_exact() + PATIENCE));
            let mut one = One::new(stream, streams_max, &known, &decide);
            core.spawn(async move {
                while one.step().await.is_some() {}
                one.seen.ended.set(one.seen.ended.get() + 1);
            });
        }
    });
    (address, seen)
}

struct One {
    stream: Stream,
    http: Connection,
    out: Vec<u8>,
    received: Vec<u8>,
    asked: BTreeMap<u32, Asked>,
    /// Response bodies still to be sent.
    sending: Vec<(http2::Stream, Reaction, Vec<u8>)>,
    reset: Vec<u32>,
    number: usize,
    seen: Rc<Seen>,
    decide: Decide,
}

impl One {
    fn new(stream: Stream, streams_max: u32, seen: &Rc<Seen>, decide: &Decide) -> One {
        let settings = LocalSettings {
            concurrent_streams_max: streams_max,
            ..LocalSettings::DEFAULT
        };
        let number = seen.connections.get();
        seen.connections.set(number + 1);
        let mut out = Vec::new();
        One {
            stream,
            http: Connection::new(Role::Server, settings, &mut out),
            out,
            received: Vec::new(),
            asked: BTreeMap::new(),
            sending: Vec::new(),
            reset: Vec::new(),
            number,
            seen: Rc::clone(seen),
            decide: Rc::clone(decide),
        }
    }

    /// Sends all output and receives some input; `None` at the end.
    async fn step(&mut self) -> Option<()> {
        self.send_bodies();
        let out = std::mem::take(&mut self.out);
        if !out.is_empty() {
            send_bytes(&self.stream, &out).await.ok()?;
            self.http.sent();
        }
        let mut input = Input::default();
        if self.stream.recv(&mut input).await.ok()? == 0 {
            return None;
        }
        self.received.extend_from_slice(input.bytes());
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        while at < received.len() {
            let bytes = self.take(&received[at..])?;
            if bytes == 0 {
                break;
            }
            at += bytes;
        }
        self.received = received[at..].to_vec();
        Some(())
    }

    /// Handles one event of the input; `None` if the connection must end.
    fn take(&mut self, received: &[u8]) -> Option<usize> {
        let step = self.http.receive(received, &mut self.out);
        let step = step.expect("it is HTTP/2");
        let bytes = step.bytes;
        let mut whole = None;
        match step.event {
            Event::Head {
                stream,
                fields,
                end,
            } => {
                let asked = Asked {
                    fields: pairs(fields).into_iter().collect(),
                    sensitivity: fields.sensitivity(),
                    connection: self.number,
                    ..Asked::default()
                };
                let is_early = asked.path().starts_with("/early");
                self.asked.insert(stream.id(), asked);
                let most = self.seen.streams_most.get();
                self.seen.streams_most.set(most.max(self.asked.len()));
                whole = (end == End::Stream || is_early).then_some(stream);
            }
            Event::Data {
                stream,
                bytes: data,
                end,
            } => {
                if let Some(asked) = self.asked.get_mut(&stream.id()) {
                    asked.body.extend_from_slice(data);
                }
                whole = (end == End::Stream).then_some(stream);
                let count = data.len() as u32;
                self.http.release(stream, count, &mut self.out);
            }
            Event::Trailers { stream, fields } => {
                let trailers = pairs(fields);
                if let Some(asked) = self.asked.get_mut(&stream.id()) {
                    asked.trailers = trailers;
                }
                whole = Some(stream);
            }
            Event::Reset { stream, cause } => {
                self.asked.remove(&stream.id());
                self.sending.retain(|(other, ..)| *other != stream);
                if let http2::Cause::Peer(code) = cause {
                    self.reset.push(stream.id());
                    self.seen.resets.borrow_mut().push(code);
                }
            }
            Event::NeedMore(_) => return Some(0),
            Event::DataOfClosed(_)
            | Event::GoAway { .. }
            | Event::Window(_)
            | Event::Settings
            | Event::Pong(_)
            | Event::Nothing => {}
        }
        if let Some(stream) = whole {
            self.done(stream)?;
        }
        Some(bytes)
    }

    /// Handles a complete request.
    fn done(&mut self, stream: http2::Stream) -> Option<()> {
        let Some(asked) = self.asked.remove(&stream.id()) else {
            return Some(());
        };
        let done = (self.decide)(&asked);
        if matches!(done, Reaction::Hold) {
            self.asked.insert(stream.id(), asked.clone());
        }
        self.seen.asked.borrow_mut().push(asked);
        match done {
            Reaction::Respond(response) => self.respond(stream, response, None),
            Reaction::RespondAfterReset(response) => {
                self.respond_late();
                self.respond(stream, response, None);
            }
            Reaction::RespondLast(response) => {
                self.respond(stream, response, None);
                self.go_away(stream.id());
            }
            Reaction::Cut(response, code) => self.respond(stream, response, Some(code)),
            Reaction::Reset(code) => self.http.reset(stream, code, &mut self.out),
            Reaction::GoAway => {
                // Like a server that has not processed it: the frame names the previous stream.
                self.go_away(stream.id().saturating_sub(2));
            }
            Reaction::Close => return None,
            Reaction::Hold => {}
        }
        Some(())
    }

    /// Sends GOAWAY with this last stream.
    fn go_away(&mut self, last: u32) {
        self.out.extend([0, 0, 8, 7, 0, 0, 0, 0, 0]);
        self.out.extend(last.to_be_bytes());
        self.out.extend([0, 0, 0, 0]);
    }

    /// Writes responses to reset streams: a head with status 200, and a body.
    fn respond_late(&mut self) {
        for id in std::mem::take(&mut self.reset) {
            for (kind, flags, payload) in [(1, 4, &b"\x88"[..]), (0, 1, b"hello")] {
                self.out.extend([0, 0, payload.len() as u8, kind, flags]);
                self.out.extend(id.to_be_bytes());
                self.out.extend(payload);
            }
        }
    }

    fn respond(&mut self, stream: http2::Stream, response: Response, cut: Option<Code>) {
        for status in &response.interim {
            self.head(stream, End::Open, *status, &[("link", "</a>")]);
        }
        let fields: Vec<_> = response
            .fields
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let is_all = response.body.is_empty() && response.trailers.is_empty();
        let end = match is_all && cut.is_none() {
            true => End::Stream,
            false => End::Open,
        };
        self.head(stream, end, response.status, &fields);
        if end == End::Open {
            let body = response.body.clone();
            let done = match cut {
                Some(code) => Reaction::Cut(response, code),
                None => Reaction::Respond(response),
            };
            self.sending.push((stream, done, body));
        }
    }

    fn head(&mut self, stream: http2::Stream, end: End, status: u16, fields: &[(&str, &str)]) {
        let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            encoder.status(status, out);
            put(fields.iter().copied(), encoder, out);
        };
        // Ignore the error: the peer may have reset the stream.
        let _ = self.http.head(stream, end, &mut self.out, write);
    }

    /// Writes bodies as far as the windows allow.
    fn send_bodies(&mut self) {
        let sending = std::mem::take(&mut self.sending);
        for (stream, done, mut body) in sending {
            while !body.is_empty() && self.http.sendable(stream) > 0 {
                let count = self.http.sendable(stream).min(body.len());
                let written = self.http.data(stream, count, End::Open, &mut self.out);
                written.expect("it is open");
                self.out.extend(body.drain(..count));
            }
            if !body.is_empty() && self.http.is_open(stream) {
                self.sending.push((stream, done, body));
                continue;
            }
            match done {
                Reaction::Cut(_, code) => self.http.reset(stream, code, &mut self.out),
                Reaction::Respond(response) if response.trailers.is_empty() => {
                    let _ = self.http.data(stream, 0, End::Stream, &mut self.out);
                    // The response is complete, so the rest of the request is not needed (RFC 9113 8.1).
                    self.http.reset(stream, Code::NO_ERROR, &mut self.out);
                }
                Reaction::Respond(response) => {
                    let trailers = response.trailers.iter();
                    let trailers = trailers.map(|(name, value)| (&**name, &**value));
                    let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
                        put(trailers, encoder, out);
                    };
                    let _ = self.http.trailers(stream, &mut self.out, write);
                }
                Reaction::RespondAfterReset(_)
                | Reaction::RespondLast(_)
                | Reaction::Reset(_)
                | Reaction::GoAway
                | Reaction::Close
                | Reaction::Hold => {}
            }
        }
    }
}

fn put<'a>(
    fields: impl Iterator<Item = (&'a str, &'a str)>,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) {
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), indexing_of(name), out);
    }
}

fn pairs(fields: &FieldSection) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
    let fields = fields.iter();
    fields
        .map(|(name, value)| (name.to_owned(), text(value)))
        .collect()
}
