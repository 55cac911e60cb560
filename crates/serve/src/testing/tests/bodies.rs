//! Forwarded bodies: streamed, unchanged, in both directions at once.

use std::rc::Rc;

use crate::testing::harness::{Peer, Step, TestCore, forward, on_every_driver, send};
use onrush_config::Plan;
use onrush_engine::{Address, BUFFER_BYTES};
use onrush_http::Method;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// More than all buffers on the path, so that flow control is used.
const LARGE: usize = 3 << 20;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

fn framed_by_length(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Chunks of growing sizes, from one byte.
fn framed_by_chunks(head: &str, body: &[u8]) -> Vec<u8> {
    let mut message = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    let mut rest = body;
    let mut size = 1;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        message.extend(format!("{:X}\r\n", chunk.len()).as_bytes());
        message.extend(chunk);
        message.extend(b"\r\n");
        rest = after;
        size = size * 3 + 1;
    }
    message.extend(b"0\r\nX-Sum: 1\r\n\r\n");
    message
}

fn body(message: &[u8]) -> &[u8] {
    let end = memchr::memmem::find(message, b"\r\n\r\n").expect("a head");
    &message[end + 4..]
}

type Frame = fn(&str, &[u8]) -> Vec<u8>;
const FRAMES: [Frame; 2] = [framed_by_length, framed_by_chunks];

/// Sizes around the size of a buffer, and a large one.
const SIZES: [usize; 8] = [
    0,
    1,
    4096,
    BUFFER_BYTES - 200,
    BUFFER_BYTES - 1,
    BUFFER_BYTES,
    BUFFER_BYTES + 1,
    LARGE,
];

/// Sends in the background, so that the response can be read meanwhile.
fn send_all(site: &TestCore, client: &Peer, message: Vec<u8>) {
    let stream = Rc::clone(&client.stream);
    site.core.spawn(async move {
        let _ = crate::testing::harness::send_bytes(&stream, &message).await;
    });
}

#[test]
fn request_body_is_unchanged() {
    for frame in FRAMES {
        on_every_driver(move |site| async move {
            let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            for (turn, size) in SIZES.into_iter().enumerate() {
                let message = frame("PUT / HTTP/1.1\r\nHost: h\r\n", &bytes(size));
                send_all(&site, &client, message.clone());
                let response = client.receive_text().await;
                assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
                let got = upstream.request(0, turn);
                assert!(body(&got) == body(&message), "{size} bytes changed");
            }
            assert_eq!(upstream.connections(), 1);
        });
    }
}

#[test]
fn response_body_is_unchanged() {
    for frame in FRAMES {
        on_every_driver(move |site| async move {
            let responses: Vec<Vec<u8>> = SIZES
                .into_iter()
                .map(|size| frame("HTTP/1.1 200 OK\r\n", &bytes(size)))
                .collect();
            let script: Vec<Step> = responses
                .iter()
                .flat_map(|response| [Step::Read, Step::Send(response.clone())])
                .collect();
            let upstream = site.upstream(&[&script]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            for response in responses {
                client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
                let got = client
                    .receive_response(Method::Get)
                    .await
                    .expect("a response");
                assert!(
                    body(&got) == body(&response),
                    "{} bytes changed",
                    response.len()
                );
            }
            assert_eq!(upstream.connections(), 1);
        });
    }
}

#[test]
fn close_delimited_body_is_chunked() {
    on_every_driver(|site| async move {
        let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        let script = [Step::Read, Step::Send(head), Step::Send(bytes(LARGE))];
        let upstream = site.upstream(&[&script]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let got = client
            .receive_response(Method::Get)
            .await
            .expect("a response");
        let mut reader = onrush_http::body::BodyReader::new(onrush_http::Framing::Chunked);
        let (mut rest, mut payload) = (body(&got), Vec::<u8>::new());
        while !reader.is_complete() {
            let step = reader
                .advance(rest, &onrush_http::Limits::DEFAULT)
                .expect("chunks");
            payload.extend(&rest[step.payload]);
            rest = &rest[step.consumed..];
        }
        assert!(payload == bytes(LARGE));
    });
}

#[test]
fn http_1_0_client_gets_dechunked_body() {
    on_every_driver(|site| async move {
        let response = framed_by_chunks("HTTP/1.1 200 OK\r\n", &bytes(LARGE));
        let upstream = site.upstream(&[&[Step::Read, Step::Send(response)]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        let got = client.exchange(b"GET / HTTP/1.0\r\n\r\n").await;
        assert!(body(&got) == bytes(LARGE));
    });
}

#[test]
fn request_and_response_bodies_are_forwarded_concurrently() {
    on_every_driver(|site| async move {
        // The server responds to each part before it has received the next, like an echo. Neither side may buffer more
        // than necessary.
        let (listener, server) = site.listen();
        site.core.spawn(async move {
            let mut peer = Peer::new(listener.accept().await.expect("a connection"));
            peer.receive_until(b"\r\n\r\n").await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
            peer.send(head.as_bytes()).await;
            for _ in 0..LARGE / 1024 {
                let part = peer.receive_exactly(1024).await;
                peer.send(&part).await;
            }
        });
        let address = site.serve(&plan_of(server));
        let mut client = site.connect(&address).await;
        let message = framed_by_length("POST / HTTP/1.1\r\nHost: h\r\n", &bytes(LARGE));
        send_all(&site, &client, message);
        let got = client
            .receive_response(Method::Post)
            .await
            .expect("a response");
        assert!(body(&got) == bytes(LARGE));
    });
}

fn plan_of(server: std::net::SocketAddr) -> Plan {
    let server = onrush_config::plan::ServerAddress::Ip(server);
    Plan::one_liner(
        onrush_config::plan::OneLiner::Forward(vec![server]),
        Vec::new(),
    )
}

#[test]
fn body_waits_for_100_continue() {
    on_every_driver(|site| async move {
        let script = vec![
            Step::ReadHead,
            send("HTTP/1.1 100 Continue\r\n\r\n"),
            Step::ReadBytes(5),
            send(OK),
        ];
        let upstream = site.upstream(&[&[script.clone(), script].concat()]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        for _ in 0..2 {
            client
                .send(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
                .await;
            assert_eq!(client.receive_text().await, "HTTP/1.1 100 Continue\r\n\r\n");
            client.send(b"hello").await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
            assert!(!response.contains("Connection: close"), "{response}");
        }
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn rejected_100_continue_closes_connection() {
    let script = [
        Step::ReadHead,
        send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"),
        Step::WaitForEnd,
    ];
    on_every_driver(move |site| {
        let upstream = site.upstream(&[&script]);
        async move {
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            client
                .send(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
                .await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 417 "), "{response}");
            assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
            assert_eq!(client.receive_all().await, b"");
        }
    });
}

#[test]
fn early_response_is_forwarded() {
    let early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno\n";
    on_every_driver(move |site| {
        let upstream = site.upstream(&[&[Step::ReadHead, send(early), Step::WaitForEnd]]);
        async move {
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            // The rest is never sent, so that buffers on the path cannot absorb all of it.
            let mut message = framed_by_length("POST / HTTP/1.1\r\nHost: h\r\n", &bytes(800_000));
            message.truncate(100_000);
            send_all(&site, &client, message);
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
            assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        }
    });
}

#[test]
fn pipelined_responses_keep_order() {
    let texts = ["first", "second", "third", "fourth"];
    let script: Vec<Step> = texts
        .iter()
        .flat_map(|text| {
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            [Step::Read, send(&response)]
        })
        .collect();
    let requests: String = texts
        .iter()
        .map(|text| format!("POST /{text} HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody"))
        .collect();
    let outcome = forward(&[&script], &requests);
    let found: Vec<_> = texts
        .iter()
        .map(|text| outcome.response.find(&format!("\n\n{text}")))
        .collect();
    assert!(found.iter().all(Option::is_some), "{outcome:?}");
    assert!(found.is_sorted(), "{outcome:?}");
    assert_eq!(outcome.requests.len(), 1, "one connection for all");
}

#[test]
fn pipelined_forwarded_and_local_responses_keep_order() {
    on_every_driver(|site| async move {
        let upstream = site.upstream(&[&[
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nforwarded"),
            Step::Again,
        ]]);
        let text = format!(
            "[[route]]\npath = \"/own\"\nrespond = {{ status = 200, body = \"own\" }}\n[[route]]\nforward = \"http://{}\"",
            upstream.address
        );
        let parsed =
            onrush_config::parse(&text, std::path::Path::new("onrush.toml")).expect("valid");
        let address: Address = site.serve(&parsed.plan);
        let paths = ["/own", "/", "/own", "/own", "/", "/", "/own"];
        let requests: String = paths
            .iter()
            .map(|path| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"))
            .collect();
        let mut client = site.connect(&address).await;
        client.send(requests.as_bytes()).await;
        for path in paths {
            let response = client.receive_text().await;
            let wanted = if path == "/own" { "own" } else { "forwarded" };
            assert_eq!(
                response.split_once("\r\n\r\n").map(|(_, body)| body),
                Some(wanted)
            );
        }
    });
}
