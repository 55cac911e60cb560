//! A request that fails on a reused connection before any byte of its response is retried once, if that is safe.

use crate::testing::harness::{Step, forward, forward_undisturbed, on_every_driver, send};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The first request opens a connection. The second, `request`, meets the steps `then` on it, and a working server on
/// the next connection. Returns the status of the second response and the number of retries.
fn second(request: &str, then: &[Step]) -> (String, u64) {
    let first = [&[Step::Read, send(OK)], then].concat();
    let outcome = forward(&[&first, &[Step::Read, send(OK)]], &[GET, request].concat());
    let first = outcome.response.find("\n\nok").expect("the first response") + 4;
    let status = outcome.response[first..].lines().next().unwrap_or_default();
    (status.to_owned(), outcome.totals.retried)
}

fn request(method: &str) -> String {
    format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
}

#[test]
fn closed_reused_connection_retries_safe_request() {
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
        for then in [&[Step::Read][..], &[Step::Read, Step::Reset]] {
            let again = ("HTTP/1.1 200 OK".to_owned(), 1);
            assert_eq!(second(&request(method), then), again, "{method} {then:?}");
        }
    }
}

#[test]
fn body_received_with_head_is_retried() {
    let put = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
    let died = [Step::Read, send(OK), Step::Read];
    let outcome = forward_undisturbed(&[&died, &[Step::Read, send(OK)]], &[GET, put].concat());
    assert_eq!(outcome.totals.retried, 1, "{outcome:?}");
    assert_eq!(outcome.requests[0][1], outcome.requests[1][0]);
    assert!(outcome.requests[1][0].ends_with("\n\nbody"), "{outcome:?}");
}

#[test]
fn excess_response_bytes_do_not_affect_next_request() {
    let late = send("<p>the body of the response before</p>\r\n");
    for (first, response) in [
        (
            GET,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 40\r\n\r\n",
        ),
        (GET, "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n",
        ),
    ] {
        // Sent with the response, or after the next request.
        let with_it = send(&format!(
            "{response}<p>the body of the response before</p>\r\n"
        ));
        for script in [
            vec![Step::Read, with_it, Step::WaitForEnd],
            vec![
                Step::Read,
                send(response),
                Step::Read,
                late.clone(),
                Step::WaitForEnd,
            ],
        ] {
            let outcome = forward(&[&script, &[Step::Read, send(OK)]], &[first, GET].concat());
            let text = &outcome.response;
            assert!(text.ends_with("\n\nok"), "{first} {script:?}: {text}");
        }
    }
    let then = [Step::Read, late, Step::WaitForEnd];
    let failed = ("HTTP/1.1 502 Bad Gateway".to_owned(), 0);
    assert_eq!(second(&request("POST"), &then), failed);
}

#[test]
fn unsafe_request_is_not_retried() {
    for method in ["POST", "PATCH", "PURGE", "get"] {
        let failed = ("HTTP/1.1 502 Bad Gateway".to_owned(), 0);
        assert_eq!(second(&request(method), &[Step::Read]), failed, "{method}");
    }
}

#[test]
fn started_response_is_not_retried() {
    for begun in ["H", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"] {
        for end in [&[][..], &[Step::Reset]] {
            // A reset must not overtake the byte.
            let wait = Step::Wait(std::time::Duration::from_millis(5));
            let then = [&[Step::Read, send(begun), wait], end].concat();
            let failed = ("HTTP/1.1 502 Bad Gateway".to_owned(), 0);
            assert_eq!(second(GET, &then), failed, "{then:?}");
        }
    }
}

#[test]
fn interim_response_prevents_retry() {
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let interim_begun = ("HTTP/1.1 103 Early Hints".to_owned(), 0);
    assert_eq!(second(GET, &[Step::Read, send(interim)]), interim_begun);
    let half = [Step::Read, send(interim), send("HTTP/1.1 2")];
    assert_eq!(second(GET, &half), interim_begun);
}

#[test]
fn failure_on_new_connection_is_not_retried() {
    let outcome = forward(&[&[Step::Read], &[Step::Read, send(OK)]], GET);
    assert!(outcome.response.starts_with("HTTP/1.1 502 "), "{outcome:?}");
    assert_eq!(outcome.requests.len(), 1);
}

#[test]
fn request_is_retried_at_most_once() {
    const CONNECTIONS: usize = 4;
    on_every_driver(|site| async move {
        // All connections are opened at the same time, and all fail on their second request.
        let script = [
            Step::Read,
            Step::WaitForConnections(CONNECTIONS),
            send(OK),
            Step::Read,
        ];
        let upstream = site.upstream(&[&script]);
        let (address, service) = site.serve_worker(&upstream.plan());
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = site.connect(&address).await;
            client.send(GET.as_bytes()).await;
            clients.push(client);
        }
        for client in &mut clients {
            assert!(client.receive_text().await.ends_with("\r\n\r\nok"));
        }
        clients[0].send(GET.as_bytes()).await;
        let response = clients[0].receive_text().await;
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
        assert_eq!(service.worker.meter.totals().retried, 1);
        assert_eq!(upstream.connections(), CONNECTIONS + 1);
    });
}

#[test]
fn streamed_body_is_not_retried() {
    on_every_driver(|site| async move {
        let script = [Step::Read, send(OK), Step::ReadHead, Step::Reset];
        let upstream = site.upstream(&[&script, &[Step::Read, send(OK)]]);
        let (address, service) = site.serve_worker(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        assert!(client.receive_text().await.ends_with("\r\n\r\nok"));
        client
            .send(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
            .await;
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
        assert_eq!(service.worker.meter.totals().retried, 0);
        assert_eq!(upstream.connections(), 1);
    });
}
