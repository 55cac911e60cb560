//! A client's share of the capacity of a group. Requests that do not end leave capacity for other clients.

use std::net::SocketAddr;

use onrush_config::Plan;
use onrush_engine::Address;
use onrush_http::http2::code::Code;
use onrush_http::http2::{self, End};

use super::server::{Reaction, Response, serve};
use crate::observe::record::FailureClass;
use crate::testing::harness::{Peer, Step, TestCore, configured, on_every_driver};
use crate::testing::tests::http2::Http2Client;

const CAPACITY: usize = 20;

/// Share of one client: 18 requests in flight are more than eight times the two that are left.
const SHARE: usize = 18;

/// Number of requests of the client that takes what it can.
const REQUESTS: usize = 60;

const WINDOW: u32 = 65_535;

fn plan(server: SocketAddr, group: &str, more: &str) -> Plan {
    configured(&format!(
        "forwarded = {{ trust = [\"127.0.0.0/8\"] }}\n{more}\n[[route]]\npath = \"/\"\nforward = \"up\"\n\
         [upstream.up]\nservers = [\"{server}\"]\n{group}\n"
    ))
}

fn plan_of_streams(server: SocketAddr, more: &str) -> Plan {
    let group =
        format!("protocol = \"h2\"\nstreams_max = {CAPACITY}\nconnections_shared_max = 1\n");
    plan(server, &group, more)
}

/// Opens requests of a client whose address a trusted proxy forwards.
async fn open(
    client: &mut Http2Client,
    address: &str,
    path: &str,
    count: usize,
) -> Vec<http2::Stream> {
    let fields = [("x-forwarded-for", address)];
    let open = |_| client.open(("GET", path), &fields, End::Stream);
    let opened = (0..count).map(open).collect();
    client.flush().await;
    opened
}

/// A response to another client.
async fn other(site: &TestCore, address: &Address) -> String {
    let mut client = site.connect(address).await;
    let request =
        "GET /other HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.2\r\nConnection: close\r\n\r\n";
    String::from_utf8(client.exchange(request.as_bytes()).await).expect("text")
}

fn hold_some(asked: &super::Asked) -> Reaction {
    match asked.path() {
        "/held" => Reaction::Hold,
        path => Reaction::Respond(Response::ok(path)),
    }
}

#[test]
fn http2_client_cannot_occupy_all_streams() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, hold_some);
        let (address, service) = site.serve_worker(&plan_of_streams(server, ""));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let held = open(&mut client, "192.0.2.1", "/held", REQUESTS).await;
        let asked = || seen.asked.borrow().len();
        site.until("it has its share", || asked() == SHARE).await;
        for _ in 0..CAPACITY {
            let response = other(&site, &address).await;
            assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        }
        assert_eq!(asked(), SHARE + CAPACITY);
        let queued = || service.site().groups[0].view().queued;
        assert_eq!(queued(), (REQUESTS - SHARE) as u64);
        client.http.reset(held[0], Code::CANCEL, &mut client.out);
        client.flush().await;
        let has_next = || asked() == SHARE + CAPACITY + 1;
        site.until("its next request is sent", has_next).await;
        assert_eq!(queued(), (REQUESTS - SHARE - 1) as u64);
    });
}

#[test]
fn slow_clients_cannot_occupy_all_connections() {
    const LARGE: usize = 1 << 20;
    on_every_driver(|site| async move {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
        let response = [head.into_bytes(), vec![b'x'; LARGE]].concat();
        let server = site.upstream(&[&[Step::Read, Step::Send(response), Step::Again]]);
        let group = format!("connections_max = {CAPACITY}\n");
        let (address, service) = site.serve_worker(&plan(server.address, &group, ""));
        let mut client = Http2Client::connect(&site, &address, 0).await;
        open(&mut client, "192.0.2.1", "/", REQUESTS).await;
        let view = || service.site().groups[0].view();
        let waits = || view().queued == (REQUESTS - SHARE) as u64;
        site.until("the rest waits", waits).await;
        assert_eq!(view().in_flight, SHARE as u64);
        for _ in 0..3 {
            let response = other(&site, &address).await;
            assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        }
    });
}

#[test]
fn requests_beyond_share_fail_after_queue_timeout() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, hold_some);
        let plan = plan_of_streams(server, "timeouts = { queue = \"50ms\" }");
        let (address, service) = site.serve_worker(&plan);
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        open(&mut client, "192.0.2.1", "/held", SHARE).await;
        let has_share = || seen.asked.borrow().len() == SHARE;
        site.until("it has its share", has_share).await;
        let beyond = open(&mut client, "192.0.2.1", "/held", 1).await[0];
        assert_eq!(client.response(beyond).await.status, 503);
        let totals = service.worker.meter.totals();
        assert_eq!(totals.failures(FailureClass::ClientShare), 1);
    });
}

#[test]
fn share_limit_exempts_unknown_clients_and_small_groups() {
    on_every_driver(|site| async move {
        for (capacity, forwarded_for) in [(CAPACITY, None), (8, Some("192.0.2.1"))] {
            let (server, seen) = serve(&site, 100, hold_some);
            let group =
                format!("protocol = \"h2\"\nstreams_max = {capacity}\nconnections_shared_max = 1");
            let address = site.serve(&plan(server, &group, ""));
            let mut client = Http2Client::connect(&site, &address, WINDOW).await;
            let fields: Vec<_> = forwarded_for
                .map(|it| ("x-forwarded-for", it))
                .into_iter()
                .collect();
            for _ in 0..REQUESTS {
                client.open(("GET", "/held"), &fields, End::Stream);
            }
            client.flush().await;
            let has_all = || seen.asked.borrow().len() == capacity;
            site.until("it has all", has_all).await;
        }
    });
}

#[test]
fn short_responses_free_streams_beyond_share() {
    const LARGE: usize = 1 << 20;
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match asked.path() {
            "/held" => Reaction::Hold,
            path => {
                let bytes = if path == "/large" { LARGE } else { 50_000 };
                Reaction::Respond(Response::ok(&"x".repeat(bytes)))
            }
        });
        let address = site.serve(&plan_of_streams(server, ""));
        let mut held = Http2Client::connect(&site, &address, WINDOW).await;
        open(&mut held, "192.0.2.2", "/held", SHARE / 2).await;
        let mut client = Http2Client::connect(&site, &address, 0).await;
        // Each is less than a window of the server's stream, so the server ends it.
        open(&mut client, "192.0.2.1", "/", REQUESTS).await;
        let has_all = || seen.asked.borrow().len() == SHARE / 2 + REQUESTS;
        site.until("all are sent", has_all).await;
    });
}

#[test]
fn slow_http1_clients_cannot_occupy_all_streams() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, hold_some);
        let address = site.serve(&plan_of_streams(server, ""));
        let mut clients: Vec<Peer> = Vec::new();
        for _ in 0..REQUESTS {
            let client = site.connect(&address).await;
            // A client that only ends its side still waits for its response.
            client.stream.reset_when_dropped();
            let request = "GET /held HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
            client.send(request.as_bytes()).await;
            clients.push(client);
        }
        let has_share = || seen.asked.borrow().len() == SHARE;
        site.until("they have their share", has_share).await;
        let response = other(&site, &address).await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    });
}
