//! Groups of several servers: selection, and retries when a server fails.

use std::num::NonZeroU32;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{
    Balance, Check, Eject, EjectOn, HashKey, Health, Network, Networks, Server, ServerAddress,
    Sticky, Upstream as Group,
};

use crate::observe::record::FailureClass;
use crate::testing::harness::{
    Peer, Step, TestCore, Upstream, on_every_driver, on_simulated_cores, send,
};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Forwards everything to a group of these servers.
fn plan(servers: &[&Upstream], change: impl FnOnce(&mut Group)) -> Plan {
    let mut plan = servers[0].plan();
    plan.upstreams[0].servers = servers
        .iter()
        .map(|server| Server::at(ServerAddress::Ip(server.address)))
        .collect();
    change(&mut plan.upstreams[0]);
    plan
}

fn respond(body: &str) -> Step {
    let length = body.len();
    send(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
}

/// A server that responds to everything with its name.
fn named(site: &TestCore, name: &str) -> Upstream {
    site.upstream(&[&[Step::Read, respond(name), Step::Again]])
}

async fn ask(client: &mut Peer, request: &str) -> String {
    client.send(request.as_bytes()).await;
    client.receive_text().await
}

async fn body(client: &mut Peer, request: &str) -> String {
    let response = ask(client, request).await;
    let (_, body) = response.split_once("\r\n\r\n").expect("a head");
    body.to_owned()
}

#[test]
fn refused_connection_fails_no_request() {
    on_every_driver(|site| async move {
        let good = named(&site, "good");
        let gone = named(&site, "gone");
        let (listener, nobody) = site.listen();
        drop(listener);
        let plan = plan(&[&gone, &good], |group| {
            group.servers[0].address = ServerAddress::Ip(nobody);
        });
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for method in ["GET", "POST"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
            for _ in 0..4 {
                assert_eq!(body(&mut client, &request).await, "good");
            }
        }
        let totals = service.worker.meter.totals();
        assert_eq!((totals.failed(), totals.retried), (0, 1));
    });
}

#[test]
fn reset_fails_only_unretryable_requests() {
    on_every_driver(|site| async move {
        let good = named(&site, "good");
        let bad = site.upstream(&[&[Step::Read, Step::Reset]]);
        let (address, service) = site.serve_worker(&plan(&[&bad, &good], |_| {}));
        let mut client = site.connect(&address).await;
        for _ in 0..6 {
            assert_eq!(body(&mut client, GET).await, "good");
        }
        assert_eq!(service.worker.meter.totals().failed(), 0);
        // A request that may not be retried does not fail either, once the failure is known.
        let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
        for _ in 0..4 {
            assert_eq!(body(&mut client, post).await, "good");
        }
        assert_eq!(service.worker.meter.totals().failed(), 0);
    });
}

#[test]
fn retryable_status_is_hidden_from_client() {
    on_every_driver(|site| async move {
        let good = named(&site, "good");
        let busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
        let busy = site.upstream(&[&[Step::Read, send(busy), Step::Again]]);
        let only_busy = plan(&[&busy], |group| group.retries.statuses = vec![503]);
        let both = plan(&[&busy, &good], |group| group.retries.statuses = vec![503]);
        let mut client = site.connect(&site.serve(&both)).await;
        for _ in 0..4 {
            assert_eq!(body(&mut client, GET).await, "good");
        }
        // If no other server is left, the client gets this response.
        let mut client = site.connect(&site.serve(&only_busy)).await;
        assert_eq!(body(&mut client, GET).await, "busy");
    });
}

#[test]
fn no_available_server_gets_503_with_retry_after() {
    on_every_driver(|site| async move {
        let server = named(&site, "x");
        let plan = plan(&[&server], |_| {});
        let (address, service) = site.serve_worker(&plan);
        let now = site.core.now();
        service.group(0).endpoints().set_healthy(0, false, now);
        let mut client = site.connect(&address).await;
        let refused = ask(&mut client, GET).await;
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        assert!(refused.contains("\r\nRetry-After: 1\r\n"), "{refused}");
        assert_eq!(
            service
                .worker
                .meter
                .totals()
                .failures(FailureClass::NoServer),
            1
        );
        service.group(0).endpoints().set_healthy(0, true, now);
        assert_eq!(body(&mut client, GET).await, "x");
    });
}

#[test]
fn backups_are_used_only_without_primaries() {
    on_every_driver(|site| async move {
        let (first, backup) = (named(&site, "first"), named(&site, "backup"));
        let plan = plan(&[&first, &backup], |group| group.servers[1].backup = true);
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        let group = service.group(0);
        let endpoints = group.endpoints();
        for (is_healthy, expected) in [(true, "first"), (false, "backup"), (true, "first")] {
            endpoints.set_healthy(0, is_healthy, site.core.now());
            for _ in 0..3 {
                assert_eq!(body(&mut client, GET).await, expected);
            }
        }
    });
}

/// Two concurrent clients of a server limited to one connection; returns the status of the second.
async fn second_of_two(site: &TestCore, queue_max: usize, patience: Duration) -> String {
    let slow = [
        Step::Read,
        Step::Wait(Duration::from_millis(200)),
        respond("x"),
        Step::Again,
    ];
    let server = site.upstream(&[&slow]);
    let mut plan = plan(&[&server], |group| {
        group.servers[0].connections_max = NonZeroU32::new(1);
        group.queue_max = queue_max;
    });
    plan.timeouts.queue = patience;
    let address = site.serve(&plan);
    let mut first = site.connect(&address).await;
    first.send(GET.as_bytes()).await;
    site.until("the first request", || server.connections() == 1)
        .await;
    let mut second = site.connect(&address).await;
    let response = ask(&mut second, GET).await;
    assert!(first.receive_text().await.ends_with("\r\n\r\nx"));
    assert_eq!(server.connections(), 1);
    response[9..12].to_owned()
}

#[test]
fn request_waits_for_connection_limit() {
    on_every_driver(|site| async move {
        let status = second_of_two(&site, 10, Duration::from_secs(60)).await;
        assert_eq!(status, "200");
    });
}

#[test]
fn queue_limit_or_timeout_gets_503() {
    on_simulated_cores(|site| async move {
        let status = second_of_two(&site, 0, Duration::from_secs(60)).await;
        assert_eq!(status, "503", "no room in the queue");
        let status = second_of_two(&site, 10, Duration::from_millis(50)).await;
        assert_eq!(status, "503", "no time");
    });
}

#[test]
fn sticky_cookie_returns_to_server() {
    on_every_driver(|site| async move {
        let servers = [named(&site, "a"), named(&site, "b"), named(&site, "c")];
        let plan = plan(&servers.each_ref(), |group| {
            group.sticky = Some(Sticky {
                cookie: "srv".into(),
                age_max: None,
            });
        });
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        let first = ask(&mut client, GET).await;
        let (_, name) = first.split_once("\r\n\r\n").expect("a head");
        let cookie = first.split_once("Set-Cookie: srv=").expect("a cookie").1;
        let cookie = &cookie[..cookie.find(';').expect("attributes")];
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: a=b; srv={cookie}\r\n\r\n");
        for _ in 0..5 {
            let again = ask(&mut client, &request).await;
            assert!(again.ends_with(&format!("\r\n\r\n{name}")), "{again}");
            assert!(!again.contains("Set-Cookie"), "{again}");
        }
        // If that server is down, another takes over and sets a new cookie.
        let index = servers.iter().position(|server| server.connections() > 0);
        let index = index.expect("one had them all") as u32;
        let group = service.group(0);
        let endpoints = group.endpoints();
        endpoints.set_healthy(index, false, site.core.now());
        let moved = ask(&mut client, &request).await;
        assert!(moved.contains("Set-Cookie: srv="), "{moved}");
        assert!(!moved.ends_with(&format!("\r\n\r\n{name}")), "{moved}");
    });
}

#[test]
fn sticky_cookie_over_tls_is_secure() {
    on_every_driver(|site| async move {
        let server = named(&site, "a");
        let mut plan = plan(&[&server], |group| {
            group.sticky = Some(Sticky {
                cookie: "srv".into(),
                age_max: None,
            });
        });
        let encrypted = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-Proto: https\r\n\r\n";
        for (is_trusted, request, is_secure) in [
            (false, GET, false),
            (false, encrypted, false),
            (true, GET, false),
            (true, encrypted, true),
        ] {
            let loopback = Network::new([127, 0, 0, 0].into(), 8).expect("a prefix");
            plan.forwarded.trust = Networks(if is_trusted {
                vec![loopback]
            } else {
                Vec::new()
            });
            let mut client = site.connect(&site.serve(&plan)).await;
            let response = ask(&mut client, request).await;
            let lines: Vec<_> = response
                .lines()
                .filter(|line| line.starts_with("Set-Cookie: srv="))
                .collect();
            assert_eq!(lines.len(), 1, "{response}");
            assert_eq!(lines[0].ends_with("; Secure"), is_secure, "{response}");
        }
    });
}

#[test]
fn hash_keys_map_to_same_server() {
    on_every_driver(|site| async move {
        let servers = [named(&site, "a"), named(&site, "b"), named(&site, "c")];
        for key in [
            HashKey::Path,
            HashKey::Header("X-Key".into()),
            HashKey::Cookie("k".into()),
        ] {
            let plan = plan(&servers.each_ref(), |group| {
                group.balance = Balance::Hash(key.clone());
            });
            let mut client = site.connect(&site.serve(&plan)).await;
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..12 {
                let request = format!(
                    "GET /{number} HTTP/1.1\r\nHost: h\r\nX-Key: {number}\r\nCookie: k={number}\r\n\r\n"
                );
                let server = body(&mut client, &request).await;
                for _ in 0..3 {
                    assert_eq!(body(&mut client, &request).await, server);
                }
                seen.insert(server);
            }
            assert!(seen.len() > 1, "keys are spread: {seen:?} by {key:?}");
        }
    });
}

fn health(check: Check) -> Option<Health> {
    Some(Health {
        check,
        interval: Duration::from_millis(500),
        timeout: Duration::from_millis(200),
        rise: NonZeroU32::new(2).expect("not 0"),
        fall: NonZeroU32::new(2).expect("not 0"),
        jitter: 10,
        port: None,
    })
}

fn http_check() -> Check {
    Check::Http {
        path: "/health".into(),
        host: None,
        status: vec![(200, 299)],
        body: None,
    }
}

#[test]
fn failed_checks_mark_server_down() {
    on_simulated_cores(|site| async move {
        let ok = [Step::Read, respond("ok")];
        let bad = [
            Step::Read,
            send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
        ];
        // Checks close their connections: passed, failed twice, passed from then on.
        let server = site.upstream(&[&ok, &bad, &bad, &ok]);
        let plan = plan(&[&server], |group| group.health = health(http_check()));
        let (_, service) = site.serve_worker(&plan);
        let is_up = || service.group(0).endpoints().all()[0].is_healthy();
        assert!(is_up());
        site.until("a second failure", || !is_up()).await;
        assert_eq!(server.connections(), 3);
        site.until("a second success", is_up).await;
        assert_eq!(server.connections(), 5);
        assert!(server.requests()[0][0].starts_with("GET /health HTTP/1.1\n"));
    });
}

#[test]
fn check_timeout_marks_server_down() {
    on_simulated_cores(|site| async move {
        let silent = site.upstream(&[&[Step::Read, Step::WaitForEnd]]);
        let plan = plan(&[&silent], |group| group.health = health(http_check()));
        let (_, service) = site.serve_worker(&plan);
        let is_up = || service.group(0).endpoints().all()[0].is_healthy();
        site.until("a failure", || !is_up()).await;
        assert_eq!(silent.connections(), 1, "the first check decides alone");
    });
}

#[test]
fn tcp_check_passes_on_connect() {
    on_every_driver(|site| async move {
        let silent = site.upstream(&[&[Step::WaitForEnd]]);
        let plan = plan(&[&silent], |group| group.health = health(Check::Tcp));
        let (_, service) = site.serve_worker(&plan);
        site.until("three checks", || silent.connections() >= 3)
            .await;
        assert!(service.group(0).endpoints().all()[0].is_healthy());
    });
}

#[test]
fn repeated_failures_eject_server() {
    on_simulated_cores(|site| async move {
        let good = named(&site, "good");
        let bad = site.upstream(&[&[Step::Read, Step::Reset]]);
        let mut plan = plan(&[&bad, &good], |group| {
            group.eject = Some(Eject {
                on: EjectOn::Responses,
                consecutive_failures: NonZeroU32::new(3),
                error_share: None,
                latency_share: None,
                time: Duration::from_secs(30),
                share_max: 50,
            });
        });
        plan.upstreams[0].retries.count = 0;
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        for _ in 0..40 {
            ask(&mut client, GET).await;
        }
        assert_eq!(bad.connections(), 3, "out after three failures");
        site.core.sleep(Duration::from_secs(32)).await;
        for _ in 0..4 {
            ask(&mut client, GET).await;
        }
        assert!(bad.connections() > 3, "tried again after its time");
    });
}

#[test]
fn total_request_timeout_is_enforced() {
    on_simulated_cores(|site| async move {
        // Every part of the response is within its timeout, but not the whole response.
        let dribble = [
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"),
            Step::Wait(Duration::from_secs(4)),
            send("x"),
            Step::Wait(Duration::from_secs(4)),
            send("x"),
            Step::Wait(Duration::from_secs(4)),
            Step::WaitForEnd,
        ];
        let server = site.upstream(&[&dribble]);
        let mut plan = plan(&[&server], |_| {});
        plan.timeouts.request = Some(Duration::from_secs(10));
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        let received = client.receive_all().await;
        assert!(
            received.ends_with(b"\r\n\r\nxx"),
            "{}",
            received.escape_ascii()
        );
        assert_eq!(service.worker.meter.totals().failures(FailureClass::Cut), 1);
    });
}
