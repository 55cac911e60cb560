//! Mirroring of requests to another group.

use std::time::Duration;

use onrush_config::plan::{Action, Eject, Mirror, Plan};

use crate::testing::harness::{
    Step, TestCore, Upstream, on_every_driver, on_kernel_cores, on_simulated_cores, send,
};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const BAD: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad";

/// Forwards everything to one server, and `share` of ten thousand requests are mirrored to another.
fn plan(main: &Upstream, other: &Upstream, share: u16) -> Plan {
    let mut plan = main.plan();
    plan.upstreams.extend(other.plan().upstreams);
    let Action::Forward { mirror, .. } = &mut plan.routes[0].action else {
        unreachable!("it forwards");
    };
    *mirror = Some(Mirror { upstream: 1, share });
    plan
}

/// Sends the requests, and waits for the copy of each.
async fn is_copied(site: TestCore, requests: [&'static str; 2]) {
    let main = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
    let other = site.upstream(&[&[Step::Read, send(BAD), Step::Again]]);
    let (address, service) = site.serve_worker(&plan(&main, &other, 10_000));
    let mut client = site.connect(&address).await;
    for (turn, request) in requests.into_iter().enumerate() {
        client.send(request.as_bytes()).await;
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        site.until("a copy", || other.requests().concat().len() > turn)
            .await;
    }
    assert_eq!(main.requests().concat(), other.requests().concat());
    let mirrored = || service.worker.meter.totals().mirrored;
    site.until("the ends of the copies", || mirrored() == [2, 0, 0, 0])
        .await;
}

#[test]
fn mirror_gets_same_requests() {
    on_every_driver(|site| is_copied(site, [GET, GET]));
}

#[test]
fn body_received_with_head_is_mirrored() {
    // Simulated networks separate heads and bodies.
    let post = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
    on_kernel_cores(|site| is_copied(site, [post, GET]));
    let chunks = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nX: y\r\n\r\n";
    on_kernel_cores(|site| is_copied(site, [chunks, GET]));
}

#[test]
fn mirrored_requests_reuse_connections() {
    on_every_driver(|site| async move {
        let main = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let other = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (address, service) = site.serve_worker(&plan(&main, &other, 10_000));
        let mut client = site.connect(&address).await;
        for turn in 0..3 {
            client.send(GET.as_bytes()).await;
            client.receive_text().await;
            site.until("the end of a copy", || {
                other.requests().concat().len() > turn && service.worker.mirrored.get() == 0
            })
            .await;
        }
        assert_eq!(other.connections(), 1);
    });
}

#[test]
fn mirror_failure_does_not_affect_client() {
    on_every_driver(|site| async move {
        let main = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        for script in [
            vec![Step::Read, send("garbage\r\n\r\n")],
            vec![Step::Read, Step::Reset],
            vec![],
            vec![
                Step::Read,
                send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1"),
            ],
        ] {
            let other = site.upstream(&[&script]);
            let (address, service) = site.serve_worker(&plan(&main, &other, 10_000));
            let mut client = site.connect(&address).await;
            client.send(GET.as_bytes()).await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
            site.until("the end of a copy", || {
                other.connections() > 0 && service.worker.mirrored.get() == 0
            })
            .await;
            assert_eq!(service.worker.meter.totals().failed(), 0);
        }
    });
}

#[test]
fn copy_is_the_trial_of_an_ejected_server() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
    for request in [GET, post] {
        on_simulated_cores(|site| async move {
            let main = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            let good = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            // Five failures and a connection check.
            let failing = [Step::Read];
            let recovered = [Step::Read, send(OK), Step::Again];
            let bad = site.upstream(&[
                &failing, &failing, &failing, &failing, &failing, &failing, &recovered,
            ]);
            let mut plan = plan(&main, &good, 10_000);
            let servers = bad.plan().upstreams.remove(0).servers;
            plan.upstreams[1].servers.extend(servers);
            plan.upstreams[1].eject = Some(Eject::default());
            let (address, service) = site.serve_worker(&plan);
            let mut client = site.connect(&address).await;
            let mut send_until = async |what: &str, is_out: bool| {
                for _ in 0..40 {
                    client.send(request.as_bytes()).await;
                    client.receive_text().await;
                    site.until(what, || service.worker.mirrored.get() == 0)
                        .await;
                }
                assert_eq!(service.group(1).is_out(1), is_out, "{what}");
            };
            send_until("the ejection", true).await;
            site.core.sleep(Duration::from_secs(12)).await;
            send_until("the return", false).await;
        });
    }
}

#[test]
fn streamed_bodies_are_not_mirrored() {
    on_every_driver(|site| async move {
        let main = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let other = site.upstream(&[&[]]);
        let body = "b".repeat(50_000);
        let post = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n{body}");
        for (share, request) in [(10_000, post.as_str()), (0, GET)] {
            let address = site.serve(&plan(&main, &other, share));
            let mut client = site.connect(&address).await;
            client.send(request.as_bytes()).await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        }
        assert_eq!(other.connections(), 0);
    });
}
