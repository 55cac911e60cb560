//! Responses to clients when a server fails: 502, or a response that is visibly cut off.

use std::rc::Rc;
use std::time::Duration;

use crate::observe::record::{FailureClass, RequestEnd};
use crate::site::service::Service;
use crate::testing::harness::{
    Step, forward, forward_undisturbed, on_every_driver, send, send_bytes,
};
use onrush_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The reason for 502 after `script`; also checks that the client's connection stays usable.
fn reason(script: &[Step], request: &str) -> String {
    let outcome = forward_undisturbed(&[script, &[Step::Read, send(OK)]], &[request, GET].concat());
    let (failed, next) = outcome
        .response
        .split_once("HTTP/1.1 200 OK")
        .unwrap_or_else(|| panic!("{outcome:?}"));
    assert!(next.ends_with("\n\nok"), "{outcome:?}");
    assert!(
        failed.starts_with("HTTP/1.1 502 Bad Gateway\n"),
        "{outcome:?}"
    );
    assert!(!failed.contains("Connection: close"), "{outcome:?}");
    assert_eq!(
        (outcome.totals.failed(), outcome.totals.retried),
        (1, 0),
        "{outcome:?}"
    );
    let (_, body) = failed.split_once("\n\n").expect("a head");
    body.trim_start_matches("502 Bad Gateway: ")
        .trim_end_matches('\n')
        .to_owned()
}

const CLOSED: &str = "the server closed the connection";
const MALFORMED: &str = "the server's response is malformed";

#[test]
fn server_close_without_response_gets_502() {
    assert_eq!(reason(&[Step::Read], GET), CLOSED);
    assert_eq!(reason(&[Step::Read, Step::Reset], GET), CLOSED);
    let interim = send("HTTP/1.1 102 Processing\r\n\r\n");
    let outcome = forward(&[&[Step::Read, interim]], GET);
    assert!(
        outcome
            .response
            .starts_with("HTTP/1.1 102 Processing\n\nHTTP/1.1 502 "),
        "{outcome:?}"
    );
}

#[test]
fn malformed_response_gets_502() {
    for response in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\n\rContent-Length: 0\n\r\n\r",
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabcd",
        "HTTP/1.1 103 Early Hints\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        "HTTP/2 200\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{0}",
    ] {
        assert_eq!(
            reason(&[Step::Read, send(response)], GET),
            MALFORMED,
            "{response}"
        );
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(20_000));
    assert_eq!(reason(&[Step::Read, send(&endless)], GET), MALFORMED);
    for part in ["HTTP/1.1 200 OK\r\nContent-", "H"] {
        assert_eq!(reason(&[Step::Read, send(part)], GET), CLOSED, "{part}");
    }
}

#[test]
fn head_failure_has_no_body() {
    let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(reason(&[Step::Read], head), "");
}

#[test]
fn failure_after_whole_body_keeps_connection() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(reason(&[Step::Read], post), CLOSED);
    let chunked =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
    assert_eq!(reason(&[Step::Read], chunked), CLOSED);
}

#[test]
fn refused_connection_gets_502() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK)]]);
        let (listener, nobody) = site.listen();
        drop(listener);
        let text = format!(
            "[[route]]\npath = \"/x\"\nforward = \"http://{nobody}\"\n[[route]]\nforward = \"http://{}\"",
            upstream.address
        );
        let parsed = onrush_config::parse(&text, std::path::Path::new("c.toml")).expect("valid");
        let address = site.serve(&parsed.plan);
        let mut client = site.connect(&address).await;
        client
            .send(&[b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n", GET.as_bytes()].concat())
            .await;
        let failed = client.receive_text().await;
        assert!(
            failed.ends_with("502 Bad Gateway: the server cannot be reached\n"),
            "{failed}"
        );
        assert!(client.receive_text().await.ends_with("\r\n\r\nok"));
    });
}

#[test]
fn server_reset_during_upload_gets_502_and_close() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::ReadHead, Step::ReadBytes(1000), Step::Reset]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        let stream = Rc::clone(&client.stream);
        site.core.spawn(async move {
            let mut message =
                b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n".to_vec();
            message.resize(message.len() + 800_000, b'x');
            let _ = send_bytes(&stream, &message).await;
        });
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
    });
}

/// Checks that the record of the only request marks an incomplete response.
#[track_caller]
fn assert_was_cut(service: &Service) {
    let seen = service.worker.meter.take_seen();
    let seen: Vec<_> = seen
        .iter()
        .map(|it| (it.status, it.failure, it.end))
        .collect();
    assert_eq!(
        seen,
        [(Some(200), Some(FailureClass::Cut), RequestEnd::Partial)]
    );
}

#[test]
fn truncated_response_is_detectable() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let closing = "HTTP/1.1 200 OK\r\n\r\n";
    let cases = [
        vec![send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")],
        vec![send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")],
        vec![send(chunked), send("3\r\nabc\r\n")],
        vec![send(chunked), send("3\r\nabc\r\n0\r\n")],
        vec![send(chunked), send("3\r\nabc\r\n0\r\nX: y\r\n")],
        vec![send(chunked), send("3\r\nabcX3\r\nabc\r\n0\r\n\r\n")],
        vec![send(chunked), send("fffffffffffffffff\r\nabc\r\n0\r\n\r\n")],
        vec![send(chunked), send("3;\r\nabc\r\n0\r\n\r\n")],
        vec![send(chunked), send("3\r\nabc\r\n0;a=\"\r\n\r\n")],
        vec![send(chunked), send("3\nabc\r\n0\r\n\r\n")],
        vec![send(chunked), send("0\r\nnonsense\r\n\r\n")],
        vec![
            send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
            Step::Wait(Duration::from_millis(5)),
            Step::Reset,
        ],
        vec![
            send(chunked),
            send("3\r\nabc\r\n"),
            Step::Wait(Duration::from_millis(5)),
            Step::Reset,
        ],
        vec![
            send(closing),
            send("abc"),
            Step::Wait(Duration::from_millis(5)),
            Step::Reset,
        ],
    ];
    for case in cases {
        let case = [vec![Step::Read], case].concat();
        on_every_driver(move |site| {
            let upstream = site.upstream(&[&case]);
            async move {
                let (address, service) = site.serve_worker(&upstream.plan());
                let mut client = site.connect(&address).await;
                client.send(GET.repeat(2).as_bytes()).await;
                assert_eq!(client.receive_response(Method::Get).await, None);
                assert_eq!(service.worker.meter.totals().failed(), 1);
                assert_was_cut(&service);
                assert_eq!(
                    upstream.requests().concat().len(),
                    1,
                    "nothing follows a cut response"
                );
            }
        });
    }
}

#[test]
fn truncated_response_resets_http_1_0_client() {
    let cut_chunks = [
        Step::Read,
        send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    ];
    let reset = [
        Step::Read,
        send("HTTP/1.1 200 OK\r\n\r\nabc"),
        Step::Wait(Duration::from_millis(5)),
        Step::Reset,
    ];
    for script in [cut_chunks.to_vec(), reset.to_vec()] {
        on_every_driver(move |site| {
            let upstream = site.upstream(&[&script]);
            async move {
                let (address, service) = site.serve_worker(&upstream.plan());
                let mut client = site.connect(&address).await;
                client.send(b"GET / HTTP/1.0\r\n\r\n").await;
                let (received, is_reset) = client.receive_all_or_reset().await;
                // The reset may overtake the head of the response; then nothing could be taken for a complete one.
                assert!(is_reset, "{}", received.escape_ascii());
                assert_eq!(service.worker.meter.totals().failed(), 1);
                assert_was_cut(&service);
            }
        });
    }
}

#[test]
fn malformed_request_body_is_client_error() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::WaitForEnd]]);
        let (address, service) = site.serve_worker(&upstream.plan());
        let mut client = site.connect(&address).await;
        client
            .send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n")
            .await;
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        let totals = service.worker.meter.totals();
        assert_eq!(
            (totals.requests, totals.refused, totals.failed()),
            (1, 1, 0)
        );
    });
}

#[test]
fn truncated_body_gets_400() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[Step::WaitForEnd]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        let response = client
            .exchange(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
            .await;
        assert!(
            response.starts_with(b"HTTP/1.1 400 "),
            "{}",
            response.escape_ascii()
        );
    });
}
