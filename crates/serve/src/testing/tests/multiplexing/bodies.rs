//! Small request bodies of HTTP/2 clients that arrive with their heads: they are sent together, and again on a retry.

use onrush_config::Plan;
use onrush_http::http2::code::Code;
use onrush_http::http2::{Cause, End};

use super::server::{Asked, Reaction, Response, serve};
use super::{ask, plan};
use crate::testing::harness::{Step, TestCore, configured, on_every_driver, on_kernel_cores, send};
use crate::testing::tests::http2::Http2Client;

const WINDOW: u32 = 65_535;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn echo_body(asked: &Asked) -> Reaction {
    let body = String::from_utf8(asked.body.clone()).expect("text");
    Reaction::Respond(Response::ok(&body))
}

/// Sends a request with its body in `frames` frames, then an empty last frame.
fn call(
    client: &mut Http2Client,
    path: &str,
    body: &[u8],
    frames: usize,
) -> onrush_http::http2::Stream {
    let stream = client.open(("POST", path), &[], End::Open);
    for piece in body.chunks(body.len().div_ceil(frames)) {
        let written = client
            .http
            .data(stream, piece.len(), End::Open, &mut client.out);
        written.expect("it is open");
        client.out.extend_from_slice(piece);
    }
    let written = client.http.data(stream, 0, End::Stream, &mut client.out);
    written.expect("it is open");
    stream
}

#[test]
fn unprocessed_request_is_retried_with_body() {
    // Simulated networks separate heads and bodies.
    on_kernel_cores(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match (asked.path(), asked.connection) {
            ("/goes", 0) => Reaction::GoAway,
            _ => echo_body(asked),
        });
        let address = site.serve(&plan(server, "eject = false"));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let stream = call(&mut client, "/goes", b"a call", 3);
        let response = client.response(stream).await;
        assert_eq!((response.status, &*response.body), (200, &b"a call"[..]));
        let asked = seen.asked.borrow();
        let bodies: Vec<_> = asked.iter().map(|it| (it.connection, &*it.body)).collect();
        assert_eq!(bodies, [(0, &b"a call"[..]), (1, b"a call")]);
    });
}

#[test]
fn refused_request_goes_to_next_server() {
    on_kernel_cores(|site| async move {
        let (first, _) = serve(&site, 100, |_| Reaction::Reset(Code::REFUSED_STREAM));
        let (second, _) = serve(&site, 100, echo_body);
        let plan = configured(&format!(
            "[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{first}\", \"{second}\"]\n\
             protocol = \"h2\"\nbalance = \"first\"\neject = false\n"
        ));
        let address = site.serve(&plan);
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let stream = call(&mut client, "/", b"a call", 1);
        let response = client.response(stream).await;
        assert_eq!((response.status, &*response.body), (200, &b"a call"[..]));
    });
}

#[test]
fn small_bodies_release_windows() {
    for protocol in ["h1", "h2"] {
        on_every_driver(|site| async move {
            let h1 = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            let (h2, _) = serve(&site, 100, |asked| {
                Reaction::Respond(Response::ok(&asked.body.len().to_string()))
            });
            let servers = match protocol {
                "h2" => h2.to_string(),
                _ => h1.address.to_string(),
            };
            let address = site.serve(&configured(&format!(
                "[[route]]\npath = \"/own\"\nrespond = {{ status = 200 }}\n[[route]]\npath = \"/\"\nforward = \"up\"\n\
                 [upstream.up]\nservers = [\"{servers}\"]\nprotocol = \"{protocol}\"\n"
            )));
            let mut client = Http2Client::connect(&site, &address, WINDOW).await;
            // Four times the connection's window, for bodies that are kept and bodies that are too large for it.
            for (path, bytes) in [
                ("/own", 10_000),
                ("/", 10_000),
                ("/", 16_384),
                ("/", 30_000),
            ] {
                for _ in 0..(1 << 20) / bytes {
                    let stream = client.open(("POST", path), &[], End::Open);
                    client.send_body(stream, &vec![b'x'; bytes]).await;
                    let response = client.response(stream).await;
                    assert_eq!(response.status, 200, "{protocol} {path}");
                    if protocol == "h2" && path == "/" {
                        assert_eq!(response.body, bytes.to_string().as_bytes());
                    }
                }
            }
        });
    }
}

#[test]
fn http_1_server_gets_chunked_or_sized_body() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let address = site.serve(&server.plan());
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let stream = call(&mut client, "/", b"hello", 1);
        assert_eq!(client.response(stream).await.status, 200);
        let stream = client.open(("POST", "/"), &[("content-length", "5")], End::Open);
        client.send_body(stream, b"hello").await;
        assert_eq!(client.response(stream).await.status, 200);
        // The network determines the pieces in which they arrive.
        let requests = server.requests().concat().concat();
        let (first, second) = requests.split_at(requests.rfind("POST").expect("two of them"));
        assert!(first.ends_with("\n\n5\nhello\n0\n\n"), "{first}");
        assert!(second.ends_with("\n\nhello"), "{second}");
        assert!(!second.contains("chunked"), "{second}");
    });
}

#[test]
fn oversized_or_mismatched_body_is_not_forwarded() {
    on_kernel_cores(|site| async move {
        let (server, seen) = serve(&site, 100, echo_body);
        let plan = configured(&format!(
            "request_body_max = \"1k\"\n[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{server}\"]\n\
             protocol = \"h2\"\n"
        ));
        let (address, service) = site.serve_worker(&plan);
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let stream = call(&mut client, "/large", &[b'x'; 2000], 2);
        assert_eq!(client.response(stream).await.status, 413);
        let lengths = [("content-length", "6")];
        let stream = client.open(("POST", "/long"), &lengths, End::Open);
        let written = client.http.data(stream, 5, End::Open, &mut client.out);
        written.expect("it is open");
        client.out.extend_from_slice(b"hello");
        // The frame has two bytes, and only one is left.
        let written = client.http.data(stream, 2, End::Stream, &mut client.out);
        written.expect("it is open");
        client.out.extend_from_slice(b"!!");
        let response = client.response(stream).await;
        assert_eq!(
            response.reset,
            Some(Cause::Peer(Code::PROTOCOL_ERROR)),
            "{response:?}"
        );
        let stream = call(&mut client, "/fine", b"fine", 2);
        assert_eq!(client.response(stream).await.body, b"fine");
        let asked = seen.asked.borrow();
        let paths: Vec<_> = asked.iter().map(Asked::path).collect();
        assert_eq!(paths, ["/fine"]);
        assert_eq!(service.worker.meter.totals().given_up, 1, "the long one");
    });
}

#[test]
fn mirrored_request_has_body() {
    for protocol in ["h1", "h2"] {
        on_kernel_cores(|site| async move {
            let (server, _) = serve(&site, 100, echo_body);
            let (h2, seen) = serve(&site, 100, echo_body);
            let h1 = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            let other = match protocol {
                "h2" => h2.to_string(),
                _ => h1.address.to_string(),
            };
            let plan = configured(&format!(
                "[[route]]\npath = \"/\"\nforward = \"up\"\nmirror = \"copies\"\n\
                 [upstream.up]\nservers = [\"{server}\"]\nprotocol = \"h2\"\n\
                 [upstream.copies]\nservers = [\"{other}\"]\nprotocol = \"{protocol}\"\n"
            ));
            let address = site.serve(&plan);
            let mut client = Http2Client::connect(&site, &address, WINDOW).await;
            let stream = call(&mut client, "/", b"a call", 1);
            assert_eq!(client.response(stream).await.body, b"a call");
            match protocol {
                "h2" => {
                    while seen.asked.borrow().is_empty() {
                        site.core.yield_now().await;
                    }
                    assert_eq!(seen.asked.borrow()[0].body, b"a call");
                }
                _ => {
                    site.until("a copy", || !h1.requests().concat().is_empty())
                        .await;
                    let copy = String::from_utf8(h1.request(0, 0)).expect("text");
                    assert!(copy.ends_with("\r\n\r\n6\r\na call\r\n0\r\n\r\n"), "{copy}");
                }
            }
        });
    }
}

/// A plan with a server whose responses have a length and trailers.
fn serve_trailers(site: &TestCore) -> Plan {
    let (server, _) = serve(site, 100, |asked| {
        let body = "x".repeat(match asked.path() {
            "/short" => 5,
            _ => 100_000,
        });
        let response = Response::ok(&body).with("content-length", &body.len().to_string());
        let response = match asked.path() {
            "/announced" => response.with("trailer", "x-sum"),
            _ => response,
        };
        Reaction::Respond(response.trailer("x-sum", "7"))
    });
    plan(server, "")
}

async fn check_trailers(site: &TestCore, plan: &Plan, (path, fields): (&str, &str)) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}Connection: close\r\n\r\n");
    let response = ask(site, plan, &request).await;
    let is_last = response.ends_with("\r\n0\r\nx-sum: 7\r\n\r\n");
    assert!(is_last && !response.contains("ontent-"), "{path}");
}

#[test]
fn http_1_clients_get_trailers_of_sized_body() {
    on_every_driver(|site| async move {
        let plan = serve_trailers(&site);
        check_trailers(&site, &plan, ("/announced", "")).await;
        check_trailers(&site, &plan, ("/asked", "TE: trailers\r\n")).await;
        // HTTP/1.0 has neither chunks nor trailers.
        let response = ask(&site, &plan, "GET /announced HTTP/1.0\r\nHost: h\r\n\r\n").await;
        assert!(response.contains("content-length: 100000\r\n"));
        assert!(response.ends_with("xxx"));
    });
}

#[test]
fn http_1_clients_get_trailers_received_with_head() {
    // Simulated cores may receive the head alone.
    on_kernel_cores(|site| async move {
        let plan = serve_trailers(&site);
        check_trailers(&site, &plan, ("/short", "")).await;
    });
}

#[test]
fn unsupported_trailers_are_counted() {
    on_every_driver(|site| async move {
        let (address, service) = site.serve_worker(&serve_trailers(&site));
        let dropped = || service.worker.meter.totals().trailers_dropped;
        for (number, version) in [(1, "1.1"), (2, "1.0")] {
            let mut client = site.connect(&address).await;
            let request =
                format!("GET /late HTTP/{version}\r\nHost: h\r\nConnection: close\r\n\r\n");
            let response = client.exchange(request.as_bytes()).await;
            assert!(response.ends_with(b"xxx"), "the body is whole");
            assert_eq!(dropped(), [0, number], "HTTP/{version}");
        }
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        assert_eq!(client.get("/short").await.body, b"xxxxx");
        assert_eq!(dropped(), [0, 2], "a client of HTTP/2 gets them");
    });
}

#[test]
fn http_1_0_trailers_are_counted() {
    on_every_driver(|site| async move {
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
        for (number, trailers) in [(0, "\r\n"), (1, "x-sum: 7\r\n\r\n")] {
            let response = format!("{chunks}{trailers}");
            let server = site.upstream(&[&[Step::Read, send(&response), Step::WaitForEnd]]);
            let (address, service) = site.serve_worker(&server.plan());
            let mut client = site.connect(&address).await;
            let response = client.exchange(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n").await;
            assert!(response.ends_with(b"\r\n\r\nok"));
            let totals = service.worker.meter.totals();
            assert_eq!(totals.trailers_dropped, [0, number]);
        }
    });
}

#[test]
fn equal_content_length_fields_are_merged() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| {
            let response = Response::ok("hello");
            Reaction::Respond(match asked.path() {
                "/fields" => response
                    .with("content-length", "5")
                    .with("content-length", "5"),
                _ => response.with("content-length", "5, 5"),
            })
        });
        let plan = plan(server, "");
        for path in ["/fields", "/list"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let response = ask(&site, &plan, &request).await.to_ascii_lowercase();
            assert_eq!(
                response.matches("content-length: 5\r\n").count(),
                1,
                "{response}"
            );
            assert!(response.ends_with("\r\n\r\nhello"), "{response}");
        }
    });
}
