//! A server that is asked to stop: idle connections end at once, what is in flight is finished, but not for ever.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::harness::{Peer, Step, cut_off_on_every_driver, on_every_driver, send};
use onrush_config::Plan;
use onrush_config::plan::{OneLiner, ServerAddress};
use onrush_engine::Stream;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PATIENT: Duration = Duration::from_secs(200);

fn fixed() -> Plan {
    let what = OneLiner::Respond {
        status: 200,
        body: b"ok".to_vec(),
    };
    Plan::one_liner(what, Vec::new())
}

#[test]
fn idle_connections_end_at_once() {
    on_every_driver(|site| async move {
        let address = site.serve(&fixed());
        let mut fresh = site.connect(&address).await;
        let mut used = site.connect(&address).await;
        used.send(GET.as_bytes()).await;
        used.receive_text().await;
        site.core.stop(PATIENT);
        assert_eq!(used.receive_all_or_reset().await, (Vec::new(), false));
        // It may not have been accepted before the listener was gone.
        assert_eq!(fresh.receive_all().await, b"");
    });
}

#[test]
fn a_request_that_is_in_flight_is_answered_and_its_connection_ends() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::Read,
            Step::Wait(Duration::from_millis(20)),
            send(OK),
            Step::WaitForEnd,
        ]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        site.until("it is at the server", || {
            upstream.requests().concat().len() == 1
        })
        .await;
        site.core.stop(PATIENT);
        let answer = String::from_utf8(client.receive_all().await).unwrap();
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    });
}

#[test]
fn an_answer_that_has_begun_is_finished_and_its_connection_ends() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"),
            Step::Wait(Duration::from_millis(20)),
            send("def"),
            Step::WaitForEnd,
        ]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        let head = client.receive_until(b"abc").await;
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
        site.core.stop(PATIENT);
        assert_eq!(client.receive_all().await, b"def");
    });
}

#[test]
fn an_upload_that_is_in_flight_is_finished() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::ReadHead,
            Step::ReadBytes(6),
            send(OK),
            Step::WaitForEnd,
        ]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client
            .send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc")
            .await;
        site.until("it is at the server", || {
            upstream.requests().concat().len() == 1
        })
        .await;
        site.core.stop(PATIENT);
        site.until("it stops", || site.core.is_stopping()).await;
        client.send(b"def").await;
        let answer = String::from_utf8(client.receive_all().await).unwrap();
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    });
}

#[test]
fn a_head_that_is_arriving_is_waited_for() {
    on_every_driver(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        client.send(&GET.as_bytes()[..10]).await;
        client.receive_text().await;
        // Whether these bytes were there before the stop or not, they are no reason to lose the answer.
        site.core.sleep(Duration::from_millis(5)).await;
        site.core.stop(PATIENT);
        site.until("it stops", || site.core.is_stopping()).await;
        client.send(&GET.as_bytes()[10..]).await;
        let answer = String::from_utf8(client.receive_all().await).unwrap();
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    });
}

#[test]
fn the_last_answer_of_a_pipeline_is_not_lost_to_requests_behind_it() {
    on_every_driver(|site| async move {
        // The server is slow enough that the stop comes while a second request is already in the kernel.
        let upstream = site.upstream(&[&[
            Step::Read,
            Step::Wait(Duration::from_millis(20)),
            send(OK),
            Step::WaitForEnd,
        ]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        site.until("it is at the server", || {
            upstream.requests().concat().len() == 1
        })
        .await;
        client.send(GET.as_bytes()).await;
        site.core.stop(PATIENT);
        // It reads late: a reset would have thrown the answer away by then.
        site.core.sleep(Duration::from_millis(50)).await;
        let answer = String::from_utf8(client.receive_all().await).unwrap();
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    });
}

#[test]
fn what_takes_longer_than_the_plan_grants_is_cut_off_and_counted() {
    let kept = Rc::default();
    let cut_off = cut_off_on_every_driver(|site| {
        // Both ends outlive their core's run; they are given up when the next one's are kept.
        let kept: Rc<RefCell<Vec<(Peer, Stream)>>> = Rc::clone(&kept);
        kept.borrow_mut().clear();
        async move {
            let (listener, server) = site.listen();
            let server = ServerAddress::Ip(server);
            let plan = Plan::one_liner(OneLiner::Forward(vec![server]), Vec::new());
            let address = site.serve(&plan);
            for _ in 0..3 {
                let client = site.connect(&address).await;
                client.send(GET.as_bytes()).await;
                let at_server = listener.accept().await.expect("a connection");
                kept.borrow_mut().push((client, at_server));
            }
            site.core.stop(Duration::from_millis(10));
            site.until("it stops", || site.core.is_stopping()).await;
        }
    });
    assert!(cut_off.iter().all(|&count| count == 3), "{cut_off:?}");
}
