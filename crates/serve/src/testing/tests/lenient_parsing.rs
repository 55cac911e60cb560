//! Responses of real servers that violate the specification: accepted if unambiguous, and never forwarded as they are.

use onrush_config::Plan;

use crate::testing::harness::{Step, forward, forward_with, on_every_driver, send};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The client's response, without its Date. A second request follows: on the same connection if `reused`.
fn relayed(response: &str, reused: bool) -> String {
    let response = send(response);
    let scripts: [&[Step]; 2] = match reused {
        true => [
            &[Step::Read, response, Step::Read, send(OK)],
            &[Step::Read, send("HTTP/1.1 599 X\r\n\r\n")],
        ],
        false => [
            &[Step::Read, response, Step::WaitForEnd],
            &[Step::Read, send(OK)],
        ],
    };
    let outcome = forward(&scripts, &GET.repeat(2));
    let connections = if reused { 1 } else { 2 };
    assert_eq!(outcome.requests.len(), connections, "{outcome:?}");
    assert_eq!(outcome.totals.failed(), 0, "{outcome:?}");
    let responses = outcome
        .response
        .replace("Date: -----------------------------\n", "");
    let next = "HTTP/1.1 200 OK\nContent-Length: 2\n\nok";
    let first = responses.strip_suffix(next);
    first.unwrap_or_else(|| panic!("{outcome:?}")).to_owned()
}

#[test]
fn malformed_heads_are_corrected() {
    let hello = "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello";
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5 ,5\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length:5\n\r\nhello",
    ] {
        assert_eq!(relayed(response, true), hello, "{response}");
    }
    for (response, wanted) in [
        (
            "HTTP/1.1 200\r\nX:\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 \nX: \nContent-Length: 0\n\n",
        ),
        (
            "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 1\n\nx",
            "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n",
        ),
        (
            "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 200 OK\nContent-Length: 0\n\n",
            "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 200 OK\nContent-Length: 0\n\n",
        ),
    ] {
        assert_eq!(relayed(response, true), wanted, "{response}");
    }
}

#[test]
fn body_of_204_is_dropped_and_connection_closed() {
    for response in [
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!",
    ] {
        assert_eq!(
            relayed(response, false),
            "HTTP/1.1 204 No Content\n\n",
            "{response}"
        );
    }
}

#[test]
fn chunk_extensions_are_dropped() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let clean = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n";
    for body in [
        "5 \r\nhello\r\n0\r\n\r\n",
        "5\t \r\nhello\r\n0  \r\n\r\n",
        "5;a=b\r\nhello\r\n0;c=\"d;\\\"\"\r\n\r\n",
        "5 ; a = b ; c \r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
        "5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\nContent-Type: a/b\r\n\r\n",
    ] {
        assert_eq!(relayed(&format!("{chunked}{body}"), true), clean, "{body}");
    }
    let mixed = format!("{chunked}5;a\r\nhello\r\n0\r\nX: y\r\nContent-Length: 5\r\nZ: z\r\n\r\n");
    assert_eq!(
        relayed(&mixed, true),
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\nX: y\nZ: z\n\n"
    );
}

#[test]
fn http_1_0_client_gets_dechunked_lenient_body() {
    let response = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5 ;a=b \r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n";
    let outcome = forward(&[&[Step::Read, send(response)]], "GET / HTTP/1.0\r\n\r\n");
    assert!(outcome.response.ends_with("\n\nhello"), "{outcome:?}");
}

#[test]
fn client_chunk_extensions_are_dropped() {
    let request = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5;a=\"b;c\"\r\nhello\r\n1 ; d\r\n!\r\n0;e=f\r\nX: y\r\n\r\n";
    let wanted = "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nVia: 1.1 onrush\n\n\
                  5\nhello\n1\n!\n0\nX: y\n\n";
    let outcome = forward(&[&[Step::Read, send(OK), Step::Again]], &request.repeat(2));
    assert_eq!(outcome.requests, [[wanted, wanted]]);
    assert_eq!(outcome.totals.refused, 0);
}

#[test]
fn large_body_with_extensions_is_forwarded() {
    let mut message = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut clean = Vec::new();
    for size in (1..400).map(|turn| turn * 37) {
        let chunk = vec![b'x'; size];
        let extension = if size % 3 == 0 { ";a=b" } else { "" };
        message.extend(format!("{size:x}{extension}\r\n").as_bytes());
        clean.extend(format!("{size:x}\r\n").as_bytes());
        for bytes in [&mut message, &mut clean] {
            bytes.extend(&chunk);
            bytes.extend(b"\r\n");
        }
    }
    message.extend(b"0\r\n\r\n");
    clean.extend(b"0\r\n\r\n");
    on_every_driver(move |site| {
        let (message, clean) = (message.clone(), clean.clone());
        async move {
            let upstream = site.upstream(&[&[Step::Read, send(OK)]]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            let stream = std::rc::Rc::clone(&client.stream);
            site.core.spawn(async move {
                let _ = crate::testing::harness::send_bytes(&stream, &message).await;
            });
            assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
            assert!(upstream.request(0, 0).ends_with(&clean));
        }
    });
}

/// A request with a body of `length` bytes: `sent` bytes are sent before the early response and the rest after it.
fn early_response(
    expect: &'static str,
    interim: &'static str,
    length: usize,
    sent: usize,
) -> (String, bool) {
    let result = std::rc::Rc::new(std::cell::RefCell::new((String::new(), false)));
    let seen = std::rc::Rc::clone(&result);
    on_every_driver(move |site| {
        let early =
            format!("{interim}HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno\n");
        let upstream = site.upstream(&[
            &[Step::ReadHead, send(&early), Step::WaitForEnd],
            &[Step::Read, send(OK)],
        ]);
        let seen = std::rc::Rc::clone(&seen);
        async move {
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            let head =
                format!("POST / HTTP/1.1\r\nHost: h\r\n{expect}Content-Length: {length}\r\n\r\n");
            client
                .send(&[head.as_bytes(), &vec![b'x'; sent]].concat())
                .await;
            let mut response = client.receive_text().await;
            if response.starts_with("HTTP/1.1 100 ") {
                response = client.receive_text().await;
            }
            assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
            let is_kept = !response.contains("\r\nConnection: close\r\n");
            if is_kept {
                client.send(&vec![b'x'; length - sent]).await;
                client.send(GET.as_bytes()).await;
                let next = client.receive_text().await;
                assert!(next.starts_with("HTTP/1.1 200 "), "{next}");
            }
            *seen.borrow_mut() = (response, is_kept);
        }
    });
    result.take()
}

#[test]
fn early_response_keeps_connection_if_remaining_body_is_small() {
    for (expect, interim, length, sent, is_kept) in [
        ("", "", 1000, 10, true),
        ("", "", 1000, 0, true),
        ("", "", 50_000, 100, true),
        ("", "", 10_000_000, 100, false),
        ("Expect: 100-continue\r\n", "", 1000, 0, false),
        (
            "Expect: 100-continue\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            1000,
            0,
            true,
        ),
    ] {
        let (response, kept) = early_response(expect, interim, length, sent);
        assert_eq!(
            kept, is_kept,
            "{expect}{interim}{sent} of {length}: {response}"
        );
    }
}

#[test]
fn discarded_chunks_are_limited() {
    let early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno\n";
    for (size, is_kept) in [(1000, true), (10_000_000, false)] {
        on_every_driver(move |site| async move {
            let upstream = site.upstream(&[
                &[Step::ReadHead, send(early), Step::WaitForEnd],
                &[Step::Read, send(OK)],
            ]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            client
                .send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
                .await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
            let rest = format!("{size:x}\r\n{}\r\n0\r\n\r\n{GET}", "x".repeat(size));
            let stream = std::rc::Rc::clone(&client.stream);
            site.core.spawn(async move {
                let _ = crate::testing::harness::send_bytes(&stream, rest.as_bytes()).await;
            });
            let next = client.receive_response(onrush_http::Method::Get).await;
            assert_eq!(next.is_some(), is_kept, "{size}");
        });
    }
}

#[test]
fn rest_of_malformed_body_is_not_parsed_as_request() {
    let change = |plan: &mut Plan| plan.upstreams[0].retries.count = 0;
    let request =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;\r\nx\r\n0\r\n\r\n";
    let outcome = forward_with(&change, &[&[Step::WaitForEnd]], &format!("{request}{GET}"));
    assert!(outcome.response.starts_with("HTTP/1.1 400 "), "{outcome:?}");
    assert_eq!(
        outcome.response.matches("HTTP/1.1 ").count(),
        1,
        "{outcome:?}"
    );
}
