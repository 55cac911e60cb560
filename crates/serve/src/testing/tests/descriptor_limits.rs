//! More clients than descriptors: none is refused, and none waits for idle ones.

use crate::testing::harness::Step;
use crate::testing::harness::{on_every_driver, send};
use crate::worker::descriptor_shares::Shares;
use onrush_config::Plan;
use onrush_config::plan::OneLiner;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn fixed() -> Plan {
    let what = OneLiner::Respond {
        status: 200,
        body: b"ok".to_vec(),
    };
    Plan::one_liner(what, Vec::new())
}

/// Shares for this many clients, and one idle connection to a server.
fn room_for(clients: usize) -> Shares {
    Shares {
        pipes_per_core: 0,
        limit: Some(64),
        clients,
        per_client: 2,
        admins: 1,
        idle_per_core: 1,
        idle_owners: 1,
    }
}

#[test]
fn clients_above_descriptor_limit_get_responses() {
    on_every_driver(|site| async move {
        let (address, service) = site.serve_within(&fixed(), room_for(3));
        let mut clients = Vec::new();
        for _ in 0..10 {
            let client = site.connect(&address).await;
            client.send(GET.as_bytes()).await;
            clients.push(client);
        }
        // Earlier clients keep their connections open.
        for client in &mut clients {
            let response = client.receive_message().await;
            assert!(response.ends_with("\r\n\r\nok"), "{response}");
            assert!(service.worker.connection_budget.allowance.held() <= 4);
        }
    });
}

#[test]
fn longest_idle_client_is_closed_at_descriptor_limit() {
    on_every_driver(|site| async move {
        let (address, _) = site.serve_within(&fixed(), room_for(2));
        let mut idle = Vec::new();
        for _ in 0..2 {
            let mut client = site.connect(&address).await;
            client.send(GET.as_bytes()).await;
            client.receive_message().await;
            idle.push(client);
        }
        let mut late = site.connect(&address).await;
        late.send(GET.as_bytes()).await;
        let response = late.receive_message().await;
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        assert_eq!(idle[0].receive_all_or_reset().await, (Vec::new(), false));
    });
}

#[test]
fn stopping_server_accepts_waiting_clients() {
    on_every_driver(|site| async move {
        let (address, _) = site.serve_within(&fixed(), room_for(1));
        let mut clients = Vec::new();
        for _ in 0..4 {
            let client = site.connect(&address).await;
            client.send(GET.as_bytes()).await;
            clients.push(client);
        }
        site.core.stop(std::time::Duration::from_secs(200));
        for client in &mut clients {
            let response = String::from_utf8(client.receive_all().await).unwrap();
            assert!(response.ends_with("\r\n\r\nok"), "{response}");
        }
    });
}

#[test]
fn idle_server_connections_are_limited() {
    on_every_driver(|site| async move {
        let once: &[Step] = &[Step::Read, send(OK), Step::WaitForEnd];
        let upstream = site.upstream(&[once, once, once]);
        let (address, service) = site.serve_within(&upstream.plan(), room_for(3));
        let mut clients = Vec::new();
        for _ in 0..3 {
            let client = site.connect(&address).await;
            client.send(GET.as_bytes()).await;
            clients.push(client);
        }
        for client in &mut clients {
            client.receive_message().await;
        }
        let idle: usize = service
            .site()
            .groups
            .iter()
            .map(|group| group.give_up_idle())
            .sum();
        assert!(idle <= 1, "{idle} are kept");
    });
}
