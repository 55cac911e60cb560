//! WebSocket to HTTP/2 servers (RFC 8441): clients of both versions get a tunnel on a stream of a shared connection,
//! which behaves like one to an HTTP/1 server.

mod server;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::Scheme;
use onrush_engine::Address;
use onrush_http::http2::code::Code;
use onrush_http::http2::{self, Cause, Content, End, LocalSettings};

use self::server::{ANNOUNCED, Server, ServerRequest, Speaks};
use super::http2::Http2Client;
use crate::observe::record;
use crate::server::explain::{ExplainRequest, Explainer, Outcome};
use crate::site::service::Service;
use crate::testing::harness::{
    PATIENCE, Peer, TestCore, configured, cut_off_on_every_driver, on_every_driver,
    on_simulated_cores,
};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// The corresponding `Sec-WebSocket-Accept` (RFC 6455 1.3).
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const WINDOW: u32 = 65_535;

/// More than all windows and buffers on the path, so that flow control is used.
const LARGE: usize = 1 << 20;

/// The client's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    Http1,
    Http2,
}

const VERSIONS: [Version; 2] = [Version::Http1, Version::Http2];

/// A proxy in front of a server.
struct Http2ProxiedServer {
    site: TestCore,
    server: Rc<Server>,
    proxy: Address,
    service: Rc<Service>,
    window: u32,
}

/// The client's end of a request.
enum Client {
    Http1(Peer),
    Http2(Box<Http2Client>, http2::Stream),
}

struct Tunnel {
    site: TestCore,
    client: Client,
    server: ServerRequest,
}

fn plan(server: std::net::SocketAddr, (top, group): (&str, &str)) -> Plan {
    configured(&format!(
        "{top}\n[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"hello\" }}\n\
         [[route]]\nforward = \"up\"\n\
         [upstream.up]\nservers = [\"{server}\"]\nprotocol = \"h2\"\n{group}\n"
    ))
}

impl Http2ProxiedServer {
    fn new(site: &TestCore) -> Self {
        Self::with(site, ("", ""), ANNOUNCED, Speaks::AtOnce)
    }

    fn with(site: &TestCore, more: (&str, &str), settings: LocalSettings, speaks: Speaks) -> Self {
        let (server, address) = Server::start(site, settings, speaks);
        Self::between(site, server, site.serve_worker(&plan(address, more)))
    }

    /// An existing proxy in front of its server.
    fn between(
        site: &TestCore,
        server: Rc<Server>,
        (proxy, service): (Address, Rc<Service>),
    ) -> Self {
        Self {
            site: site.clone(),
            server,
            proxy,
            service,
            window: WINDOW,
        }
    }

    /// A client that has requested a WebSocket.
    async fn client(&self, version: Version) -> Client {
        match version {
            Version::Http1 => {
                let client = self.site.connect(&self.proxy).await;
                client.send(ask("").as_bytes()).await;
                Client::Http1(client)
            }
            Version::Http2 => {
                let mut client = Http2Client::connect(&self.site, &self.proxy, self.window).await;
                let stream = client.ask();
                client.flush().await;
                Client::Http2(Box::new(client), stream)
            }
        }
    }

    async fn tunnel(&self, version: Version) -> Tunnel {
        self.tunnel_on(version, 0).await
    }

    async fn tunnel_on(&self, version: Version, number: usize) -> Tunnel {
        let mut client = self.client(version).await;
        let server = self.server.asked(&self.site, number).await;
        server.respond(200, &[], End::Open);
        let (status, _) = client.head().await;
        assert_eq!(status, version.agreed());
        Tunnel {
            site: self.site.clone(),
            client,
            server,
        }
    }

    /// Another client gets a response over the same server connection.
    async fn get(&self) {
        let client = self.site.connect(&self.proxy).await;
        client.send(b"GET /other HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let asked = self.server.asked(&self.site, 0).await;
        assert_eq!(asked.field(":path"), "/other");
        asked.respond(200, &[("content-length", "2")], End::Open);
        asked.say(b"ok");
        asked.end();
        let mut client = client;
        let response = client.receive_message().await;
        assert!(
            response.ends_with("\n\nok") || response.ends_with("\r\n\r\nok"),
            "{response}"
        );
    }

    fn end(&self) {
        let all = self.server.connections.borrow();
        all.iter().for_each(|far| far.close());
    }

    fn seen(&self) -> Vec<(Option<u16>, record::RequestEnd)> {
        let seen = self.service.worker.meter.take_seen();
        seen.iter().map(|it| (it.status, it.end)).collect()
    }

    fn tunnels(&self) -> u64 {
        self.service.worker.meter.totals().tunnels
    }
}

fn ask(more: &str) -> String {
    format!(
        "GET /chat?a=b HTTP/1.1\r\nHost: example.org\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat, talk\r\nSec-WebSocket-Extensions: permessage-deflate\r\n{more}\r\n"
    )
}

impl Http2Client {
    fn ask(&mut self) -> http2::Stream {
        let fields = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":path", "/chat?a=b"),
            (":authority", "example.org"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "chat, talk"),
            ("sec-websocket-extensions", "permessage-deflate"),
        ];
        self.open_by(&fields, Content::Tunnel, End::Open)
    }
}

impl Version {
    /// The status of a response that opens a tunnel.
    fn agreed(self) -> u16 {
        match self {
            Version::Http1 => 101,
            Version::Http2 => 200,
        }
    }
}

impl Client {
    /// Status and fields of the response.
    async fn head(&mut self) -> (u16, Vec<(String, String)>) {
        match self {
            Client::Http1(peer) => {
                let head = peer.receive_until(b"\r\n\r\n").await;
                let head = String::from_utf8(head).expect("text");
                let fields = head.lines().filter_map(|line| line.split_once(": "));
                let owned =
                    |(name, value): (&str, &str)| (name.to_ascii_lowercase(), value.to_owned());
                (
                    head[9..12].parse().expect("a status"),
                    fields.map(owned).collect(),
                )
            }
            Client::Http2(client, stream) => {
                let id = stream.id();
                while client.responses.get(&id).is_none_or(|it| it.status == 0) {
                    client.receive().await;
                }
                let response = &client.responses[&id];
                (
                    response.status,
                    response.fields.clone().into_iter().collect(),
                )
            }
        }
    }

    async fn say(&mut self, bytes: &[u8]) {
        match self {
            Client::Http1(peer) => peer.send_in_background(bytes),
            Client::Http2(client, stream) => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let room = client.http.sendable(*stream).min(rest.len());
                    client.flush().await;
                    if room == 0 {
                        client.receive().await;
                        continue;
                    }
                    let (piece, then) = rest.split_at(room);
                    rest = then;
                    let written = client.http.data(*stream, room, End::Open, &mut client.out);
                    written.expect("it is open");
                    client.out.extend_from_slice(piece);
                }
                client.flush().await;
            }
        }
    }

    /// Sends until flow control stops it.
    async fn press(&mut self, site: &TestCore) {
        let (client, stream) = match self {
            Client::Http1(peer) => {
                peer.send_in_background(&bytes(LARGE));
                return site.core.sleep(Duration::from_secs(2)).await;
            }
            Client::Http2(client, stream) => (client, *stream),
        };
        let mut sent = 0;
        while client.http.sendable(stream) > 0 {
            let room = client.http.sendable(stream);
            let written = client.http.data(stream, room, End::Open, &mut client.out);
            written.expect("it is open");
            client.out.resize(client.out.len() + room, b'x');
            client.flush().await;
            sent += room;
            assert!(sent < LARGE, "nothing holds it up");
            site.core.sleep(Duration::from_secs(1)).await;
            // Other streams of this connection still work.
            assert_eq!(client.get("/fixed").await.body, b"hello");
        }
    }

    async fn finish(&mut self) {
        match self {
            Client::Http1(peer) => peer.finish().await,
            Client::Http2(client, stream) => {
                let written = client.http.data(*stream, 0, End::Stream, &mut client.out);
                written.expect("it is open");
                client.flush().await;
            }
        }
    }

    /// Breaks the tunnel.
    async fn reset(self) {
        match self {
            Client::Http1(peer) => peer.stream.reset_when_dropped(),
            Client::Http2(mut client, stream) => {
                client.http.reset(stream, Code::CANCEL, &mut client.out);
                client.flush().await;
            }
        }
    }

    async fn hear(&mut self, count: usize) -> Vec<u8> {
        match self {
            Client::Http1(peer) => peer.receive_exactly(count).await,
            Client::Http2(client, stream) => {
                let id = stream.id();
                while client
                    .responses
                    .get(&id)
                    .is_none_or(|it| it.body.len() < count)
                {
                    client.flush().await;
                    client.receive().await;
                }
                let body = &mut client.responses.get_mut(&id).expect("just seen").body;
                let rest = body.split_off(count);
                std::mem::replace(body, rest)
            }
        }
    }

    /// Receives until the end; returns whether that is a reset.
    async fn hear_all(&mut self) -> (Vec<u8>, bool) {
        match self {
            Client::Http1(peer) => peer.receive_all_or_reset().await,
            Client::Http2(client, stream) => {
                let response = client.response(*stream).await;
                if let Some(cause) = response.reset {
                    assert_eq!(cause, Cause::Peer(Code::CANCEL));
                }
                (response.body, response.reset.is_some())
            }
        }
    }

    /// Restarts the deadline of receiving.
    fn wait_anew(&self, site: &TestCore) {
        let until = Some(site.core.now_exact() + PATIENCE);
        match self {
            Client::Http1(peer) => peer.stream.set_deadline(until),
            Client::Http2(client, _) => client.stream.set_deadline(until),
        }
    }
}

impl Tunnel {
    async fn hear(&self, count: usize) -> Vec<u8> {
        self.server.hear(&self.site, count).await
    }

    async fn hear_all(&self) -> (Vec<u8>, Option<Code>) {
        self.server.hear_all(&self.site).await
    }

    /// Closes both ends.
    async fn finish(mut self) {
        self.client.finish().await;
        assert_eq!(self.hear_all().await, (vec![], None));
        self.server.end();
        assert_eq!(self.client.hear_all().await, (vec![], false));
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

#[test]
fn upgrade_becomes_extended_connect() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            let mut client = way.client(version).await;
            let server = way.server.asked(&site, 0).await;
            let via = match version {
                Version::Http1 => "1.1 onrush",
                Version::Http2 => "2.0 onrush",
            };
            let wanted = [
                (":authority", "example.org"),
                (":method", "CONNECT"),
                (":path", "/chat?a=b"),
                (":protocol", "websocket"),
                (":scheme", "http"),
                ("sec-websocket-extensions", "permessage-deflate"),
                ("sec-websocket-protocol", "chat, talk"),
                ("sec-websocket-version", "13"),
                ("via", via),
                ("x-forwarded-for", "127.0.0.1"),
                ("x-forwarded-host", "example.org"),
                ("x-forwarded-proto", "http"),
            ];
            let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(server.of(|it| it.fields.clone()), wanted.into());
            assert!(!server.of(|it| it.has_ended));
            // Data that the client sends before the response belongs to the tunnel, and so does data sent with the
            // response.
            client.say(b"early").await;
            let fields = [
                ("sec-websocket-protocol", "talk"),
                ("sec-websocket-extensions", "x"),
                ("sec-websocket-accept", "of nobody"),
                ("content-length", "0"),
            ];
            server.respond(200, &fields, End::Open);
            server.say(b"hello");
            let (status, fields) = client.head().await;
            assert_eq!(status, version.agreed());
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect();
            let find = |wanted: &str| {
                let found = fields.iter().filter(|(name, _)| *name == wanted);
                found.map(|(_, value)| *value).collect::<Vec<_>>()
            };
            assert_eq!(find("sec-websocket-protocol"), ["talk"]);
            assert_eq!(find("sec-websocket-extensions"), ["x"]);
            assert_eq!(find("content-length"), [""; 0]);
            match version {
                Version::Http1 => {
                    assert_eq!(find("sec-websocket-accept"), [ACCEPT]);
                    assert_eq!(
                        (find("connection"), find("upgrade")),
                        (vec!["upgrade"], vec!["websocket"])
                    );
                }
                Version::Http2 => assert_eq!(find("sec-websocket-accept"), [""; 0]),
            }
            let tunnel = Tunnel {
                site: site.clone(),
                client,
                server,
            };
            let mut tunnel = tunnel;
            assert_eq!(tunnel.client.hear(5).await, b"hello");
            assert_eq!(tunnel.hear(5).await, b"early");
            assert_eq!(way.seen(), []);
            tunnel.finish().await;
            let is_over = || way.service.worker.meter.totals().tunnels == 1;
            site.until("the tunnel is over", is_over).await;
            assert_eq!(way.seen(), [(Some(101), record::RequestEnd::Complete)]);
        }
    });
}

#[test]
fn tunnel_is_full_duplex() {
    on_every_driver(|site| async move {
        for (version, window) in [
            (Version::Http1, WINDOW),
            (Version::Http2, WINDOW),
            (Version::Http2, 700),
        ] {
            let mut way = Http2ProxiedServer::new(&site);
            way.window = window;
            let mut tunnel = way.tunnel(version).await;
            for length in [1, 2, 125, 126, 65_535, 65_536, 3] {
                let message = bytes(length);
                tunnel.client.say(&message).await;
                assert!(tunnel.hear(length).await == message);
                tunnel.server.say(&message);
                assert!(tunnel.client.hear(length).await == message);
            }
            let large = bytes(LARGE);
            tunnel.server.say(&large);
            tunnel.client.say(&large).await;
            assert!(tunnel.client.hear(LARGE).await == large);
            assert!(tunnel.hear(LARGE).await == large);
            tunnel.finish().await;
            assert_eq!(way.server.connections.borrow().len(), 1);
        }
    });
}

#[test]
fn tunnel_ends_close_independently() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            let large = bytes(LARGE);
            let mut tunnel = way.tunnel(version).await;
            match &mut tunnel.client {
                Client::Http1(peer) => peer.send(b"that is all").await,
                client @ Client::Http2(..) => client.say(b"that is all").await,
            }
            tunnel.client.finish().await;
            assert_eq!(tunnel.hear_all().await, (b"that is all".to_vec(), None));
            tunnel.server.say(&large);
            tunnel.server.end();
            assert!(tunnel.client.hear_all().await == (large.clone(), false));

            let mut tunnel = way.tunnel(version).await;
            tunnel.server.say(b"that is all");
            tunnel.server.end();
            match &mut tunnel.client {
                Client::Http1(peer) => {
                    assert_eq!(
                        peer.receive_all_or_reset().await,
                        (b"that is all".to_vec(), false)
                    );
                    peer.send(&large).await;
                }
                Client::Http2(client, stream) => {
                    while !client
                        .responses
                        .get(&stream.id())
                        .is_some_and(|it| it.is_whole)
                    {
                        client.receive().await;
                    }
                    assert_eq!(client.responses[&stream.id()].body, b"that is all");
                    tunnel.client.say(&large).await;
                }
            }
            tunnel.client.finish().await;
            assert!(tunnel.hear_all().await == (large, None));
            let is_over = || way.tunnels() == 2;
            site.until("the tunnels are over", is_over).await;
            assert_eq!(way.seen(), [(Some(101), record::RequestEnd::Complete); 2]);
        }
    });
}

#[test]
fn server_may_end_stream_with_response() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            let mut client = way.client(version).await;
            let server = way.server.asked(&site, 0).await;
            server.respond(200, &[], End::Stream);
            assert_eq!(client.head().await.0, version.agreed());
            assert_eq!(client.hear_all().await, (vec![], false));
            client.finish().await;
            assert_eq!(server.hear_all(&site).await, (vec![], None));
        }
    });
}

#[test]
fn reset_is_forwarded() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            let tunnel = way.tunnel(version).await;
            let Tunnel { client, server, .. } = tunnel;
            client.reset().await;
            assert_eq!(server.hear_all(&site).await, (vec![], Some(Code::CANCEL)));

            let mut tunnel = way.tunnel(version).await;
            tunnel.server.say(b"ten bytes.");
            assert_eq!(tunnel.client.hear(10).await, b"ten bytes.");
            tunnel.server.reset(Code::INTERNAL_ERROR);
            assert_eq!(tunnel.client.hear_all().await, (vec![], true));
            // The connection stays usable.
            way.get().await;

            // A server that has ended its side and resets the stream has broken the tunnel, too (RFC 9113 8.1).
            let mut tunnel = way.tunnel(version).await;
            tunnel.server.say(b"bye");
            tunnel.server.end();
            assert_eq!(tunnel.client.hear(3).await, b"bye");
            if let Client::Http1(peer) = &mut tunnel.client {
                assert_eq!(peer.receive_all_or_reset().await, (vec![], false));
            }
            let before = way.tunnels();
            tunnel.server.reset(Code::NO_ERROR);
            let has_ended = || way.tunnels() > before;
            site.until("the tunnel is over", has_ended).await;

            // A closed connection ends its tunnels.
            let mut tunnel = way.tunnel(version).await;
            way.server.far(0).expect("it is there").close();
            assert_eq!(tunnel.client.hear_all().await, (vec![], true));
            let seen = way.seen();
            let broken = seen
                .iter()
                .filter(|it| **it == (Some(101), record::RequestEnd::Broken));
            assert_eq!(broken.count(), 4, "{seen:?}");
        }
    });
}

#[test]
fn client_hangup_ends_blocked_tunnel() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            let Tunnel {
                mut client, server, ..
            } = way.tunnel(version).await;
            server.be_deaf();
            match &mut client {
                Client::Http1(peer) => peer.send_in_background(&bytes(LARGE)),
                client @ Client::Http2(..) => client.say(&bytes(WINDOW as usize)).await,
            }
            let is_full = || server.of(|it| it.received.len() == WINDOW as usize);
            site.until("its window is full", is_full).await;
            client.reset().await;
            assert_eq!(server.hear_all(&site).await.1, Some(Code::CANCEL));
        }
    });
}

#[test]
fn server_without_extended_connect_gets_501() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way =
                Http2ProxiedServer::with(&site, ("", ""), LocalSettings::DEFAULT, Speaks::AtOnce);
            for requests in 0..2 {
                let mut client = way.client(version).await;
                assert_eq!(client.head().await.0, 501);
                assert_eq!(way.seen(), [(Some(501), record::RequestEnd::Complete)]);
                // At the first request the settings were unknown, at the second they are known.
                way.get().await;
                assert_eq!(way.seen().len(), 1);
                assert_eq!(
                    way.server.far(0).map(|far| far.requests()),
                    Some(requests + 1)
                );
            }
            assert_eq!(way.tunnels(), 0);
            assert_eq!(way.server.connections.borrow().len(), 1);
        }
    });
}

#[test]
fn upgrade_waits_for_server_settings_frame() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            for (settings, status) in [(ANNOUNCED, version.agreed()), (LocalSettings::DEFAULT, 501)]
            {
                let way = Http2ProxiedServer::with(&site, ("", ""), settings, Speaks::Later);
                let mut client = way.client(version).await;
                let mut other = site.connect(&way.proxy).await;
                other.send(b"GET /other HTTP/1.1\r\nHost: h\r\n\r\n").await;
                let asked = way.server.asked(&site, 0).await;
                assert_eq!(asked.field(":path"), "/other");
                assert_eq!(asked.far.requests(), 1);
                asked.respond(200, &[("content-length", "0")], End::Stream);
                asked.far.speak();
                assert!(other.receive_text().await.starts_with("HTTP/1.1 200 "));
                if status != 501 {
                    let server = way.server.asked(&site, 0).await;
                    server.respond(200, &[], End::Open);
                }
                assert_eq!(client.head().await.0, status);
                way.end();
            }
        }
    });
}

#[test]
fn missing_settings_time_out_like_connect() {
    on_simulated_cores(|site| async move {
        for version in VERSIONS {
            let top = "[timeouts]\nconnect = \"3s\"";
            let way = Http2ProxiedServer::with(&site, (top, ""), ANNOUNCED, Speaks::Later);
            let before = site.core.now();
            let mut client = way.client(version).await;
            assert_eq!(client.head().await.0, 504);
            let waited = site.core.now().since(before);
            assert!(waited >= Duration::from_secs(3), "{waited:?}");
            assert!(waited < Duration::from_secs(4), "{waited:?}");
            assert_eq!(way.server.far(0).map(|far| far.requests()), Some(0));
        }
    });
}

#[test]
fn declined_upgrade_is_an_ordinary_response() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            for fields in [
                &[("content-length", "1"), ("x-why", "1")][..],
                &[("x-why", "1")],
            ] {
                let mut client = way.client(version).await;
                let server = way.server.asked(&site, 0).await;
                server.respond(403, fields, End::Open);
                server.say(b"!");
                server.end();
                match &mut client {
                    Client::Http1(peer) => {
                        let response = peer.receive_text().await;
                        assert!(
                            response.starts_with("HTTP/1.1 403 Forbidden\r\n"),
                            "{response}"
                        );
                        assert!(
                            response.to_ascii_lowercase().contains("\r\nx-why: 1\r\n"),
                            "{response}"
                        );
                        let is_whole = response.ends_with("\r\n\r\n!")
                            || response.ends_with("\r\n\r\n1\r\n!\r\n0\r\n\r\n");
                        assert!(is_whole, "{response}");
                        assert!(!response.contains("Sec-WebSocket-Accept"), "{response}");
                        // The client's connection stays usable.
                        peer.send(b"GET /fixed HTTP/1.1\r\nHost: h\r\n\r\n").await;
                        assert!(peer.receive_text().await.ends_with("hello"));
                    }
                    Client::Http2(client, stream) => {
                        let response = client.response(*stream).await;
                        assert_eq!((response.status, &response.body[..]), (403, &b"!"[..]));
                        assert_eq!(response.fields["x-why"], "1");
                        assert_eq!(client.get("/fixed").await.body, b"hello");
                    }
                }
                // The rest of the stream is reset.
                let is_told = || server.of(|it| it.reset.is_some());
                site.until("the server knows", is_told).await;
            }
            assert_eq!(way.tunnels(), 0);
            way.get().await;
        }
    });
}

#[test]
fn processed_upgrade_is_not_retried() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            let mut client = way.client(version).await;
            let server = way.server.asked(&site, 0).await;
            server.reset(Code::INTERNAL_ERROR);
            assert_eq!(client.head().await.0, 502);
            assert_eq!(server.far.requests(), 1);
            // A refused stream was not processed and is retried (RFC 9113 8.7).
            let mut client = way.client(version).await;
            way.server.asked(&site, 0).await.reset(Code::REFUSED_STREAM);
            way.server
                .asked(&site, 0)
                .await
                .respond(200, &[], End::Open);
            assert_eq!(client.head().await.0, version.agreed());
            assert_eq!(server.far.requests(), 3);
            let mut client = way.client(version).await;
            way.server.asked(&site, 0).await.far.close();
            assert_eq!(client.head().await.0, 502);
            assert_eq!(way.server.connections.borrow().len(), 1);
        }
    });
}

#[test]
fn http_1_client_requires_websocket_key() {
    on_every_driver(|site| async move {
        let way = Http2ProxiedServer::new(&site);
        let key = format!("Sec-WebSocket-Key: {KEY}\r\n");
        for keys in ["", "Sec-WebSocket-Key: short\r\n", &key.repeat(2)] {
            let mut client = site.connect(&way.proxy).await;
            client.send(ask("").replace(&key, keys).as_bytes()).await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 400 "), "{keys}: {response}");
        }
        assert!(way.server.connections.borrow().is_empty());
    });
}

#[test]
fn explain_matches_forwarded_request() {
    on_every_driver(|site| async move {
        let (server, address) = Server::start(&site, ANNOUNCED, Speaks::AtOnce);
        let plan = plan(address, ("", ""));
        let checked = crate::site::check::check(plan.clone()).expect("it needs no files");
        let explainer = Explainer::new(checked).expect("it can be served");
        let explain = |request: &str| {
            let question = ExplainRequest {
                listener: 0,
                client: Some(([127, 0, 0, 1], 1).into()),
                scheme: Scheme::Http,
                bytes: request.as_bytes().to_vec(),
            };
            explainer.explain(&question).expect("there is memory")
        };
        let said = explain(&ask(""));
        let Outcome::Forward(forward) = &said.outcome else {
            panic!("{said:?}");
        };
        let to = &forward.groups[0];
        assert_eq!((to.target(), to.host()), ("/chat?a=b", "example.org"));
        assert!(
            said.unknown.iter().any(|it| it.contains("RFC 8441")),
            "{said:?}"
        );
        let lines = to.head.lines().filter_map(|line| line.split_once(": "));
        let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut client = site.connect(&site.serve(&plan)).await;
        client.send(ask("").as_bytes()).await;
        let asked = server.asked(&site, 0).await;
        assert_eq!(asked.of(|it| it.fields.clone()), lines.collect());
        asked.respond(403, &[("content-length", "0")], End::Stream);
        assert!(client.receive_text().await.starts_with("HTTP/1.1 403 "));
        let said = explain(&ask("").replace(KEY, "short"));
        let Outcome::Generated { status, .. } = said.outcome else {
            panic!("{said:?}");
        };
        assert_eq!(status, Some(400));
    });
}

#[test]
fn slow_reader_stalls_only_its_tunnel() {
    on_simulated_cores(|site| async move {
        for version in VERSIONS {
            // A client that reads nothing.
            let mut way = Http2ProxiedServer::with(
                &site,
                ("[timeouts]\nclient_send = \"5s\"", ""),
                ANNOUNCED,
                Speaks::AtOnce,
            );
            way.window = 0;
            let mut tunnel = way.tunnel(version).await;
            tunnel.server.say(&bytes(LARGE));
            let unsaid = || tunnel.server.unsaid();
            for round in 0..10 {
                site.core.sleep(Duration::from_secs(10)).await;
                tunnel.client.wait_anew(&site);
                assert!(unsaid() > LARGE / 2, "{round}: {}", unsaid());
                assert!(
                    site.core.pool().in_use() <= 2,
                    "{}",
                    site.core.pool().in_use()
                );
                way.get().await;
            }
            let left = unsaid();
            site.core.sleep(Duration::from_secs(10)).await;
            assert_eq!(unsaid(), left, "it is held up");
            // The other direction still works.
            tunnel.client.wait_anew(&site);
            tunnel.client.say(b"x").await;
            assert_eq!(tunnel.hear(1).await, b"x");
            if let Client::Http1(peer) = &mut tunnel.client {
                assert!(peer.receive_exactly(LARGE).await == bytes(LARGE));
            }
            way.end();

            // A server that reads nothing: its stream's window is filled, and the proxy holds a portion, or the
            // client's window.
            let window = ANNOUNCED.stream_window as usize;
            let settings = LocalSettings {
                connection_window: 4 * WINDOW,
                ..ANNOUNCED
            };
            let way = Http2ProxiedServer::with(&site, ("", ""), settings, Speaks::AtOnce);
            let mut tunnel = way.tunnel(version).await;
            tunnel.server.be_deaf();
            tunnel.client.press(&site).await;
            assert_eq!(tunnel.server.of(|it| it.received.len()), window);
            let held = site.core.pool().in_use();
            assert!(held <= 4, "{held}");
            tunnel.client.wait_anew(&site);
            for _ in 0..3 {
                way.get().await;
            }
            tunnel.server.say(b"y");
            assert_eq!(tunnel.client.hear(1).await, b"y");
            way.end();
        }
    });
}

#[test]
fn broken_tunnels_release_connection_window() {
    on_simulated_cores(|site| async move {
        for version in VERSIONS {
            // The connection's window is as large as the window of one stream.
            let group = "streams_max = 1\nconnections_shared_max = 1";
            let mut way = Http2ProxiedServer::with(&site, ("", group), ANNOUNCED, Speaks::AtOnce);
            way.window = 0;
            for _ in 0..3 {
                let tunnel = way.tunnel(version).await;
                tunnel.server.say(&bytes(LARGE));
                site.core.sleep(Duration::from_secs(10)).await;
                assert!(tunnel.server.unsaid() < LARGE);
                tunnel.client.reset().await;
            }
            way.window = WINDOW;
            let mut tunnel = way.tunnel(version).await;
            tunnel.server.say(&bytes(LARGE));
            assert!(tunnel.client.hear(LARGE).await == bytes(LARGE));
            way.end();
        }
    });
}

#[test]
fn idle_tunnel_is_closed() {
    on_simulated_cores(|site| async move {
        for (version, window) in [
            (Version::Http1, WINDOW),
            (Version::Http2, WINDOW),
            (Version::Http2, 4),
        ] {
            let top = "[timeouts]\ntunnel_idle = \"10s\"\nupstream_first_byte = \"2s\"\nupstream_body = \"2s\"";
            let mut way = Http2ProxiedServer::with(&site, (top, ""), ANNOUNCED, Speaks::AtOnce);
            way.window = window;
            let mut tunnel = way.tunnel(version).await;
            for _ in 0..5 {
                site.core.sleep(Duration::from_secs(7)).await;
                tunnel.client.wait_anew(&site);
                tunnel.server.say(b"ping");
                assert_eq!(tunnel.client.hear(4).await, b"ping");
                site.core.sleep(Duration::from_secs(7)).await;
                tunnel.client.wait_anew(&site);
                tunnel.client.say(b"pong").await;
                assert_eq!(tunnel.hear(4).await, b"pong");
            }
            tunnel.server.say(b"more than the smaller window");
            let before = site.core.now();
            assert_eq!(tunnel.hear_all().await, (vec![], Some(Code::CANCEL)));
            let waited = site.core.now().since(before);
            assert!(waited >= Duration::from_secs(10), "{waited:?}");
            assert!(waited < Duration::from_secs(11), "{waited:?}");
            assert!(tunnel.client.hear_all().await.1);
            way.get().await;
        }
    });
}

#[test]
fn half_closed_tunnel_has_its_own_timeout() {
    on_simulated_cores(|site| async move {
        for version in VERSIONS {
            let top = "[timeouts]\ntunnel_fin = \"10s\"";
            let way = Http2ProxiedServer::with(&site, (top, ""), ANNOUNCED, Speaks::AtOnce);
            let mut tunnel = way.tunnel(version).await;
            site.core.sleep(Duration::from_secs(100)).await;
            tunnel.client.finish().await;
            let before = site.core.now();
            assert_eq!(tunnel.hear_all().await, (vec![], None));
            assert!(tunnel.client.hear_all().await.1);
            let waited = site.core.now().since(before);
            assert!(waited >= Duration::from_secs(10), "{waited:?}");
            assert!(waited < Duration::from_secs(11), "{waited:?}");
        }
    });
}

#[test]
fn blocked_server_times_out() {
    on_simulated_cores(|site| async move {
        for version in VERSIONS {
            let top = "[timeouts]\ntunnel_idle = \"10s\"";
            let way = Http2ProxiedServer::with(&site, (top, ""), ANNOUNCED, Speaks::AtOnce);
            let mut tunnel = way.tunnel(version).await;
            tunnel.server.be_deaf();
            tunnel.client.press(&site).await;
            let (heard, code) = tunnel.hear_all().await;
            assert_eq!((heard.len(), code), (WINDOW as usize, Some(Code::CANCEL)));
            assert!(tunnel.client.hear_all().await.1);
        }
    });
}

#[test]
fn tunnel_survives_goaway() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let way = Http2ProxiedServer::new(&site);
            let mut tunnel = way.tunnel(version).await;
            tunnel.server.far.go_away();
            // Later requests use a new connection as soon as GOAWAY has arrived.
            tunnel.server.say(b"still here");
            assert_eq!(tunnel.client.hear(10).await, b"still here");
            let mut second = way.tunnel_on(version, 1).await;
            for tunnel in [&mut tunnel, &mut second] {
                tunnel.client.say(b"here, too").await;
                assert_eq!(tunnel.hear(9).await, b"here, too");
            }
            tunnel.finish().await;
            second.finish().await;
        }
    });
}

#[test]
fn tunnel_survives_reload() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let (server, address) = Server::start(&site, ANNOUNCED, Speaks::AtOnce);
            let (proxy, service, before) = site.serve_to_change(&plan(address, ("", "")));
            let way = Http2ProxiedServer::between(&site, server, (proxy, service));
            let mut tunnel = way.tunnel(version).await;
            let other = configured("[[route]]\nrespond = { status = 204 }\n");
            let _ = site.apply(&way.service, &before, &other);
            tunnel.client.say(b"still here").await;
            assert_eq!(tunnel.hear(10).await, b"still here");
            tunnel.server.say(b"me too");
            assert_eq!(tunnel.client.hear(6).await, b"me too");
            tunnel.finish().await;
        }
    });
}

#[test]
fn tunnel_occupies_one_stream() {
    on_every_driver(|site| async move {
        for version in VERSIONS {
            let group = "streams_max = 1\nconnections_shared_max = 1";
            let way = Http2ProxiedServer::with(&site, ("", group), ANNOUNCED, Speaks::AtOnce);
            let tunnel = way.tunnel(version).await;
            let mut waiting = way.client(version).await;
            let mut other = site.connect(&way.proxy).await;
            other.send(b"GET /fixed HTTP/1.1\r\nHost: h\r\n\r\n").await;
            assert!(other.receive_text().await.ends_with("hello"));
            let far = Rc::clone(&tunnel.server.far);
            assert_eq!(far.requests(), 1);
            tunnel.finish().await;
            let server = way.server.asked(&site, 0).await;
            server.respond(200, &[], End::Open);
            assert_eq!(waiting.head().await.0, version.agreed());
            assert_eq!(way.server.connections.borrow().len(), 1);
            way.end();
        }
    });
}

#[test]
fn stop_drains_then_cuts_off_tunnel() {
    for version in VERSIONS {
        let kept: Rc<RefCell<Vec<Tunnel>>> = Rc::default();
        let cut_off = cut_off_on_every_driver(|site| {
            let kept = Rc::clone(&kept);
            async move {
                let way = Http2ProxiedServer::new(&site);
                let mut tunnel = way.tunnel(version).await;
                // Long enough on a busy machine.
                site.core.stop(Duration::from_secs(1));
                site.until("it stops", || site.core.is_stopping()).await;
                match &mut tunnel.client {
                    Client::Http1(peer) => peer.send(b"more").await,
                    client @ Client::Http2(..) => client.say(b"more").await,
                }
                assert_eq!(tunnel.hear(4).await, b"more");
                // Nothing is left in flight, in a buffer that the core would miss.
                if let Client::Http2(client, _) = &mut tunnel.client {
                    while client.last.len() < 2 {
                        client.flush().await;
                        client.receive().await;
                    }
                }
                kept.borrow_mut().push(tunnel);
            }
        });
        eprintln!("{version:?}: {cut_off:?}");
        assert!(cut_off.iter().all(|&count| count >= 1), "{cut_off:?}");
        for tunnel in kept.take() {
            if let Client::Http1(client) = tunnel.client {
                assert_eq!(client.rest(), (vec![], true));
            }
        }
    }
}

#[test]
fn extended_connect_server_is_selected_from_group() {
    on_every_driver(|site| async move {
        let (others, servers): (Vec<_>, Vec<_>) = (0..4)
            .map(|_| Server::start(&site, LocalSettings::DEFAULT, Speaks::AtOnce))
            .unzip();
        let (server, address) = Server::start(&site, ANNOUNCED, Speaks::AtOnce);
        let all: Vec<_> = servers.iter().chain([&address]).collect();
        let all = all.iter().map(|it| format!("\"{it}\""));
        let all = all.collect::<Vec<_>>().join(", ");
        let (proxy, service) = site.serve_worker(&configured(&format!(
            "[[route]]\nforward = \"up\"\n[upstream.up]\nservers = [{all}]\nprotocol = \"h2\"\n"
        )));
        let way = Http2ProxiedServer::between(&site, server, (proxy, service));
        for version in VERSIONS {
            // More attempts than the retry budget allows.
            for _ in 0..20 {
                let tunnel = way.tunnel(version).await;
                drop(tunnel);
            }
        }
        for other in others {
            other
                .connections
                .borrow()
                .iter()
                .for_each(|far| far.close());
        }
        way.end();
    });
}
