//! Protocol upgrades: which requests get a tunnel, and that it forwards everything, ends when its ends do, and holds no
//! buffers while idle.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{OneLiner, ServerAddress};
use onrush_engine::{Address, Errno, Kind, Listener};

use crate::testing::harness::{
    Peer, Step, TestCore, cut_off_on_every_driver, forward, on_every_driver, on_simulated_cores,
    send, send_bytes,
};

const ASK: &str =
    "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const GRANT: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// More than all buffers on the path, so that flow control is used.
const LARGE: usize = 1 << 20;

/// A scripted server behind a proxy.
struct TunnelProxy {
    site: TestCore,
    listener: Listener,
    proxy: Address,
}

impl TunnelProxy {
    fn new(site: &TestCore, change: impl FnOnce(&mut Plan)) -> Self {
        let (listener, server) = site.listen();
        let what = OneLiner::Forward(vec![ServerAddress::Ip(server)]);
        let mut plan = Plan::one_liner(what, Vec::new());
        plan.forwarded.x_forwarded = false;
        change(&mut plan);
        Self {
            proxy: site.serve(&plan),
            site: site.clone(),
            listener,
        }
    }

    /// A tunnel: the client's end and the server's end.
    async fn tunnel(&self) -> (Peer, Peer) {
        let mut client = self.site.connect(&self.proxy).await;
        client.send(ASK.as_bytes()).await;
        let mut server = Peer::new(self.listener.accept().await.expect("a connection"));
        server.receive_until(b"\r\n\r\n").await;
        server.send(GRANT.as_bytes()).await;
        client.receive_until(b"\r\n\r\n").await;
        (client, server)
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

/// The request as received by the server, which responds with 200.
fn at_server(request: &str) -> String {
    let outcome = forward(&[&[Step::Read, send(OK)]], &request.replace('\n', "\r\n"));
    assert!(
        outcome.response.starts_with("HTTP/1.1 200 OK\n"),
        "{outcome:?}"
    );
    outcome.requests.concat().concat()
}

#[test]
fn upgrade_opens_tunnel() {
    let grant = "HTTP/1.1 101 Switching Protocols\r\nConnection: X-Mine, upgrade\r\nX-Mine: 1\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    let ask = ASK.replace(
        "\r\n\r\n",
        "\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    let outcome = forward(&[&[Step::Read, send(grant), Step::WaitForEnd]], &ask);
    assert_eq!(
        outcome.requests,
        [[
            "GET /chat HTTP/1.1\nHost: h\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nConnection: upgrade\nUpgrade: websocket\nVia: 1.1 onrush\n\n"
        ]]
    );
    assert_eq!(
        outcome.response,
        "HTTP/1.1 101 Switching Protocols\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\nDate: -----------------------------\nConnection: upgrade\nUpgrade: websocket\n\n"
    );
    assert_eq!(
        outcome.totals.to_string(),
        "1 requests on 1 connections: 1xx 1; 1 tunnels"
    );
}

#[test]
fn other_upgrades_are_not_forwarded() {
    let head = |fields: &str| format!("GET / HTTP/1.1\nHost: h\n{fields}\n");
    let plain = head("Via: 1.1 onrush\n");
    let asking = head("Connection: upgrade\nUpgrade: websocket\nVia: 1.1 onrush\n");
    for (fields, wanted) in [
        ("Connection: upgrade\nUpgrade: h2c\n", &plain),
        ("Connection: upgrade\nUpgrade: TLS/1.0\n", &plain),
        ("Connection: upgrade\nUpgrade: websocket2\n", &plain),
        ("Connection: x\nUpgrade: websocket\n", &plain),
        ("Connection: upgrade\nUpgrade: h2c, WebSocket\n", &asking),
        (
            "Connection: keep-alive, Upgrade\nUpgrade: websocket\n",
            &asking,
        ),
    ] {
        assert_eq!(&at_server(&head(fields)), wanted, "{fields}");
    }
}

#[test]
fn upgrade_requires_http_1_1_without_body() {
    let fields = "Host: h\nConnection: upgrade\nUpgrade: websocket\n";
    assert_eq!(
        at_server(&format!("POST / HTTP/1.1\n{fields}Content-Length: 1\n\nx")),
        "POST / HTTP/1.1\nHost: h\nContent-Length: 1\nVia: 1.1 onrush\n\nx"
    );
    assert_eq!(
        at_server(&format!("GET / HTTP/1.0\n{fields}\n")),
        "GET / HTTP/1.1\nHost: h\nVia: 1.0 onrush\n\n"
    );
}

#[test]
fn unrequested_101_gets_502() {
    let to = |protocol: &str| GRANT.replace("websocket", protocol);
    let h2c = ASK.replace("websocket", "h2c, websocket");
    let silent = GRANT.replace("Upgrade: websocket\r\n", "");
    for (request, grant) in [
        (GET, GRANT),
        (ASK, &to("h2c")),
        (&h2c, &to("h2c")),
        (ASK, &to("websocket, h2c")),
        (ASK, &silent),
    ] {
        let outcome = forward(&[&[Step::Read, send(grant), Step::WaitForEnd]], request);
        let status = "HTTP/1.1 502 Bad Gateway\n";
        assert!(outcome.response.starts_with(status), "{grant}: {outcome:?}");
        assert_eq!(outcome.totals.tunnels, 0, "{outcome:?}");
    }
}

#[test]
fn declined_upgrade_is_an_ordinary_response() {
    let refusal = send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno");
    let keeping = [Step::Read, refusal, Step::WaitForEnd];
    let outcome = forward(&[&keeping, &[Step::Read, send(OK)]], &[ASK, GET].concat());
    let (first, second) = outcome
        .response
        .split_once("HTTP/1.1 200 OK\n")
        .expect("two");
    assert!(
        first.starts_with("HTTP/1.1 426 ") && first.ends_with("\n\nno"),
        "{outcome:?}"
    );
    assert!(
        !first.contains("Connection:") && second.ends_with("\n\nok"),
        "{outcome:?}"
    );
    // A connection on which an upgrade was requested is not reused.
    assert_eq!(outcome.requests.len(), 2, "{outcome:?}");
}

#[test]
fn upgrade_uses_new_connection() {
    let granting = [Step::Read, send(GRANT), Step::WaitForEnd];
    let responding = [Step::Read, send(OK), Step::WaitForEnd];
    let outcome = forward(&[&responding, &granting], &[GET, ASK].concat());
    let requests: Vec<usize> = outcome.requests.iter().map(Vec::len).collect();
    assert_eq!(requests, [1, 1], "{outcome:?}");
    assert_eq!(outcome.totals.tunnels, 1, "{outcome:?}");
}

#[test]
fn tunnel_is_full_duplex() {
    on_every_driver(|site| async move {
        let (mut client, mut server) = TunnelProxy::new(&site, |_| {}).tunnel().await;
        for length in [1, 2, 125, 126, 65_535, 65_536, 3] {
            let message = bytes(length);
            client.send(&message).await;
            assert!(server.receive_exactly(length).await == message);
            server.send(&message).await;
            assert!(client.receive_exactly(length).await == message);
        }
        let large = bytes(LARGE);
        for stream in [&client.stream, &server.stream].map(Rc::clone) {
            let large = large.clone();
            site.core.spawn(async move {
                send_bytes(&stream, &large).await.expect("it is taken");
            });
        }
        assert!(client.receive_exactly(LARGE).await == large);
        assert!(server.receive_exactly(LARGE).await == large);
        client.finish().await;
        assert_eq!(server.receive_all_or_reset().await, (Vec::new(), false));
        server.finish().await;
        assert_eq!(client.receive_all_or_reset().await, (Vec::new(), false));
    });
}

#[test]
fn bytes_after_upgrade_heads_are_forwarded() {
    let script = [
        Step::Read,
        send(&format!("{GRANT}hello")),
        Step::ReadBytes(5),
        send("!"),
    ];
    let outcome = forward(&[&script], &format!("{ASK}early"));
    assert!(outcome.response.ends_with("\n\nhello!"), "{outcome:?}");
}

#[test]
fn tunnel_ends_close_independently() {
    on_every_driver(|site| async move {
        for client_is_first in [true, false] {
            let (client, server) = TunnelProxy::new(&site, |_| {}).tunnel().await;
            let (mut first, mut second) = match client_is_first {
                true => (client, server),
                false => (server, client),
            };
            first.send(b"that is all").await;
            first.finish().await;
            assert_eq!(
                second.receive_all_or_reset().await,
                (b"that is all".to_vec(), false)
            );
            let large = bytes(LARGE);
            let stream = Rc::clone(&second.stream);
            let sent = large.clone();
            site.core.spawn(async move {
                send_bytes(&stream, &sent).await.expect("it is taken");
                stream.shutdown().await.expect("it ends");
            });
            let (received, is_reset) = first.receive_all_or_reset().await;
            assert!(received == large && !is_reset, "{} bytes", received.len());
        }
    });
}

#[test]
fn reset_is_forwarded() {
    on_every_driver(|site| async move {
        for client_is_first in [true, false] {
            let (client, server) = TunnelProxy::new(&site, |_| {}).tunnel().await;
            let (first, mut second) = match client_is_first {
                true => (client, server),
                false => (server, client),
            };
            first.stream.reset_when_dropped();
            drop(first);
            assert_eq!(second.receive_all_or_reset().await, (Vec::new(), true));
        }
    });
}

#[test]
fn reset_is_forwarded_despite_data_in_flight() {
    /// Bulk data, which is spliced through a pipe; then the tunnel waits for more.
    const UPLOADED: usize = 2_600_000;
    on_every_driver(|site| async move {
        let way = TunnelProxy::new(&site, |_| {});
        for _ in 0..5 {
            let (mut client, mut server) = way.tunnel().await;
            let (stream, large) = (Rc::clone(&client.stream), bytes(UPLOADED));
            site.core.spawn(async move {
                send_bytes(&stream, &large).await.expect("it is taken");
            });
            assert!(server.receive_exactly(UPLOADED).await == bytes(UPLOADED));
            server.send(b"ten bytes.").await;
            server.stream.reset_when_dropped();
            drop(server);
            let (received, is_reset) = client.receive_all_or_reset().await;
            assert!(b"ten bytes.".starts_with(&received), "{received:?}");
            assert!(is_reset);
        }
    });
}

#[test]
fn client_hangup_ends_blocked_tunnel() {
    on_every_driver(|site| async move {
        let (client, server) = TunnelProxy::new(&site, |_| {}).tunnel().await;
        // As much as the buffers on the path hold.
        let until = site.core.now() + Duration::from_millis(200);
        client.stream.set_deadline(Some(until));
        while send_bytes(&client.stream, &bytes(LARGE)).await.is_ok() {}
        client.stream.reset_when_dropped();
        drop(client);
        let ended = poll_fn(|_| server.stream.poll_hung_up()).await;
        assert_eq!(ended.kind, Kind::Os(Errno::CONNRESET));
    });
}

#[test]
fn idle_tunnel_is_closed() {
    on_simulated_cores(|site| async move {
        let idle_max = |plan: &mut Plan| plan.timeouts.tunnel_idle = Duration::from_secs(10);
        let (mut client, mut server) = TunnelProxy::new(&site, idle_max).tunnel().await;
        // Traffic in one direction keeps the tunnel open.
        for _ in 0..5 {
            site.core.sleep(Duration::from_secs(7)).await;
            server.send(b"ping").await;
            assert_eq!(client.receive_exactly(4).await, b"ping");
        }
        assert_eq!(client.receive_all_or_reset().await, (Vec::new(), true));
        assert_eq!(server.receive_all_or_reset().await, (Vec::new(), true));
    });
}

#[test]
fn half_closed_tunnel_has_its_own_timeout() {
    on_simulated_cores(|site| async move {
        for ended in ["client", "server"] {
            let fin = |plan: &mut Plan| plan.timeouts.tunnel_fin = Duration::from_secs(10);
            let (client, server) = TunnelProxy::new(&site, fin).tunnel().await;
            site.core.sleep(Duration::from_secs(100)).await;
            let (mut ended, left) = match ended {
                "client" => (client, server),
                _ => (server, client),
            };
            ended.finish().await;
            // Traffic from the other end keeps the tunnel open.
            for _ in 0..5 {
                site.core.sleep(Duration::from_secs(7)).await;
                left.send(b"pong").await;
                assert_eq!(ended.receive_exactly(4).await, b"pong");
            }
            let before = site.core.now_exact();
            assert_eq!(ended.receive_all_or_reset().await, (Vec::new(), true));
            let passed = site.core.now_exact().since(before);
            assert!(passed < Duration::from_secs(11), "{passed:?}");
            drop(left);
        }
    });
}

#[test]
fn half_closed_tunnels_hold_no_buffers() {
    on_every_driver(|site| async move {
        // With io_uring the kernel holds up to 256 buffers.
        const TUNNELS: usize = 300;
        let way = TunnelProxy::new(&site, |_| {});
        let mut tunnels = Vec::new();
        for _ in 0..TUNNELS {
            let (client, mut server) = way.tunnel().await;
            client.send(b"x").await;
            assert_eq!(server.receive_exactly(1).await, b"x");
            client.finish().await;
            assert_eq!(server.receive_all_or_reset().await, (Vec::new(), false));
            tunnels.push((client, server));
        }
        site.until("fewer buffers than tunnels", || {
            site.core.pool().in_use() <= 256
        })
        .await;
    });
}

#[test]
fn request_timeout_does_not_apply_to_tunnel() {
    on_simulated_cores(|site| async move {
        let request = |plan: &mut Plan| plan.timeouts.request = Some(Duration::from_secs(1));
        let (client, mut server) = TunnelProxy::new(&site, request).tunnel().await;
        site.core.sleep(Duration::from_secs(100)).await;
        client.send(b"still here").await;
        assert_eq!(server.receive_exactly(10).await, b"still here");
    });
}

#[test]
fn idle_tunnel_holds_no_buffer() {
    on_simulated_cores(|site| async move {
        let (mut client, server) = TunnelProxy::new(&site, |_| {}).tunnel().await;
        client.send(b"x").await;
        site.core.sleep(Duration::from_secs(1)).await;
        assert_eq!(site.core.pool().in_use(), 0);
        let (stream, large) = (Rc::clone(&server.stream), bytes(LARGE));
        let (is_sent, expected) = (Rc::new(Cell::new(false)), large.clone());
        let sent = Rc::clone(&is_sent);
        site.core.spawn(async move {
            send_bytes(&stream, &large).await.expect("it is taken");
            sent.set(true);
        });
        site.core.sleep(Duration::from_secs(30)).await;
        assert!(!is_sent.get(), "the server is held up, too");
        // In the sender and in its tunnel: one being sent, and one waiting.
        assert!(
            site.core.pool().in_use() <= 4,
            "{}",
            site.core.pool().in_use()
        );
        assert!(client.receive_exactly(LARGE).await == expected);
    });
}

#[test]
fn tunnel_occupies_server_capacity() {
    on_every_driver(|site| async move {
        let one_place = |plan: &mut Plan| {
            plan.upstreams[0].servers[0].connections_max = NonZeroU32::new(1);
            plan.upstreams[0].queue_max = 0;
        };
        let way = TunnelProxy::new(&site, one_place);
        let (mut client, mut server) = way.tunnel().await;
        let mut other = site.connect(&way.proxy).await;
        other.send(GET.as_bytes()).await;
        assert!(other.receive_text().await.starts_with("HTTP/1.1 503 "));
        client.finish().await;
        server.finish().await;
        assert_eq!(
            (client.receive_all().await, server.receive_all().await),
            (vec![], vec![])
        );
        other.send(GET.as_bytes()).await;
        let server = Peer::new(way.listener.accept().await.expect("a connection"));
        server.send(OK.as_bytes()).await;
        assert!(other.receive_text().await.starts_with("HTTP/1.1 200 "));
    });
}

#[test]
fn stop_drains_then_cuts_off_tunnel() {
    let kept: Rc<RefCell<Vec<(Peer, Peer)>>> = Rc::default();
    let cut_off = cut_off_on_every_driver(|site| {
        // Both ends outlive their core's run.
        let kept = Rc::clone(&kept);
        async move {
            let way = TunnelProxy::new(&site, |_| {});
            let (client, mut server) = way.tunnel().await;
            let idle = way.tunnel().await;
            // Long enough on a busy machine.
            site.core.stop(Duration::from_secs(1));
            site.until("it stops", || site.core.is_stopping()).await;
            client.send(b"more").await;
            assert_eq!(server.receive_exactly(4).await, b"more");
            kept.borrow_mut().extend([(client, server), idle]);
        }
    });
    assert!(cut_off.iter().all(|&count| count == 2), "{cut_off:?}");
    for (client, server) in kept.take() {
        for end in [client, server] {
            assert_eq!(end.rest(), (vec![], true), "an orderly end looks whole");
        }
    }
}
