//! The memcached load target, over connections.

use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_load_targets::Target;

use crate::site::service::Service;
use crate::testing::harness::{configured, on_every_driver, on_simulated_cores};

fn plan(keys: &str) -> Plan {
    configured(&format!(
        "[[listen]]\naddress = \"127.0.0.1:1\"\nprotocol = \"memcached\"\n{keys}"
    ))
}

#[test]
fn values_of_any_length_are_stored() {
    on_every_driver(|site| async move {
        let address = site.serve(&plan(""));
        let mut client = site.connect(&address).await;
        for length in [0, 1, 4094, 4095, 17_000, 200_000] {
            let value = "v".repeat(length);
            let said = format!("set key 1 0 {length}\r\n{value}\r\nget key\r\n");
            client.send_in_background(said.as_bytes());
            let answer = format!("STORED\r\nVALUE key 1 {length}\r\n{value}\r\nEND\r\n");
            assert!(client.receive_exactly(answer.len()).await == answer.as_bytes());
        }
        client.send(b"version\r\nquit\r\n").await;
        let rest = client.receive_all().await;
        assert!(rest.starts_with(b"VERSION "));
    });
}

#[test]
fn clients_share_items_across_reload() {
    on_every_driver(|site| async move {
        let (address, service, before) = site.serve_to_change(&plan(""));
        let one = site.connect(&address).await;
        one.send(b"set shared 0 0 3\r\nabc\r\n").await;
        let mut other = site.connect(&address).await;
        let mut one = one;
        assert_eq!(one.receive_exactly(8).await, b"STORED\r\n");
        let hit = b"VALUE shared 0 3\r\nabc\r\nEND\r\n";
        other.send(b"get shared\r\n").await;
        assert_eq!(other.receive_exactly(hit.len()).await, hit);
        let again = plan("[timeouts]\nclient_idle = \"90s\"");
        let before = site.apply(&service, &before, &again);
        let store = |service: &Service| match service.site().places[0].spoken.target() {
            Some(Target::Memcached(store)) => Rc::clone(store),
            _ => panic!("it is a memcached server"),
        };
        let kept = store(&service);
        site.apply(&service, &before, &plan("memory = \"1m\""));
        assert!(
            !Rc::ptr_eq(&kept, &store(&service)),
            "there is room for less"
        );
        // Existing connections keep their store.
        one.send(b"get shared\r\n").await;
        assert_eq!(one.receive_exactly(hit.len()).await, hit);
        one.finish().await;
        other.finish().await;
    });
}

#[test]
fn idle_or_stalled_client_is_closed() {
    on_simulated_cores(|site| async move {
        let keys = "[timeouts]\nclient_idle = \"5s\"\nclient_send = \"3s\"";
        let address = site.serve(&plan(keys));
        let mut silent = site.connect(&address).await;
        let begun = site.core.now();
        assert!(silent.is_over().await);
        assert!(site.core.now().since(begun) >= Duration::from_secs(5));
        // A flood of gets whose responses are not read: the server buffers up to its limit, then disconnects.
        let mut deaf = site.connect(&address).await;
        let value = "v".repeat(100_000);
        deaf.send(format!("set key 0 0 100000\r\n{value}\r\n").as_bytes())
            .await;
        deaf.send_in_background("get key\r\n".repeat(2_000).as_bytes());
        site.core.sleep(Duration::from_secs(60)).await;
        let (received, is_reset) = deaf.receive_all_or_reset().await;
        assert!(received.len() < 100_000 * 2_000, "{is_reset}");
    });
}
