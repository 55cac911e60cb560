//! Request bodies above the limit: refused before they are read, or, if chunked, as soon as the limit is exceeded.

use crate::testing::harness::{
    Step, configured, exchange_text, forward_with, on_every_driver, send,
};
use onrush_config::Plan;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn limited(max: u64) -> impl Fn(&mut Plan) {
    move |plan| plan.routes[0].request_body_max = Some(max)
}

fn post(fields: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{body}")
}

fn statuses(response: &str) -> Vec<&str> {
    let responses = response.split("HTTP/1.1 ").skip(1);
    responses.map(|response| &response[..3]).collect()
}

#[test]
fn oversized_content_length_is_refused_early() {
    for (length, status) in [(4, "200"), (5, "413")] {
        let request = post(&format!("Content-Length: {length}"), &"x".repeat(length));
        let outcome = forward_with(&limited(4), &[&[Step::Read, send(OK)]], &request);
        assert_eq!(statuses(&outcome.response), [status], "{outcome:?}");
        let asked = outcome.requests.concat().len();
        assert_eq!(asked, usize::from(length == 4), "{outcome:?}");
    }
}

#[test]
fn refused_body_gets_no_100_continue() {
    let request = post("Content-Length: 5\r\nExpect: 100-continue", "");
    let outcome = forward_with(&limited(4), &[&[Step::WaitForEnd]], &request);
    assert_eq!(statuses(&outcome.response), ["413"], "{outcome:?}");
    assert!(
        outcome.response.contains("\nConnection: close\n"),
        "{outcome:?}"
    );
    assert!(outcome.requests.is_empty(), "{outcome:?}");
}

#[test]
fn chunked_limit_counts_payload() {
    for (body, status) in [
        (
            "1;x=y\r\na\r\n2\r\nbc\r\n1\r\nd\r\n0\r\nX-Sum: 1\r\n\r\n",
            "200",
        ),
        ("1\r\na\r\n2\r\nbc\r\n2\r\nde\r\n0\r\n\r\n", "413"),
        ("5\r\n", "413"),
    ] {
        on_every_driver(move |site| async move {
            let upstream = site.upstream(&[&[Step::Read, send(OK)]]);
            let mut plan = upstream.plan();
            limited(4)(&mut plan);
            let (address, service) = site.serve_worker(&plan);
            let request = post("Transfer-Encoding: chunked", body);
            let mut client = site.connect(&address).await;
            client.send(request.as_bytes()).await;
            let response = client.receive_text().await;
            assert_eq!(statuses(&response), [status], "{body:?}: {response}");
            let refused = service.worker.meter.totals().refused;
            assert_eq!(refused, 0, "it is a request all the same");
        });
    }
}

#[test]
fn streamed_body_is_refused_at_limit() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::ReadHead, Step::ReadBytes(9), Step::WaitForEnd]]);
        let mut plan = upstream.plan();
        limited(4)(&mut plan);
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        let head = post("Transfer-Encoding: chunked", "4\r\nbody\r\n");
        client.send(head.as_bytes()).await;
        site.until("the server has its first part", || {
            upstream.connections() == 1
        })
        .await;
        client.send(b"1\r\n").await;
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        site.until("its connection has ended", || upstream.open() == 0)
            .await;
    });
}

#[test]
fn body_limit_after_response_closes_connection() {
    on_every_driver(|site| async move {
        let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
        let upstream = site.upstream(&[&[Step::ReadHead, send(response), Step::WaitForEnd]]);
        let mut plan = upstream.plan();
        limited(4)(&mut plan);
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        let head = post("Transfer-Encoding: chunked", "1\r\na\r\n");
        client.send(head.as_bytes()).await;
        client.receive_until(b"1\r\na\r\n").await;
        client.send(b"8\r\n").await;
        let rest = client.receive_all().await;
        assert_eq!(rest, b"", "it is cut off, and nothing else is said");
    });
}

#[test]
fn body_limit_applies_to_local_responses() {
    let plan = configured(
        r#"
        request_body_max = 3
        [[route]]
        path = "/fixed"
        respond = { status = 200, body = "ok" }
        [[route]]
        path = "/more"
        request_body_max = 4
        respond = { status = 200, body = "ok" }
        [[route]]
        path = "/any"
        request_body_max = "off"
        synthetic = true
        [[route]]
        path = "/synthetic"
        synthetic = true
        "#,
    );
    let chunked = "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
    for body in ["Content-Length: 4\r\n\r\nbody", chunked] {
        for (path, expected) in [
            ("/fixed", &["413"][..]),
            ("/more", &["200", "200"]),
            ("/any", &["200", "200"]),
            ("/synthetic", &["413"]),
            // The request after an unread body is not parsed.
            ("/none", &["404"]),
        ] {
            if body == chunked && path == "/fixed" {
                // Whether the whole body arrives before the response depends on the network.
                continue;
            }
            let request = format!("PUT {path} HTTP/1.1\r\nHost: h\r\n{body}");
            let next = "GET /fixed HTTP/1.1\r\nHost: h\r\n\r\n";
            let response = exchange_text(&plan, &format!("{request}{next}"));
            assert_eq!(statuses(&response), expected, "{path} {body:?}: {response}");
        }
    }
}

#[test]
fn oversized_body_keeps_earlier_pipelined_responses() {
    let get = "GET /first HTTP/1.1\r\nHost: h\r\n\r\n";
    let requests = format!("{get}{}{get}", post("Content-Length: 5", "large"));
    let script = [Step::Read, Step::Echo, Step::Again];
    let outcome = forward_with(&limited(4), &[&script], &requests);
    assert_eq!(statuses(&outcome.response), ["200", "413"], "{outcome:?}");
    assert_eq!(outcome.requests.concat().len(), 1, "{outcome:?}");
}

#[test]
fn refused_body_is_not_retried() {
    on_every_driver(|site| async move {
        let script = [Step::ReadHead, Step::WaitForEnd];
        let upstreams = [site.upstream(&[&script]), site.upstream(&[&script])];
        let mut plan = upstreams[0].plan();
        let other = upstreams[1].plan().upstreams.remove(0).servers;
        plan.upstreams[0].servers.extend(other);
        limited(4)(&mut plan);
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        let head = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(head.as_bytes()).await;
        let connected = || {
            upstreams
                .iter()
                .map(|upstream| upstream.connections())
                .sum::<usize>()
        };
        site.until("a server is asked", || connected() == 1).await;
        client.send(b"5\r\n").await;
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
        assert_eq!(connected(), 1);
    });
}
