//! Answers that are encoded on their way to the client, and those that must not be.

mod edited;
mod transports;

use std::cell::RefCell;
use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan::{self, Compress};
use onrush_engine::Address;
use onrush_http::Method;
use onrush_http::encoding::Coding;

use crate::compress::Pool;
use crate::compress::decode::{Received, decode_prefix};
use crate::compress::encoding::Encoding;
use crate::harness::{Step, Upstream, exchange, on_every_driver, on_simulated_cores, send};

const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

fn compress() -> Compress {
    Compress {
        codings: vec![plan::Coding::Zstd, plan::Coding::Brotli, plan::Coding::Gzip],
        types: vec!["text/*".into(), "application/json".into()],
        size_min: 100,
    }
}

/// Forwards to `upstream` and encodes.
fn encoding_plan(upstream: &Upstream) -> Plan {
    let mut plan = upstream.plan();
    plan.routes[0].compress = Some(compress());
    plan
}

fn request(method: &str, fields: &str) -> String {
    format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

/// What the client gets for `requests` of `method`, which a server answers with `answers` on one connection. It means
/// the same on every driver; where chunks and flushes are differs.
fn received(method: Method, requests: &str, answers: &[Vec<u8>]) -> Vec<Received> {
    received_with(&|_| {}, method, requests, answers)
}

/// The same with something else changed in the plan.
fn received_with(
    change: &dyn Fn(&mut Plan),
    method: Method,
    requests: &str,
    answers: &[Vec<u8>],
) -> Vec<Received> {
    let before: Rc<RefCell<Vec<Received>>> = Rc::default();
    on_every_driver(|site| {
        let script: Vec<Step> = answers
            .iter()
            .flat_map(|answer| [Step::Read, Step::Send(answer.clone())])
            .collect();
        let upstream = site.upstream(&[&script]);
        let (requests, before) = (requests.to_owned(), Rc::clone(&before));
        let mut plan = encoding_plan(&upstream);
        change(&mut plan);
        async move {
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let bytes = client.exchange(requests.as_bytes()).await;
            let mut answers = Received::all(&bytes, method);
            for answer in &mut answers {
                answer.head = without_date(&answer.head);
            }
            let before = before.replace(answers.clone());
            // What a server says is encoded may be anything, so nothing is expected of its content.
            let means = |answer: &Received| {
                let content = answer.try_content();
                (answer.head.clone(), content, answer.trailers.clone())
            };
            let same = before.iter().map(means).eq(answers.iter().map(means));
            assert!(before.is_empty() || same, "drivers differ");
        }
    });
    before.take()
}

fn without_date(head: &str) -> String {
    let lines = head.lines().filter(|line| !line.starts_with("Date: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The one answer to a GET that takes `codings`.
fn received_one(codings: &str, answer: &[u8]) -> Received {
    let request = request("GET", &format!("Accept-Encoding: {codings}\r\n"));
    let mut answers = received(Method::Get, &request, &[answer.to_vec()]);
    assert_eq!(answers.len(), 1);
    answers.remove(0)
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

/// Bytes in which nothing can be found.
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

/// An answer with a length.
fn sized(fields: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

/// An answer in chunks with `trailers`.
fn chunked(fields: &str, content: &[u8], trailers: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n");
    let mut answer = head.into_bytes();
    for chunk in content.chunks(3000) {
        answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        answer.extend_from_slice(chunk);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    answer
}

#[test]
fn a_forwarded_answer_is_encoded_as_the_client_likes_it_however_it_is_framed() {
    for bytes in [100, 5000, 200_000] {
        let content = text(bytes);
        let answers = [
            sized("Content-Type: text/plain\r\n", &content),
            chunked("Content-Type: Text/HTML; charset=utf-8\r\n", &content, ""),
            [
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
                content.as_slice(),
            ]
            .concat(),
        ];
        for answer in answers {
            for coding in ALL {
                let received = received_one(coding.token(), &answer);
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
fn the_favourite_of_the_client_is_taken_and_ours_between_equals() {
    let answer = sized("Content-Type: text/plain\r\n", &text(1000));
    for (accepted, coding) in [
        ("gzip, br, zstd", Some(Coding::Zstd)),
        ("gzip, br", Some(Coding::Brotli)),
        ("gzip;q=1, br;q=0.9, zstd;q=0.8", Some(Coding::Gzip)),
        ("*", Some(Coding::Zstd)),
        ("identity, gzip;q=0.5", None),
        ("deflate", None),
        ("", None),
    ] {
        let received = received_one(accepted, &answer);
        assert_eq!(received.coding(), coding, "{accepted}");
        assert_eq!(received.content(), text(1000));
        assert_eq!(received.field("vary"), ["Accept-Encoding"], "{accepted}");
    }
}

#[test]
fn the_head_of_an_encoded_answer_says_nothing_that_is_true_of_the_plain_one_only() {
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
        let answer = sized(&format!("Content-Type: text/css\r\n{fields}"), &text(500));
        let received = received_one("gzip", &answer);
        assert_eq!(received.field("etag"), etag);
        assert_eq!(received.field("vary"), [vary]);
    }
}

#[test]
fn trailers_stand_behind_an_encoded_body() {
    let content = text(10_000);
    let trailers = "Server-Timing: a\r\nX-Sum: 5\r\n";
    let answer = chunked(
        "Content-Type: text/plain\r\nTrailer: X-Sum\r\n",
        &content,
        trailers,
    );
    let received = received_one("br", &answer);
    assert_eq!(received.content(), content);
    assert_eq!(received.trailers, format!("{trailers}\r\n").into_bytes());
    assert_eq!(received.field("trailer"), ["X-Sum"]);
}

#[test]
fn what_must_not_be_encoded_passes_as_it_is() {
    let content = text(500);
    let html = "Content-Type: text/html\r\n";
    let answer = |status: &str, fields: &str| {
        let answer = String::from_utf8(sized(fields, &content)).expect("text");
        answer.replacen("200 OK", status, 1).into_bytes()
    };
    for (why, request_fields, answer) in [
        (
            "encoded",
            "",
            answer("200 OK", &format!("{html}Content-Encoding: br\r\n")),
        ),
        (
            "no-transform",
            "",
            answer(
                "200 OK",
                &format!("{html}Cache-Control: public, No-Transform\r\n"),
            ),
        ),
        (
            "part",
            "",
            answer(
                "206 Partial Content",
                &format!("{html}Content-Range: bytes 0-499/900\r\n"),
            ),
        ),
        (
            "range",
            "",
            answer(
                "200 OK",
                &format!("{html}Content-Range: bytes 0-499/900\r\n"),
            ),
        ),
        (
            "digest",
            "",
            answer("200 OK", &format!("{html}Content-Digest: sha-256=:x:\r\n")),
        ),
        (
            "digest",
            "",
            answer("200 OK", &format!("{html}Repr-Digest: sha-256=:x:\r\n")),
        ),
        (
            "digest",
            "",
            answer("200 OK", &format!("{html}Digest: md5=x\r\n")),
        ),
        (
            "md5",
            "",
            answer("200 OK", &format!("{html}Content-MD5: x\r\n")),
        ),
        ("type", "", answer("200 OK", "Content-Type: image/png\r\n")),
        ("type", "", answer("200 OK", "Content-Type: textual/x\r\n")),
        ("type", "", answer("200 OK", "")),
        ("types", "", answer("200 OK", &format!("{html}{html}"))),
        ("short", "", sized(html, &content[..99])),
        ("empty", "", sized(html, b"")),
    ] {
        let request = request(
            "GET",
            &format!("Accept-Encoding: gzip, br\r\n{request_fields}"),
        );
        let answers = received(Method::Get, &request, std::slice::from_ref(&answer));
        assert_eq!(answers, Received::all(&answer, Method::Get), "{why}");
    }
}

#[test]
fn who_asks_for_a_part_or_wants_nothing_changed_gets_the_plain_content_and_is_told_that_it_varies()
{
    let content = text(500);
    let answer = sized("Content-Type: text/html\r\nETag: \"a\"\r\n", &content);
    for fields in [
        "Range: bytes=0-99\r\n",
        "If-Match: \"a\"\r\n",
        "Cache-Control: no-transform\r\n",
    ] {
        let request = request("GET", &format!("Accept-Encoding: gzip, br\r\n{fields}"));
        let answers = received(Method::Get, &request, std::slice::from_ref(&answer));
        assert_eq!(answers[0].coding(), None, "{fields}");
        assert_eq!(answers[0].body, content);
        assert_eq!(answers[0].field("etag"), ["\"a\""]);
        assert_eq!(answers[0].field("vary"), ["Accept-Encoding"]);
    }
    let old = "GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n";
    let answers = received(Method::Get, old, &[answer]);
    assert_eq!((answers[0].coding(), &answers[0].body), (None, &content));
}

#[test]
fn answers_without_a_body_have_none_in_any_coding() {
    for answer in [
        "HTTP/1.1 204 No Content\r\nContent-Type: text/html\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Type: text/html\r\nETag: \"a\"\r\n\r\n",
    ] {
        let received = received_one("gzip", answer.as_bytes());
        assert_eq!(received.head, answer.replace("\r\n", "\n"));
        assert!(received.body.is_empty());
    }
}

#[test]
fn a_head_is_answered_with_the_head_that_get_would_get() {
    let fields = "Content-Type: text/html\r\nETag: \"a\"\r\n";
    for (length, coding) in [(5000, Some(Coding::Gzip)), (50, None)] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n");
        let request = request("HEAD", "Accept-Encoding: gzip\r\n");
        let answers = received(Method::Head, &request, &[answer.into_bytes()]);
        assert_eq!(answers.len(), 1);
        let length = length.to_string();
        let lengths = match coding {
            Some(_) => &[][..],
            None => &[length.as_str()],
        };
        assert_eq!(
            answers[0].field("content-encoding").len(),
            1 - lengths.len()
        );
        assert_eq!(answers[0].field("content-length"), lengths);
        assert!(answers[0].body.is_empty());
    }
}

#[test]
fn a_version_known_by_its_weak_tag_is_confirmed_by_that() {
    let answer = b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".to_vec();
    for (fields, etag) in [
        (
            "Accept-Encoding: gzip\r\nIf-None-Match: W/\"a\"\r\n",
            "W/\"a\"",
        ),
        ("Accept-Encoding: gzip\r\nIf-None-Match: \"a\"\r\n", "\"a\""),
        ("If-None-Match: W/\"a\"\r\n", "\"a\""),
    ] {
        let answers = received(
            Method::Get,
            &request("GET", fields),
            std::slice::from_ref(&answer),
        );
        assert_eq!(answers[0].field("etag"), [etag], "{fields}");
    }
}

#[test]
fn encoded_answers_share_a_connection_with_others_and_an_encoder_with_each_other() {
    let contents = [text(3000), text(50), text(70_000), text(200)];
    let answers = contents
        .each_ref()
        .map(|content| sized("Content-Type: text/plain\r\n", content));
    let requests = request("GET", "Accept-Encoding: gzip\r\n").repeat(4);
    let received = received(Method::Get, &requests, &answers);
    let got: Vec<_> = received.iter().map(Received::content).collect();
    assert!(got == contents);
    let coded = received.iter().map(|answer| answer.coding().is_some());
    assert_eq!(coded.collect::<Vec<_>>(), [true, false, true, true]);
}

#[test]
fn an_event_arrives_before_the_next_one_is_made() {
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
                    let (answer, _) = Received::first(&received, Method::Get);
                    let mut decoded = Vec::new();
                    let _ = decode_prefix(coding, &answer.body, &mut decoded);
                    if decoded == seen.as_bytes() {
                        break;
                    }
                    received.extend(client.receive_exactly(1).await);
                }
                // The server goes on when it sees one more connection.
                let waker = Address::Tcp(upstream.address);
                drop(site.connect(&waker).await);
            }
            // It has ended in the middle.
            received.extend(client.receive_all().await);
            let (answer, _) = Received::first(&received, Method::Get);
            assert!(!answer.is_whole);
        });
    }
}

#[test]
fn a_server_that_stops_within_its_answer_leaves_an_encoded_one_unfinished() {
    on_every_driver(|site| async move {
        let answer = sized("Content-Type: text/plain\r\n", &text(50_000));
        let half = Step::Send(answer[..30_000].to_vec());
        let upstream = site.upstream(&[&[Step::Read, half]]);
        let (address, service) = site.serve_worker(&encoding_plan(&upstream));
        let request = request("GET", "Accept-Encoding: gzip\r\n");
        let bytes = site
            .connect(&address)
            .await
            .exchange(request.as_bytes())
            .await;
        let (answer, _) = Received::first(&bytes, Method::Get);
        assert_eq!(answer.coding(), Some(Coding::Gzip));
        assert!(!answer.is_whole);
        assert_eq!(service.worker.encoders.idle(), 1, "its encoder is free");
    });
}

#[test]
fn answers_go_as_they_are_while_memory_for_encoders_is_spent() {
    on_simulated_cores(|site| async move {
        let content = text(5000);
        let answer = sized("Content-Type: text/plain\r\n", &content);
        let upstream = site.upstream(&[&[Step::Read, Step::Send(answer), Step::Again]]);
        let (address, service) = site.serve_worker(&encoding_plan(&upstream));
        let pool: &Rc<Pool> = &service.worker.encoders;
        let lent: Vec<Encoding> =
            std::iter::from_fn(|| Encoding::begin(pool, Coding::Brotli)).collect();
        let request = request("GET", "Accept-Encoding: br\r\n");
        let mut client = site.connect(&address).await;
        client.send(request.as_bytes()).await;
        let plain = client.receive_answer(Method::Get).await.expect("an answer");
        let (plain, _) = Received::first(&plain, Method::Get);
        assert_eq!((plain.coding(), &plain.body), (None, &content));
        assert_eq!(plain.field("vary"), ["Accept-Encoding"]);
        drop(lent);
        client.send(request.as_bytes()).await;
        let encoded = client.receive_answer(Method::Get).await.expect("an answer");
        let (encoded, _) = Received::first(&encoded, Method::Get);
        assert_eq!(
            (encoded.coding(), encoded.content()),
            (Some(Coding::Brotli), content)
        );
    });
}

/// An answer of the configuration, on a route that encodes.
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
fn a_fixed_answer_has_a_form_for_each_coding() {
    // One that is sent with its head, and one that is not.
    for bytes in [2000, 100_000] {
        let content = text(bytes);
        let plan = fixed(404, &[("ETag", "\"e\""), ("X-A", "b")], &content);
        for accepted in ["zstd", "br", "gzip", "", "*;q=0"] {
            let fields = format!("Accept-Encoding: {accepted}\r\n");
            let requests = request("GET", &fields).repeat(2);
            let got = Received::all(&exchange(&plan, requests.as_bytes()), Method::Get);
            assert_eq!(got.len(), 2);
            let coding = ALL.into_iter().find(|coding| coding.token() == accepted);
            for answer in &got {
                assert!(answer.head.starts_with("HTTP/1.1 404 "));
                assert_eq!(answer.coding(), coding);
                assert!(answer.content() == content);
                assert_eq!(answer.field("vary"), ["Accept-Encoding"]);
                assert_eq!(answer.field("x-a"), ["b"]);
                assert_eq!(
                    answer.field("content-length"),
                    [answer.body.len().to_string()]
                );
                let etag = if coding.is_some() { "W/\"e\"" } else { "\"e\"" };
                assert_eq!(answer.field("etag"), [etag]);
            }
            let request = request("HEAD", &fields);
            let head = Received::all(&exchange(&plan, request.as_bytes()), Method::Head);
            assert_eq!(head[0].head, got[0].head);
        }
    }
}

#[test]
fn a_fixed_answer_that_is_not_worth_it_has_one_form() {
    let content = text(1000);
    for plan in [
        fixed(200, &[("Content-Type", "image/png")], &content),
        fixed(200, &[("Content-Encoding", "br")], &content),
        fixed(200, &[("Cache-Control", "no-transform")], &content),
        fixed(206, &[], &content),
        fixed(200, &[], &content[..99]),
        // No coding makes this shorter.
        fixed(200, &[], &noise(200)),
    ] {
        let request = request("GET", "Accept-Encoding: br, gzip, zstd\r\n");
        let answer = exchange(&plan, request.as_bytes());
        let mut plain = plan.clone();
        plain.routes[0].compress = None;
        assert_eq!(answer, exchange(&plain, request.as_bytes()));
    }
}
