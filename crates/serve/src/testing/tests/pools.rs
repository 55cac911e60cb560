//! Idle connections to servers: reuse, limits and idle timeout.

use std::time::Duration;

use crate::testing::harness::{
    Peer, Step, TestCore, on_every_driver, on_simulated_core, on_simulated_cores, send,
};
use onrush_engine::Address;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

async fn get(client: &mut Peer) {
    client.send(GET.as_bytes()).await;
    let response = client.receive_text().await;
    assert!(response.ends_with("\r\n\r\nok"), "{response}");
}

/// Gets responses to `count` concurrent requests, from a server whose script waits for as many connections.
async fn get_at_once(site: &TestCore, address: &Address, count: usize) -> Vec<Peer> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let client = site.connect(address).await;
        client.send(GET.as_bytes()).await;
        clients.push(client);
    }
    for client in &mut clients {
        let response = client.receive_text().await;
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
    }
    clients
}

/// Script of a server that responds only after five connections are open.
fn responding_to_five_at_once() -> [Step; 4] {
    [
        Step::WaitForConnections(5),
        Step::Read,
        send(OK),
        Step::Again,
    ]
}

#[test]
fn connection_is_reused_across_clients() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let address = site.serve(&upstream.plan());
        for _ in 0..5 {
            let mut client = site.connect(&address).await;
            get(&mut client).await;
            get(&mut client).await;
        }
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn idle_connections_are_limited() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&responding_to_five_at_once()]);
        let mut plan = upstream.plan();
        plan.upstreams[0].connections_idle_max = 2;
        let address = site.serve(&plan);
        let mut clients = get_at_once(&site, &address, 5).await;
        site.until("two are kept", || upstream.open() == 2).await;
        get(&mut clients[0]).await;
        assert_eq!((upstream.connections(), upstream.open()), (5, 2));
    });
}

#[test]
fn connections_of_a_burst_are_reused() {
    const CLIENTS: usize = 1_500;
    on_simulated_core(1, |site| async move {
        let script = [
            Step::WaitForConnections(CLIENTS),
            Step::Read,
            send(OK),
            Step::Again,
        ];
        let upstream = site.upstream(&[&script]);
        let address = site.serve(&upstream.plan());
        let mut clients = get_at_once(&site, &address, CLIENTS).await;
        for client in &mut clients {
            client.send(GET.as_bytes()).await;
        }
        for client in &mut clients {
            let response = client.receive_text().await;
            assert!(response.ends_with("\r\n\r\nok"), "{response}");
        }
        assert_eq!(upstream.connections(), CLIENTS);
    });
}

#[test]
fn pooling_can_be_disabled() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let mut plan = upstream.plan();
        plan.upstreams[0].connections_idle_max = 0;
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        get(&mut client).await;
        get(&mut client).await;
        assert_eq!(upstream.connections(), 2);
        site.until("none is kept", || upstream.open() == 0).await;
    });
}

#[test]
fn idle_timeout_closes_connection() {
    on_simulated_cores(|site| async move {
        let script = [
            Step::WaitForConnections(3),
            Step::Read,
            send(OK),
            Step::Again,
        ];
        let upstream = site.upstream(&[&script]);
        let mut plan = upstream.plan();
        plan.timeouts.upstream_idle = Duration::from_secs(10);
        let address = site.serve(&plan);
        let mut clients = get_at_once(&site, &address, 3).await;
        for _ in 0..8 {
            site.core.sleep(Duration::from_secs(2)).await;
            get(&mut clients[0]).await;
        }
        // The most recently used connection is used next; the others were idle all the time.
        assert_eq!((upstream.connections(), upstream.open()), (3, 1));
        site.core.sleep(Duration::from_secs(15)).await;
        assert_eq!(upstream.open(), 0);
    });
}

#[test]
fn excess_response_bytes_prevent_reuse() {
    for surplus in ["x", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"] {
        let together = vec![
            Step::Read,
            send(&format!("{OK}{surplus}")),
            Step::WaitForEnd,
        ];
        let later = vec![Step::Read, send(OK), send(surplus), Step::WaitForEnd];
        for script in [together, later] {
            on_every_driver(move |site| {
                let upstream = site.upstream(&[&script, &[Step::Read, send(OK), Step::Again]]);
                async move {
                    let address = site.serve(&upstream.plan());
                    let mut client = site.connect(&address).await;
                    get(&mut client).await;
                    site.until("it is given up", || upstream.open() == 0).await;
                    get(&mut client).await;
                    assert_eq!(upstream.connections(), 2);
                }
            });
        }
    }
}

#[test]
fn late_304_body_is_not_parsed_as_response() {
    let not_modified = send("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
    let late = [
        Step::Read,
        not_modified,
        Step::Read,
        send("<p>late</p>\r\n"),
        Step::WaitForEnd,
    ];
    on_every_driver(move |site| {
        let upstream = site.upstream(&[&late, &[Step::Read, send(OK), Step::Again]]);
        async move {
            let mut client = site.connect(&site.serve(&upstream.plan())).await;
            client.send(GET.as_bytes()).await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 304 "), "{response}");
            get(&mut client).await;
            assert_eq!(upstream.connections(), 2);
        }
    });
}

#[test]
fn connection_closed_while_idle_is_not_reused() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK)]]);
        let (address, service) = site.serve_worker(&upstream.plan());
        let mut client = site.connect(&address).await;
        for _ in 0..3 {
            get(&mut client).await;
            // Its close may arrive at the proxy later; a request sent before that is retried.
            site.core.yield_now().await;
        }
        assert_eq!(upstream.connections(), 3);
        assert_eq!(service.worker.meter.totals().failed(), 0);
    });
}

#[test]
fn connection_close_prevents_reuse() {
    for response in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ] {
        on_every_driver(move |site| async move {
            let upstream = site.upstream(&[&[Step::Read, send(response), Step::WaitForEnd]]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            get(&mut client).await;
            get(&mut client).await;
            assert_eq!(upstream.connections(), 2);
        });
    }
}

#[test]
fn http_1_0_keep_alive_is_reused() {
    on_every_driver(|site| async move {
        let kept = send("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok");
        let upstream = site.upstream(&[&[Step::Read, kept, Step::Again]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        get(&mut client).await;
        get(&mut client).await;
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn idle_connections_hold_no_buffers() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&responding_to_five_at_once()]);
        let address = site.serve(&upstream.plan());
        let before = site.core.pool().in_use();
        let _clients = get_at_once(&site, &address, 5).await;
        // With io_uring the kernel holds up to 256.
        let is_ring = site.core.pool().in_use() > before + 20;
        let held_max = if is_ring { 256 } else { before };
        site.until("all are given back", || {
            site.core.pool().in_use() <= held_max
        })
        .await;
    });
}

#[test]
fn preconnect_opens_connections_in_advance() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let mut plan = upstream.plan();
        plan.upstreams[0].preconnect = 3;
        let address = site.serve(&plan);
        site.until("three connections", || upstream.connections() == 3)
            .await;
        let mut client = site.connect(&address).await;
        get(&mut client).await;
        assert_eq!(upstream.connections(), 3);
    });
}

#[test]
fn removed_group_closes_idle_connections() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (address, service) = site.serve_worker(&upstream.plan());
        let mut client = site.connect(&address).await;
        get(&mut client).await;
        assert_eq!(upstream.open(), 1);
        service.group(0).retire_at_once();
        site.until("it is closed", || upstream.open() == 0).await;
        // This request started before the group was retired.
        get(&mut client).await;
        site.until("it is closed, too", || upstream.open() == 0)
            .await;
        assert_eq!(upstream.connections(), 2);
        assert_eq!(service.worker.meter.totals().failed(), 0);
    });
}
