//! Limits on client connections: connections above a limit are closed, and closed ones make room.

use super::http2::Http2Client;
use crate::testing::harness::{Peer, TestCore, configured, on_every_driver};
use onrush_config::Plan;
use onrush_engine::Address;
use onrush_http::http2::settings::WINDOW_DEFAULT;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn bounded(bounds: &str) -> Plan {
    configured(&format!(
        "[clients]\n{bounds}\n[[route]]\nrespond = {{ status = 200, body = \"ok\" }}"
    ))
}

/// A client that has received a response.
async fn served(site: &TestCore, address: &Address, say: &str) -> Peer {
    let mut client = site.connect(address).await;
    client.send(format!("{say}{GET}").as_bytes()).await;
    let response = client.receive_message().await;
    assert!(response.ends_with("\r\n\r\nok"), "{response}");
    client
}

/// A connection that is closed without a response.
async fn refused(site: &TestCore, address: &Address, say: &str) {
    let mut client = site.connect(address).await;
    // The server may close it first.
    let request = format!("{say}{GET}");
    let _ = crate::testing::harness::send_bytes(&client.stream, request.as_bytes()).await;
    assert_eq!(client.receive_all_or_reset().await.0, b"");
}

#[test]
fn connections_above_limit_are_closed() {
    for bounds in [
        "connections_max = 2",
        "connections_per_address_max = 2",
        "connections_max = 2\nconnections_per_address_max = 9",
    ] {
        on_every_driver(move |site| async move {
            let (address, service) = site.serve_worker(&bounded(bounds));
            let first = served(&site, &address, "").await;
            let mut second = served(&site, &address, "").await;
            refused(&site, &address, "").await;
            refused(&site, &address, "").await;
            // Existing connections are still served.
            second.send(GET.as_bytes()).await;
            assert!(second.receive_message().await.ends_with("ok"));
            drop(first);
            let totals = || service.worker.meter.totals();
            assert_eq!(totals().connections_refused, 2);
            let mut attempts = 0;
            loop {
                let mut late = site.connect(&address).await;
                let _ = crate::testing::harness::send_bytes(&late.stream, GET.as_bytes()).await;
                if late.receive_until_or_end(b"ok").await {
                    break;
                }
                attempts += 1;
                assert!(attempts < 1000, "the one that left has made no room");
                site.core.sleep(std::time::Duration::from_millis(1)).await;
            }
        });
    }
}

#[test]
fn http2_connections_count_until_closed() {
    on_every_driver(|site| async move {
        let (address, _) = site.serve_worker(&bounded("connections_max = 1"));
        let mut first = Http2Client::connect(&site, &address, WINDOW_DEFAULT).await;
        assert_eq!(first.get("/").await.body, b"ok");
        refused(&site, &address, "").await;
        assert_eq!(first.get("/").await.body, b"ok");
        drop(first);
        let mut attempts = 0;
        loop {
            let mut late = site.connect(&address).await;
            let _ = crate::testing::harness::send_bytes(&late.stream, GET.as_bytes()).await;
            if late.receive_until_or_end(b"ok").await {
                break;
            }
            attempts += 1;
            assert!(attempts < 1000, "the one that left has made no room");
            site.core.sleep(std::time::Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn connection_limit_uses_proxy_protocol_addresses() {
    on_every_driver(|site| async move {
        let plan = configured(
            r#"
            [clients]
            connections_per_address_max = 1
            [[listen]]
            address = "127.0.0.1:0"
            proxy_protocol = { from = ["127.0.0.0/8"] }
            [[route]]
            respond = { status = 200, body = "ok" }
            "#,
        );
        let address = site.serve(&plan);
        let from = |family: &str, client: &str, to: &str| {
            format!("PROXY {family} {client} {to} 1000 80\r\n")
        };
        let v4 = |client: &str| from("TCP4", client, "192.0.2.9");
        let v6 = |client: &str| from("TCP6", client, "2001:db8::9");
        let _first = served(&site, &address, &v4("192.0.2.1")).await;
        let _second = served(&site, &address, &v4("192.0.2.2")).await;
        refused(&site, &address, &v4("192.0.2.1")).await;
        let _third = served(&site, &address, &v6("2001:db8:0:1::1")).await;
        // All addresses of a /64 count as one client.
        refused(&site, &address, &v6("2001:db8:0:1:ffff::2")).await;
        let _fourth = served(&site, &address, &v6("2001:db8:0:2::1")).await;
    });
}

#[test]
fn connection_limit_exempts_trusted_proxies() {
    on_every_driver(|site| async move {
        let mut plan = bounded("connections_per_address_max = 1");
        plan.forwarded.trust = onrush_config::plan::Networks::all();
        let address = site.serve(&plan);
        let _first = served(&site, &address, "").await;
        let _second = served(&site, &address, "").await;
    });
}

#[test]
fn connection_limit_survives_reload() {
    on_every_driver(|site| async move {
        let (address, service, before) = site.serve_to_change(&bounded("connections_max = 1"));
        let _first = served(&site, &address, "").await;
        let before = site.apply(&service, &before, &bounded("connections_max = 2"));
        let _site = &before;
        assert_eq!(service.worker.meter.totals().connections_refused, 0);
        let bounds = crate::worker::admit::connections::ConnectionLimits::new(
            &before.plan,
            &before.client_counts,
        );
        assert_eq!(bounds.expect("there is one").open(), Some(1));
    });
}
