//! Compression of responses, and responses that must not be compressed.

mod edited;
mod transports;

use std::cell::RefCell;
use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan::{self, Compress};
use onrush_engine::Address;
use onrush_http::Method;
use onrush_http::encoding::Coding;

use crate::exchange::encoding::Encoding;
use crate::testing::harness::{
    Step, Upstream, exchange, on_every_driver, on_simulated_cores, send,
};
use crate::worker::compress::Pool;
use crate::worker::compress::decode::{Received, decode_prefix};

const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

fn compress() -> Compress {
    Compress {
        codings: vec![plan::Coding::Zstd, plan::Coding::Brotli, plan::Coding::Gzip],
        types: vec!["text/*".into(), "application/json".into()],
        size_min: 100,
    }
}

fn encoding_plan(upstream: &Upstream) -> Plan {
    let mut plan = upstream.plan();
    plan.routes[0].compress = Some(compress());
    plan
}

fn request(method: &str, fields: &str) -> String {
    format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

/// The client's responses to `requests` of `method`, when a server sends `responses` on one connection. The decoded
/// content is the same on every driver; chunk boundaries and flushes differ.
fn received(method: Method, requests: &str, responses: &[Vec<u8>]) -> Vec<Received> {
    received_with(&|_| {}, method, requests, responses)
}

fn received_with(
    change: &dyn Fn(&mut Plan),
    method: Method,
    requests: &str,
    responses: &[Vec<u8>],
) -> Vec<Received> {
    let before: Rc<RefCell<Vec<Received>>> = Rc::default();
    on_every_driver(|site| {
        let script: Vec<Step> = responses
            .iter()
            .flat_map(|response| [Step::Read, Step::Send(response.clone())])
            .collect();
        let upstream = site.upstream(&[&script]);
        let (requests, before) = (requests.to_owned(), Rc::clone(&before));
        let mut plan = encoding_plan(&upstream);
        change(&mut plan);
        async move {
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let bytes = client.exchange(requests.as_bytes()).await;
            let mut responses = Received::all(&bytes, method);
            for response in &mut responses {
                response.head = without_date(&response.head);
            }
            let before = before.replace(responses.clone());
            // Content that a server declares as encoded may be arbitrary, so failures to decode are compared as well.
            let means = |response: &Received| {
                let content = response.try_content();
                (response.head.clone(), content, response.trailers.clone())
            };
            let same = before.iter().map(means).eq(responses.iter().map(means));
            assert!(before.is_empty() || same, "drivers differ");
        }
    });
    before.take()
}

fn without_date(head: &str) -> String {
    let lines = head.lines().filter(|line| !line.starts_with("Date: "));
    lines.map(|line| format!("{line}\n")).collect()
}

fn received_one(codings: &str, response: &[u8]) -> Received {
    let request = request("GET", &format!("Accept-Encoding: {codings}\r\n"));
    let mut responses = received(Method::Get, &request, &[response.to_vec()]);
    assert_eq!(responses.len(), 1);
    responses.remove(0)
}

fn text(bytes: usize) -> Vec<u8> {
    let words = (0u64..).map(|number| format!("word {} ", number * number % 1000));
    let mut text = Vec::new();
    for word in words {
        if text.len() >= bytes {
            break;
        }
        text.extend_from_slice(word.as_bytes());
    }
    text.truncate(bytes);
    text
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn sized(fields: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

fn chunked(fields: &str, content: &[u8], trailers: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n");
    let mut response = head.into_bytes();
    for chunk in content.chunks(3000) {
        response.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        response.extend_from_slice(chunk);
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    response
}

#[test]
fn forwarded_response_is_compressed_with_any_framing() {
    for bytes in [100, 5000, 200_000] {
        let content = text(bytes);
        let responses = [
            sized("Content-Type: text/plain\r\n", &content),
            chunked("Content-Type: Text/HTML; charset=utf-8\r\n", &content, ""),
            [
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
                content.as_slice(),
            ]
            .concat(),
        ];
        for response in responses {
            for coding in ALL {
                let received = received_one(coding.token(), &response);
                assert_eq!(received.coding(), Some(coding), "{}", received.head);
                assert!(received.content() == content);
                assert_eq!(received.field("vary"), ["Accept-Encoding"]);
                assert_eq!(received.field("transfer-encoding"), ["chunked"]);
                assert_eq!(received.field("content-length"), [""; 0]);
                assert!(received.body.len() < bytes, "{}", received.body.len());
            }
        }
    }
}

#[test]
fn client_coding_preference_takes_precedence() {
    let response = sized("Content-Type: text/plain\r\n", &text(1000));
    for (accepted, coding) in [
        ("gzip, br, zstd", Some(Coding::Zstd)),
        ("gzip, br", Some(Coding::Brotli)),
        ("gzip;q=1, br;q=0.9, zstd;q=0.8", Some(Coding::Gzip)),
        ("*", Some(Coding::Zstd)),
        ("identity, gzip;q=0.5", None),
        ("deflate", None),
        ("", None),
    ] {
        let received = received_one(accepted, &response);
        assert_eq!(received.coding(), coding, "{accepted}");
        assert_eq!(received.content(), text(1000));
        assert_eq!(received.field("vary"), ["Accept-Encoding"], "{accepted}");
    }
}

#[test]
fn compressed_head_drops_length_and_ranges() {
    let fields = "Content-Type: text/css\r\nETag: \"abc\"\r\nAccept-Ranges: bytes\r\nLast-Modified: x\r\nVary: Origin\r\nX-Other: 1\r\n";
    let received = received_one("gzip", &sized(fields, &text(500)));
    assert_eq!(
        received.head,
        "HTTP/1.1 200 OK\nContent-Type: text/css\nLast-Modified: x\nVary: Origin\nX-Other: 1\n\
         Content-Encoding: gzip\nETag: W/\"abc\"\nVary: Accept-Encoding\nTransfer-Encoding: chunked\n\n"
    );
    for (fields, etag, vary) in [
        ("ETag: W/\"abc\"\r\nVary: *\r\n", &["W/\"abc\""][..], "*"),
        ("Vary: a, accept-encoding\r\n", &[], "a, accept-encoding"),
    ] {
        let response = sized(&format!("Content-Type: text/css\r\n{fields}"), &text(500));
        let received = received_one("gzip", &response);
        assert_eq!(received.field("etag"), etag);
        assert_eq!(received.field("vary"), [vary]);
    }
}

#[test]
fn trailers_follow_compressed_body() {
    let content = text(10_000);
    let trailers = "Server-Timing: a\r\nX-Sum: 5\r\n";
    let response = chunked(
        "Content-Type: text/plain\r\nTrailer: X-Sum\r\n",
        &content,
        trailers,
    );
    let received = received_one("br", &response);
    assert_eq!(received.content(), content);
    assert_eq!(received.trailers, format!("{trailers}\r\n").into_bytes());
    assert_eq!(received.field("trailer"), ["X-Sum"]);
}

#[test]
fn incompressible_responses_are_unchanged() {
    let content = text(500);
    let html = "Content-Type: text/html\r\n";
    let response = |status: &str, fields: &str| {
        let response = String::from_utf8(sized(fields, &content)).expect("text");
        response.replacen("200 OK", status, 1).into_bytes()
    };
    for (why, request_fields, response) in [
        (
            "encoded",
            "",
            response("200 OK", &format!("{html}Content-Encoding: br\r\n")),
        ),
        (
            "no-transform",
            "",
            response(
                "200 OK",
                &format!("{html}Cache-Control: public, No-Transform\r\n"),
            ),
        ),
        (
            "part",
            "",
            response(
                "206 Partial Content",
                &format!("{html}Content-Range: bytes 0-499/900\r\n"),
            ),
        ),
        (
            "range",
            "",
            response(
                "200 OK",
                &format!("{html}Content-Range: bytes 0-499/900\r\n"),
            ),
        ),
        (
            "digest",
            "",
            response("200 OK", &format!("{html}Content-Digest: sha-256=:x:\r\n")),
        ),
        (
            "digest",
            "",
            response("200 OK", &format!("{html}Repr-Digest: sha-256=:x:\r\n")),
        ),
        (
            "digest",
            "",
            response("200 OK", &format!("{html}Digest: md5=x\r\n")),
        ),
        (
            "md5",
            "",
            response("200 OK", &format!("{html}Content-MD5: x\r\n")),
        ),
        (
            "type",
            "",
            response("200 OK", "Content-Type: image/png\r\n"),
        ),
        (
            "type",
            "",
            response("200 OK", "Content-Type: textual/x\r\n"),
        ),
        ("type", "", response("200 OK", "")),
        ("types", "", response("200 OK", &format!("{html}{html}"))),
        ("short", "", sized(html, &content[..99])),
        ("empty", "", sized(html, b"")),
    ] {
        let request = request(
            "GET",
            &format!("Accept-Encoding: gzip, br\r\n{request_fields}"),
        );
        let responses = received(Method::Get, &request, std::slice::from_ref(&response));
        assert_eq!(responses, Received::all(&response, Method::Get), "{why}");
    }
}

#[test]
fn range_and_no_transform_requests_are_not_compressed() {
    let content = text(500);
    let response = sized("Content-Type: text/html\r\nETag: \"a\"\r\n", &content);
    for fields in [
        "Range: bytes=0-99\r\n",
        "If-Match: \"a\"\r\n",
        "Cache-Control: no-transform\r\n",
    ] {
        let request = request("GET", &format!("Accept-Encoding: gzip, br\r\n{fields}"));
        let responses = received(Method::Get, &request, std::slice::from_ref(&response));
        assert_eq!(responses[0].coding(), None, "{fields}");
        assert_eq!(responses[0].body, content);
        assert_eq!(responses[0].field("etag"), ["\"a\""]);
        assert_eq!(responses[0].field("vary"), ["Accept-Encoding"]);
    }
    let old = "GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n";
    let responses = received(Method::Get, old, &[response]);
    assert_eq!(
        (responses[0].coding(), &responses[0].body),
        (None, &content)
    );
}

#[test]
fn bodiless_responses_are_not_compressed() {
    for response in [
        "HTTP/1.1 204 No Content\r\nContent-Type: text/html\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Type: text/html\r\nETag: \"a\"\r\n\r\n",
    ] {
        let received = received_one("gzip", response.as_bytes());
        assert_eq!(received.head, response.replace("\r\n", "\n"));
        assert!(received.body.is_empty());
    }
}

#[test]
fn head_fields_match_get_with_compression() {
    let fields = "Content-Type: text/html\r\nETag: \"a\"\r\n";
    for (length, coding) in [(5000, Some(Coding::Gzip)), (50, None)] {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n");
        let request = request("HEAD", "Accept-Encoding: gzip\r\n");
        let responses = received(Method::Head, &request, &[response.into_bytes()]);
        assert_eq!(responses.len(), 1);
        let length = length.to_string();
        let lengths = match coding {
            Some(_) => &[][..],
            None => &[length.as_str()],
        };
        assert_eq!(
            responses[0].field("content-encoding").len(),
            1 - lengths.len()
        );
        assert_eq!(responses[0].field("content-length"), lengths);
        assert!(responses[0].body.is_empty());
    }
}

#[test]
fn weak_etag_revalidates() {
    let response = b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".to_vec();
    for (fields, etag) in [
        (
            "Accept-Encoding: gzip\r\nIf-None-Match: W/\"a\"\r\n",
            "W/\"a\"",
        ),
        ("Accept-Encoding: gzip\r\nIf-None-Match: \"a\"\r\n", "\"a\""),
        ("If-None-Match: W/\"a\"\r\n", "\"a\""),
    ] {
        let responses = received(
            Method::Get,
            &request("GET", fields),
            std::slice::from_ref(&response),
        );
        assert_eq!(responses[0].field("etag"), [etag], "{fields}");
    }
}

#[test]
fn compressed_responses_reuse_connection_and_encoder() {
    let contents = [text(3000), text(50), text(70_000), text(200)];
    let responses = contents
        .each_ref()
        .map(|content| sized("Content-Type: text/plain\r\n", content));
    let requests = request("GET", "Accept-Encoding: gzip\r\n").repeat(4);
    let received = received(Method::Get, &requests, &responses);
    let got: Vec<_> = received.iter().map(Received::content).collect();
    assert!(got == contents);
    let coded = received.iter().map(|response| response.coding().is_some());
    assert_eq!(coded.collect::<Vec<_>>(), [true, false, true, true]);
}

#[test]
fn server_sent_events_are_flushed_immediately() {
    for coding in ALL {
        on_every_driver(|site| async move {
            let events = ["data: first\n\n", "data: second\n\n"];
            let chunk = |event: &str| send(&format!("{:x}\r\n{event}\r\n", event.len()));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let upstream = site.upstream(&[
                &[
                    Step::Read,
                    send(head),
                    chunk(events[0]),
                    Step::WaitForConnections(2),
                    chunk(events[1]),
                    Step::WaitForConnections(3),
                ],
                &[Step::WaitForEnd],
            ]);
            let address = site.serve(&encoding_plan(&upstream));
            let mut client = site.connect(&address).await;
            let fields = format!("Accept-Encoding: {}\r\n", coding.token());
            client.send(request("GET", &fields).as_bytes()).await;
            let mut received = client.receive_until(b"\r\n\r\n").await;
            let mut seen = String::new();
            for event in events {
                seen += event;
                loop {
                    let (response, _) = Received::first(&received, Method::Get);
                    let mut decoded = Vec::new();
                    let _ = decode_prefix(coding, &response.body, &mut decoded);
                    if decoded == seen.as_bytes() {
                        break;
                    }
                    received.extend(client.receive_exactly(1).await);
                }
                // The server continues when another connection is opened.
                let waker = Address::Tcp(upstream.address);
                drop(site.connect(&waker).await);
            }
            // The response was cut off.
            received.extend(client.receive_all().await);
            let (response, _) = Received::first(&received, Method::Get);
            assert!(!response.is_whole);
        });
    }
}

#[test]
fn truncated_compressed_response_is_detectable() {
    on_every_driver(|site| async move {
        let response = sized("Content-Type: text/plain\r\n", &text(50_000));
        let half = Step::Send(response[..30_000].to_vec());
        let upstream = site.upstream(&[&[Step::Read, half]]);
        let (address, service) = site.serve_worker(&encoding_plan(&upstream));
        let request = request("GET", "Accept-Encoding: gzip\r\n");
        let bytes = site
            .connect(&address)
            .await
            .exchange(request.as_bytes())
            .await;
        let (response, _) = Received::first(&bytes, Method::Get);
        assert_eq!(response.coding(), Some(Coding::Gzip));
        assert!(!response.is_whole);
        assert_eq!(service.worker.encoders.idle(), 1, "its encoder is free");
    });
}

#[test]
fn compression_is_skipped_without_encoder_memory() {
    on_simulated_cores(|site| async move {
        let content = text(5000);
        let response = sized("Content-Type: text/plain\r\n", &content);
        let upstream = site.upstream(&[&[Step::Read, Step::Send(response), Step::Again]]);
        let (address, service) = site.serve_worker(&encoding_plan(&upstream));
        let pool: &Rc<Pool> = &service.worker.encoders;
        let lent: Vec<Encoding> =
            std::iter::from_fn(|| Encoding::begin(pool, Coding::Brotli)).collect();
        let request = request("GET", "Accept-Encoding: br\r\n");
        let mut client = site.connect(&address).await;
        client.send(request.as_bytes()).await;
        let plain = client
            .receive_response(Method::Get)
            .await
            .expect("a response");
        let (plain, _) = Received::first(&plain, Method::Get);
        assert_eq!((plain.coding(), &plain.body), (None, &content));
        assert_eq!(plain.field("vary"), ["Accept-Encoding"]);
        drop(lent);
        client.send(request.as_bytes()).await;
        let encoded = client
            .receive_response(Method::Get)
            .await
            .expect("a response");
        let (encoded, _) = Received::first(&encoded, Method::Get);
        assert_eq!(
            (encoded.coding(), encoded.content()),
            (Some(Coding::Brotli), content)
        );
    });
}

/// A plan with a fixed response and compression.
fn fixed(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Plan {
    let what = plan::OneLiner::Respond {
        status,
        body: Vec::new(),
    };
    let mut plan = Plan::one_liner(what, Vec::new());
    plan.routes[0].compress = Some(compress());
    plan.routes[0].action = plan::Action::Respond {
        status,
        body: body.to_vec(),
        headers: fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    plan
}

#[test]
fn fixed_response_is_compressed_once_per_coding() {
    // A body that is sent with its head, and a body that is sent after it.
    for bytes in [2000, 100_000] {
        let content = text(bytes);
        let plan = fixed(404, &[("ETag", "\"e\""), ("X-A", "b")], &content);
        for accepted in ["zstd", "br", "gzip", "", "*;q=0"] {
            let fields = format!("Accept-Encoding: {accepted}\r\n");
            let requests = request("GET", &fields).repeat(2);
            let got = Received::all(&exchange(&plan, requests.as_bytes()), Method::Get);
            assert_eq!(got.len(), 2);
            let coding = ALL.into_iter().find(|coding| coding.token() == accepted);
            for response in &got {
                assert!(response.head.starts_with("HTTP/1.1 404 "));
                assert_eq!(response.coding(), coding);
                assert!(response.content() == content);
                assert_eq!(response.field("vary"), ["Accept-Encoding"]);
                assert_eq!(response.field("x-a"), ["b"]);
                assert_eq!(
                    response.field("content-length"),
                    [response.body.len().to_string()]
                );
                let etag = if coding.is_some() { "W/\"e\"" } else { "\"e\"" };
                assert_eq!(response.field("etag"), [etag]);
            }
            let request = request("HEAD", &fields);
            let head = Received::all(&exchange(&plan, request.as_bytes()), Method::Head);
            assert_eq!(head[0].head, got[0].head);
        }
    }
}

#[test]
fn small_fixed_response_is_not_compressed() {
    let content = text(1000);
    for plan in [
        fixed(200, &[("Content-Type", "image/png")], &content),
        fixed(200, &[("Content-Encoding", "br")], &content),
        fixed(200, &[("Cache-Control", "no-transform")], &content),
        fixed(206, &[], &content),
        fixed(200, &[], &content[..99]),
        // No coding makes it shorter.
        fixed(200, &[], &noise(200)),
    ] {
        let request = request("GET", "Accept-Encoding: br, gzip, zstd\r\n");
        let response = exchange(&plan, request.as_bytes());
        let mut plain = plan.clone();
        plain.routes[0].compress = None;
        assert_eq!(response, exchange(&plain, request.as_bytes()));
    }
}
