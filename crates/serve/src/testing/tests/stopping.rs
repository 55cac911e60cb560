//! Stopping a server: requests get responses, idle connections close in time, and requests in flight finish within the
//! drain timeout.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::limits::STOP_IDLE;
use crate::site::service::Service;
use crate::testing::harness::{
    Peer, Step, TestCore, cut_off_on_every_driver, on_every_driver, on_simulated_cores, send,
    send_bytes,
};
use crate::testing::tests::http2::Http2Client;
use onrush_config::Plan;
use onrush_config::plan::{OneLiner, ServerAddress, Tls, TlsProfile};
use onrush_engine::{Address, Input, Stream};
use onrush_http::http2::End;
use onrush_tls::{ClientSetup, Connector, Transport, Verify};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PATIENT: Duration = Duration::from_secs(200);

/// Objects that outlive the runs of their cores.
type Kept<T> = Rc<RefCell<Vec<T>>>;

fn fixed() -> Plan {
    let what = OneLiner::Respond {
        status: 200,
        body: b"ok".to_vec(),
    };
    Plan::one_liner(what, Vec::new())
}

fn synthetic() -> Plan {
    Plan::one_liner(OneLiner::Synthetic, Vec::new())
}

/// A request with a delayed response.
const SLOW: &str = "GET /?t=20 HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn idle_connections_close_gracefully_on_stop() {
    on_every_driver(|site| async move {
        let address = site.serve(&fixed());
        let mut fresh = site.connect(&address).await;
        let mut used = site.connect(&address).await;
        used.send(GET.as_bytes()).await;
        used.receive_text().await;
        site.core.stop(PATIENT);
        assert_eq!(used.receive_all_or_reset().await, (Vec::new(), false));
        assert_eq!(fresh.receive_all_or_reset().await, (Vec::new(), false));
    });
}

#[test]
fn long_idle_connections_close_immediately_on_stop() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        client.receive_text().await;
        site.core.sleep(STOP_IDLE).await;
        let before = site.core.now();
        site.core.stop(PATIENT);
        assert_eq!(client.receive_all_or_reset().await, (Vec::new(), false));
        // Simulated time.
        assert!(site.core.now().since(before) < STOP_IDLE / 2);
    });
}

#[test]
fn idle_connection_may_send_last_request_during_stop() {
    on_every_driver(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        client.receive_text().await;
        site.core.stop(PATIENT);
        site.until("it stops", || site.core.is_stopping()).await;
        client.send(GET.as_bytes()).await;
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
    });
}

#[test]
fn queued_connections_are_served() {
    on_every_driver(|site| async move {
        let address = site.serve(&fixed());
        let mut clients = Vec::new();
        for _ in 0..20 {
            let client = site.connect(&address).await;
            client.send(GET.as_bytes()).await;
            clients.push(client);
        }
        // In the same turn as the last of them.
        site.core.stop(PATIENT);
        for client in &mut clients {
            let response = String::from_utf8(client.receive_all().await).unwrap();
            assert!(response.ends_with("\r\n\r\nok"), "{response}");
        }
    });
}

#[test]
fn pipelined_requests_get_responses() {
    on_every_driver(|site| async move {
        let address = site.serve(&synthetic());
        let mut client = site.connect(&address).await;
        client.send(SLOW.repeat(3).as_bytes()).await;
        site.core.stop(PATIENT);
        let responses = String::from_utf8(client.receive_all().await).unwrap();
        assert_eq!(
            responses.matches("HTTP/1.1 200 OK").count(),
            3,
            "{responses}"
        );
        assert_eq!(
            responses.matches("Connection: close").count(),
            1,
            "{responses}"
        );
    });
}

#[test]
#[ignore = "slow: make test-all"]
fn stop_ends_endless_pipelining() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&fixed());
        let client = site.connect(&address).await;
        let (stream, core) = (Rc::clone(&client.stream), site.core.clone());
        core.spawn(async move {
            // Until the server closes the connection.
            while send_bytes(&stream, GET.repeat(10).as_bytes()).await.is_ok() {}
        });
        let mut client = client;
        client.receive_until(b"ok").await;
        site.core.stop(PATIENT);
        let began = site.core.now();
        client.receive_all_or_reset().await;
        assert!(site.core.now().since(began) < STOP_IDLE * 4, "simulated");
    });
}

#[test]
fn request_in_flight_gets_response_with_close() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::Read,
            // Long enough for the stop to come first on a busy machine.
            Step::Wait(Duration::from_millis(300)),
            send(OK),
            Step::WaitForEnd,
        ]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        site.until("it is at the server", || {
            upstream.requests().concat().len() == 1
        })
        .await;
        site.core.stop(PATIENT);
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
    });
}

#[test]
fn started_response_is_finished() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"),
            Step::Wait(Duration::from_millis(20)),
            send("def"),
            Step::WaitForEnd,
        ]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        let head = client.receive_until(b"abc").await;
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
        site.core.stop(PATIENT);
        assert_eq!(client.receive_all().await, b"def");
    });
}

#[test]
fn upload_in_flight_is_finished() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::ReadHead,
            Step::ReadBytes(6),
            send(OK),
            Step::WaitForEnd,
        ]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client
            .send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc")
            .await;
        site.until("it is at the server", || {
            upstream.requests().concat().len() == 1
        })
        .await;
        site.core.stop(PATIENT);
        site.until("it stops", || site.core.is_stopping()).await;
        client.send(b"def").await;
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
    });
}

#[test]
fn stop_waits_for_partial_head() {
    on_every_driver(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        client.send(&GET.as_bytes()[..10]).await;
        client.receive_text().await;
        // The response must not be lost, whether these bytes arrived before the stop or after it.
        site.core.sleep(Duration::from_millis(5)).await;
        site.core.stop(PATIENT);
        site.until("it stops", || site.core.is_stopping()).await;
        client.send(&GET.as_bytes()[10..]).await;
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
    });
}

#[test]
fn request_during_response_is_not_lost() {
    on_every_driver(|site| async move {
        let address = site.serve(&synthetic());
        let mut client = site.connect(&address).await;
        client.send(SLOW.as_bytes()).await;
        // It is in the kernel when the stop begins.
        client.send(SLOW.as_bytes()).await;
        site.core.stop(PATIENT);
        // The client reads late; a reset would have discarded the responses by then.
        site.core.sleep(Duration::from_millis(100)).await;
        let responses = String::from_utf8(client.receive_all().await).unwrap();
        assert_eq!(
            responses.matches("HTTP/1.1 200 OK").count(),
            2,
            "{responses}"
        );
    });
}

#[test]
fn drain_timeout_aborts_and_counts_requests() {
    let kept = Rc::default();
    let cut_off = cut_off_on_every_driver(|site| {
        // Keeps both ends of each connection open beyond this driver's run; the next driver's run drops them.
        let kept: Rc<RefCell<Vec<(Peer, Stream)>>> = Rc::clone(&kept);
        kept.borrow_mut().clear();
        async move {
            let (listener, server) = site.listen();
            let server = ServerAddress::Ip(server);
            let plan = Plan::one_liner(OneLiner::Forward(vec![server]), Vec::new());
            let address = site.serve(&plan);
            for _ in 0..3 {
                let client = site.connect(&address).await;
                client.send(GET.as_bytes()).await;
                let at_server = listener.accept().await.expect("a connection");
                kept.borrow_mut().push((client, at_server));
            }
            // Long enough for the listener to detect that no handshake is in progress.
            site.core.stop(Duration::from_millis(500));
            site.until("it stops", || site.core.is_stopping()).await;
        }
    });
    assert!(cut_off.iter().all(|&count| count == 3), "{cut_off:?}");
}

/// The bytes received on a connection whose core has ended, and whether it ends with a reset.
fn rest_of(client: Transport) -> (Vec<u8>, bool) {
    let core = client.core().clone();
    let rest = Rc::new(RefCell::new(None));
    let seen = Rc::clone(&rest);
    core.spawn(async move {
        let (mut input, mut received) = (Input::default(), Vec::new());
        let is_reset = loop {
            match client.recv(&mut input).await {
                Ok(0) => break false,
                Ok(_) => received.extend_from_slice(input.bytes()),
                Err(error) if error.is_reset() => break true,
                Err(error) => panic!("neither an orderly end nor a reset: {error}"),
            }
            input.consume(input.bytes().len());
        };
        *seen.borrow_mut() = Some((received, is_reset));
    });
    core.run();
    rest.take().expect("it comes to an end")
}

async fn connect(site: &TestCore, address: &Address, tls: Option<&Tls>) -> Transport {
    let core = &site.core;
    let stream = Stream::connect(core, address, None)
        .await
        .expect("it listens");
    if tls.is_none() {
        return Transport::plain(stream);
    }
    let connector = Connector::new(ClientSetup {
        verify: Verify::Nothing,
        protocols: vec!["http/1.1"],
        ..ClientSetup::default()
    });
    let (connector, _) = connector.expect("no file can be wrong");
    let until = core.now_exact() + PATIENT;
    let connected = Transport::connect(stream, &connector, "localhost", until).await;
    connected.unwrap_or_else(|error| panic!("{error}"))
}

/// An HTTP/1.0 client gets a chunked response without framing, up to the end of the connection.
#[test]
fn cut_off_response_is_detectable() {
    const OLD: &str = "GET / HTTP/1.0\r\nHost: h\r\n\r\n";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CASES: [(&str, &str, bool); 5] = [
        (OLD, CHUNKED, true),
        (GET, CHUNKED, true),
        (GET, LONG, true),
        (GET, "", false),
        // Last, because it leaves a connection to its server open.
        (GET, WHOLE, false),
    ];
    let self_signed = Tls {
        profile: TlsProfile::Modern,
        ..Tls::self_signed()
    };
    for tls in [None, Some(self_signed)] {
        // With TLS, closing sends a message, in a buffer that the core would miss.
        let cases = CASES.into_iter();
        let cases: Vec<_> = cases.filter(|case| tls.is_none() || case.2).collect();
        // Clients and servers outlive their cores' runs.
        let kept: Kept<(Vec<Transport>, Vec<Stream>)> = Rc::default();
        cut_off_on_every_driver(|site| {
            let (kept, tls, cases) = (Rc::clone(&kept), tls.clone(), cases.clone());
            async move {
                let (listener, server) = site.listen();
                let what = OneLiner::Forward(vec![ServerAddress::Ip(server)]);
                let mut plan = Plan::one_liner(what, Vec::new());
                plan.listen[0].tls = tls.clone();
                let address = site.serve(&plan);
                let (mut clients, mut servers) = (Vec::new(), Vec::new());
                for (request, response, _) in cases {
                    let client = connect(&site, &address, tls.as_ref()).await;
                    client.queue(request.as_bytes());
                    client.flush().await.expect("it is taken");
                    let at_server = listener.accept().await.expect("a connection");
                    send_bytes(&at_server, response.as_bytes())
                        .await
                        .expect("it is taken");
                    let mut input = Input::default();
                    while !response.is_empty()
                        && memchr::memmem::find(input.bytes(), b"hello").is_none()
                    {
                        let count = client.recv(&mut input).await.expect("a response");
                        assert!(count > 0, "{:?}", input.bytes().escape_ascii());
                    }
                    clients.push(client);
                    servers.push(at_server);
                }
                kept.borrow_mut().push((clients, servers));
                site.core.stop(Duration::from_millis(500));
                site.until("it stops", || site.core.is_stopping()).await;
            }
        });
        for (clients, _servers) in kept.take() {
            for (client, (request, response, is_cut)) in clients.into_iter().zip(&cases) {
                let (rest, is_reset) = rest_of(client);
                assert!(rest.len() <= 2, "{:?}", rest.escape_ascii());
                assert_eq!(is_reset, *is_cut, "{request:?} {response:?} {tls:?}");
            }
        }
    }
}

type Ends = (Http2Client, Vec<Stream>, Rc<Service>);

#[test]
fn cut_off_connection_counts_once() {
    let kept = Rc::default();
    let cut_off = cut_off_on_every_driver(|site| {
        let kept: Kept<Ends> = Rc::clone(&kept);
        async move {
            let (listener, server) = site.listen();
            let server = ServerAddress::Ip(server);
            let plan = Plan::one_liner(OneLiner::Forward(vec![server]), Vec::new());
            let (address, service, _) = site.serve_to_change(&plan);
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            let mut at_server = Vec::new();
            for _ in 0..3 {
                client.open(("GET", "/"), &[], End::Stream);
                client.flush().await;
                at_server.push(listener.accept().await.expect("a connection"));
            }
            kept.borrow_mut().push((client, at_server, service));
            site.core.stop(Duration::from_millis(500));
            site.until("it stops", || site.core.is_stopping()).await;
        }
    });
    let kept = kept.borrow();
    let workers = kept.iter().map(|(_, _, service)| &service.worker);
    let counted: Vec<_> = workers
        .zip(&cut_off)
        .map(|(worker, &tasks)| worker.count_client_tasks(tasks))
        .collect();
    assert!(
        counted.iter().all(|&count| count == 1),
        "{counted:?} of {cut_off:?}"
    );
}
