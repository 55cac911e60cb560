//! HTTP/1.0 clients and servers, and responses without a body.

use super::http2::Http2Client;
use crate::testing::harness::{Step, configured, forward, on_every_driver, send};
use onrush_http::Method;
use onrush_http::http2::code::Code;
use onrush_http::http2::frame::PREFACE;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const GET_10: &str = "GET / HTTP/1.0\r\n\r\n";
const GET_10_ALIVE: &str = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Sum: 1\r\n\r\n";

fn body(response: &str) -> &str {
    response.split_once("\n\n").expect("a head").1
}

#[test]
fn http_1_0_client_gets_no_chunks() {
    for request in [GET_10, GET_10_ALIVE] {
        let outcome = forward(&[&[Step::Read, send(CHUNKED)]], request);
        let response = &outcome.response;
        assert_eq!(body(response), "abcdefg", "{response}");
        assert!(response.contains("\nConnection: close\n"), "{response}");
        assert!(!response.contains("Transfer-Encoding"), "{response}");
    }
}

#[test]
fn http_1_0_keep_alive_is_explicit() {
    let ok = send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let script = [Step::Read, ok, Step::Again];
    let kept = forward(&[&script], &GET_10_ALIVE.repeat(2));
    assert_eq!(
        kept.response.matches("\nConnection: keep-alive\n").count(),
        2
    );
    let once = forward(&[&script], &GET_10.repeat(2));
    assert_eq!(once.response.matches("HTTP/1.1 200 OK").count(), 1);
    assert!(once.response.contains("\nConnection: close\n"), "{once:?}");
}

#[test]
fn http_1_0_request_without_host_gets_server_name() {
    on_every_driver(|site| async move {
        let ok = send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let upstream = site.upstream(&[&[Step::Read, ok]]);
        let address = site.serve(&upstream.plan());
        site.connect(&address)
            .await
            .exchange(GET_10.as_bytes())
            .await;
        let wanted = "GET / HTTP/1.1\nHost: SERVER\nVia: 1.0 onrush\n\n";
        assert_eq!(upstream.requests(), [[wanted]]);
    });
}

#[test]
fn expect_is_not_forwarded_for_http_1_0() {
    for expectation in ["100-continue", "miracles"] {
        on_every_driver(|site| async move {
            let ok = send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let upstream = site.upstream(&[&[Step::Read, ok]]);
            let address = site.serve(&upstream.plan());
            let request = format!(
                "POST / HTTP/1.0\r\nHost: h\r\nExpect: {expectation}\r\nContent-Length: 2\r\n\r\nab"
            );
            let mut client = site.connect(&address).await;
            let response = client.exchange(request.as_bytes()).await;
            assert!(response.starts_with(b"HTTP/1.1 200 "));
            let wanted = "POST / HTTP/1.1\nHost: h\nContent-Length: 2\nVia: 1.0 onrush\n\nab";
            assert_eq!(upstream.requests(), [[wanted]]);
        });
    }
}

#[test]
fn close_delimited_response_keeps_client_connection() {
    for head in [
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ] {
        on_every_driver(|site| async move {
            let upstream = site.upstream(&[&[Step::Read, send(head), send("abc"), send("defg")]]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            for _ in 0..2 {
                client.send(GET.as_bytes()).await;
                let response = client.receive_text().await;
                assert!(
                    response.contains("\r\nTransfer-Encoding: chunked\r\n"),
                    "{response}"
                );
                assert!(response.ends_with("\r\n0\r\n\r\n"), "{response}");
                let payload: String = response.split("\r\n\r\n").nth(1).unwrap().to_owned();
                let letters: String = payload.split("\r\n").skip(1).step_by(2).collect();
                assert_eq!(letters, "abcdefg", "{response}");
            }
            assert_eq!(upstream.connections(), 2);
        });
    }
}

#[test]
fn http_1_0_client_gets_close_delimited_response() {
    let script = [Step::Read, send("HTTP/1.0 200 OK\r\n\r\nabc")];
    let outcome = forward(&[&script], GET_10_ALIVE);
    assert_eq!(body(&outcome.response), "abc");
    assert!(outcome.response.contains("\nConnection: close\n"));
}

#[test]
fn bodiless_responses_ignore_content_length() {
    let cases = [
        ("HEAD", "200 OK", "Content-Length: 1000"),
        ("HEAD", "200 OK", "Transfer-Encoding: chunked"),
        ("HEAD", "200 OK", "X: y"),
        ("GET", "304 Not Modified", "Content-Length: 1000"),
        ("GET", "304 Not Modified", "X: y"),
        ("GET", "204 No Content", "X: y"),
        ("GET", "204 No Content", "Content-Length: 0"),
    ];
    for (method, status, field) in cases {
        on_every_driver(move |site| async move {
            let response = format!("HTTP/1.1 {status}\r\n{field}\r\n\r\n");
            let upstream = site.upstream(&[&[Step::Read, send(&response), Step::Again]]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            for _ in 0..2 {
                client
                    .send(format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes())
                    .await;
                let got = client.receive_response(Method::of(method)).await.unwrap();
                let got = String::from_utf8(got).unwrap();
                assert!(got.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{got}");
                let names_length = field == "Content-Length: 1000";
                assert_eq!(got.contains("Content-Length"), names_length, "{got}");
                assert!(!got.contains("Transfer-Encoding"), "{got}");
            }
            assert_eq!(upstream.connections(), 1, "{method} {status} {field}");
        });
    }
}

#[test]
fn interim_responses_are_limited() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    for (count, status) in [(16, "200 OK"), (17, "502 Bad Gateway")] {
        let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(count);
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let script = [Step::Read, send(&interim), send(response)];
        let outcome = forward(&[&script], get);
        let passed = outcome.response.matches("102 Processing").count();
        assert_eq!(passed, count, "{outcome:?}");
        assert!(
            outcome.response.contains(&format!("HTTP/1.1 {status}\n")),
            "{outcome:?}"
        );
    }
}

#[test]
fn interim_responses_are_forwarded() {
    let script = [
        Step::Read,
        send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nX: 1\r\n\r\n"),
        send("HTTP/1.1 102 Processing\r\n\r\n"),
        send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ];
    let response = forward(&[&script], GET).response;
    let end = response.find("HTTP/1.1 200").expect("the final response");
    assert_eq!(
        &response[..end],
        "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 102 Processing\n\n"
    );
    let response = forward(&[&script], GET_10).response;
    assert!(response.starts_with("HTTP/1.1 200 OK\n"), "{response}");
}

fn speaking(versions: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nhttp_versions = {versions}\n\n[[route]]\nrespond = {{ status = 204 }}\n"
    )
}

/// Whether these bytes contain a GOAWAY with PROTOCOL_ERROR and last stream 0.
fn has_goaway(bytes: &[u8]) -> bool {
    let (kind, last_stream) = ([7, 0, 0, 0, 0, 0], [0; 4]);
    let goaway = [
        &kind[..],
        &last_stream,
        &Code::PROTOCOL_ERROR.0.to_be_bytes(),
    ]
    .concat();
    bytes.windows(goaway.len()).any(|bytes| bytes == goaway)
}

#[test]
fn listener_accepts_only_configured_versions() {
    for (versions, has_http1, has_http2) in [
        ("[\"h1\"]", true, false),
        ("[\"h2\"]", false, true),
        ("[\"h1\", \"h2\"]", true, true),
    ] {
        on_every_driver(|site| async move {
            let address = site.serve(&configured(&speaking(versions)));
            let mut client = site.connect(&address).await;
            let response = client.exchange(GET.as_bytes()).await;
            match has_http1 {
                true => assert!(response.starts_with(b"HTTP/1.1 204 "), "{versions}"),
                // RFC 9113 3.4: an invalid preface is a connection error.
                false => assert!(has_goaway(&response), "{versions}: {response:?}"),
            }
            if has_http2 {
                let mut client = Http2Client::connect(&site, &address, 65_535).await;
                assert_eq!(client.get("/").await.status, 204, "{versions}");
                return;
            }
            let response = site.connect(&address).await.exchange(PREFACE).await;
            assert!(
                response.starts_with(b"HTTP/1.1 505 "),
                "{versions}: {response:?}"
            );
        });
    }
}

#[test]
fn partial_http2_preface_times_out_like_head() {
    on_every_driver(|site| async move {
        let text = format!(
            "[timeouts]\nclient_head = \"100ms\"\n{}",
            speaking("[\"h2\"]")
        );
        let address = site.serve(&configured(&text));
        let mut client = site.connect(&address).await;
        client.send(&PREFACE[..10]).await;
        let (_, _) = client.receive_all_or_reset().await;
    });
}
