//! The PROXY protocol: from load balancers to Onrush, and from Onrush to servers.

use onrush_config::plan::{Check, Health, Network, Networks, Plan, ProxyVersion, Reuse};
use onrush_http::Parsed;
use onrush_http::proxy_protocol::{self, Origin};

use crate::testing::harness::{
    Outcome, Step, exchange_text, forward_with, on_every_driver, on_simulated_cores, send,
};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const FROM_AFAR: &str = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n";

/// The outcome of these bytes with PROXY protocol on the listener and X-Forwarded fields for servers.
fn introduced(bytes: &str) -> Outcome {
    let change = |plan: &mut Plan| {
        plan.listen[0].proxy_protocol = Some(Networks::all());
        plan.forwarded.x_forwarded = true;
    };
    forward_with(&change, &[&[Step::Read, send(OK), Step::Again]], bytes)
}

#[test]
fn proxy_header_sets_client_address() {
    let ipv4 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\x01\x02\x03\x0a\0\0\x01\x12\x34\0\x50";
    let local = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    for (header, client) in [
        (FROM_AFAR, "192.0.2.7"),
        (
            "PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n",
            "2001:db8::7",
        ),
        ("PROXY TCP6 ::ffff:192.0.2.7 ::1 56324 443\r\n", "192.0.2.7"),
        ("PROXY UNKNOWN\r\n", "127.0.0.1"),
        (ipv4, "10.1.2.3"),
        (local, "127.0.0.1"),
    ] {
        let outcome = introduced(&[header, GET, GET].concat());
        let told = format!("\nX-Forwarded-For: {client}\n");
        assert_eq!(outcome.requests.concat().len(), 2, "{outcome:?}");
        for request in outcome.requests.concat() {
            assert!(request.contains(&told), "{client} in {request}");
        }
    }
}

#[test]
fn missing_proxy_header_closes_connection() {
    for bytes in [
        GET,
        "PROXY TCP4 192.0.2.7\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "PROXY TCP4 192.0.2.7",
    ] {
        let outcome = introduced(bytes);
        assert_eq!(outcome.response, "", "{bytes}");
        assert!(outcome.requests.is_empty(), "{bytes}");
        assert_eq!(outcome.totals.refused, 1, "{bytes}");
        assert_eq!(outcome.totals.connections, 1, "{bytes}");
    }
    let silent = introduced("");
    assert_eq!((silent.totals.refused, silent.totals.connections), (0, 1));
}

#[test]
fn untrusted_peer_needs_no_proxy_header() {
    let balancers = Network::new([10, 0, 0, 0].into(), 8).expect("a prefix");
    let change = |plan: &mut Plan| {
        plan.listen[0].proxy_protocol = Some(Networks(vec![balancers]));
    };
    let script = [Step::Read, send(OK)];
    let outcome = forward_with(&change, &[&script], GET);
    assert!(
        outcome.response.starts_with("HTTP/1.1 200 OK\n"),
        "{outcome:?}"
    );
    let outcome = forward_with(&change, &[&script], &[FROM_AFAR, GET].concat());
    assert!(outcome.response.starts_with("HTTP/1.1 400 "), "{outcome:?}");
}

#[test]
fn late_proxy_header_closes_connection() {
    on_simulated_cores(|site| async move {
        let mut plan = site.upstream(&[&[]]).plan();
        plan.listen[0].proxy_protocol = Some(Networks::all());
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        client.send(b"PROXY ").await;
        assert_eq!(client.receive_all().await, b"");
        assert_eq!(service.worker.meter.totals().refused, 1);
    });
}

#[test]
fn access_rules_use_proxy_header_address() {
    let far = Network::new([192, 0, 2, 0].into(), 24).expect("a prefix");
    let what = onrush_config::plan::OneLiner::Synthetic;
    let mut plan = Plan::one_liner(what, Vec::new());
    plan.listen[0].proxy_protocol = Some(Networks::all());
    plan.routes[0].access.deny = Networks(vec![far]);
    let response = exchange_text(&plan, &[FROM_AFAR, GET].concat());
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
}

#[test]
fn server_connections_send_proxy_header_per_client() {
    for version in [ProxyVersion::V1, ProxyVersion::V2] {
        on_every_driver(move |site| async move {
            // A version 2 header starts with the end marker of a head.
            let heads = match version {
                ProxyVersion::V1 => vec![Step::ReadHead],
                ProxyVersion::V2 => vec![Step::ReadHead, Step::ReadHead],
            };
            let script = [heads, vec![send(OK)]].concat();
            let upstream = site.upstream(&[&script]);
            let mut plan = upstream.plan();
            plan.listen[0].proxy_protocol = Some(Networks::all());
            plan.upstreams[0].proxy_protocol = Some(version);
            plan.upstreams[0].reuse = Reuse::Never;
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let requests = [FROM_AFAR, GET, GET].concat();
            client.exchange(requests.as_bytes()).await;
            assert_eq!(upstream.connections(), 2);
            for number in 0..2 {
                let turns = if version == ProxyVersion::V1 { 1 } else { 2 };
                let parts = (0..turns).map(|turn| upstream.request(number, turn));
                let bytes = parts.collect::<Vec<_>>().concat();
                let Parsed::Complete(header) = proxy_protocol::parse(&bytes) else {
                    panic!("no header: {}", bytes.escape_ascii());
                };
                let Origin::Ip {
                    source,
                    destination,
                } = header.origin
                else {
                    panic!("{header:?}");
                };
                assert_eq!(source, ([192, 0, 2, 7], 56324).into());
                assert!(destination.ip().is_loopback(), "{destination}");
                assert!(bytes[header.bytes..].starts_with(b"GET / HTTP/1.1\r\n"));
            }
        });
    }
}

#[test]
fn health_checks_send_unknown_proxy_header() {
    on_every_driver(|site| async move {
        let script = [Step::ReadHead, send(OK)];
        let upstream = site.upstream(&[&script]);
        let mut plan = upstream.plan();
        plan.upstreams[0].proxy_protocol = Some(ProxyVersion::V1);
        plan.upstreams[0].reuse = Reuse::Never;
        plan.upstreams[0].health = Some(Health::of(Check::Http {
            path: "/health".into(),
            host: None,
            status: vec![(200, 299)],
            body: None,
        }));
        site.serve(&plan);
        site.until("a check", || {
            upstream.requests().first().is_some_and(|of| !of.is_empty())
        })
        .await;
        let check = upstream.request(0, 0);
        assert!(check.starts_with(b"PROXY UNKNOWN\r\nGET /health "));
    });
}
