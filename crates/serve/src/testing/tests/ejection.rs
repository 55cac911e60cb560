//! Servers that stop responding: with the defaults no retryable request is lost, and the servers return by themselves.

use std::num::NonZeroU32;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{Balance, Eject, EjectOn, RetryOn, Server, ServerAddress, Sticky};

use crate::limits::SERVERS_TRIED_MAX;
use crate::observe::record::FailureClass;
use crate::proxy::ejection::{Outcome, Purpose};
use crate::proxy::failure::Failure;
use crate::testing::harness::{
    Peer, Step, TestCore, Upstream, on_every_driver, on_simulated_cores, send,
};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";

/// A healthy server.
fn good(site: &TestCore) -> Upstream {
    site.upstream(&[&[Step::Read, send(OK), Step::Again]])
}

/// Forwards everything to a group of these servers, with defaults.
fn plan(servers: &[&Upstream]) -> Plan {
    let mut plan = servers[0].plan();
    let servers = servers
        .iter()
        .map(|server| Server::at(ServerAddress::Ip(server.address)));
    plan.upstreams[0].servers = servers.collect();
    plan
}

async fn status(client: &mut Peer, request: &str) -> String {
    client.send(request.as_bytes()).await;
    client.receive_text().await[9..12].to_owned()
}

/// Sends concurrent requests of `clients` clients; half of them are in flight on a server that resets all of them at
/// once. Returns the number of good responses.
async fn served_of(site: &TestCore, request: &str, clients: usize) -> usize {
    let in_flight = clients / 2;
    let bad = site.upstream(&[&[Step::Read, Step::WaitForConnections(in_flight), Step::Reset]]);
    let (address, service) = site.serve_worker(&plan(&[&bad, &good(site)]));
    let mut peers = Vec::new();
    for _ in 0..clients {
        let peer = site.connect(&address).await;
        peer.send(request.as_bytes()).await;
        peers.push(peer);
    }
    let mut served = 0;
    for peer in &mut peers {
        served += usize::from(&peer.receive_text().await[9..12] == "200");
    }
    let lost = service.worker.meter.totals().failures(FailureClass::Reset);
    assert_eq!(lost as usize, clients - served);
    assert!(service.group(0).is_out(0), "it has been noticed");
    served
}

#[test]
fn requests_to_unreachable_server_are_retried() {
    on_every_driver(|site| async move {
        // Many more than the retry budget allows.
        assert_eq!(served_of(&site, GET, 200).await, 200);
    });
}

#[test]
fn close_during_response_head_counts_as_reset() {
    let part = || send("HTTP/1.1 200 OK\r\nConte");
    for end in [
        &[][..],
        &[Step::Wait(Duration::from_millis(5)), Step::Reset],
    ] {
        let script: Vec<Step> = [&[Step::Read, part()], end].concat();
        on_every_driver(|site| {
            let script = script.clone();
            async move {
                let bad = site.upstream(&[&script]);
                let (address, service) = site.serve_worker(&plan(&[&bad, &good(&site)]));
                for _ in 0..100 {
                    let mut client = site.connect(&address).await;
                    assert_eq!(status(&mut client, GET).await, "200");
                }
                assert!(service.group(0).is_out(0), "it has been noticed");
            }
        });
    }
}

#[test]
fn only_in_flight_unretryable_requests_fail() {
    on_every_driver(|site| async move {
        assert_eq!(served_of(&site, POST, 40).await, 20);
    });
}

#[test]
fn recently_failed_server_gets_no_unretryable_request() {
    on_simulated_cores(|site| async move {
        let bad = site.upstream(&[&[Step::Read, Step::Reset]]);
        let (address, service) = site.serve_worker(&plan(&[&bad, &good(&site), &bad]));
        let mut client = site.connect(&address).await;
        let mut failures = 0;
        for (wait, failures_then) in [(0, 2), (2, 4)] {
            site.core.sleep(Duration::from_secs(wait)).await;
            for _ in 0..20 {
                failures += usize::from(status(&mut client, POST).await == "502");
            }
            // One failure on each of the two, then only the third is used.
            assert_eq!(failures, failures_then);
        }
        assert!((0..3).all(|server| !service.group(0).is_out(server)));
    });
}

#[test]
fn unretryable_requests_are_sent_if_all_failed_recently() {
    on_simulated_cores(|site| async move {
        let script = [Step::Read, send(OK), Step::Read, send(OK), Step::Read];
        let servers = [(); 2].map(|()| site.upstream(&[&script]));
        let (address, service) = site.serve_worker(&plan(&[&servers[0], &servers[1]]));
        let mut client = site.connect(&address).await;
        let mut served = 0;
        for _ in 0..12 {
            served += usize::from(status(&mut client, POST).await == "200");
        }
        assert_eq!(served, 8);
        assert!((0..2).all(|server| !service.group(0).is_out(server)));
    });
}

#[test]
fn unreachable_server_recovers_when_it_accepts() {
    on_every_driver(|site| async move {
        let (listener, gone) = site.listen();
        drop(listener);
        let other = good(&site);
        let mut plan = plan(&[&other, &other]);
        plan.upstreams[0].servers[0].address = ServerAddress::Ip(gone);
        let (address, service) = site.serve_worker(&plan);
        let group = &service.group(0);
        let mut client = site.connect(&address).await;
        for _ in 0..20 {
            assert_eq!(status(&mut client, POST).await, "200");
        }
        let totals = service.worker.meter.totals();
        assert_eq!((totals.failed(), totals.retried), (0, 1));
        assert!(group.is_out(0));
        let listener = site.listen_again(gone);
        let back = site.upstream_on(listener, gone, &[&[Step::Read, send(OK), Step::Again]]);
        site.until("its return", || !group.is_out(0)).await;
        for _ in 0..4 {
            assert_eq!(status(&mut client, POST).await, "200");
        }
        assert_eq!(back.requests().concat().len(), 2, "its share");
    });
}

#[test]
fn requests_retry_with_ejection_disabled() {
    on_every_driver(|site| async move {
        let (listener, gone) = site.listen();
        drop(listener);
        let other = good(&site);
        let mut plan = plan(&[&other, &other, &other]);
        plan.upstreams[0].eject = None;
        // The budget allows ten of these and a fifth of the requests.
        for server in 0..2 {
            plan.upstreams[0].servers[server].address = ServerAddress::Ip(gone);
        }
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for _ in 0..60 {
            assert_eq!(status(&mut client, POST).await, "200");
        }
        assert_eq!(service.worker.meter.totals().failed(), 0);
        assert!(!service.group(0).is_out(0));
    });
}

#[test]
fn refused_connection_gets_502_without_retries() {
    on_every_driver(|site| async move {
        let (listener, gone) = site.listen();
        drop(listener);
        let other = good(&site);
        for (count, connect) in [(0, true), (2, false)] {
            let mut plan = plan(&[&other, &other]);
            plan.upstreams[0].servers[0].address = ServerAddress::Ip(gone);
            plan.upstreams[0].retries.count = count;
            plan.upstreams[0].retries.on.connect = connect;
            let mut client = site.connect(&site.serve(&plan)).await;
            let mut statuses = Vec::new();
            for _ in 0..20 {
                statuses.push(status(&mut client, GET).await);
            }
            statuses.retain(|status| status != "200");
            assert_eq!(statuses, ["502"], "it is out after the first");
        }
    });
}

#[test]
fn ejected_closing_server_gets_single_trial_request() {
    on_simulated_cores(|site| async move {
        let bad = site.upstream(&[&[Step::Read]]);
        let (address, service) = site.serve_worker(&plan(&[&bad, &good(&site)]));
        let mut client = site.connect(&address).await;
        for _ in 0..40 {
            assert_eq!(status(&mut client, GET).await, "200");
        }
        let requests = || bad.requests().concat().len();
        assert_eq!(requests(), 5, "out after five failures");
        // After a connection check it gets one request, and then is out for twice the time.
        for (wait, seen) in [(8, 5), (5, 6), (15, 6), (8, 7)] {
            site.core.sleep(Duration::from_secs(wait)).await;
            for _ in 0..20 {
                assert_eq!(status(&mut client, GET).await, "200");
            }
            assert_eq!(requests(), seen);
        }
        assert!(service.group(0).is_out(0));
        assert_eq!(service.worker.meter.totals().failed(), 0);
    });
}

#[test]
fn failure_on_reused_connection_counts_once() {
    on_every_driver(|site| async move {
        let used = [Step::Read, send(OK), Step::Read];
        let bad = site.upstream(&[&used, &[Step::Read]]);
        let mut plan = plan(&[&bad, &good(&site)]);
        plan.upstreams[0].balance = Balance::First;
        plan.upstreams[0].retries.count = 0;
        plan.upstreams[0].eject = Some(Eject {
            consecutive_failures: NonZeroU32::new(2),
            ..Eject::on(EjectOn::Connections)
        });
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        assert_eq!(status(&mut client, GET).await, "200");
        assert_eq!(status(&mut client, GET).await, "502");
        assert_eq!(bad.requests().concat().len(), 3, "the second request twice");
        assert!(!service.group(0).is_out(0));
        assert_eq!(status(&mut client, GET).await, "502");
        assert!(service.group(0).is_out(0));
    });
}

#[test]
fn successful_trial_readmits_server() {
    on_simulated_cores(|site| async move {
        let dead = [Step::Read];
        let alive = [Step::Read, send(OK), Step::Again];
        // Five failures and two connection checks.
        let bad = site.upstream(&[&dead, &dead, &dead, &dead, &dead, &dead, &dead, &alive]);
        let (address, service) = site.serve_worker(&plan(&[&bad, &good(&site)]));
        let mut client = site.connect(&address).await;
        for _ in 0..20 {
            assert_eq!(status(&mut client, GET).await, "200");
        }
        assert!(service.group(0).is_out(0));
        site.core.sleep(Duration::from_secs(12)).await;
        for _ in 0..2 {
            assert_eq!(status(&mut client, GET).await, "200");
        }
        assert!(!service.group(0).is_out(0));
    });
}

#[test]
fn ejected_hanging_server_gets_single_trial_request() {
    on_simulated_cores(|site| async move {
        let hung = site.upstream(&[&[Step::Read, Step::WaitForEnd]]);
        let mut plan = plan(&[&hung, &good(&site)]);
        plan.timeouts.upstream_first_byte = Duration::from_secs(1);
        plan.upstreams[0].retries.on = RetryOn {
            timeout: true,
            ..plan.upstreams[0].retries.on
        };
        let (address, _) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for _ in 0..20 {
            assert_eq!(status(&mut client, GET).await, "200");
        }
        let requests = || hung.requests().concat().len();
        assert_eq!(requests(), 5);
        site.core.sleep(Duration::from_secs(12)).await;
        for _ in 0..20 {
            assert_eq!(status(&mut client, GET).await, "200");
        }
        assert_eq!(requests(), 6);
    });
}

#[test]
fn first_recovered_server_gets_next_request() {
    on_every_driver(|site| async move {
        let [(first, one), (second, other)] = [site.listen(), site.listen()];
        drop((first, second));
        let some = good(&site);
        let mut plan = plan(&[&some, &some]);
        plan.upstreams[0].servers[0].address = ServerAddress::Ip(one);
        plan.upstreams[0].servers[1].address = ServerAddress::Ip(other);
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for _ in 0..10 {
            assert_eq!(status(&mut client, GET).await, "502");
        }
        let is_out = |server| service.group(0).is_out(server);
        let (back, at) = match (is_out(0), is_out(1)) {
            (true, false) => (0, one),
            (false, true) => (1, other),
            both => panic!("one stays: {both:?}"),
        };
        let listener = site.listen_again(at);
        let _back = site.upstream_on(listener, at, &[&[Step::Read, send(OK), Step::Again]]);
        assert_eq!(status(&mut client, POST).await, "200");
        assert!(!is_out(back));
    });
}

#[test]
fn attempts_are_limited() {
    on_every_driver(|site| async move {
        let mut plan = plan(&[&good(&site)]);
        let gone = (0..20).map(|_| {
            let (listener, address) = site.listen();
            drop(listener);
            Server::at(ServerAddress::Ip(address))
        });
        plan.upstreams[0].servers = gone.collect();
        plan.upstreams[0].eject = None;
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        assert_eq!(status(&mut client, GET).await, "502");
        let totals = service.worker.meter.totals();
        assert_eq!(totals.retried as usize + 1, SERVERS_TRIED_MAX);
        assert_eq!(totals.failures(FailureClass::Connect), 1);
    });
}

#[test]
fn sticky_client_of_ejected_server_moves() {
    on_every_driver(|site| async move {
        let (one, other) = (good(&site), good(&site));
        let mut plan = plan(&[&one, &other]);
        plan.upstreams[0].sticky = Some(Sticky {
            cookie: "srv".into(),
            age_max: None,
        });
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        let response = client.receive_text().await;
        let cookie = response.split_once("Set-Cookie: srv=").expect("a cookie").1;
        let cookie = &cookie[..cookie.find(';').expect("attributes")];
        let its = u32::from(one.connections() == 0);
        let group = service.group(0);
        for _ in 0..5 {
            let at = (its, Purpose::Ordinary);
            let ejection = group.ejection().expect("it is on by default");
            let failed = (Outcome::Failed, Some(&Failure::Closed));
            ejection.observe(group.endpoints(), at, failed, service.worker.core.now());
        }
        assert!(group.is_out(its));
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: srv={cookie}\r\n\r\n");
        client.send(request.as_bytes()).await;
        let moved = client.receive_text().await;
        assert!(moved.contains("Set-Cookie: srv="), "{moved}");
        assert_eq!((one.connections(), other.connections()), (1, 1));
    });
}

#[test]
fn statuses_eject_only_if_configured() {
    on_every_driver(|site| async move {
        let failing = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
        let failing = site.upstream(&[&[Step::Read, send(failing), Step::Again]]);
        for (eject, is_out) in [
            (Some(Eject::on(EjectOn::Connections)), false),
            (Some(Eject::default()), true),
            (None, false),
        ] {
            let mut plan = plan(&[&failing, &good(&site)]);
            plan.upstreams[0].eject = eject;
            let (address, service) = site.serve_worker(&plan);
            let mut client = site.connect(&address).await;
            for _ in 0..20 {
                status(&mut client, GET).await;
            }
            assert_eq!(service.group(0).is_out(0), is_out, "{eject:?}");
        }
    });
}
