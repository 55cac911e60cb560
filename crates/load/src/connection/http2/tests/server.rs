//! Scripted HTTP/2 server.

use std::cell::Cell;
use std::rc::Rc;

use onrush_engine::{Address, Claim, Core, Input, Listener, Stream as Socket};
use onrush_http::http2::code::Code;
use onrush_http::http2::hpack::Indexing;
use onrush_http::http2::{Connection, End, Event, LocalSettings, Role, Stream};

use crate::connection::tests::{Outcome, load, on_every_core};
use crate::plan::Options;
use crate::requests::{Body, Request};

pub(super) type Named = [(&'static str, &'static str)];

/// Pieces of a body, and trailers.
pub(super) type Rest = (&'static [&'static [u8]], &'static Named);

/// Response of the server to a request.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    Body(&'static [u8]),
    /// 200 with a body in one frame per piece.
    Pieces(&'static [&'static [u8]]),
    /// This many bytes, as windows permit.
    Large(usize),
    /// 200 with END_STREAM on the head.
    Head,
    /// The same with this Content-Length.
    Length(u64),
    /// 103, and then 200.
    Interim,
    /// 200 with trailers.
    Trailers,
    /// 200 once this many requests are open.
    Together(usize),
    NoStatus,
    /// A head above all limits.
    LargeHead,
    /// Fields of a head, and optionally pieces of a body and fields of trailers.
    Fields(&'static Named, Option<Rest>),
    /// Fewer bytes than Content-Length.
    TooShort,
    /// 200 with `ok`, and the same data again.
    Twice,
    /// 200 with `ok` after the client has reset the stream.
    Late,
    Reset(Code),
    /// 200, and GOAWAY.
    LastOne(Code),
    /// Only GOAWAY, and the end of the connection.
    Gone(Code),
    Never,
}

pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) body: usize,
    /// Number in the run and on its connection, from 0.
    pub(super) number: u64,
    pub(super) on_connection: u64,
}

pub(super) type Script = dyn Fn(&Asked<'_>) -> Answer;

/// Response to an incomplete request.
#[derive(Clone, Copy)]
pub(super) enum Early {
    Response,
    /// 200 and RST_STREAM.
    Reset(Code),
    /// 200, and more data after its end.
    Twice,
}

#[derive(Clone)]
pub(super) struct Server {
    pub(super) settings: LocalSettings,
    /// Whether SETTINGS are sent with the first response.
    pub(super) settles_late: bool,
    /// Bytes to send instead of HTTP/2, before the connection is closed.
    pub(super) instead: Option<&'static [u8]>,
    /// Response to requests with bodies, before the body is complete.
    pub(super) early: Option<Early>,
    pub(super) script: Rc<Script>,
}

impl Server {
    pub(super) fn new(script: impl Fn(&Asked<'_>) -> Answer + 'static) -> Server {
        Server {
            settings: LocalSettings::DEFAULT,
            settles_late: false,
            instead: None,
            early: None,
            script: Rc::new(script),
        }
    }
}

#[derive(Default)]
struct Counts {
    seen: Cell<u64>,
    most_open: Cell<u32>,
}

/// Gives each request a body of this length.
pub(super) fn upload(options: &mut Options, bytes: usize) {
    let mut request = Request::of(&options.target);
    request.method = "POST".to_owned();
    request.body = Body::Bytes(vec![b'x'; bytes].into());
    options.requests.requests = vec![request];
}

/// Runs the options as changed by `change` against `server`, on every driver, and calls `check` with the result and the
/// maximum of open streams.
#[track_caller]
pub(super) fn play(change: impl Fn(&mut Options), server: Server, check: impl Fn(&Outcome, u32)) {
    on_every_core(|core| {
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = Listener::new(&core, &claim).unwrap();
        let counts = Rc::new(Counts::default());
        core.spawn(listen(
            core.clone(),
            listener,
            server.clone(),
            Rc::clone(&counts),
        ));
        let change = |options: &mut Options| {
            options.streams = Some(1);
            change(options);
        };
        let outcome = Outcome {
            record: load(&core, &change, claim.address().clone()),
            seen: counts.seen.get(),
        };
        outcome.adds_up();
        check(&outcome, counts.most_open.get());
    });
}

async fn listen(core: Core, listener: Listener, server: Server, counts: Rc<Counts>) {
    while let Ok(socket) = listener.accept().await {
        core.spawn(serve(socket, server.clone(), Rc::clone(&counts)));
    }
}

async fn serve(socket: Socket, server: Server, counts: Rc<Counts>) {
    let mut input = Input::default();
    if let Some(bytes) = server.instead {
        let _ = socket.recv(&mut input).await;
        socket.queue(bytes);
        let _ = socket.flush().await;
        return end(&socket, &mut input).await;
    }
    let mut out = Vec::new();
    let mut serving = Serving {
        connection: Connection::new(Role::Server, server.settings, &mut out),
        out,
        requests: Vec::new(),
        held: Vec::new(),
        late: Vec::new(),
        large: Vec::new(),
        on_connection: 0,
        is_gone: false,
    };
    loop {
        while serving.step(&mut input, &server, &counts) {}
        serving.send_large();
        if !server.settles_late || serving.on_connection > 0 {
            let bytes: Rc<[u8]> = std::mem::take(&mut serving.out).into();
            socket.queue(bytes);
        }
        if socket.flush().await.is_err() {
            return;
        }
        serving.connection.sent();
        if serving.is_gone {
            return end(&socket, &mut input).await;
        }
        if !matches!(socket.recv(&mut input).await, Ok(1..)) {
            return;
        }
    }
}

/// Closes a connection after the client has received everything.
async fn end(socket: &Socket, input: &mut Input) {
    let _ = socket.shutdown().await;
    loop {
        let bytes = input.bytes().len();
        input.consume(bytes);
        if !matches!(socket.recv(input).await, Ok(1..)) {
            return;
        }
    }
}

struct Serving {
    connection: Connection,
    out: Vec<u8>,
    /// Incomplete requests: stream, method and bytes of the body so far.
    requests: Vec<(Stream, String, usize)>,
    /// Requests that wait for others.
    held: Vec<Stream>,
    /// Requests that are answered after their reset.
    late: Vec<Stream>,
    /// Responses with their remaining bytes.
    large: Vec<(Stream, usize)>,
    on_connection: u64,
    is_gone: bool,
}

impl Serving {
    /// Processes one frame of `input`; false if it is incomplete.
    fn step(&mut self, input: &mut Input, server: &Server, counts: &Counts) -> bool {
        let Ok(step) = self.connection.receive(input.bytes(), &mut self.out) else {
            self.is_gone = true;
            return false;
        };
        let done = step.bytes;
        let whole = match step.event {
            Event::NeedMore(_) => return false,
            Event::Head {
                stream,
                fields,
                end,
            } => {
                let method = fields.iter().find(|(name, _)| *name == ":method");
                let (_, method) = method.unwrap();
                let method = String::from_utf8(method.to_vec()).unwrap();
                if let (End::Open, Some(early)) = (end, server.early) {
                    counts.seen.set(counts.seen.get() + 1);
                    self.respond(stream, &[b"ok"]);
                    match early {
                        Early::Response => {}
                        Early::Reset(code) => self.connection.reset(stream, code, &mut self.out),
                        Early::Twice => self.stray(stream),
                    }
                }
                self.requests.push((stream, method, 0));
                (end == End::Stream).then_some(stream)
            }
            Event::Data { stream, bytes, end } => {
                let request = self.requests.iter_mut().find(|of| of.0 == stream);
                request.unwrap().2 += bytes.len();
                let bytes = bytes.len() as u32;
                self.connection.release(stream, bytes, &mut self.out);
                (end == End::Stream && server.early.is_none()).then_some(stream)
            }
            Event::Reset { stream, .. } if self.late.contains(&stream) => {
                // `:status: 200` (RFC 7541 appendix A), as a frame that the library would not write.
                self.stray_frame(1, 4, stream, &[0x88]);
                self.stray(stream);
                None
            }
            _ => None,
        };
        input.consume(done);
        if let Some(stream) = whole {
            let most = counts.most_open.get().max(self.connection.open_streams());
            counts.most_open.set(most);
            self.answer(stream, server, counts);
        }
        true
    }

    fn answer(&mut self, stream: Stream, server: &Server, counts: &Counts) {
        let at = self.requests.iter().position(|of| of.0 == stream).unwrap();
        let (_, method, body) = self.requests.remove(at);
        let answer = (server.script)(&Asked {
            method: &method,
            body,
            number: counts.seen.get(),
            on_connection: self.on_connection,
        });
        counts.seen.set(counts.seen.get() + 1);
        self.on_connection += 1;
        match answer {
            Answer::Body(body) => self.respond(stream, &[body]),
            Answer::Pieces(pieces) => self.respond(stream, pieces),
            Answer::Head => self.head(stream, &[(":status", "200")], End::Stream),
            Answer::Length(bytes) => {
                let length = bytes.to_string();
                let fields = [(":status", "200"), ("content-length", &length)];
                self.head(stream, &fields, End::Stream);
            }
            Answer::Interim => {
                self.head(stream, &[(":status", "103"), ("link", "</a>")], End::Open);
                self.respond(stream, &[b"ok"]);
            }
            Answer::Trailers => {
                self.head(stream, &[(":status", "200")], End::Open);
                self.data(stream, b"ok", End::Open);
                self.head(stream, &[("x-sum", "1")], End::Stream);
            }
            Answer::Large(bytes) => {
                self.head(stream, &[(":status", "200")], End::Open);
                self.large.push((stream, bytes));
            }
            Answer::Together(count) => {
                self.held.push(stream);
                if self.held.len() == count {
                    for stream in std::mem::take(&mut self.held) {
                        self.respond(stream, &[b"ok"]);
                    }
                }
            }
            Answer::NoStatus => self.head(stream, &[("x-status", "200")], End::Stream),
            Answer::LargeHead => {
                // Above the announced limit when decoded, but small enough with Huffman coding.
                let value = "v".repeat(74_000);
                self.head(
                    stream,
                    &[(":status", "200"), ("x-large", &value)],
                    End::Stream,
                );
            }
            Answer::Fields(head, rest) => self.fields(stream, head, rest),
            Answer::TooShort => {
                let fields = [(":status", "200"), ("content-length", "5")];
                self.head(stream, &fields, End::Open);
                self.data(stream, b"ok", End::Stream);
            }
            Answer::Twice => {
                self.respond(stream, &[b"ok"]);
                self.stray(stream);
            }
            Answer::Late => self.late.push(stream),
            Answer::Reset(code) => self.connection.reset(stream, code, &mut self.out),
            Answer::LastOne(code) => {
                self.respond(stream, &[b"ok"]);
                self.connection.go_away(code, &mut self.out);
                self.is_gone = true;
            }
            Answer::Gone(code) => {
                self.connection.go_away(code, &mut self.out);
                self.is_gone = true;
            }
            Answer::Never => {}
        }
    }

    fn fields(&mut self, stream: Stream, head: &Named, rest: Option<Rest>) {
        let Some((pieces, trailers)) = rest else {
            return self.head(stream, head, End::Stream);
        };
        self.head(stream, head, End::Open);
        let pieces = pieces.iter();
        pieces.for_each(|piece| self.data(stream, piece, End::Open));
        match trailers {
            [] => self.data(stream, b"", End::Stream),
            trailers => self.head(stream, trailers, End::Stream),
        }
    }

    fn respond(&mut self, stream: Stream, pieces: &[&[u8]]) {
        self.head(stream, &[(":status", "200")], End::Open);
        let (last, before) = pieces.split_last().unwrap();
        for piece in before {
            self.data(stream, piece, End::Open);
        }
        self.data(stream, last, End::Stream);
    }

    fn head(&mut self, stream: Stream, fields: &[(&str, &str)], end: End) {
        let sent = self
            .connection
            .head(stream, end, &mut self.out, |encoder, out| {
                for (name, value) in fields {
                    encoder.field(name.as_bytes(), value.as_bytes(), Indexing::Without, out);
                }
            });
        sent.unwrap();
    }

    fn data(&mut self, stream: Stream, bytes: &[u8], end: End) {
        let sent = self
            .connection
            .data(stream, bytes.len(), end, &mut self.out);
        sent.unwrap();
        self.out.extend_from_slice(bytes);
    }

    /// Sends data with END_STREAM in any state of the stream.
    fn stray(&mut self, stream: Stream) {
        self.stray_frame(0, 1, stream, b"ok");
    }

    fn stray_frame(&mut self, kind: u8, flags: u8, stream: Stream, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        self.out.extend_from_slice(&length[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.id().to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    /// Sends what the windows permit of large responses, one frame each.
    fn send_large(&mut self) {
        let (frames, zeros) = (std::mem::take(&mut self.large), [0; 16 * 1024]);
        for (stream, mut left) in frames {
            while left > 0 && self.connection.sendable(stream) > 0 {
                let count = self.connection.sendable(stream).min(left).min(zeros.len());
                left -= count;
                let end = match left {
                    0 => End::Stream,
                    _ => End::Open,
                };
                self.data(stream, &zeros[..count], end);
            }
            if left > 0 {
                self.large.push((stream, left));
            }
        }
    }
}
