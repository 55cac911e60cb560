//! Load targets: echo and sink.

use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_engine::{Address, Datagram, Message, ReceiveBatch, SendBatch};
use onrush_packet::header::{Flow, Header, Kind};
use onrush_packet::report::{Report, Role, report_request};

use crate::testing::harness::{
    TestCore, configured, cut_off_on_every_driver, on_every_driver, on_kernel_cores,
    on_simulated_cores,
};

fn plan(protocol: &str, keys: &str) -> Plan {
    configured(&format!(
        "[[listen]]\naddress = \"127.0.0.1:1\"\nprotocol = \"{protocol}\"\n{keys}"
    ))
}

fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

#[test]
fn echo_returns_all_bytes_after_half_close() {
    on_every_driver(|site| async move {
        let address = site.serve(&plan("echo", ""));
        let sent = pattern(300_000);
        let mut client = site.connect(&address).await;
        let received = client.exchange(&sent).await;
        assert!(received == sent, "{} bytes came back", received.len());
        assert_eq!(site.connect(&address).await.exchange(b"").await, b"");
    });
}

#[test]
fn echo_supports_tls() {
    use onrush_tls::{ClientSetup, Connector, Transport};
    on_every_driver(|site| async move {
        let keys = "transport = \"tcp\"\ntls = \"self-signed\"";
        let address = site.serve(&plan("echo", keys));
        let stream = onrush_engine::Stream::connect(&site.core, &address, None).await;
        let connector = Connector::new(ClientSetup {
            verify: onrush_tls::Verify::Nothing,
            ..ClientSetup::default()
        });
        let (connector, _) = connector.expect("no file can be wrong");
        let until = site.core.now() + Duration::from_secs(100);
        let stream = Transport::connect(stream.unwrap(), &connector, "localhost", until).await;
        let stream = stream.unwrap();
        let mut buffer = site.core.buffer().unwrap();
        assert!(buffer.put(b"over TLS"));
        stream.queue(buffer);
        stream.flush().await.unwrap();
        let mut input = onrush_engine::Input::default();
        while input.bytes().len() < 8 {
            assert!(stream.recv(&mut input).await.unwrap() > 0);
        }
        assert_eq!(input.bytes(), b"over TLS");
    });
}

#[test]
fn echo_buffer_is_limited_for_stalled_client() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&plan("echo", "[timeouts]\nclient_send = \"3s\""));
        let mut deaf = site.connect(&address).await;
        deaf.send_in_background(&pattern(20_000_000));
        site.core.sleep(Duration::from_secs(60)).await;
        assert!(
            site.core.pool().in_use() < 40,
            "{}",
            site.core.pool().in_use()
        );
        let (received, _) = deaf.receive_all_or_reset().await;
        assert!(received.len() < 20_000_000);
    });
}

#[test]
fn sink_discards_all_input() {
    on_every_driver(|site| async move {
        let address = site.serve(&plan("sink", ""));
        let mut client = site.connect(&address).await;
        assert_eq!(client.exchange(&pattern(1_000_000)).await, b"");
    });
}

#[test]
fn idle_and_excess_clients_are_closed() {
    on_simulated_cores(|site| async move {
        let keys = "[timeouts]\nclient_idle = \"5s\"\n[clients]\nconnections_max = 1";
        let (address, service) = site.serve_worker(&plan("echo", keys));
        let mut first = site.connect(&address).await;
        first.send(b"a").await;
        assert_eq!(first.receive_exactly(1).await, b"a");
        assert!(site.connect(&address).await.is_over().await);
        assert_eq!(service.worker.meter.totals().connections_refused, 1);
        assert!(first.is_over().await, "it has been silent");
        first.finish().await;
        site.core.sleep(Duration::from_secs(5)).await;
        assert_eq!(service.worker.meter.connections_open(), 0);
    });
}

#[test]
fn responder_sends_bytes_per_request_size() {
    let of = |count: usize| (0..count).map(|at| (at % 251) as u8);
    for (request, response, sent, responses) in [
        (3, 5, 7, 2),
        (1, 200_000, 2, 2),
        (100_000, 1, 250_000, 2),
        (9, 9, 8, 0),
    ] {
        on_every_driver(|site| async move {
            let keys = format!("request_bytes = {request}\nresponse_bytes = \"{response}\"");
            let address = site.serve(&plan("responder", &keys));
            let mut client = site.connect(&address).await;
            let received = client.exchange(&pattern(sent)).await;
            let expected: Vec<u8> = (0..responses).flat_map(|_| of(response)).collect();
            assert!(received == expected, "{} bytes came", received.len());
        });
    }
}

#[test]
fn stop_closes_load_target_clients() {
    let cut_off = cut_off_on_every_driver(|site| async move {
        let address = site.serve(&plan("echo", ""));
        let mut client = site.connect(&address).await;
        client.send(b"last words").await;
        assert_eq!(client.receive_exactly(10).await, b"last words");
        site.core.stop(Duration::from_secs(10));
        let (rest, is_reset) = client.receive_all_or_reset().await;
        assert_eq!((&rest[..], is_reset), (&b""[..], false));
    });
    assert!(cut_off.iter().all(|&tasks| tasks == 0), "{cut_off:?}");
}

/// A socket that sends to the listener.
fn peer(site: &TestCore, address: &Address) -> Datagram {
    let Address::Tcp(address) = address else {
        panic!("{address} has no datagrams")
    };
    let socket = Datagram::bind(&site.core, ([127, 0, 0, 1], 0).into()).unwrap();
    socket.connect(*address).unwrap();
    socket.set_deadline(Some(site.core.now_exact() + Duration::from_secs(30)));
    socket
}

async fn send(socket: &Datagram, payload: &[u8]) {
    let mut batch = SendBatch::default();
    batch.push(Message::new(Rc::<[u8]>::from(payload))).unwrap();
    while !batch.is_empty() {
        socket.send(&mut batch).await.unwrap();
    }
}

async fn receive(socket: &Datagram) -> Vec<u8> {
    let mut batch = ReceiveBatch::new(1, 65_535);
    socket.recv(&mut batch).await.unwrap();
    batch.iter().next().expect("one has come").bytes.to_vec()
}

#[test]
fn echo_returns_datagrams() {
    on_kernel_cores(|site| async move {
        let address = site.serve(&plan("echo", ""));
        let near = peer(&site, &address);
        for length in [0, 1, 17, 18, 1472, 1473, 9000, 65_507] {
            send(&near, &pattern(length)).await;
            assert!(receive(&near).await == pattern(length), "{length} bytes");
        }
        let mut batch = SendBatch::default();
        for number in 0..30_u8 {
            let payload = Rc::<[u8]>::from(vec![number; 100 + usize::from(number / 10)]);
            batch.push(Message::new(payload)).unwrap();
        }
        while !batch.is_empty() {
            near.send(&mut batch).await.unwrap();
        }
        let mut all = Vec::new();
        while all.len() < 30 {
            all.push(receive(&near).await);
        }
        all.sort_unstable();
        for (number, one) in (0..30_u8).zip(all) {
            assert_eq!(one, vec![number; 100 + usize::from(number / 10)]);
        }
    });
}

const FLOW: Flow = Flow { run: 7, number: 3 };

fn data(sequence: u32) -> Vec<u8> {
    let header = Header {
        kind: Kind::Data,
        flow: FLOW,
        sequence,
        sent: 0,
    };
    header.bytes().to_vec()
}

#[test]
fn sink_reports_datagram_counts() {
    on_kernel_cores(|site| async move {
        let (address, service) = site.serve_worker(&plan("sink", "name = \"bin\""));
        let near = peer(&site, &address);
        for number in [0, 1, 3, 2, 2, 9] {
            send(&near, &data(number)).await;
        }
        send(&near, b"of another").await;
        // Too short for a report.
        send(&near, &report_request(FLOW, 4)[..40]).await;
        send(&near, &report_request(FLOW, 5)).await;
        let report = Report::read(&receive(&near).await).expect("a report");
        assert_eq!(
            (report.report_request, report.role, report.core),
            (5, Role::Sink, 0)
        );
        let tally = report.tally;
        assert_eq!((tally.received, tally.bytes, tally.next), (5, 90, 10));
        assert_eq!(
            (tally.duplicated, tally.reordered, tally.missing()),
            (1, 1, 5)
        );
        let unknown = Flow { run: 8, number: 3 };
        send(&near, &report_request(unknown, 6)).await;
        let report = Report::read(&receive(&near).await).expect("a report");
        assert_eq!((report.flow, report.tally.received), (unknown, 0));
        let views = service.worker.registry.datagram_views();
        let view = &views[0];
        assert_eq!((&*view.name, view.received, view.foreign), ("bin", 10, 2));
        assert_eq!((view.sent, view.failed, view.dropped), (2, 0, 0));
    });
}

#[test]
fn udp_echo_ignores_datagrams_from_other_echo_servers() {
    on_kernel_cores(|site| async move {
        let (address, service) = site.serve_worker(&plan("echo", "transport = \"udp\""));
        let near = peer(&site, &address);
        send(&near, &data(0)).await;
        assert_eq!(receive(&near).await, data(0));
        send(&near, &report_request(FLOW, 1)).await;
        let report = Report::read(&receive(&near).await).expect("a report");
        assert_eq!((report.role, report.tally.received), (Role::Echo, 1));
        let Address::Tcp(address) = address else {
            panic!("it has a port")
        };
        // Another echo has the same port on another address.
        let other = ([127, 0, 0, 2], address.port()).into();
        let other = Datagram::bind(&site.core, other).unwrap();
        other.connect(address).unwrap();
        send(&other, b"ping").await;
        // A later reply shows that it was received.
        send(&near, b"pong").await;
        assert_eq!(receive(&near).await, b"pong");
        let views = service.worker.registry.datagram_views();
        assert_eq!((views[0].received, views[0].failed), (4, 1));
    });
}

#[test]
fn closed_datagram_peer_port_is_ignored() {
    on_kernel_cores(|site| async move {
        let address = site.serve(&plan("echo", ""));
        for _ in 0..20 {
            send(&peer(&site, &address), b"gone by then").await;
        }
        let near = peer(&site, &address);
        send(&near, b"here").await;
        assert_eq!(receive(&near).await, b"here");
    });
}
