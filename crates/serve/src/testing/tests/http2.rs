//! HTTP/2 clients: they get the same responses as over HTTP/1, for many concurrent requests.

use std::collections::BTreeMap;

use onrush_config::Plan;
use onrush_engine::{Address, BUFFER_BYTES, Input, Stream};
use onrush_http::http2::code::Code;
use onrush_http::http2::hpack::{Encoder, Indexing, Sensitivity};
use onrush_http::http2::{self, Connection, End, Event, LocalSettings, Role};
use onrush_tls::Transport;

use crate::testing::harness::{PATIENCE, Step, TestCore, configured, on_every_driver, send};

/// A response as received by a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) fields: BTreeMap<String, String>,
    pub(super) interim: Vec<u16>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<(String, String)>,
    /// Sensitivity of its last head.
    pub(super) sensitivity: Sensitivity,
    pub(super) is_whole: bool,
    /// Whether its last head ends the stream.
    pub(super) ends_with_head: bool,
    pub(super) reset: Option<http2::Cause>,
}

/// An HTTP/2 client.
pub(super) struct Http2Client {
    pub(super) stream: Transport,
    pub(super) http: Connection,
    pub(super) out: Vec<u8>,
    received: Vec<u8>,
    pub(super) responses: BTreeMap<u32, Response>,
    pub(super) goaway_code: Option<Code>,
    /// Last streams of the received GOAWAYs.
    pub(super) last: Vec<u32>,
}

impl Http2Client {
    pub(super) async fn connect(site: &TestCore, address: &Address, stream_window: u32) -> Self {
        let settings = LocalSettings {
            stream_window,
            ..LocalSettings::DEFAULT
        };
        let stream = Stream::connect(&site.core, address, None).await;
        Self::over(
            site,
            Transport::plain(stream.expect("it listens")),
            settings,
        )
    }

    /// A client on an existing connection.
    pub(super) fn over(site: &TestCore, stream: Transport, settings: LocalSettings) -> Self {
        stream.set_deadline(Some(site.core.now_exact() + PATIENCE));
        let mut out = Vec::new();
        Self {
            stream,
            http: Connection::new(Role::Client, settings, &mut out),
            out,
            received: Vec::new(),
            responses: BTreeMap::new(),
            goaway_code: None,
            last: Vec::new(),
        }
    }

    pub(super) async fn flush(&mut self) {
        let out = std::mem::take(&mut self.out);
        for piece in out.chunks(BUFFER_BYTES) {
            let mut buffer = self.stream.core().buffer().expect("there is one");
            assert!(buffer.put(piece), "a piece is as large as a buffer at most");
            self.stream.queue(buffer);
            self.stream.flush().await.expect("it is taken");
        }
        self.http.sent();
    }

    /// Writes the head of a request.
    pub(super) fn open(
        &mut self,
        (method, path): (&str, &str),
        more: &[(&str, &str)],
        end: End,
    ) -> http2::Stream {
        let content = match method {
            "HEAD" => http2::Content::None,
            _ => http2::Content::Any,
        };
        let pseudo = [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", "example.org"),
        ];
        self.open_by(&[&pseudo, more].concat(), content, end)
    }

    /// Writes a head with these fields.
    pub(super) fn open_by(
        &mut self,
        fields: &[(&str, &str)],
        content: http2::Content,
        end: End,
    ) -> http2::Stream {
        let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            for (name, value) in fields {
                encoder.field(name.as_bytes(), value.as_bytes(), indexing_of(name), out);
            }
        };
        let opened = self.http.open(end, content, &mut self.out, write);
        opened.expect("there is room for it")
    }

    pub(super) async fn get(&mut self, path: &str) -> Response {
        let stream = self.open(("GET", path), &[], End::Stream);
        self.response(stream).await
    }

    /// Sends a body as the windows open.
    pub(super) async fn send_body(&mut self, stream: http2::Stream, mut body: &[u8]) {
        while !body.is_empty() {
            let room = self.http.sendable(stream).min(body.len());
            if room == 0 {
                self.flush().await;
                self.receive().await;
                continue;
            }
            let (piece, rest) = body.split_at(room);
            body = rest;
            let end = match body {
                [] => End::Stream,
                _ => End::Open,
            };
            let written = self.http.data(stream, room, end, &mut self.out);
            written.expect("it is open");
            self.out.extend_from_slice(piece);
        }
    }

    pub(super) async fn response(&mut self, stream: http2::Stream) -> Response {
        loop {
            match self.responses.get(&stream.id()) {
                Some(response) if response.is_whole || response.reset.is_some() => {
                    return self.responses.remove(&stream.id()).expect("just seen");
                }
                _ => {}
            }
            self.flush().await;
            self.receive().await;
        }
    }

    /// Receives until the end of the connection, which a GOAWAY must precede.
    pub(super) async fn receive_until_closed(&mut self) {
        while self.goaway_code.is_none() {
            self.receive().await;
        }
        let mut input = Input::default();
        while let Ok(1..) = self.stream.recv(&mut input).await {
            input.consume(input.bytes().len());
        }
        assert_eq!(self.goaway_code, Some(Code::NO_ERROR));
    }

    pub(super) async fn receive(&mut self) {
        let mut input = Input::default();
        let bytes = self.stream.recv(&mut input).await.expect("no error");
        assert!(bytes > 0, "the connection ended");
        self.received.extend_from_slice(input.bytes());
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        loop {
            let step = self.http.receive(&received[at..], &mut self.out);
            let step = step.expect("it is HTTP/2");
            at += step.bytes;
            let mut release = None;
            let is_over = matches!(step.event, Event::NeedMore(_));
            match step.event {
                Event::Head {
                    stream,
                    fields,
                    end,
                } => {
                    let response = self.responses.entry(stream.id()).or_default();
                    response.ends_with_head = end == End::Stream;
                    response.sensitivity = fields.sensitivity();
                    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
                    let mut all = fields
                        .iter()
                        .map(|(name, value)| (name.to_owned(), text(value)));
                    let (name, status) = all.next().expect("a status");
                    assert_eq!(name, ":status");
                    let status = status.parse().expect("a number");
                    if status < 200 {
                        response.interim.push(status);
                    } else {
                        response.status = status;
                        response.fields = all.collect();
                        response.is_whole = end == End::Stream;
                    }
                }
                Event::Data { stream, bytes, end } => {
                    let response = self.responses.entry(stream.id()).or_default();
                    response.body.extend_from_slice(bytes);
                    response.is_whole = end == End::Stream;
                    release = Some((stream, bytes.len() as u32));
                }
                Event::Trailers { stream, fields } => {
                    let response = self.responses.entry(stream.id()).or_default();
                    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
                    let all = fields
                        .iter()
                        .map(|(name, value)| (name.to_owned(), text(value)));
                    response.trailers = all.collect();
                    response.is_whole = true;
                }
                Event::Reset { stream, cause } => {
                    self.responses.entry(stream.id()).or_default().reset = Some(cause);
                }
                Event::GoAway { code, last } => {
                    self.goaway_code = Some(code);
                    self.last.push(last);
                }
                Event::DataOfClosed(_)
                | Event::Window(_)
                | Event::Settings
                | Event::Pong(_)
                | Event::Nothing
                | Event::NeedMore(_) => {}
            }
            if let Some((stream, bytes)) = release {
                self.http.release(stream, bytes, &mut self.out);
            }
            if is_over || at == received.len() {
                break;
            }
        }
        self.received = received[at..].to_vec();
    }
}

/// A field that must never be indexed.
pub(super) const SECRET: &str = "x-secret";

/// How clients and servers of tests encode a field.
pub(super) fn indexing_of(name: &str) -> Indexing {
    match name {
        SECRET => Indexing::Never,
        _ => Indexing::Without,
    }
}

fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

/// Some generated responses, and everything else from `server`.
fn plan(server: &std::net::SocketAddr) -> Plan {
    configured(&format!(
        "[[route]]\npath = \"/fixed\"\nresponse_headers = {{ add = {{ X-Added = \"1\" }} }}\nrespond = {{ status = 200, body = \"hello\" }}\n\
         [[route]]\npath = \"/synthetic\"\nsynthetic = true\n\
         [[route]]\npath = \"/\"\nforward = \"up\"\n\
         [upstream.up]\nservers = [\"{server}\"]\n"
    ))
}

const WINDOW: u32 = 65_535;

#[test]
fn http2_connection_serves_many_requests() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[
            Step::Read,
            send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
            send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"),
            send("3\r\nqui\r\n2;x=y\r\nck\r\n0\r\nX-Sum: 7\r\n\r\n"),
            Step::Again,
        ]]);
        let address = site.serve(&plan(&server.address));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let paths = ["/fixed", "/", "/fixed", "/nowhere", "/fixed"];
        let asked = paths.map(|path| client.open(("GET", path), &[], End::Stream));
        for (path, stream) in paths.into_iter().zip(asked) {
            let response = client.response(stream).await;
            assert_eq!((response.status, response.reset), (200, None), "{path}");
            match path {
                "/fixed" => {
                    assert_eq!(response.body, b"hello");
                    assert_eq!(response.fields["content-length"], "5");
                    assert_eq!(response.fields["x-added"], "1");
                }
                _ => {
                    assert_eq!(response.body, b"quick");
                    assert_eq!(response.interim, [103]);
                    assert_eq!(response.trailers, [("x-sum".to_owned(), "7".to_owned())]);
                    assert!(!response.fields.contains_key("transfer-encoding"));
                }
            }
        }
        let stream = client.open(("HEAD", "/fixed"), &[], End::Stream);
        let head = client.response(stream).await;
        assert_eq!((head.status, &head.body[..]), (200, &b""[..]));
        assert_eq!(head.fields["content-length"], "5");
    });
}

#[test]
fn large_bodies_pass_small_flow_control_windows() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            Step::Again,
        ]]);
        let address = site.serve(&plan(&server.address));
        let mut client = Http2Client::connect(&site, &address, 700).await;
        let asked = [40_000, 100_000].map(|size| {
            let path = format!("/synthetic?s={size}");
            (size, client.open(("GET", &path), &[], End::Stream))
        });
        for (size, stream) in asked {
            let response = client.response(stream).await;
            assert_eq!((response.status, response.body.len()), (200, size));
        }
        let body = pattern(300_000);
        for more in [&[][..], &[("content-length", "300000")]] {
            let stream = client.open(("POST", "/synthetic"), more, End::Open);
            client.send_body(stream, &body).await;
            assert_eq!(client.response(stream).await.status, 200);
        }
    });
}

#[test]
fn malformed_request_resets_only_its_stream() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[]);
        let address = site.serve(&plan(&server.address));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let wrong = client.open(("GET", "/fixed"), &[("X-Upper", "1")], End::Stream);
        let tunnel = client.open(("GET", "/fixed"), &[("connection", "close")], End::Stream);
        for stream in [wrong, tunnel] {
            let response = client.response(stream).await;
            let Some(http2::Cause::Peer(code)) = response.reset else {
                panic!("{response:?}")
            };
            assert_eq!(code, Code::PROTOCOL_ERROR);
        }
        let long = "a".repeat(20_000);
        let large = client.open(("GET", "/fixed"), &[("x-long", &long)], End::Stream);
        assert_eq!(client.response(large).await.status, 431);
        assert_eq!(client.get("/fixed").await.body, b"hello");
    });
}

#[test]
fn client_reset_cancels_request() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[
            Step::Read,
            Step::Wait(std::time::Duration::from_millis(300)),
        ]]);
        let (address, service) = site.serve_worker(&plan(&server.address));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let slow = client.open(("GET", "/"), &[], End::Stream);
        assert_eq!(client.get("/fixed").await.body, b"hello");
        client.http.reset(slow, Code::CANCEL, &mut client.out);
        assert_eq!(client.get("/fixed").await.body, b"hello");
        let seen = service.worker.meter.take_seen();
        let ends: Vec<_> = seen.iter().map(|record| record.end).collect();
        assert!(
            ends.contains(&crate::observe::record::RequestEnd::GivenUp),
            "{ends:?}"
        );
    });
}

#[test]
fn graceful_stop_sends_goaway() {
    on_every_driver(|site| async move {
        let ok = send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        let wait = Step::Wait(std::time::Duration::from_millis(50));
        let server = site.upstream(&[&[Step::Read, wait, ok, Step::Again]]);
        let address = site.serve(&plan(&server.address));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let slow = client.open(("GET", "/"), &[], End::Stream);
        assert_eq!(client.get("/fixed").await.status, 200);
        site.core.stop(std::time::Duration::from_secs(10));
        assert_eq!(client.response(slow).await.body, b"ok");
        assert_eq!(client.goaway_code, Some(Code::NO_ERROR));
    });
}

#[test]
fn requests_in_flight_during_stop_get_responses() {
    on_every_driver(|site| async move {
        let ok = send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        let server = site.upstream(&[&[Step::Read, ok, Step::Again]]);
        let address = site.serve(&plan(&server.address));
        let mut idle = Http2Client::connect(&site, &address, WINDOW).await;
        assert_eq!(idle.get("/fixed").await.status, 200);
        let mut busy = Http2Client::connect(&site, &address, WINDOW).await;
        assert_eq!(busy.get("/fixed").await.status, 200);
        let length = [("content-length", "4")];
        let upload = busy.open(("POST", "/"), &length, End::Open);
        busy.flush().await;
        site.until("the upload is at its server", || server.connections() == 1)
            .await;
        site.core.stop(std::time::Duration::from_secs(10));
        for client in [&mut idle, &mut busy] {
            let late = client.open(("GET", "/fixed"), &[], End::Stream);
            // It is in flight until the first GOAWAY has arrived, and the acknowledgement of the ping is sent after it.
            let on_its_way = std::mem::take(&mut client.out);
            while client.last.is_empty() || client.out.is_empty() {
                client.receive().await;
            }
            assert_eq!(client.last, [u32::MAX >> 1]);
            client.out.splice(0..0, on_its_way);
            assert_eq!(client.response(late).await.status, 200);
            while client.last.len() < 2 {
                client.receive().await;
            }
            assert_eq!(client.last, [u32::MAX >> 1, late.id()]);
        }
        busy.send_body(upload, b"body").await;
        assert_eq!(busy.response(upload).await.body, b"ok");
        idle.receive_until_closed().await;
        busy.receive_until_closed().await;
    });
}

#[test]
fn slow_clients_are_closed_with_goaway() {
    on_every_driver(|site| async move {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("file"), pattern(300_000)).expect("it is written");
        let text = format!(
            "[timeouts]\nclient_head = \"100ms\"\nclient_idle = \"150ms\"\nclient_send = \"100ms\"\n\
             [[route]]\nfiles = {{ root = \"{}\" }}\n",
            directory.path().display()
        );
        let address = site.serve(&configured(&text));
        // Idle after the preface, and after a request.
        let mut idle = Http2Client::connect(&site, &address, WINDOW).await;
        idle.flush().await;
        idle.receive_until_closed().await;
        let mut idle = Http2Client::connect(&site, &address, WINDOW).await;
        assert_eq!(idle.get("/file").await.body.len(), 300_000);
        idle.receive_until_closed().await;
        // A head without its end.
        let mut slow = Http2Client::connect(&site, &address, WINDOW).await;
        let before = slow.out.len();
        slow.open(("GET", "/file"), &[], End::Stream);
        let flags = before + 4;
        slow.out[flags] &= !4;
        slow.flush().await;
        slow.receive_until_closed().await;
        // Closed windows on all streams: data that cannot be sent is not read from the file.
        let mut closed = Http2Client::connect(&site, &address, 0).await;
        let before = site.core.pool().in_use();
        for _ in 0..100 {
            closed.open(("GET", "/file"), &[], End::Stream);
        }
        closed.flush().await;
        closed.receive().await;
        closed.receive().await;
        let used = site.core.pool().in_use().saturating_sub(before);
        assert!(used < 20, "{used} buffers");
        closed.receive_until_closed().await;
    });
}

#[test]
fn bodies_without_length_are_limited() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            Step::Again,
        ]]);
        let text = format!(
            "request_body_max = \"1k\"\n{}",
            format_args!("[[route]]\nforward = \"http://{}\"\n", server.address)
        );
        let address = site.serve(&configured(&text));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let stream = client.open(("POST", "/"), &[], End::Open);
        client.send_body(stream, &pattern(5000)).await;
        assert_eq!(client.response(stream).await.status, 413);
        let stream = client.open(("POST", "/"), &[("content-length", "5000")], End::Open);
        assert_eq!(client.response(stream).await.status, 413);
    });
}

#[test]
fn truncated_response_is_reset() {
    on_every_driver(|site| async move {
        let half: &'static str = Box::leak(
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{}",
                "x".repeat(50_000)
            )
            .into_boxed_str(),
        );
        let server = site.upstream(&[&[Step::Read, send(half)]]);
        let address = site.serve(&plan(&server.address));
        let mut client = Http2Client::connect(&site, &address, 10_000).await;
        let stream = client.open(("GET", "/"), &[], End::Stream);
        let response = client.response(stream).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.body.len(), 50_000);
        let Some(http2::Cause::Peer(code)) = response.reset else {
            panic!("{response:?}")
        };
        assert_eq!(code, Code::INTERNAL_ERROR);
    });
}

#[test]
fn http2_response_fields_match_http_1() {
    on_every_driver(|site| async move {
        let plan = configured(
            "[[route]]\npath = \"/cors\"\ncors = { origins = [\"https://app.example.com\"], methods = [\"PUT\"], age_max = \"1h\" }\nrespond = { status = 200, body = \"a\" }\n\
             [[route]]\nsynthetic = true\n",
        );
        let address = site.serve(&plan);
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let origin = ("origin", "https://app.example.com");
        let asked = [origin, ("access-control-request-method", "PUT")];
        let stream = client.open(("OPTIONS", "/cors"), &asked, End::Stream);
        let response = client.response(stream).await;
        assert_eq!(response.fields["access-control-allow-methods"], "PUT");
        assert_eq!(response.fields["access-control-max-age"], "3600");
        assert_eq!(
            response.fields["access-control-allow-origin"],
            "https://app.example.com"
        );
        let response = client.get("/?s=5").await;
        let said = &response.fields["x-rsp"];
        assert!(said.starts_with("id=onrush, code=200, cache=1"), "{said}");
        assert!(said.ends_with(" real)"), "{said}");
    });
}

#[test]
fn partial_frames_of_active_client_do_not_time_out() {
    on_every_driver(|site| async move {
        let text = "[timeouts]\nclient_head = \"200ms\"\n[[route]]\nrespond = { status = 200, body = \"hello\" }\n";
        let address = site.serve(&configured(text));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let mut asked = Vec::new();
        let mut cut = Vec::new();
        for _ in 0..8 {
            asked.push(client.open(("GET", "/"), &[], End::Stream));
            let rest = client.out.split_off(client.out.len() - 4);
            let before = std::mem::replace(&mut cut, rest);
            client.out.splice(0..0, before);
            client.flush().await;
            site.core.sleep(std::time::Duration::from_millis(50)).await;
        }
        client.out.splice(0..0, cut);
        for stream in asked {
            assert_eq!(client.response(stream).await.body, b"hello");
        }
    });
}

#[test]
fn repeated_fixed_responses_are_equal_over_http2() {
    on_every_driver(|site| async move {
        let text = "[[route]]\npath = \"/a\"\nrespond = { status = 200, body = \"first\" }\n\
             [[route]]\npath = \"/b\"\nrespond = { status = 404, body = \"second\", headers = { X-Own = \"2\" } }\n\
             [[route]]\npath = \"/empty\"\nrespond = { status = 200 }\n\
             [[route]]\nsynthetic = true\n";
        let address = site.serve(&configured(text));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        for path in [
            "/a", "/a", "/b", "/a", "/s?s=3", "/a", "/empty", "/b", "/b", "/empty",
        ] {
            let response = client.get(path).await;
            let (status, body, own) = match path {
                "/a" => (200, &b"first"[..], None),
                "/b" => (404, &b"second"[..], Some("2")),
                "/empty" => (200, &b""[..], None),
                _ => (200, &response.body[..], None),
            };
            assert_eq!(
                (response.status, &response.body[..]),
                (status, body),
                "{path}"
            );
            let field = |name: &str| response.fields.get(name).map(String::as_str);
            assert_eq!(field("x-own"), own, "{path}");
            assert_eq!(field("content-length"), Some(&*body.len().to_string()));
            assert_eq!(field("server"), Some("onrush"));
            assert_eq!(field("date").map(str::len), Some(29));
        }
    });
}

#[test]
fn responses_exceeding_send_buffer_complete() {
    on_every_driver(|site| async move {
        let body = "x".repeat(60_000);
        let text = format!("[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n");
        let address = site.serve(&configured(&text));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let asked: Vec<_> = (0..20)
            .map(|_| client.open(("GET", "/"), &[], End::Stream))
            .collect();
        for stream in asked {
            let response = client.response(stream).await;
            assert_eq!((response.status, response.body.len()), (200, 60_000));
        }
    });
}
