//! An HTTP/2 server with streams controlled by the test: received data is kept, and queued data is sent as windows
//! open.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use onrush_engine::{Input, Part, Stream};
use onrush_http::http2::code::Code;
use onrush_http::http2::frame;
use onrush_http::http2::hpack::{Encoder, Indexing};
use onrush_http::http2::message::ExtendedConnect;
use onrush_http::http2::{self, Cause, Connection, End, Event, LocalSettings, Role};

use crate::testing::harness::{PATIENCE, TestCore};

pub(super) const ANNOUNCED: LocalSettings = LocalSettings {
    extended_connect: ExtendedConnect::Allowed,
    ..LocalSettings::DEFAULT
};

/// Server state of a stream.
#[derive(Default)]
pub(super) struct Seen {
    stream: Option<http2::Stream>,
    pub(super) fields: BTreeMap<String, String>,
    pub(super) received: Vec<u8>,
    pub(super) has_ended: bool,
    pub(super) reset: Option<Cause>,
    /// Not read: received data stays in its window.
    is_unread: bool,
    unsent: Vec<u8>,
    ends: bool,
}

/// Accepted connections.
#[derive(Default)]
pub(super) struct Server {
    pub(super) connections: RefCell<Vec<Rc<ServerConnection>>>,
}

/// The server's end of a connection.
pub(super) struct ServerConnection {
    state: RefCell<State>,
    task: RefCell<Option<Waker>>,
    /// Holds back all output.
    is_silent: Cell<bool>,
    /// Set by `close`: the connection is closed once pending output has been sent.
    is_closing: Cell<bool>,
}

struct State {
    http: Connection,
    out: Vec<u8>,
    received: Vec<u8>,
    streams: BTreeMap<u32, Seen>,
    /// The next stream that the test has not looked at.
    next: u32,
}

/// Whether the server sends its settings at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    AtOnce,
    /// On [`Far::speak`].
    Later,
}

impl Server {
    pub(super) fn start(
        site: &TestCore,
        settings: LocalSettings,
        speaks: Speaks,
    ) -> (Rc<Server>, SocketAddr) {
        let (listener, address) = site.listen();
        let server: Rc<Server> = Rc::default();
        let (core, known) = (site.core.clone(), Rc::clone(&server));
        site.core.spawn(async move {
            while let Ok(stream) = listener.accept().await {
                let mut out = Vec::new();
                let far = Rc::new(ServerConnection {
                    state: RefCell::new(State {
                        http: Connection::new(Role::Server, settings, &mut out),
                        out,
                        received: Vec::new(),
                        streams: BTreeMap::new(),
                        next: 1,
                    }),
                    task: RefCell::default(),
                    is_silent: Cell::new(speaks == Speaks::Later),
                    is_closing: Cell::default(),
                });
                known.connections.borrow_mut().push(Rc::clone(&far));
                core.spawn(async move { far.run(stream).await });
            }
        });
        (server, address)
    }

    /// The connection with this number, from 0.
    pub(super) fn far(&self, number: usize) -> Option<Rc<ServerConnection>> {
        self.connections.borrow().get(number).cloned()
    }

    pub(super) async fn asked(&self, site: &TestCore, number: usize) -> ServerRequest {
        let has_come = || self.far(number).is_some_and(|far| far.has_next());
        site.until("a request", has_come).await;
        let far = self.far(number).expect("just seen");
        let id = far.take_next();
        ServerRequest { far, id }
    }
}

/// A received request.
#[derive(Clone)]
pub(super) struct ServerRequest {
    pub(super) far: Rc<ServerConnection>,
    pub(super) id: u32,
}

impl ServerRequest {
    pub(super) fn field(&self, name: &str) -> String {
        self.of(|seen| seen.fields.get(name).cloned().unwrap_or_default())
    }

    pub(super) fn of<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(
            self.far
                .state
                .borrow_mut()
                .streams
                .get_mut(&self.id)
                .expect("it has come"),
        )
    }

    pub(super) fn respond(&self, status: u16, fields: &[(&str, &str)], end: End) {
        let state = &mut *self.far.state.borrow_mut();
        let stream = state.streams[&self.id].stream.expect("it has come");
        let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            encoder.status(status, out);
            for (name, value) in fields {
                encoder.field(name.as_bytes(), value.as_bytes(), Indexing::Without, out);
            }
        };
        let written = state.http.head(stream, end, &mut state.out, write);
        written.expect("it is open");
        self.far.wake();
    }

    pub(super) fn say(&self, bytes: &[u8]) {
        self.of(|seen| seen.unsent.extend_from_slice(bytes));
        self.far.wake();
    }

    /// Ends the stream after the queued bytes.
    pub(super) fn end(&self) {
        self.of(|seen| seen.ends = true);
        self.far.wake();
    }

    pub(super) fn reset(&self, code: Code) {
        let state = &mut *self.far.state.borrow_mut();
        let stream = state.streams[&self.id].stream.expect("it has come");
        state.http.reset(stream, code, &mut state.out);
        self.far.wake();
    }

    /// Bytes that the peer's windows have not taken yet.
    pub(super) fn unsaid(&self) -> usize {
        self.of(|seen| seen.unsent.len())
    }

    /// Stops reading the stream.
    pub(super) fn be_deaf(&self) {
        self.of(|seen| seen.is_unread = true);
    }

    /// Exactly `count` received bytes.
    pub(super) async fn hear(&self, site: &TestCore, count: usize) -> Vec<u8> {
        let is_there = || self.of(|seen| seen.received.len() >= count);
        site.until("bytes of the client", is_there).await;
        self.of(|seen| {
            let rest = seen.received.split_off(count);
            std::mem::replace(&mut seen.received, rest)
        })
    }

    /// All bytes until the client's end, and the code if it resets the stream.
    pub(super) async fn hear_all(&self, site: &TestCore) -> (Vec<u8>, Option<Code>) {
        let is_over = || self.of(|seen| seen.has_ended || seen.reset.is_some());
        site.until("the client's end", is_over).await;
        self.of(|seen| {
            let code = seen.reset.map(|cause| match cause {
                Cause::Peer(code) => code,
                cause @ Cause::Local(_) => panic!("{cause:?}"),
            });
            (std::mem::take(&mut seen.received), code)
        })
    }
}

impl ServerConnection {
    pub(super) fn requests(&self) -> usize {
        self.state.borrow().streams.len()
    }

    fn has_next(&self) -> bool {
        let state = self.state.borrow();
        state.streams.contains_key(&state.next)
    }

    fn take_next(&self) -> u32 {
        let state = &mut *self.state.borrow_mut();
        state.next += 2;
        state.next - 2
    }

    /// Sends the held-back output.
    pub(super) fn speak(&self) {
        self.is_silent.set(false);
        self.wake();
    }

    /// Sends GOAWAY; existing streams continue.
    pub(super) fn go_away(&self) {
        let state = &mut *self.state.borrow_mut();
        frame::go_away(state.next - 2, Code::NO_ERROR, "", &mut state.out);
        self.wake();
    }

    pub(super) fn close(&self) {
        self.is_closing.set(true);
        self.wake();
    }

    fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    async fn run(&self, stream: Stream) {
        stream.set_deadline(Some(stream.core().now_exact() + 20 * PATIENCE));
        let mut input = Input::default();
        let mut is_flushing = false;
        poll_fn(|context| self.poll(&stream, (&mut input, &mut is_flushing), context)).await;
    }

    fn poll(
        &self,
        stream: &Stream,
        (input, is_flushing): (&mut Input, &mut bool),
        context: &mut Context<'_>,
    ) -> Poll<()> {
        self.task.replace(Some(context.waker().clone()));
        loop {
            let state = &mut *self.state.borrow_mut();
            if !*is_flushing && !self.is_silent.get() {
                state.write();
                if !state.out.is_empty() {
                    stream.queue(Part::Shared(Rc::from(std::mem::take(&mut state.out)), 0));
                    *is_flushing = true;
                }
            }
            if *is_flushing {
                match stream.poll_flush() {
                    Poll::Ready(Ok(())) => {
                        *is_flushing = false;
                        state.http.sent();
                        continue;
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            } else if self.is_closing.get() {
                return Poll::Ready(());
            }
            match stream.poll_recv(input) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => state.take(input),
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
    }
}

impl State {
    /// Writes as much as the windows allow.
    fn write(&mut self) {
        for seen in self.streams.values_mut() {
            let Some(stream) = seen.stream.filter(|&stream| self.http.is_open(stream)) else {
                continue;
            };
            while !seen.unsent.is_empty() && self.http.sendable(stream) > 0 {
                let count = self.http.sendable(stream).min(seen.unsent.len());
                let written = self.http.data(stream, count, End::Open, &mut self.out);
                written.expect("it is open");
                self.out.extend(seen.unsent.drain(..count));
            }
            if seen.unsent.is_empty() && std::mem::take(&mut seen.ends) {
                let written = self.http.data(stream, 0, End::Stream, &mut self.out);
                written.expect("it is open");
            }
        }
    }

    fn take(&mut self, input: &mut Input) {
        self.received.extend_from_slice(input.bytes());
        input.consume(input.bytes().len());
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        while at < received.len() {
            let bytes = self.take_once(&received[at..]);
            if bytes == 0 {
                break;
            }
            at += bytes;
        }
        self.received = received[at..].to_vec();
    }

    fn take_once(&mut self, received: &[u8]) -> usize {
        let step = self.http.receive(received, &mut self.out);
        let step = step.expect("it is HTTP/2");
        let done = step.bytes;
        let mut release = None;
        match step.event {
            Event::Head {
                stream,
                fields,
                end,
            } => {
                let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
                let fields = fields.iter();
                let seen = Seen {
                    stream: Some(stream),
                    fields: fields
                        .map(|(name, value)| (name.to_owned(), text(value)))
                        .collect(),
                    has_ended: end == End::Stream,
                    ..Seen::default()
                };
                self.streams.insert(stream.id(), seen);
            }
            Event::Data { stream, bytes, end } => {
                let seen = self.streams.entry(stream.id()).or_default();
                seen.received.extend_from_slice(bytes);
                seen.has_ended = end == End::Stream;
                if !seen.is_unread {
                    release = Some((stream, bytes.len() as u32));
                }
            }
            Event::Reset { stream, cause } => {
                self.streams.entry(stream.id()).or_default().reset = Some(cause);
            }
            Event::NeedMore(_) => return 0,
            Event::Trailers { .. }
            | Event::DataOfClosed(_)
            | Event::GoAway { .. }
            | Event::Window(_)
            | Event::Settings
            | Event::Pong(_)
            | Event::Nothing => {}
        }
        if let Some((stream, bytes)) = release {
            self.http.release(stream, bytes, &mut self.out);
        }
        done
    }
}
