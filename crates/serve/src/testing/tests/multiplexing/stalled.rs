//! Stalled streams do not block other streams of their connection or other clients.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_engine::Address;
use onrush_http::http2::code::Code;
use onrush_http::http2::{self, Cause, End};

use super::server::{Reaction, Response, Seen, serve};
use crate::limits::http2::HTTP2_TRIM_DELAY;
use crate::testing::harness::{Step, TestCore, configured, on_every_driver, on_simulated_cores};
use crate::testing::tests::http2::{self as client, Http2Client};

/// Size above the bound of a stream.
const LARGE: usize = 1 << 20;

const SMALL_WINDOW: u32 = 1000;

/// Number of stalled streams in a test.
const STALLED: usize = 20;

/// Paths of large responses, one of each kind.
const LARGE_PATHS: [&str; 4] = ["/synthetic?s=1000000", "/body", "/h1", "/large"];

fn plan((one, two): (SocketAddr, SocketAddr), more: &str) -> Plan {
    configured(&format!(
        "{more}\n[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"small\" }}\n\
         [[route]]\npath = \"/body\"\nrespond = {{ status = 200, body = \"{}\" }}\n\
         [[route]]\npath = \"/synthetic\"\nsynthetic = true\n\
         [[route]]\npath = \"/h1\"\nforward = \"one\"\n\
         [[route]]\npath = \"/\"\nforward = \"two\"\n\
         [upstream.one]\nservers = [\"{one}\"]\n\
         [upstream.two]\nservers = [\"{two}\"]\nprotocol = \"h2\"\nstreams_max = 50\n",
        "x".repeat(LARGE)
    ))
}

fn servers(site: &TestCore) -> ((SocketAddr, SocketAddr), Rc<Seen>) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
    let response = [head.into_bytes(), vec![b'x'; LARGE]].concat();
    let one = site.upstream(&[&[Step::Read, Step::Send(response), Step::WaitForEnd]]);
    let (two, seen) = serve(site, 100, |asked| match asked.path() {
        "/small" => Reaction::Respond(Response::ok("small")),
        _ => Reaction::Respond(Response {
            status: 200,
            body: vec![b'x'; LARGE],
            ..Response::default()
        }),
    });
    ((one.address, two), seen)
}

/// Opens streams with exhausted windows and waits for the heads of their responses.
async fn stall(client: &mut Http2Client, path: &str, streams: usize) -> Vec<http2::Stream> {
    let open = |_| client.open(("GET", path), &[], End::Stream);
    let opened: Vec<_> = (0..streams).map(open).collect();
    let has_head = |client: &Http2Client, stream: &http2::Stream| {
        let response = client.responses.get(&stream.id());
        response.is_some_and(|response| response.status == 200)
    };
    client.flush().await;
    while !opened.iter().all(|stream| has_head(client, stream)) {
        client.receive().await;
    }
    opened
}

async fn small(client: &mut Http2Client, path: &str) -> client::Response {
    let stream = client.open(("GET", path), &[], End::Stream);
    client
        .http
        .release_stream_window(stream, SMALL_WINDOW, &mut client.out);
    client.response(stream).await
}

async fn connect(site: &TestCore, address: &Address) -> Http2Client {
    Http2Client::connect(site, address, 0).await
}

#[test]
fn stalled_streams_do_not_block_other_streams() {
    for path in LARGE_PATHS {
        on_every_driver(move |site| async move {
            let (servers, _) = servers(&site);
            let address = site.serve(&plan(servers, ""));
            let mut client = connect(&site, &address).await;
            stall(&mut client, path, STALLED).await;
            for path in ["/fixed", "/small", "/fixed"] {
                assert_eq!(small(&mut client, path).await.body, b"small");
            }
            let mut other = connect(&site, &address).await;
            assert_eq!(small(&mut other, "/small").await.body, b"small");
        });
    }
}

#[test]
fn pooled_memory_is_freed_after_stalled_streams_end() {
    // Together, they hold more than `HTTP2_DROPPED_MAX`.
    const STREAMS: usize = 90;
    for is_due in [false, true] {
        // Virtual time passes immediately.
        on_simulated_cores(move |site| async move {
            let (servers, _) = servers(&site);
            let (address, service) = site.serve_worker(&plan(servers, ""));
            let mut clients = [
                connect(&site, &address).await,
                connect(&site, &address).await,
            ];
            for client in &mut clients {
                stall(client, "/h1", STREAMS).await;
                stall(client, "/large", 20).await;
            }
            drop(clients);
            // The test's servers run on the same core and free their buffers a little later.
            let around = Duration::from_millis(100);
            let wait = match is_due {
                false => HTTP2_TRIM_DELAY - around,
                true => HTTP2_TRIM_DELAY + around,
            };
            site.core.sleep(wait).await;
            let flows = service.group(1).free_spare();
            assert_eq!(flows > 10, !is_due, "{flows}");
            let objects = service.worker.return_memory();
            assert_eq!(objects > STREAMS / 2, !is_due, "{objects}");
        });
    }
}

#[test]
fn pending_stream_memory_is_freed_on_connection_close() {
    for is_due in [false, true] {
        on_simulated_cores(move |site| async move {
            let silent = site.upstream(&[&[Step::Read, Step::WaitForEnd]]);
            let servers = (silent.address, silent.address);
            let (address, service) = site.serve_worker(&plan(servers, ""));
            let mut clients = Vec::new();
            for _ in 0..3 {
                let mut client = connect(&site, &address).await;
                for _ in 0..100 {
                    client.open(("GET", "/h1"), &[], End::Stream);
                }
                client.flush().await;
                clients.push(client);
            }
            let live = || service.worker.live.views(1000, site.core.now()).len();
            site.until("the requests", || live() == 300).await;
            drop(clients);
            let around = Duration::from_millis(100);
            let wait = match is_due {
                false => HTTP2_TRIM_DELAY - around,
                true => HTTP2_TRIM_DELAY + around,
            };
            site.core.sleep(wait).await;
            let objects = service.worker.return_memory();
            assert_eq!(objects > 100, !is_due, "{objects}");
        });
    }
}

#[test]
fn unread_responses_do_not_exhaust_server_window() {
    const REQUESTS: usize = 60;
    // Less than the window of a stream, so that the server ends it.
    const BYTES: usize = 50_000;
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| {
            let bytes = match asked.path() {
                "/other" => LARGE,
                _ => BYTES,
            };
            Reaction::Respond(Response {
                status: 200,
                body: vec![b'x'; bytes],
                ..Response::default()
            })
        });
        let group = "streams_max = 10\nconnections_shared_max = 1";
        let address = site.serve(&super::plan(server, group));
        let mut client = connect(&site, &address).await;
        stall(&mut client, "/", REQUESTS).await;
        let mut other = Http2Client::connect(&site, &address, 65_535).await;
        assert_eq!(other.get("/other").await.body.len(), LARGE);
        assert_eq!(seen.connections.get(), 1);
    });
}

#[test]
fn stalled_stream_is_reset_after_client_send() {
    for path in LARGE_PATHS {
        on_every_driver(move |site| async move {
            let (servers, seen) = servers(&site);
            let more = "timeouts = { client_send = \"100ms\" }";
            let address = site.serve(&plan(servers, more));
            let mut client = connect(&site, &address).await;
            let stalled = stall(&mut client, path, 1).await[0];
            while client.responses[&stalled.id()].reset.is_none() {
                assert_eq!(small(&mut client, "/fixed").await.body, b"small");
            }
            let reset = client.responses[&stalled.id()].reset;
            assert_eq!(reset, Some(Cause::Peer(Code::CANCEL)));
            assert_eq!(small(&mut client, "/fixed").await.body, b"small");
            if path == "/large" {
                let is_reset = || *seen.resets.borrow() == [Code::CANCEL];
                site.until("its stream is reset", is_reset).await;
            }
        });
    }
}

#[test]
fn single_byte_progress_counts_as_stalled() {
    on_every_driver(|site| async move {
        let (servers, _) = servers(&site);
        let more = "clients = { stalled_streams_per_address_max = 2 }";
        let address = site.serve(&plan(servers, more));
        let mut client = connect(&site, &address).await;
        let streams = stall(&mut client, "/large", 3).await;
        let is_reset = |client: &Http2Client| {
            let reset = |stream: &http2::Stream| client.responses[&stream.id()].reset;
            streams.iter().find_map(reset)
        };
        let reset = loop {
            if let Some(reset) = is_reset(&client) {
                break reset;
            }
            for stream in &streams {
                client
                    .http
                    .release_stream_window(*stream, 1, &mut client.out);
            }
            assert_eq!(small(&mut client, "/fixed").await.body, b"small");
            site.core.sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(reset, Cause::Peer(Code::ENHANCE_YOUR_CALM));
        let received = |stream: &http2::Stream| client.responses[&stream.id()].body.len();
        assert!(streams.iter().all(|stream| received(stream) > 0));
    });
}

#[test]
fn stalled_streams_are_limited_per_address() {
    on_every_driver(|site| async move {
        let (servers, _) = servers(&site);
        let more = "clients = { stalled_streams_per_address_max = 2 }";
        let address = site.serve(&plan(servers, more));
        let mut clients = Vec::new();
        for streams in [2, 3] {
            let mut client = connect(&site, &address).await;
            stall(&mut client, "/large", streams).await;
            clients.push(client);
        }
        let resets = |clients: &[Http2Client]| {
            let responses = clients.iter().flat_map(|client| client.responses.values());
            let resets: Vec<_> = responses.filter_map(|response| response.reset).collect();
            let expected = Cause::Peer(Code::ENHANCE_YOUR_CALM);
            assert!(resets.iter().all(|reset| *reset == expected), "{resets:?}");
            resets.len()
        };
        // A small response is stalled until the update of its window arrives, and may take the place of one more.
        while resets(&clients) < 3 {
            for client in &mut clients {
                assert_eq!(small(client, "/small").await.body, b"small");
            }
        }
    });
}
