//! A server of HTTP/2 that does as it is told.

use std::cell::Cell;
use std::rc::Rc;

use onrush_engine::{Address, Claim, Core, Input, Listener, Stream as Socket};
use onrush_http::http2::code::Code;
use onrush_http::http2::hpack::Indexing;
use onrush_http::http2::{Connection, End, Event, LocalSettings, Role, Stream};

use crate::connection::tests::{Outcome, load, on_every_core};
use crate::plan::Options;
use crate::requests::{Body, Request};

/// Fields, by their names.
pub(super) type Named = [(&'static str, &'static str)];

/// The pieces of a body, and trailers.
pub(super) type Rest = (&'static [&'static [u8]], &'static Named);

/// What the server does with a request.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// 200 with this body.
    Body(&'static [u8]),
    /// The same in a frame for each piece.
    Pieces(&'static [&'static [u8]]),
    /// So many bytes, as windows have room for them.
    Large(usize),
    /// 200, which ends with its head.
    Head,
    /// The same, which says that there would be so many bytes.
    Length(u64),
    /// 103, and then 200.
    Interim,
    /// Something behind the body.
    Trailers,
    /// 200 once so many requests are there.
    Together(usize),
    /// A head without a status.
    NoStatus,
    /// A head with more than anybody takes.
    LargeHead,
    /// The fields of a head, the pieces of a body and the fields of trailers; none of these for a response without them.
    Fields(&'static Named, Option<Rest>),
    /// Fewer bytes than the head says.
    TooShort,
    /// 200 with `ok`, and once more the same data.
    Twice,
    /// 200 with `ok` once the client has reset the stream.
    Late,
    Reset(Code),
    /// 200, and no new streams.
    LastOne(Code),
    /// Only GOAWAY, and the end of the connection.
    Gone(Code),
    /// Nothing at all.
    Never,
}

/// A request that the server has read.
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) body: usize,
    /// Its number in the run and on its connection, from 0.
    pub(super) number: u64,
    pub(super) on_connection: u64,
}

pub(super) type Script = dyn Fn(&Asked<'_>) -> Answer;

/// What a server says to a request that is not whole.
#[derive(Clone, Copy)]
pub(super) enum Early {
    /// 200.
    Response,
    /// The same, and RST_STREAM.
    Reset(Code),
    /// 200, and more behind its end.
    Twice,
}

#[derive(Clone)]
pub(super) struct Server {
    pub(super) settings: LocalSettings,
    /// It says its settings with its first response.
    pub(super) settles_late: bool,
    /// What it says instead of HTTP/2, before it ends the connection.
    pub(super) instead: Option<&'static [u8]>,
    /// What it does with requests that have bodies, if it does not wait for them.
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

/// Has each request send so many bytes.
pub(super) fn upload(options: &mut Options, bytes: usize) {
    let mut request = Request::of(&options.target);
    request.method = "POST".to_owned();
    request.body = Body::Bytes(vec![b'x'; bytes].into());
    options.asks.requests = vec![request];
}

/// Runs what `change` makes of the options against `server`, on every driver, and shows `check` what came of it and how many
/// streams were open at a time.
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

/// Ends a connection so that the client gets all that was sent.
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
    /// Method and bytes of the body so far, of requests that are not whole.
    requests: Vec<(Stream, String, usize)>,
    /// Those that wait for others.
    held: Vec<Stream>,
    /// Those that are answered when they are reset.
    late: Vec<Stream>,
    /// Those whose responses have so many bytes left.
    large: Vec<(Stream, usize)>,
    on_connection: u64,
    is_gone: bool,
}

impl Serving {
    /// Takes one step over `input`; false when more has to come.
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
                // OK (RFC 7541 A), as a frame that it would not write.
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
                // Larger than the announced limit, but with Huffman coding smaller than a block may be.
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

    /// Sends data that ends a stream, whatever has become of it.
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

    /// Sends what there is room for of large responses, a frame of each.
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
