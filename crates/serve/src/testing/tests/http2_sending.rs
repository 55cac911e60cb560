//! Sending on HTTP/2 connections whose clients read slowly: when, in which order, and what is recorded.

use std::fs;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_engine::{Address, Stream};
use onrush_http::http2::code::Code;
use onrush_http::http2::{self, End, LocalSettings};
use onrush_tls::{ClientSetup, Connector, Transport, Verify};
use tempfile::TempDir;

use super::http2::{Http2Client, Response};
use crate::observe::registry::SeriesKind;
use crate::site::service::Service;
use crate::testing::harness::{Step, TestCore, configured, on_every_driver, on_kernel_cores, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Size of a file that no socket buffer holds.
const LARGE: usize = 12 << 20;

/// Files, synthetic responses, and everything else from `server`.
fn plan(listen: &str, server: &std::net::SocketAddr) -> (TempDir, Plan) {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes) in [("large", LARGE), ("other", 1 << 20), ("first", 1 << 20)] {
        fs::write(directory.path().join(name), vec![b'x'; bytes]).expect("it is ours");
    }
    let plan = configured(&format!(
        "{listen}[[route]]\npath = \"/synthetic\"\nsynthetic = true\n\
         [[route]]\npath = \"/files/\"\nstrip_prefix = \"/files\"\nfiles = {{ root = \"{}\" }}\n\
         [[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{server}\"]\n",
        directory.path().display()
    ));
    (directory, plan)
}

fn settings(stream_window: u32, connection_window: u32) -> LocalSettings {
    LocalSettings {
        stream_window,
        connection_window,
        ..LocalSettings::DEFAULT
    }
}

async fn connect(site: &TestCore, address: &Address, settings: LocalSettings) -> Http2Client {
    let stream = Stream::connect(&site.core, address, None).await;
    let stream = Transport::plain(stream.expect("it listens"));
    Http2Client::over(site, stream, settings)
}

async fn connect_by_tls(
    site: &TestCore,
    address: &Address,
    settings: LocalSettings,
) -> Http2Client {
    let connector = Connector::new(ClientSetup {
        verify: Verify::Nothing,
        protocols: vec!["h2"],
        ..ClientSetup::default()
    });
    let (connector, _) = connector.expect("no file can be wrong");
    let stream = Stream::connect(&site.core, address, None).await;
    let until = site.core.now_exact() + Duration::from_secs(10);
    let stream = stream.expect("it listens");
    let transport = Transport::connect(stream, &connector, "example.org", until).await;
    Http2Client::over(site, transport.expect("they agree"), settings)
}

#[test]
fn frames_of_stalled_client_are_read() {
    for (tls, path) in [
        (true, "/files/large"),
        (false, "/files/large"),
        (true, "/synthetic?s=12000000"),
        (false, "/synthetic?s=12000000"),
    ] {
        on_kernel_cores(|site| async move {
            let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            let wide = settings(64 << 20, 64 << 20);
            let listen = match tls {
                true => "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"self-signed\"\n",
                false => "",
            };
            let (_directory, plan) = plan(listen, &server.address);
            let address = site.serve(&plan);
            let mut client = match tls {
                true => connect_by_tls(&site, &address, wide).await,
                false => connect(&site, &address, wide).await,
            };
            let large = client.open(("GET", path), &[("priority", "u=7")], End::Stream);
            client.flush().await;
            // Until the socket buffers are full.
            site.core.sleep(Duration::from_millis(300)).await;
            let upload = client.open(("POST", "/"), &[("priority", "u=0")], End::Open);
            client.send_body(upload, b"heard").await;
            client.flush().await;
            site.until("it is heard", || !server.requests().concat().is_empty())
                .await;
            assert_eq!(client.response(upload).await.body, b"ok", "{tls} {path}");
            let before = client.responses[&large.id()].body.len();
            assert!(before < LARGE - (1 << 20), "{before}");
            client.http.reset(large, Code::CANCEL, &mut client.out);
            client.flush().await;
        });
    }
}

async fn receive_head(client: &mut Http2Client, stream: http2::Stream) {
    let has_none = |it: &Response| it.status != 200;
    while client.responses.get(&stream.id()).is_none_or(has_none) {
        client.receive().await;
    }
}

/// Requests two responses concurrently, with a shared window smaller than either. Returns how much of the first had
/// arrived when the second was complete.
async fn first_by_the_end_of_the_second(
    site: &TestCore,
    (first, second): (&str, &str),
    priorities: [&str; 2],
) -> usize {
    let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
    let (_directory, plan) = plan("", &server.address);
    let address = site.serve(&plan);
    let mut client = connect(site, &address, settings(8 << 20, 65_535)).await;
    let [one, other] = [first, second].map(|path| ("GET", path));
    let one = client.open(one, &[("priority", priorities[0])], End::Stream);
    client.flush().await;
    while client
        .responses
        .get(&one.id())
        .is_none_or(|it| it.body.is_empty())
    {
        client.receive().await;
    }
    let other = client.open(other, &[("priority", priorities[1])], End::Stream);
    assert!(client.response(other).await.is_whole);
    let there = client.responses[&one.id()].body.len();
    assert!(client.response(one).await.is_whole);
    there
}

#[test]
fn connection_window_is_shared_by_priority() {
    let files = ("/files/first", "/files/other");
    let both = ("/files/first", "/synthetic?s=1000000");
    for paths in [files, both] {
        on_every_driver(|site| async move {
            let first = first_by_the_end_of_the_second(&site, paths, ["u=7", "u=0"]).await;
            assert!(first < 400_000, "{paths:?}: {first}");
        });
    }
    // Incremental streams share the window, regardless of their age.
    on_every_driver(|site| async move {
        let first = first_by_the_end_of_the_second(&site, files, ["i", "i"]).await;
        assert!((700_000..(1 << 20) + 1).contains(&first), "{first}");
    });
}

#[test]
fn response_head_needs_no_flow_control_window() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (_directory, plan) = plan("", &server.address);
        let address = site.serve(&plan);
        let mut client = connect(&site, &address, settings(0, 65_535)).await;
        for path in [
            "/synthetic?s=60000",
            "/synthetic?s=200000",
            "/files/other",
            "/",
        ] {
            let stream = client.open(("GET", path), &[], End::Stream);
            client.flush().await;
            receive_head(&mut client, stream).await;
            assert_eq!(client.responses[&stream.id()].body.len(), 0, "{path}");
        }
    });
}

#[test]
fn request_completes_when_response_is_sent() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (_directory, plan) = plan("", &server.address);
        let (address, service) = site.serve_worker(&plan);
        let mut client = connect(&site, &address, settings(0, 65_535)).await;
        let paths = ["/synthetic?s=1000", "/synthetic?s=100000", "/"];
        let streams: Vec<_> = paths
            .iter()
            .map(|path| client.open(("GET", path), &[], End::Stream))
            .collect();
        client.flush().await;
        for stream in &streams {
            receive_head(&mut client, *stream).await;
        }
        let meter = &service.worker.meter;
        let under_way = || service.worker.live.stages().iter().sum::<u64>();
        assert_eq!((meter.totals().given_up, under_way()), (0, 3));
        // The first is reset, one is read, and the last is lost with its connection.
        client.http.reset(streams[0], Code::CANCEL, &mut client.out);
        client.flush().await;
        site.until("the first is given up", || meter.totals().given_up == 1)
            .await;
        drop(client);
        site.until("so are all", || meter.totals().given_up == 3)
            .await;
        assert_eq!(under_way(), 0);
    });
}

#[test]
fn delayed_reader_gets_complete_responses() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (_directory, plan) = plan("", &server.address);
        let (address, service) = site.serve_worker(&plan);
        let mut client = connect(&site, &address, settings(65_535, 65_535)).await;
        let sizes = [60_000_usize, 64_000, 100_000, 1_000_000, 10];
        let streams = sizes.map(|size| {
            let path = format!("/synthetic?s={size}");
            client.open(("GET", &path), &[], End::Stream)
        });
        for (stream, size) in streams.into_iter().zip(sizes) {
            assert_eq!(client.response(stream).await.body.len(), size);
        }
        let sum: usize = sizes.iter().sum();
        let sent = sent_bytes(&service);
        // Heads are counted, too.
        assert!((sum..sum + 1000).contains(&sent), "{sent} of {sum}");
        assert_eq!(service.worker.meter.totals().given_up, 0);
    });
}

#[test]
fn last_response_before_close_is_complete() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (_directory, plan) = plan("", &server.address);
        let (address, service) = site.serve_worker(&plan);
        for _ in 0..3 {
            let mut client = connect(&site, &address, settings(10, 65_535)).await;
            let streams = [500, 1000].map(|size| {
                let path = format!("/synthetic?s={size}");
                client.open(("GET", &path), &[], End::Stream)
            });
            client.flush().await;
            for stream in streams {
                receive_head(&mut client, stream).await;
            }
            // The connection closes after the last of its responses.
            client.http.go_away(Code::NO_ERROR, &mut client.out);
            for (stream, size) in streams.into_iter().zip([500, 1000]) {
                assert_eq!(client.response(stream).await.body.len(), size);
            }
        }
        let under_way = || service.worker.live.stages().iter().sum::<u64>();
        site.until("all are over", || under_way() == 0).await;
        assert_eq!(service.worker.meter.totals().given_up, 0);
    });
}

/// Response bytes of ended requests.
fn sent_bytes(service: &Rc<Service>) -> usize {
    let routes = service.worker.registry.views(SeriesKind::Route);
    routes.iter().map(|route| route.sent as usize).sum()
}
