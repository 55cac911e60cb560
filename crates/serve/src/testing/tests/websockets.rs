//! WebSocket for HTTP/2 clients (RFC 8441): the server gets an HTTP/1.1 upgrade, and the stream becomes a tunnel.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_engine::{Address, Listener};
use onrush_http::http2::code::Code;
use onrush_http::http2::hpack::Indexing;
use onrush_http::http2::message::ExtendedConnect;
use onrush_http::http2::{self, Content, End};

use super::http2::{Http2Client, Response};
use crate::exchange::websocket;
use crate::observe::record;
use crate::site::service::Service;
use crate::testing::harness::{
    PATIENCE, Peer, Step, TestCore, configured, cut_off_on_every_driver, on_every_driver,
    on_simulated_cores, send, send_bytes,
};

const EXTENDED: [(&str, &str); 5] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "http"),
    (":path", "/chat"),
    (":authority", "example.org"),
];

/// The window of a client's streams, and of request bodies at the server.
const WINDOW: u32 = 65_535;

/// More than all windows and buffers on the path, so that flow control is used.
const LARGE: usize = 1 << 20;

/// A scripted server behind a proxy.
struct ProxiedServer {
    site: TestCore,
    listener: Listener,
    proxy: Address,
    service: Rc<Service>,
}

/// A tunnel: the client, its stream, and the server's end.
struct Tunnel {
    client: Http2Client,
    stream: http2::Stream,
    server: Peer,
}

impl ProxiedServer {
    fn new(site: &TestCore, top: &str, route: &str) -> Self {
        let (listener, server) = site.listen();
        let plan = configured(&format!(
            "{top}\n[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"hello\" }}\n\
             [[route]]\nforward = \"up\"\n{route}\n\
             [upstream.up]\nservers = [\"{server}\"]\n"
        ));
        Self::by(site, listener, &plan)
    }

    fn by(site: &TestCore, listener: Listener, plan: &Plan) -> Self {
        let (proxy, service) = site.serve_worker(plan);
        Self {
            proxy,
            service,
            site: site.clone(),
            listener,
        }
    }

    async fn tunnel(&self, window: u32) -> Tunnel {
        let client = Http2Client::connect(&self.site, &self.proxy, window).await;
        self.tunnel_of(client).await
    }

    async fn tunnel_of(&self, mut client: Http2Client) -> Tunnel {
        let stream = client.open_by(&EXTENDED, Content::Any, End::Open);
        client.flush().await;
        let (server, head) = self.asked().await;
        server.send(grant(&head).as_bytes()).await;
        while client.of(stream).status == 0 {
            client.receive().await;
        }
        Tunnel {
            client,
            stream,
            server,
        }
    }

    /// The server's end of the next connection, and the received head.
    async fn asked(&self) -> (Peer, String) {
        let mut server = Peer::new(self.listener.accept().await.expect("a connection"));
        let head = server.receive_until(b"\r\n\r\n").await;
        (server, String::from_utf8(head).expect("text"))
    }
}

impl Http2Client {
    fn of(&mut self, stream: http2::Stream) -> &mut Response {
        self.responses.entry(stream.id()).or_default()
    }
}

impl Tunnel {
    async fn say(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.client.http.sendable(self.stream).min(rest.len());
            self.client.flush().await;
            if room == 0 {
                self.client.receive().await;
                continue;
            }
            let (piece, then) = rest.split_at(room);
            rest = then;
            let (stream, out) = (self.stream, &mut self.client.out);
            let written = self.client.http.data(stream, room, End::Open, out);
            written.expect("it is open");
            out.extend_from_slice(piece);
        }
        self.client.flush().await;
    }

    async fn finish(&mut self) {
        let (stream, out) = (self.stream, &mut self.client.out);
        let written = self.client.http.data(stream, 0, End::Stream, out);
        written.expect("it is open");
        self.client.flush().await;
    }

    /// Receives exactly `count` bytes.
    async fn receive_exactly(&mut self, count: usize) -> Vec<u8> {
        while self.client.of(self.stream).body.len() < count {
            self.client.flush().await;
            self.client.receive().await;
        }
        let body = &mut self.client.of(self.stream).body;
        let rest = body.split_off(count);
        std::mem::replace(body, rest)
    }

    /// Receives until the end of the stream; returns the code if it is reset.
    async fn receive_all(&mut self) -> (Vec<u8>, Option<Code>) {
        let response = self.client.response(self.stream).await;
        let code = response.reset.map(|cause| match cause {
            http2::Cause::Peer(code) => code,
            cause => panic!("{cause:?}"),
        });
        (response.body, code)
    }
}

fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
    let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.unwrap_or_else(|| panic!("no {name}: {head}")).1
}

/// A response that accepts the upgrade.
fn grant(head: &str) -> String {
    let accept = websocket::accept(field(head, "sec-websocket-key").as_bytes());
    let accept = String::from_utf8_lossy(&accept);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    )
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

#[test]
fn extended_connect_becomes_upgrade() {
    on_every_driver(|site| async move {
        let way = ProxiedServer::new(&site, "", "method = \"GET\"");
        let mut client = Http2Client::connect(&site, &way.proxy, WINDOW).await;
        let more = [
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "chat"),
        ];
        let fields = [&EXTENDED[..], &more].concat();
        let stream = client.open_by(&fields, Content::Any, End::Open);
        client.flush().await;
        let (server, head) = way.asked().await;
        let key = field(&head, "sec-websocket-key");
        let wanted = format!(
            "GET /chat HTTP/1.1\r\nHost: example.org\r\nsec-websocket-version: 13\r\nsec-websocket-protocol: chat\r\nsec-websocket-key: {key}\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: example.org\r\nVia: 2.0 onrush\r\n\r\n"
        );
        assert_eq!(head, wanted);
        server.send((grant(&head) + "early").as_bytes()).await;
        let mut tunnel = Tunnel {
            client,
            stream,
            server,
        };
        assert_eq!(tunnel.receive_exactly(5).await, b"early");
        let said = tunnel.client.http.peer().extended_connect;
        assert_eq!(said, ExtendedConnect::Allowed);
        let response = tunnel.client.of(stream).clone();
        let names: Vec<_> = response.fields.keys().map(String::as_str).collect();
        assert_eq!(response.status, 200);
        assert_eq!(names, ["date", "sec-websocket-protocol"]);
        tunnel.say(b"hello").await;
        assert_eq!(tunnel.server.receive_exactly(5).await, b"hello");
        tunnel.finish().await;
        assert_eq!(tunnel.server.receive_all_or_reset().await, (vec![], false));
        tunnel.server.finish().await;
        assert_eq!(tunnel.receive_all().await, (vec![], None));
        let seen = way.service.worker.meter.take_seen();
        let seen: Vec<_> = seen.iter().map(|it| (it.status, it.end)).collect();
        assert_eq!(seen, [(Some(101), record::RequestEnd::Complete)]);
        assert_eq!(way.service.worker.meter.totals().tunnels, 1);
    });
}

#[test]
fn tunnel_is_full_duplex() {
    on_every_driver(|site| async move {
        let way = ProxiedServer::new(&site, "", "");
        for window in [WINDOW, 700] {
            let mut tunnel = way.tunnel(window).await;
            for length in [1, 2, 125, 126, 65_535, 65_536, 3] {
                let message = bytes(length);
                let stream = Rc::clone(&tunnel.server.stream);
                let sent = message.clone();
                tunnel.say(&message).await;
                assert!(tunnel.server.receive_exactly(length).await == message);
                site.core.spawn(async move {
                    send_bytes(&stream, &sent).await.expect("it is taken");
                });
                assert!(tunnel.receive_exactly(length).await == message);
            }
            let large = bytes(LARGE);
            let (stream, sent) = (Rc::clone(&tunnel.server.stream), large.clone());
            site.core.spawn(async move {
                send_bytes(&stream, &sent).await.expect("it is taken");
            });
            let (mut server, wanted) = (tunnel.server, large.clone());
            let heard = Rc::new(RefCell::new(None));
            let hears = Rc::clone(&heard);
            site.core.spawn(async move {
                let is_same = server.receive_exactly(LARGE).await == wanted;
                hears.replace(Some((server, is_same)));
            });
            tunnel.server = site.connect(&way.proxy).await;
            tunnel.say(&large).await;
            assert!(tunnel.receive_exactly(LARGE).await == large);
            site.until("the server has heard all", || heard.borrow().is_some())
                .await;
            let (server, is_same) = heard.take().expect("just seen");
            assert!(is_same);
            tunnel.server = server;
            tunnel.finish().await;
            assert_eq!(tunnel.server.receive_all_or_reset().await, (vec![], false));
            tunnel.server.finish().await;
            assert_eq!(tunnel.receive_all().await, (vec![], None));
        }
    });
}

#[test]
fn tunnel_ends_close_independently() {
    on_every_driver(|site| async move {
        let way = ProxiedServer::new(&site, "", "");
        let large = bytes(LARGE);
        let mut tunnel = way.tunnel(WINDOW).await;
        tunnel.say(b"that is all").await;
        tunnel.finish().await;
        let heard = tunnel.server.receive_all_or_reset().await;
        assert_eq!(heard, (b"that is all".to_vec(), false));
        let (stream, sent) = (Rc::clone(&tunnel.server.stream), large.clone());
        site.core.spawn(async move {
            send_bytes(&stream, &sent).await.expect("it is taken");
            stream.shutdown().await.expect("it ends");
        });
        assert!(tunnel.receive_all().await == (large.clone(), None));

        let mut tunnel = way.tunnel(WINDOW).await;
        tunnel.server.send(b"that is all").await;
        tunnel.server.finish().await;
        while !tunnel.client.of(tunnel.stream).is_whole {
            tunnel.client.receive().await;
        }
        assert_eq!(tunnel.client.of(tunnel.stream).body, b"that is all");
        let (stream, mut server) = (tunnel.stream, tunnel.server);
        let heard = Rc::new(RefCell::new(None));
        let hears = Rc::clone(&heard);
        site.core.spawn(async move {
            hears.replace(Some(server.receive_all_or_reset().await));
        });
        tunnel.client.send_body(stream, &large).await;
        tunnel.client.flush().await;
        site.until("the server has heard all", || heard.borrow().is_some())
            .await;
        assert!(heard.take() == Some((large, false)));
    });
}

#[test]
fn reset_is_forwarded() {
    on_every_driver(|site| async move {
        let way = ProxiedServer::new(&site, "", "");
        let mut tunnel = way.tunnel(WINDOW).await;
        let (client, stream) = (&mut tunnel.client, tunnel.stream);
        client.http.reset(stream, Code::CANCEL, &mut client.out);
        client.flush().await;
        assert_eq!(tunnel.server.receive_all_or_reset().await, (vec![], true));
        // The client's connection stays usable, and one tunnel that breaks does not affect others.
        let mut tunnel = way.tunnel_of(tunnel.client).await;
        tunnel.server.stream.reset_when_dropped();
        tunnel.server = site.connect(&way.proxy).await;
        assert_eq!(tunnel.receive_all().await, (vec![], Some(Code::CANCEL)));
        assert_eq!(tunnel.client.get("/fixed").await.body, b"hello");
        // A closed connection ends its tunnels.
        let tunnel = way.tunnel_of(tunnel.client).await;
        tunnel.client.stream.reset_when_dropped();
        drop(tunnel.client);
        let mut server = tunnel.server;
        assert_eq!(server.receive_all_or_reset().await, (vec![], true));
    });
}

#[test]
fn slow_reader_stalls_only_its_tunnel() {
    on_simulated_cores(|site| async move {
        let way = ProxiedServer::new(&site, "[timeouts]\nclient_send = \"5s\"", "");
        // A client that opens no window stalls its server, and the connection is kept.
        let mut tunnel = way.tunnel(0).await;
        let stream = Rc::clone(&tunnel.server.stream);
        site.core.spawn(async move {
            let _ = send_bytes(&stream, &bytes(LARGE)).await;
        });
        for _ in 0..10 {
            site.core.sleep(Duration::from_secs(10)).await;
            tunnel
                .client
                .stream
                .set_deadline(Some(site.core.now_exact() + PATIENCE));
            assert!(site.core.pool().in_use() <= 2);
            tunnel.say(b"x").await;
            assert_eq!(tunnel.server.receive_exactly(1).await, b"x");
        }
        // A server that reads nothing: the client can fill the window of the stream and no more.
        let client = Http2Client::connect(&site, &way.proxy, WINDOW).await;
        let mut tunnel = way.tunnel_of(client).await;
        let mut sent = 0;
        loop {
            let (client, stream) = (&mut tunnel.client, tunnel.stream);
            let room = client.http.sendable(stream);
            if room == 0 {
                site.core.sleep(Duration::from_secs(1)).await;
                client
                    .stream
                    .set_deadline(Some(site.core.now_exact() + PATIENCE));
                // Other streams of this connection still work.
                assert_eq!(client.get("/fixed").await.body, b"hello");
                if client.http.sendable(stream) == 0 {
                    break;
                }
                continue;
            }
            let written = client.http.data(stream, room, End::Open, &mut client.out);
            written.expect("it is open");
            client.out.resize(client.out.len() + room, b'x');
            client.flush().await;
            sent += room;
            assert!(sent < 2 * LARGE, "nothing holds it up");
        }
        assert!(site.core.pool().in_use() <= 4);
        assert_eq!(tunnel.server.receive_exactly(sent).await.len(), sent);
    });
}

#[test]
fn idle_tunnel_is_closed() {
    on_simulated_cores(|site| async move {
        let way = ProxiedServer::new(&site, "[timeouts]\ntunnel_idle = \"10s\"", "");
        for window in [WINDOW, 4] {
            let mut tunnel = way.tunnel(window).await;
            let deadline = || Some(site.core.now_exact() + PATIENCE);
            for _ in 0..5 {
                site.core.sleep(Duration::from_secs(7)).await;
                tunnel.client.stream.set_deadline(deadline());
                tunnel.server.stream.set_deadline(deadline());
                tunnel.server.send(b"ping").await;
                assert_eq!(tunnel.receive_exactly(4).await, b"ping");
                site.core.sleep(Duration::from_secs(7)).await;
                tunnel.say(b"pong").await;
                assert_eq!(tunnel.server.receive_exactly(4).await, b"pong");
            }
            tunnel.server.send(b"more than the smaller window").await;
            let before = site.core.now();
            tunnel.client.stream.set_deadline(deadline());
            tunnel.server.stream.set_deadline(deadline());
            while tunnel.client.of(tunnel.stream).reset.is_none() {
                tunnel.client.receive().await;
            }
            let waited = site.core.now().since(before);
            assert!(waited >= Duration::from_secs(10), "{waited:?}");
            assert!(waited < Duration::from_secs(11), "{waited:?}");
            assert_eq!(tunnel.receive_all().await.1, Some(Code::CANCEL));
            assert!(tunnel.server.receive_all_or_reset().await.1);
            assert_eq!(tunnel.client.get("/fixed").await.body, b"hello");
        }
    });
}

#[test]
fn declined_upgrade_is_an_ordinary_response() {
    on_every_driver(|site| async move {
        let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
        let lie = grant("sec-websocket-key: another\r\n");
        let silence =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
        let deaf = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        for (said, status) in [(refusal, 403), (&lie, 502), (silence, 502), (deaf, 502)] {
            let server = site.upstream(&[&[Step::Read, send(said), Step::WaitForEnd]]);
            let plan = configured(&format!(
                "[[route]]\nforward = \"http://{}\"\n",
                server.address
            ));
            let (address, service) = site.serve_worker(&plan);
            let mut client = Http2Client::connect(&site, &address, WINDOW).await;
            let stream = client.open_by(&EXTENDED, Content::Any, End::Open);
            let response = client.response(stream).await;
            assert_eq!(response.status, status, "{said}");
            // The rest of the stream is reset.
            while client.http.is_open(stream) {
                client.receive().await;
            }
            assert_eq!(service.worker.meter.totals().tunnels, 0, "{said}");
        }
    });
}

#[test]
fn generated_response_opens_no_tunnel() {
    on_every_driver(|site| async move {
        let way = ProxiedServer::new(&site, "", "");
        let mut client = Http2Client::connect(&site, &way.proxy, WINDOW).await;
        let mut fields = EXTENDED;
        fields[3] = (":path", "/fixed");
        let stream = client.open_by(&fields, Content::Any, End::Open);
        assert_eq!(client.response(stream).await.status, 501);
        assert_eq!(client.get("/fixed").await.status, 200);
    });
}

#[test]
fn unsupported_connect_gets_501() {
    on_every_driver(|site| async move {
        let way = ProxiedServer::new(&site, "", "");
        let mut client = Http2Client::connect(&site, &way.proxy, WINDOW).await;
        let plain = [(":method", "CONNECT"), (":authority", "example.org:443")];
        let mut other = EXTENDED;
        other[1].1 = "connect-udp";
        for fields in [&plain[..], &other] {
            let stream = client.open_by(fields, Content::Any, End::Open);
            assert_eq!(client.response(stream).await.status, 501, "{fields:?}");
        }
        assert_eq!(client.get("/fixed").await.body, b"hello");
    });
}

#[test]
fn access_rules_apply_to_extended_connect() {
    on_every_driver(|site| async move {
        let route = "rate_limit = { key = \"route\", concurrent = 1 }\nresponse_headers = { add = { X-Added = \"1\" } }\nrequest_headers = { set = { X-Set = \"2\" } }";
        let way = ProxiedServer::new(&site, "", route);
        let mut tunnel = way.tunnel(WINDOW).await;
        assert_eq!(tunnel.client.of(tunnel.stream).fields["x-added"], "1");
        let client = &mut tunnel.client;
        let second = client.open_by(&EXTENDED, Content::Any, End::Open);
        assert_eq!(client.response(second).await.status, 429);
        let seen = || way.service.worker.meter.take_seen();
        assert_eq!(seen().len(), 1);
        tunnel.finish().await;
        tunnel.server.finish().await;
        assert_eq!(tunnel.receive_all().await, (vec![], None));
        site.until("the tunnel is over", || seen().len() == 1).await;
        let mut client = tunnel.client;
        let third = client.open_by(&EXTENDED, Content::Any, End::Open);
        client.flush().await;
        let (_server, head) = way.asked().await;
        assert_eq!(field(&head, "x-set"), "2");
        assert!(client.http.is_open(third));
    });
}

#[test]
fn trailers_in_tunnel_reset_stream() {
    on_every_driver(|site| async move {
        let way = ProxiedServer::new(&site, "", "");
        let mut tunnel = way.tunnel(WINDOW).await;
        let (client, stream) = (&mut tunnel.client, tunnel.stream);
        let trailers = client
            .http
            .trailers(stream, &mut client.out, |encoder, out| {
                encoder.field(b"x", b"y", Indexing::Without, out);
            });
        trailers.expect("it is open");
        client.flush().await;
        let code = tunnel.receive_all().await.1;
        assert_eq!(code, Some(Code::PROTOCOL_ERROR));
        assert_eq!(tunnel.server.receive_all_or_reset().await, (vec![], true));
        // Other streams of the connection continue.
        assert_eq!(tunnel.client.get("/fixed").await.body, b"hello");
    });
}

#[test]
fn stop_drains_then_cuts_off_tunnel() {
    let kept: Rc<RefCell<Vec<Tunnel>>> = Rc::default();
    let cut_off = cut_off_on_every_driver(|site| {
        let kept = Rc::clone(&kept);
        async move {
            let way = ProxiedServer::new(&site, "", "");
            let mut tunnel = way.tunnel(WINDOW).await;
            // Long enough on a busy machine.
            site.core.stop(Duration::from_secs(1));
            while tunnel.client.goaway_code.is_none() {
                tunnel.client.receive().await;
            }
            tunnel.say(b"more").await;
            assert_eq!(tunnel.server.receive_exactly(4).await, b"more");
            // Nothing is left in flight, in a buffer that the core would miss.
            while tunnel.client.last.len() < 2 {
                tunnel.client.flush().await;
                tunnel.client.receive().await;
            }
            kept.borrow_mut().push(tunnel);
        }
    });
    // The connection's task and the tunnel's task.
    assert!(cut_off.iter().all(|&count| count == 2), "{cut_off:?}");
    for tunnel in kept.take() {
        assert_eq!(tunnel.server.rest(), (vec![], true));
    }
}
