//! How requests count for ejection: each once, as a response or as a failure.

use std::num::NonZeroU32;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{Action, Balance, Eject, Mirror, Server, ServerAddress};
use onrush_engine::{Errno, Error, Kind, Op};
use onrush_http::Method;

use crate::proxy::failure::Failure;
use crate::proxy::group::views::ServerState;
use crate::testing::harness::{
    Step, TestCore, Upstream, on_every_driver, on_simulated_cores, send,
};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";

/// Sends everything to the first of two servers while it is in service.
fn plan(site: &TestCore, first: &Upstream, eject: Eject) -> Plan {
    let other = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
    let mut plan = first.plan();
    plan.upstreams[0].servers = [first, &other]
        .map(|server| Server::at(ServerAddress::Ip(server.address)))
        .into();
    plan.upstreams[0].balance = Balance::First;
    plan.upstreams[0].eject = Some(eject);
    plan
}

fn in_a_row(failures: u32) -> Eject {
    Eject {
        consecutive_failures: NonZeroU32::new(failures),
        error_share: None,
        ..Eject::default()
    }
}

fn share(percent: u8) -> Eject {
    Eject {
        consecutive_failures: None,
        error_share: Some(percent),
        ..Eject::default()
    }
}

/// Sends requests until the first server is out, at most 40. Returns their number.
async fn requests_until_out(site: &TestCore, plan: &Plan) -> Option<u32> {
    let (address, service) = site.serve_worker(plan);
    for sent in 1..=40 {
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        client.receive_response(Method::Get).await;
        if service.group(0).is_out(0) {
            return Some(sent);
        }
    }
    None
}

#[test]
fn truncated_response_counts_as_single_failure() {
    on_every_driver(|site| async move {
        let half = site.upstream(&[&[Step::Read, send(HALF)]]);
        for (eject, requests) in [(in_a_row(2), 2), (share(60), 20)] {
            let out = requests_until_out(&site, &plan(&site, &half, eject)).await;
            assert_eq!(out, Some(requests), "{eject:?}");
        }
    });
}

#[test]
fn consecutive_failing_statuses_eject_server() {
    on_every_driver(|site| async move {
        let failing = send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
        let failing = site.upstream(&[&[Step::Read, failing, Step::Again]]);
        let out = requests_until_out(&site, &plan(&site, &failing, in_a_row(5))).await;
        assert_eq!(out, Some(5));
    });
}

#[test]
fn truncated_error_response_counts_as_single_failure() {
    on_simulated_cores(|site| async move {
        let half = send("HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf");
        let half = site.upstream(&[&[Step::Read, half]]);
        let out = requests_until_out(&site, &plan(&site, &half, share(60))).await;
        assert_eq!(out, Some(20));
    });
}

#[test]
fn complete_response_resets_consecutive_failures() {
    on_simulated_cores(|site| async move {
        let half = [Step::Read, send(HALF)];
        let server = site.upstream(&[&half, &[Step::Read, send(OK)], &half, &half]);
        let out = requests_until_out(&site, &plan(&site, &server, in_a_row(2))).await;
        assert_eq!(out, Some(4));
    });
}

#[test]
fn response_before_client_disconnect_resets_failures() {
    on_simulated_cores(|site| async move {
        let good = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (_, service) = site.serve_worker(&plan(&site, &good, in_a_row(2)));
        let (group, worker) = (service.group(0), &service.worker);
        let left = Failure::Client(Error::new(Op::Send, Kind::Os(Errno::CONNRESET)));
        let request = group.reserve_on(0).expect("it is in service");
        let at = (request.index(), request.purpose());
        for _ in 0..5 {
            group.failed(&request, (&Failure::Closed, None), &group.timeouts, worker);
            let outcome = group.responded(at, 200, Duration::from_millis(1), worker);
            group.failed(&request, (&left, outcome), &group.timeouts, worker);
        }
        assert!(!group.is_out(0));
    });
}

#[test]
fn truncated_mirror_response_counts_as_failure() {
    on_every_driver(|site| async move {
        let main = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let half = site.upstream(&[&[Step::Read, send(HALF)]]);
        let mut plan = plan(&site, &half, in_a_row(2));
        plan.upstreams.extend(main.plan().upstreams);
        plan.routes[0].action = Action::forward(1);
        let Action::Forward { mirror, .. } = &mut plan.routes[0].action else {
            unreachable!("it forwards");
        };
        *mirror = Some(Mirror {
            upstream: 0,
            share: 10_000,
        });
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for copies in 1..=2 {
            client.send(GET.as_bytes()).await;
            client.receive_text().await;
            site.until("the end of a copy", || {
                half.connections() == copies && service.worker.mirrored.get() == 0
            })
            .await;
        }
        assert!(service.group(0).is_out(0));
    });
}

#[test]
fn failing_sole_server_is_reported_until_it_responds() {
    on_simulated_cores(|site| async move {
        let (listener, gone) = site.listen();
        drop(listener);
        let mut plan = site.upstream(&[&[]]).plan();
        plan.upstreams[0].servers = vec![Server::at(ServerAddress::Ip(gone))];
        let (address, service) = site.serve_worker(&plan);
        let state = || service.group(0).view().servers[0].state;
        let mut client = site.connect(&address).await;
        for _ in 0..3 {
            client.send(GET.as_bytes()).await;
            assert!(client.receive_text().await.starts_with("HTTP/1.1 502"));
            assert_eq!(state(), ServerState::Failing);
        }
        let listener = site.listen_again(gone);
        let script = [Step::Read, send(OK), Step::Again];
        let _back = site.upstream_on(listener, gone, &[&script]);
        site.core.sleep(Duration::from_secs(1)).await;
        client.send(GET.as_bytes()).await;
        assert!(client.receive_text().await.starts_with("HTTP/1.1 200"));
        assert_eq!(state(), ServerState::Up);
    });
}
