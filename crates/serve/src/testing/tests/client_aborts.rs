//! Clients that hang up while their request waits, is sent or gets its response: the request is cancelled at once.
//! Half-closed clients get their responses.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{OneLiner, ServerAddress};
use onrush_engine::{Address, Instant, Listener, Stream};

use crate::site::service::Service;
use crate::testing::harness::{Peer, TestCore, on_every_driver, send_bytes};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes()
}

/// A server played by the test, and a plan that forwards everything to it.
fn server(site: &TestCore, change: impl FnOnce(&mut Plan)) -> (Listener, Plan) {
    let (listener, address) = site.listen();
    let what = OneLiner::Forward(vec![ServerAddress::Ip(address)]);
    let mut plan = Plan::one_liner(what, Vec::new());
    plan.forwarded.x_forwarded = false;
    change(&mut plan);
    (listener, plan)
}

/// Limits the server to one request at a time.
fn one_at_a_time(plan: &mut Plan) {
    plan.upstreams[0].servers[0].connections_max = NonZeroU32::new(1);
}

async fn accept(listener: &Listener) -> Peer {
    Peer::new(listener.accept().await.expect("a connection"))
}

/// The path of the next request.
async fn asked(server: &mut Peer) -> String {
    let request = server.receive_request().await.expect("a request");
    let request = String::from_utf8(request).expect("a head");
    request.split(' ').nth(1).expect("a path").to_owned()
}

async fn ask(site: &TestCore, proxy: &Address, path: &str) -> Peer {
    let client = site.connect(proxy).await;
    client.send(&get(path)).await;
    client
}

async fn ask_in_vain(site: &TestCore, proxy: &Address, service: &Service, path: &str) -> Peer {
    let client = ask(site, proxy, path).await;
    site.until("a request in the queue", || {
        !service.group(0).queue.is_empty()
    })
    .await;
    client
}

fn hang_up(client: Peer) {
    client.stream.reset_when_dropped();
}

async fn given_up(site: &TestCore, service: &Service, count: u64) {
    site.until("requests that are given up", || {
        service.worker.meter.totals().given_up == count
    })
    .await;
}

/// Checks that `count` requests got a 2xx, without failures or retries.
fn assert_served(service: &Service, count: u64) {
    let totals = service.worker.meter.totals();
    assert_eq!((totals.requests, totals.statuses[2]), (count, count));
    assert_eq!((totals.failed(), totals.retried), (0, 0));
}

#[test]
fn client_reset_frees_server() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, one_at_a_time);
        let (proxy, service) = site.serve_worker(&plan);
        let gone = ask(&site, &proxy, "/gone").await;
        let mut first = accept(&listener).await;
        assert_eq!(asked(&mut first).await, "/gone");
        let mut next = ask_in_vain(&site, &proxy, &service, "/next").await;
        hang_up(gone);
        let (_, was_reset) = first.receive_all_or_reset().await;
        assert!(was_reset, "an orderly end would ask for the response");
        let mut second = accept(&listener).await;
        assert_eq!(asked(&mut second).await, "/next");
        second.send(OK).await;
        assert!(next.receive_text().await.ends_with("ok"));
        assert_eq!(service.worker.meter.totals().given_up, 1);
        assert_served(&service, 1);
    });
}

#[test]
fn queued_request_of_disconnected_client_is_not_sent() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, one_at_a_time);
        let (proxy, service) = site.serve_worker(&plan);
        let mut first = ask(&site, &proxy, "/first").await;
        let mut server = accept(&listener).await;
        assert_eq!(asked(&mut server).await, "/first");
        let gone = ask_in_vain(&site, &proxy, &service, "/gone").await;
        hang_up(gone);
        given_up(&site, &service, 1).await;
        assert!(service.group(0).queue.is_empty(), "it has left the queue");
        let mut last = ask_in_vain(&site, &proxy, &service, "/last").await;
        server.send(OK).await;
        assert!(first.receive_text().await.ends_with("ok"));
        assert_eq!(asked(&mut server).await, "/last");
        server.send(OK).await;
        assert!(last.receive_text().await.ends_with("ok"));
        assert_served(&service, 2);
    });
}

#[test]
fn half_closed_client_gets_response() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, one_at_a_time);
        let (proxy, service) = site.serve_worker(&plan);
        let mut first = ask(&site, &proxy, "/first").await;
        first.finish().await;
        let mut server = accept(&listener).await;
        assert_eq!(asked(&mut server).await, "/first");
        let mut second = ask_in_vain(&site, &proxy, &service, "/second").await;
        second.finish().await;
        site.core.sleep(Duration::from_millis(20)).await;
        for (client, next) in [(&mut first, Some("/second")), (&mut second, None)] {
            server.send(OK).await;
            assert!(client.receive_all().await.ends_with(b"\r\n\r\nok"));
            if let Some(next) = next {
                assert_eq!(asked(&mut server).await, next);
            }
        }
        assert_eq!(service.worker.meter.totals().given_up, 0);
        assert_served(&service, 2);
    });
}

#[test]
fn reset_after_half_close_aborts_request() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, |_| {});
        let (proxy, service) = site.serve_worker(&plan);
        let client = ask(&site, &proxy, "/").await;
        client.finish().await;
        let mut server = accept(&listener).await;
        asked(&mut server).await;
        site.core.sleep(Duration::from_millis(5)).await;
        hang_up(client);
        assert!(server.receive_all_or_reset().await.1);
        given_up(&site, &service, 1).await;
        assert_served(&service, 0);
    });
}

#[test]
fn reset_during_response_is_counted() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, |_| {});
        let (proxy, service) = site.serve_worker(&plan);
        let mut client = ask(&site, &proxy, "/").await;
        let mut server = accept(&listener).await;
        asked(&mut server).await;
        let half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
        server.send(half).await;
        client.receive_until(b"half").await;
        hang_up(client);
        assert!(server.receive_all_or_reset().await.1);
        given_up(&site, &service, 1).await;
        assert_served(&service, 1);
    });
}

#[test]
fn client_reset_after_upload_aborts_request() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, |_| {});
        let (proxy, service) = site.serve_worker(&plan);
        let body = vec![b'x'; 100_000];
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
        let client = site.connect(&proxy).await;
        let stream = Rc::clone(&client.stream);
        site.core.spawn(async move {
            let request = [head.as_bytes(), &body].concat();
            send_bytes(&stream, &request).await.expect("it is taken");
        });
        let mut server = accept(&listener).await;
        let request = server.receive_request().await.expect("all of it");
        assert!(request.ends_with(b"xxx"));
        hang_up(client);
        assert!(server.receive_all_or_reset().await.1);
        given_up(&site, &service, 1).await;
        assert_served(&service, 0);
    });
}

#[test]
fn client_reset_during_blocked_upload_is_detected() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, |_| {});
        let (proxy, service) = site.serve_worker(&plan);
        let client = site.connect(&proxy).await;
        let stream = Rc::clone(&client.stream);
        site.core.spawn(async move {
            let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000000\r\n\r\n";
            let mut sent = send_bytes(&stream, head).await;
            // More than all buffers on the path; its server reads nothing.
            while sent.is_ok() {
                stream.set_deadline(Some(until_stuck(&stream)));
                sent = send_bytes(&stream, &[b'x'; 16_000]).await;
            }
            stream.reset_when_dropped();
        });
        let _silent = accept(&listener).await;
        drop(client);
        given_up(&site, &service, 1).await;
        assert_served(&service, 0);
    });
}

/// How long a client is blocked before it hangs up.
fn until_stuck(stream: &Stream) -> Instant {
    stream.core().now_exact() + Duration::from_millis(50)
}

#[test]
fn client_disconnects_do_not_eject_server() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, |plan| {
            plan.upstreams[0].retries.count = 3;
        });
        let (proxy, service) = site.serve_worker(&plan);
        for count in 1..=10 {
            let client = ask(&site, &proxy, "/gone").await;
            let mut server = accept(&listener).await;
            asked(&mut server).await;
            hang_up(client);
            assert!(server.receive_all_or_reset().await.1);
            given_up(&site, &service, count).await;
        }
        assert!(!service.group(0).is_out(0));
        assert_served(&service, 0);
    });
}

#[test]
fn shutdown_does_not_wait_for_aborted_request() {
    on_every_driver(|site| async move {
        let (listener, plan) = server(&site, |_| {});
        let (proxy, service) = site.serve_worker(&plan);
        let client = ask(&site, &proxy, "/").await;
        let mut server = accept(&listener).await;
        asked(&mut server).await;
        site.core.stop(Duration::from_secs(200));
        hang_up(client);
        assert!(server.receive_all_or_reset().await.1);
        given_up(&site, &service, 1).await;
    });
}

#[test]
fn synthetic_delay_ends_on_client_disconnect() {
    on_every_driver(|site| async move {
        let plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
        let (address, service) = site.serve_worker(&plan);
        let client = ask(&site, &address, "/?t=100000").await;
        // Longer than any network delay.
        site.core.sleep(Duration::from_millis(20)).await;
        hang_up(client);
        given_up(&site, &service, 1).await;
        assert_served(&service, 0);
    });
}
