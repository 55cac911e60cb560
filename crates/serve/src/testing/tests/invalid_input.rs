//! Clients and servers that send garbage: they get an error or are disconnected, others are not affected, and nothing
//! panics.

use std::rc::Rc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::testing::harness::{
    Step, Upstream, exchange_text, forward_with, on_every_driver, on_kernel_cores,
    on_resetting_core, on_simulated_core, send, send_bytes,
};
use onrush_config::Plan;
use onrush_config::plan::OneLiner;
use onrush_http::Method;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn fixed() -> Plan {
    let what = OneLiner::Respond {
        status: 200,
        body: b"ok".to_vec(),
    };
    Plan::one_liner(what, Vec::new())
}

#[test]
fn malformed_request_is_refused_and_closed() {
    for (garbage, status) in [
        ("\u{16}\u{3}\u{1}\u{2}\u{0}", 400),
        ("GET\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n", 400),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ("GET x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            501,
        ),
        ("GET / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\n\r\n", 417),
    ] {
        on_every_driver(move |site| async move {
            let (address, service) = site.serve_worker(&fixed());
            let mut other = site.connect(&address).await;
            other.send(&GET.as_bytes()[..20]).await;
            let mut client = site.connect(&address).await;
            client
                .send(&[GET.as_bytes(), garbage.as_bytes(), GET.as_bytes()].concat())
                .await;
            assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
            let refused = client.receive_text().await;
            assert!(
                refused.starts_with(&format!("HTTP/1.1 {status} ")),
                "{garbage}: {refused}"
            );
            assert!(refused.contains("\r\nConnection: close\r\n"), "{refused}");
            // The rest is not parsed as a request.
            assert_eq!(client.receive_all().await, b"", "{garbage}");
            other.send(&GET.as_bytes()[20..]).await;
            assert!(other.receive_text().await.starts_with("HTTP/1.1 200 "));
            let totals = service.worker.meter.totals();
            assert_eq!((totals.requests, totals.refused), (3, 1));
        });
    }
}

#[test]
fn oversized_heads_are_refused() {
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(8 * 1024));
    let endless_line = "G".repeat(20_000);
    let long_head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "y".repeat(20_000));
    let many_fields = format!(
        "GET / HTTP/1.1\r\nHost: h\r\n{}\r\n",
        "A: b\r\n".repeat(101)
    );
    for (head, status) in [
        (long_target, 414),
        (endless_line, 414),
        (long_head, 431),
        (many_fields, 431),
    ] {
        on_every_driver(move |site| {
            let head = head.clone();
            async move {
                let address = site.serve(&fixed());
                let mut client = site.connect(&address).await;
                let response = client.exchange(head.as_bytes()).await;
                let wanted = format!("HTTP/1.1 {status} ");
                assert!(
                    response.starts_with(wanted.as_bytes()),
                    "{}",
                    response.escape_ascii()
                );
            }
        });
    }
}

#[test]
fn error_response_is_delivered_despite_further_input() {
    on_every_driver(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        let stream = Rc::clone(&client.stream);
        site.core.spawn(async move {
            let _ = send_bytes(
                &stream,
                &[b"GET nonsense\r\n", &[b'x'; 600_000][..]].concat(),
            )
            .await;
        });
        site.core.sleep(Duration::from_millis(5)).await;
        assert!(client.receive_text().await.starts_with("HTTP/1.1 400 "));
    });
}

#[test]
fn unneeded_request_body_is_discarded() {
    for head in ["Content-Length: 600000", "Transfer-Encoding: chunked"] {
        on_every_driver(move |site| async move {
            let address = site.serve(&fixed());
            let mut client = site.connect(&address).await;
            let mut body = vec![b'x'; 600_000];
            if head.starts_with("Transfer") {
                body = [&b"927c0\r\n"[..], &body, b"\r\n0\r\n\r\n"].concat();
            }
            let head = format!("POST / HTTP/1.1\r\nHost: h\r\n{head}\r\n\r\n");
            let stream = Rc::clone(&client.stream);
            site.core.spawn(async move {
                let both = [head.as_bytes(), &body, GET.as_bytes()].concat();
                let _ = send_bytes(&stream, &both).await;
            });
            for _ in 0..2 {
                let response = client.receive_text().await;
                assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
                assert!(!response.contains("Connection: close"), "{response}");
            }
        });
    }
}

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn malformed_discarded_body_closes_connection() {
    on_every_driver(|site| async move {
        let (address, service) = site.serve_worker(&fixed());
        let mut client = site.connect(&address).await;
        client.send(CHUNKED.as_bytes()).await;
        assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
        let chunks = "3\r\nabcd\r\n0\r\n\r\n";
        client
            .send(&[chunks.as_bytes(), GET.as_bytes()].concat())
            .await;
        assert_eq!(client.receive_all().await, b"");
        assert_eq!(service.worker.meter.totals().requests, 1);
    });
}

#[test]
fn malformed_body_with_head_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().display().to_string();
    std::fs::write(directory.path().join("x"), "file").expect("a new file");
    for action in [
        "respond = { status = 200, body = \"ok\" }".to_owned(),
        "redirect = \"/elsewhere\"".to_owned(),
        format!("files = {{ root = {root:?} }}"),
        "synthetic = true".to_owned(),
        "forward = \"http://127.0.0.1:1\"".to_owned(),
        "deny = \"127.0.0.0/8\"\nrespond = { status = 200 }".to_owned(),
    ] {
        let text = format!("[[route]]\n{action}");
        let parsed = onrush_config::parse(&text, std::path::Path::new("c.toml")).expect("valid");
        for body in ["3\r\nabcd\r\n0\r\n\r\n", "3;\r\nabc\r\n0\r\n\r\n", "x"] {
            let plan = parsed.plan.clone();
            // On simulated networks the body does not arrive with its head.
            on_kernel_cores(move |site| {
                let plan = plan.clone();
                async move {
                    let (address, service) = site.serve_worker(&plan);
                    let mut client = site.connect(&address).await;
                    let request = CHUNKED.replace("POST / ", "POST /x ");
                    let response = client.exchange(format!("{request}{body}").as_bytes()).await;
                    let response = String::from_utf8(response).expect("text");
                    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
                    assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
                    assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
                    let totals = service.worker.meter.totals();
                    assert_eq!((totals.requests, totals.refused), (1, 1));
                }
            });
        }
    }
}

#[test]
fn empty_host_is_refused_if_routes_match_hosts() {
    let text = |host: &str| {
        format!(
            "[[route]]\n{host}respond = {{ status = 200 }}\n[[route]]\nrespond = {{ status = 204 }}"
        )
    };
    let by_host = "host = \"a.example\"\n";
    for (host, request, status) in [
        ("", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "200"),
        ("", "GET / HTTP/1.0\r\n\r\n", "200"),
        ("", "GET http://a.example/ HTTP/1.1\r\nHost:\r\n\r\n", "400"),
        ("", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", "400"),
        (by_host, "GET / HTTP/1.1\r\nHost:\r\n\r\n", "400"),
        (by_host, "GET / HTTP/1.1\r\nHost: b\r\n\r\n", "204"),
        (by_host, "GET / HTTP/1.0\r\n\r\n", "204"),
        (
            by_host,
            "GET http://a.example/ HTTP/1.1\r\nHost: b\r\n\r\n",
            "200",
        ),
    ] {
        let parsed = onrush_config::parse(&text(host), std::path::Path::new("c.toml"));
        let response = exchange_text(&parsed.expect("valid").plan, request);
        let wanted = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&wanted), "{host}{request}: {response}");
    }
}

const REQUESTS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /own HTTP/1.1\r\nHost: h\r\n\r\n",
    "HEAD /own?q HTTP/1.1\r\nHost: h\r\nConnection: x, y\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    "POST /own HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nhello",
    "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX: y\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "GET http://a/b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n",
    "\r\n",
];

const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX: y\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
    "HTTP/1.0 200 OK\r\n\r\nuntil the end",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nConnection: x, y\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
];

/// Bytes that are significant to a parser.
const MEANINGFUL: &[u8] = b"\r\n \t:;,/?*%0159aF\0\x7f\xff";

#[derive(Clone, Debug)]
enum Change {
    Replace(u8),
    Insert(u8),
    Remove,
    EndHere,
}

/// Several of `valid` in a row, with random bytes in between, and a few changes anywhere.
fn soup(valid: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => select(valid).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..30),
        1 => vec(select(MEANINGFUL), 0..30),
    ];
    let byte = || prop_oneof![select(MEANINGFUL), any::<u8>()];
    let change = prop_oneof![
        4 => byte().prop_map(Change::Replace),
        4 => byte().prop_map(Change::Insert),
        4 => Just(Change::Remove),
        1 => Just(Change::EndHere),
    ];
    let changes = vec((any::<Index>(), change), 0..4);
    (vec(piece, 1..5), changes).prop_map(|(pieces, changes)| {
        let mut bytes = pieces.concat();
        for (place, change) in changes {
            let at = place.index(bytes.len() + 1);
            match change {
                Change::Insert(byte) => bytes.insert(at, byte),
                Change::EndHere => bytes.truncate(at),
                Change::Replace(_) | Change::Remove if at == bytes.len() => {}
                Change::Replace(byte) => bytes[at] = byte,
                Change::Remove => drop(bytes.remove(at)),
            }
        }
        bytes
    })
}

/// A plan with a fixed response at /own that forwards everything else.
fn own_and_forwarded(upstream: &Upstream) -> Plan {
    let text = format!(
        "[[route]]\npath = \"/own\"\nrespond = {{ status = 200, body = \"own\" }}\n[[route]]\nforward = \"http://{}\"",
        upstream.address
    );
    let parsed = onrush_config::parse(&text, std::path::Path::new("c.toml"));
    parsed.expect("valid").plan
}

#[test]
fn random_input_does_not_crash_kernel_drivers() {
    on_kernel_cores(|site| {
        let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        async move {
            let address = site.serve(&own_and_forwarded(&upstream));
            let mut runner = TestRunner::deterministic();
            let soups = vec(soup(REQUESTS), 8);
            for _ in 0..50 {
                // Several at a time, so that others reuse the table entries of their sockets.
                let soups = soups
                    .new_tree(&mut runner)
                    .expect("it has no filters")
                    .current();
                let mut clients = Vec::new();
                for soup in soups {
                    let client = site.connect(&address).await;
                    // The server may close the connection first.
                    let _ = send_bytes(&client.stream, &soup).await;
                    let _ = client.stream.shutdown().await;
                    clients.push(client);
                }
                for client in &mut clients {
                    let response = client.receive_all().await;
                    assert!(response.is_empty() || response.starts_with(b"HTTP/1.1 "));
                }
            }
            let mut other = site.connect(&address).await;
            other.send(GET.as_bytes()).await;
            assert!(other.receive_text().await.starts_with("HTTP/1.1 200 "));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // The scripted server panics on malformed requests, so this also checks that none is forwarded.
    #[test]
    fn random_requests_get_response_or_close(
        seed: u64,
        soup in soup(REQUESTS),
    ) {
        on_simulated_core(seed, |site| {
            let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            let soup = soup.clone();
            async move {
                let address = site.serve(&own_and_forwarded(&upstream));
                let response = site.connect(&address).await.exchange(&soup).await;
                assert!(response.is_empty() || response.starts_with(b"HTTP/1.1 "));
                for path in ["/", "/own"] {
                    let mut other = site.connect(&address).await;
                    other.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await;
                    assert!(other.receive_text().await.starts_with("HTTP/1.1 200 "));
                }
            }
        });
    }

    // The responses are arbitrary; the harness checks for panics, hanging tasks and leaked buffers.
    #[test]
    fn client_resets_leak_no_resources(
        seed: u64,
        reset in 1..200u32,
        requests in soup(REQUESTS),
        responses in soup(RESPONSES),
    ) {
        on_resetting_core(seed, reset, |site| {
            let upstream = site.upstream(&[&[Step::Read, Step::Send(responses.clone())]]);
            let requests = requests.clone();
            async move {
                let address = site.serve(&own_and_forwarded(&upstream));
                for _ in 0..3 {
                    site.connect(&address).await.exchange(&requests).await;
                }
            }
        });
    }

    // The harness panics on malformed responses.
    #[test]
    fn random_server_responses_are_forwarded_or_aborted(
        seed: u64,
        soup in soup(RESPONSES),
        end in select(&[Step::WaitForEnd, Step::Reset, Step::Wait(Duration::ZERO)][..]),
    ) {
        on_simulated_core(seed, |site| {
            let upstream = site.upstream(&[
                &[Step::Read, Step::Send(soup.clone()), end.clone()],
                &[Step::Read, send(OK), Step::Again],
            ]);
            async move {
                let address = site.serve(&upstream.plan());
                let mut client = site.connect(&address).await;
                client.send(GET.as_bytes()).await;
                loop {
                    match client.receive_response(Method::Get).await {
                        Some(interim) if interim.starts_with(b"HTTP/1.1 1") => {}
                        Some(_) => break,
                        // Truncated: the closed connection must signal it.
                        None => return assert_eq!(client.receive_all().await, b""),
                    }
                }
                // After a complete response the connection is usable, unless the response has `Connection: close`.
                let mut other = site.connect(&address).await;
                for client in [&mut client, &mut other] {
                    if send_bytes(&client.stream, GET.as_bytes()).await.is_ok()
                        && let Some(response) = client.receive_response(Method::Get).await
                    {
                        assert!(response.starts_with(b"HTTP/1.1 "));
                    }
                }
            }
        });
    }
}

#[test]
fn head_limits_are_configurable() {
    let plan = crate::testing::harness::configured(
        r#"
        request_head_max = 300
        request_fields_max = 3
        request_target_max = 20
        [[route]]
        respond = { status = 200 }
        "#,
    );
    let fields = |count: usize| "A: b\r\n".repeat(count);
    let long = |count: usize| format!("A: {}\r\n", "b".repeat(count));
    for (target, more, status) in [
        ("/", fields(2), 200),
        ("/", fields(3), 431),
        ("/34567890123456789012", String::new(), 414),
        ("/3456789012345678901", String::new(), 200),
        ("/", long(200), 200),
        ("/", long(300), 431),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\n{more}\r\n");
        let response = crate::testing::harness::exchange_text(&plan, &request);
        let line = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&line), "{request}: {response}");
    }
}

#[test]
fn request_head_limit_does_not_apply_to_responses() {
    let change = |plan: &mut Plan| plan.request_limits.fields_max = 2;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{}\r\nok",
        "A: b\r\n".repeat(9)
    );
    let script = [Step::Read, send(&head)];
    let outcome = forward_with(&change, &[&script], "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(outcome.response.ends_with("ok"), "{outcome:?}");
}
