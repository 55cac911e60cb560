//! HTTP/2 servers: requests of many clients share few connections, and each client gets its response even if other
//! clients fail.

mod bodies;
mod capacity;
mod codes;
mod complete_responses;
mod connect_timeouts;
mod server;
mod shares;
mod stalled;
mod stopping;
mod unresponsive;

use std::cell::Cell;
use std::rc::Rc;

use onrush_config::Plan;
use onrush_engine::Input;
use onrush_http::http2::code::Code;
use onrush_http::http2::{Cause, End};

use self::server::{Asked, Reaction, Response, serve};
use super::http2::Http2Client;
use crate::observe::record::{self, FailureClass};
use crate::testing::harness::{
    Peer, TestCore, configured, on_every_driver, on_simulated_cores, send_bytes,
};

/// Forwards everything to the server, with further keys of its group.
fn plan(server: std::net::SocketAddr, more: &str) -> Plan {
    configured(&format!(
        "[[route]]\npath = \"/\"\nforward = \"up\"\n\
         [upstream.up]\nservers = [\"{server}\"]\nprotocol = \"h2\"\n{more}\n"
    ))
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn echo_path(asked: &Asked) -> Reaction {
    Reaction::Respond(Response::ok(asked.path()))
}

/// Sends an HTTP/1 request that closes the connection to a server of `plan`; returns all received text.
async fn ask(site: &TestCore, plan: &Plan, request: &str) -> String {
    let address = site.serve(plan);
    let mut client = site.connect(&address).await;
    let received = client.exchange(request.as_bytes()).await;
    String::from_utf8(received).expect("text")
}

/// Sends concurrent requests of HTTP/1 clients; returns the bodies of their responses.
async fn ask_all(site: &TestCore, plan: &Plan, clients: usize) -> Vec<String> {
    let address = site.serve(plan);
    let mut connections: Vec<Peer> = Vec::new();
    for number in 0..clients {
        let client = site.connect(&address).await;
        client.send(get(&format!("/{number}")).as_bytes()).await;
        connections.push(client);
    }
    let mut bodies = Vec::new();
    for client in &mut connections {
        let response = client.receive_text().await;
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        bodies.push(format!("{} {body}", &head[9..12]));
    }
    bodies
}

fn payload(response: &str) -> String {
    let (_, mut rest) = response.split_once("\r\n\r\n").expect("a head");
    let mut payload = String::new();
    while let Some((size, behind)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            break;
        }
        payload.push_str(&behind[..size]);
        rest = &behind[size + 2..];
    }
    payload
}

#[test]
fn http_1_clients_share_a_connection() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| {
            Reaction::Respond(
                Response::ok(asked.path()).with("content-length", &asked.path().len().to_string()),
            )
        });
        let bodies = ask_all(&site, &plan(server, ""), 20).await;
        let expected: Vec<String> = (0..20).map(|number| format!("200 /{number}")).collect();
        assert_eq!(bodies, expected);
        assert_eq!(seen.connections.get(), 1);
    });
}

#[test]
fn concurrent_streams_are_limited_by_both_sides() {
    for (theirs, ours, most, connections) in [(3, 100, 3, 1), (100, 2, 2, 1), (100, 4, 4, 2)] {
        on_every_driver(move |site| async move {
            let (server, seen) = serve(&site, theirs, |asked| {
                Reaction::Respond(
                    Response::ok(asked.path())
                        .with("content-length", &asked.path().len().to_string()),
                )
            });
            let more = format!("streams_max = {ours}\nconnections_shared_max = {connections}");
            let bodies = ask_all(&site, &plan(server, &more), 20).await;
            let expected: Vec<String> = (0..20).map(|number| format!("200 /{number}")).collect();
            assert_eq!(bodies, expected);
            assert!(seen.connections.get() <= connections);
            assert!(seen.streams_most.get() <= most);
        });
    }
}

#[test]
fn head_and_body_are_sent_as_http_2() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| {
            let body = String::from_utf8(asked.body.clone()).expect("text");
            Reaction::Respond(Response::ok(&body).trailer("x-sum", "7"))
        });
        let plan = plan(server, "");
        for (request, body, trailers) in [
            (
                "POST /a?b=c HTTP/1.1\r\nHost: h:1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nquick",
                "quick",
                &[][..],
            ),
            (
                "PUT / HTTP/1.1\r\nHost: h:1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2;x=y\r\nqu\r\n3\r\nick\r\n0\r\n\r\n",
                "quick",
                &[],
            ),
            (
                "PUT / HTTP/1.1\r\nHost: h:1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nquick\r\n0\r\nX-End: 1\r\n\r\n",
                "quick",
                &[("x-end", "1")],
            ),
            (
                "POST / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                "",
                &[],
            ),
        ] {
            let response = ask(&site, &plan, request).await;
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
            assert_eq!(payload(&response), body);
            assert!(response.ends_with("0\r\nx-sum: 7\r\n\r\n"), "{response}");
            let asked = seen.asked.borrow_mut().pop().expect("a request");
            assert_eq!(
                (
                    &asked.fields[":authority"][..],
                    &asked.fields[":scheme"][..]
                ),
                ("h:1", "http")
            );
            assert_eq!(asked.body, body.as_bytes());
            for name in ["connection", "transfer-encoding", "host"] {
                assert!(!asked.fields.contains_key(name), "{asked:?}");
            }
            let expected: Vec<_> = trailers
                .iter()
                .map(|&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned()))
                .collect();
            assert_eq!(asked.trailers, expected);
        }
    });
}

#[test]
fn large_bodies_are_forwarded_both_ways() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| {
            let response = Response {
                status: 200,
                body: asked.body.clone(),
                ..Response::default()
            };
            Reaction::Respond(response)
        });
        let body: String = (0..300_000)
            .map(|at| char::from(b'a' + (at * 7 % 26) as u8))
            .collect();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let response = ask(&site, &plan(server, ""), &request).await;
        assert!(payload(&response) == body);
    });
}

#[test]
fn resets_after_data_release_connection_window() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| {
            let response = Response::ok(&"x".repeat(60_000));
            match asked.path() {
                "/whole" => Reaction::Respond(response),
                _ => Reaction::Cut(response, Code::INTERNAL_ERROR),
            }
        });
        // The connection's window is as large as the window of one stream.
        let plan = plan(server, "streams_max = 1\nconnections_shared_max = 1");
        let address = site.serve(&plan);
        for _ in 0..3 {
            let mut client = site.connect(&address).await;
            let cut = client.exchange(get("/cut").as_bytes()).await;
            assert!(!cut.ends_with(b"0\r\n\r\n"));
        }
        let mut client = site.connect(&address).await;
        let request = get("/whole").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let response = client.exchange(request.as_bytes()).await;
        assert_eq!(
            payload(&String::from_utf8(response).expect("text")).len(),
            60_000
        );
        assert_eq!(seen.connections.get(), 1);
    });
}

#[test]
fn bodiless_http2_response_has_content_length_for_http_1() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| {
            let status = match asked.path() {
                "/204" => 204,
                "/304" => 304,
                _ => 200,
            };
            Reaction::Respond(Response {
                status,
                ..Response::default()
            })
        });
        let plan = plan(server, "");
        for (method, path, length) in [
            ("GET", "/", true),
            ("HEAD", "/", false),
            ("GET", "/204", false),
            ("GET", "/304", false),
        ] {
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let response = ask(&site, &plan, &request).await;
            let head = response.to_ascii_lowercase();
            assert_eq!(head.contains("content-length: 0\r\n"), length, "{head}");
            assert!(head.ends_with("\r\n\r\n"), "{head}");
            assert!(!head.contains("chunked"), "{head}");
        }
    });
}

#[test]
fn interim_responses_are_forwarded() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |_| {
            let mut response = Response::ok("x");
            response.interim = vec![103, 103];
            Reaction::Respond(response)
        });
        let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let response = ask(&site, &plan(server, ""), request).await;
        assert_eq!(
            response
                .matches("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
                .count(),
            2,
            "{response}"
        );
        assert!(response.contains("HTTP/1.1 200 OK\r\n"));
    });
}

#[test]
fn unprocessed_request_is_retried() {
    for method in ["GET", "POST"] {
        on_every_driver(move |site| async move {
            let (server, seen) =
                serve(&site, 100, |asked| match (asked.path(), asked.connection) {
                    ("/goes", 0) => Reaction::GoAway,
                    _ => echo_path(asked),
                });
            let request = format!(
                "{method} /goes HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let response = ask(&site, &plan(server, ""), &request).await;
            assert_eq!(payload(&response), "/goes", "{response}");
            assert_eq!(seen.connections.get(), 2);
        });
    }
}

#[test]
fn refused_stream_is_retried_with_limit() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |_| Reaction::Reset(Code::REFUSED_STREAM));
        let request =
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let response = ask(&site, &plan(server, "eject = false"), request).await;
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
        assert_eq!(seen.asked.borrow().len(), 5);
    });
}

#[test]
fn request_is_retried_after_four_refused_streams() {
    on_every_driver(|site| async move {
        let attempts = Cell::new(0);
        let (server, _) = serve(&site, 100, move |_| {
            attempts.set(attempts.get() + 1);
            match attempts.get() {
                ..5 => Reaction::Reset(Code::REFUSED_STREAM),
                _ => Reaction::Respond(Response::ok("fifth")),
            }
        });
        let request =
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let response = ask(&site, &plan(server, "eject = false"), request).await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(response.contains("fifth"), "{response}");
    });
}

#[test]
fn reset_before_response_is_retried_elsewhere() {
    for code in [Code::INTERNAL_ERROR, Code::CANCEL, Code::NO_ERROR] {
        on_every_driver(|site| async move {
            let (breaking, _) = serve(&site, 100, move |_| Reaction::Reset(code));
            let (good, _) = serve(&site, 100, echo_path);
            let plan = configured(&format!(
                "[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{breaking}\", \"{good}\"]\n\
                 protocol = \"h2\"\neject = false\n"
            ));
            let address = site.serve(&plan);
            for _ in 0..4 {
                let mut client = Http2Client::connect(&site, &address, 65_535).await;
                assert_eq!(client.get("/fine").await.status, 200, "{code:?}");
                let stream = client.open(("POST", "/once"), &[], End::Stream);
                let response = client.response(stream).await;
                let is_told = matches!(response.status, 200 | 502)
                    || code == Code::CANCEL && response.reset == Some(Cause::Peer(code));
                assert!(is_told, "{code:?}: {response:?}");
            }
        });
    }
}

#[test]
fn streamed_body_goes_to_next_server_on_refusal() {
    on_every_driver(|site| async move {
        let (listener, nobody) = site.listen();
        drop(listener);
        let (good, _) = serve(&site, 100, |asked| {
            Reaction::Respond(Response::ok(&asked.body.len().to_string()))
        });
        let plan = configured(&format!(
            "[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{nobody}\", \"{good}\"]\n\
             protocol = \"h2\"\neject = false\n"
        ));
        let address = site.serve(&plan);
        for bytes in [3, 100_000, 3, 100_000] {
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            let stream = client.open(("POST", "/"), &[], End::Open);
            client.send_body(stream, &vec![b'x'; bytes]).await;
            let response = client.response(stream).await;
            assert_eq!(
                (response.status, &*response.body),
                (200, bytes.to_string().as_bytes())
            );
        }
    });
}

#[test]
fn trailers_follow_body_with_length() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| {
            let body = "x".repeat(asked.path().len() * 10_000);
            let response = Response::ok(&body).with("content-length", &body.len().to_string());
            Reaction::Respond(match asked.path().ends_with("none") {
                true => response,
                false => response.trailer("x-sum", "7"),
            })
        });
        let address = site.serve(&plan(server, ""));
        for (path, trailers) in [("/", 1), ("/long", 1), ("/none", 0), ("/long/none", 0)] {
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            let response = client.get(path).await;
            assert_eq!(response.body.len(), path.len() * 10_000);
            assert_eq!(
                response.fields["content-length"],
                response.body.len().to_string()
            );
            assert_eq!(response.trailers.len(), trailers, "{path}");
            assert!(response.is_whole, "{path}");
        }
    });
}

#[test]
fn server_reset_affects_only_its_client() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| match asked.path() {
            "/cut" => Reaction::Cut(Response::ok("part"), Code::INTERNAL_ERROR),
            "/reset" => Reaction::Reset(Code::INTERNAL_ERROR),
            "/more" => {
                Reaction::Respond(Response::ok("more than that").with("content-length", "3"))
            }
            "/close" => Reaction::Close,
            _ => echo_path(asked),
        });
        let plan = plan(server, "eject = false");
        let (address, service) = site.serve_worker(&plan);
        for (method, path, expected) in [
            ("GET", "/reset", "HTTP/1.1 502 "),
            ("POST", "/close", "HTTP/1.1 502 "),
            ("GET", "/fine", "HTTP/1.1 200 "),
        ] {
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let mut client = site.connect(&address).await;
            let response = client.exchange(request.as_bytes()).await;
            assert!(
                response.starts_with(expected.as_bytes()),
                "{path}: {}",
                response.escape_ascii()
            );
        }
        service.worker.meter.take_seen();
        for path in ["/cut", "/more"] {
            let mut client = site.connect(&address).await;
            client.send(get(path).as_bytes()).await;
            let received = client.receive_all().await;
            let text = String::from_utf8_lossy(&received);
            assert!(!text.ends_with("0\r\n\r\n"), "{path}: {text}");
            assert!(!text.contains("more than"), "{path}: {text}");
            let seen = service.worker.meter.take_seen();
            let seen: Vec<_> = seen.iter().map(|it| (it.failure, it.end)).collect();
            assert_eq!(
                seen,
                [(Some(FailureClass::Cut), record::RequestEnd::Partial)],
                "{path}"
            );
        }
    });
}

#[test]
fn client_disconnect_resets_server_stream() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match asked.path() {
            "/held" => Reaction::Hold,
            _ => echo_path(asked),
        });
        let address = site.serve(&plan(server, ""));
        let client = site.connect(&address).await;
        client.send(get("/held").as_bytes()).await;
        while seen.asked.borrow().is_empty() {
            site.core.yield_now().await;
        }
        client.stream.reset_when_dropped();
        drop(client);
        while seen.resets.borrow().is_empty() {
            site.core.yield_now().await;
        }
        assert_eq!(*seen.resets.borrow(), [Code::CANCEL]);
        let mut other = site.connect(&address).await;
        let request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        assert!(other.exchange(request).await.starts_with(b"HTTP/1.1 200 "));
        assert_eq!(seen.connections.get(), 1);
    });
}

#[test]
fn freed_stream_is_reused() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 1, |asked| match asked.path() {
            "/held" => Reaction::Hold,
            _ => echo_path(asked),
        });
        let more = "streams_max = 1\nconnections_shared_max = 1";
        let address = site.serve(&plan(server, more));
        let holder = site.connect(&address).await;
        holder.send(get("/held").as_bytes()).await;
        while seen.asked.borrow().is_empty() {
            site.core.yield_now().await;
        }
        let mut waiting = site.connect(&address).await;
        let request = "GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        waiting.send(request.as_bytes()).await;
        holder.stream.reset_when_dropped();
        drop(holder);
        let response = String::from_utf8(waiting.receive_all().await).expect("text");
        assert_eq!(payload(&response), "/next", "{response}");
        assert_eq!(seen.connections.get(), 1);
    });
}

#[test]
fn slow_client_does_not_block_others() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match asked.path() {
            "/large" => Reaction::Respond(Response {
                status: 200,
                body: vec![b'x'; 8 << 20],
                ..Response::default()
            }),
            _ => echo_path(asked),
        });
        let address = site.serve(&plan(server, ""));
        let mut stalled = Vec::new();
        for _ in 0..4 {
            let client = site.connect(&address).await;
            client.send(get("/large").as_bytes()).await;
            stalled.push(client);
        }
        for number in 0..20 {
            let mut client = site.connect(&address).await;
            let request = format!("GET /{number} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let response = client.exchange(request.as_bytes()).await;
            let response = String::from_utf8(response).expect("text");
            assert_eq!(payload(&response), format!("/{number}"));
        }
        assert_eq!(seen.connections.get(), 1);
        let end = |client: &Peer| client.stream.reset_when_dropped();
        stalled.iter().for_each(end);
    });
}

#[test]
fn slow_clients_do_not_exhaust_connection_window() {
    const BYTES: usize = 2 << 20;
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 10, |_| {
            Reaction::Respond(Response {
                status: 200,
                body: vec![b'x'; BYTES],
                ..Response::default()
            })
        });
        let address = site.serve(&plan(
            server,
            "streams_max = 10\nconnections_shared_max = 1",
        ));
        let mut stalled = Vec::new();
        for _ in 0..8 {
            let client = site.connect(&address).await;
            client.send(get("/").as_bytes()).await;
            stalled.push(client);
        }
        // The first request may be in flight before all the others are stalled.
        for _ in 0..3 {
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            assert_eq!(client.get("/").await.body.len(), BYTES);
        }
        assert_eq!(seen.connections.get(), 1);
        let end = |client: &Peer| client.stream.reset_when_dropped();
        stalled.iter().for_each(end);
    });
}

#[test]
fn low_stream_limit_does_not_fail_requests() {
    for streams_max in [1, 3] {
        on_every_driver(move |site| async move {
            let (server, seen) = serve(&site, streams_max, echo_path);
            let address = site.serve(&plan(server, "connections_shared_max = 2"));
            for _ in 0..3 {
                let mut client = Http2Client::connect(&site, &address, 65_535).await;
                let paths: Vec<String> = (0..40).map(|number| format!("/{number}")).collect();
                let asked = paths
                    .iter()
                    .map(|path| (client.open(("GET", path), &[], End::Stream), path));
                let asked: Vec<_> = asked.collect();
                for (stream, path) in asked {
                    let response = client.response(stream).await;
                    assert_eq!(response.body, path.as_bytes());
                }
            }
            assert!(seen.streams_most.get() <= streams_max as usize);
            assert_eq!(seen.asked.borrow().len(), 120, "none was sent twice");
        });
    }
}

#[test]
fn grpc_calls_are_forwarded_with_trailers() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| {
            let answer = Response {
                body: asked.body.clone(),
                ..Response::ok("")
            };
            let answer = answer.with("content-type", "application/grpc");
            Reaction::Respond(match asked.path() {
                "/s/Fails" => Response::ok("")
                    .with("content-type", "application/grpc")
                    .with("grpc-status", "5"),
                _ => answer.trailer("grpc-status", "0"),
            })
        });
        let address = site.serve(&plan(server, ""));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        let more = [
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("grpc-timeout", "5S"),
        ];
        let message = b"\0\0\0\0\x05quick";
        let call = client.open(("POST", "/s/Echo"), &more, End::Open);
        client.send_body(call, message).await;
        let response = client.response(call).await;
        assert_eq!((response.status, &response.body[..]), (200, &message[..]));
        assert_eq!(
            response.trailers,
            [("grpc-status".to_owned(), "0".to_owned())]
        );
        let call = client.open(("POST", "/s/Fails"), &more, End::Open);
        client.send_body(call, message).await;
        let response = client.response(call).await;
        assert_eq!(response.fields["grpc-status"], "5");
        assert!(response.ends_with_head, "clients take it for trailers only");
        for asked in &*seen.asked.borrow() {
            assert_eq!(asked.fields["te"], "trailers");
            assert_eq!(asked.fields["grpc-timeout"], "5S");
            assert_eq!(asked.body, message);
        }
    });
}

#[test]
fn health_check_uses_http_2() {
    for (health, path) in [
        (
            r#"{ path = "/well", body = "yes", interval = "50ms" }"#,
            "/well",
        ),
        (
            r#"{ grpc = "shop.Orders", interval = "50ms" }"#,
            "/grpc.health.v1.Health/Check",
        ),
    ] {
        on_simulated_cores(move |site| async move {
            let is_well = Rc::new(Cell::new(false));
            let known = Rc::clone(&is_well);
            let (server, seen) = serve(&site, 100, move |asked| {
                let response = match (asked.path(), known.get()) {
                    ("/well", true) => Response::ok("yes"),
                    ("/well", false) => Response::ok("no"),
                    ("/grpc.health.v1.Health/Check", is_well) => Response {
                        body: vec![0, 0, 0, 0, 2, 8, 2 - u8::from(is_well)],
                        ..Response::ok("")
                    }
                    .trailer("grpc-status", "0"),
                    _ => Response::ok("page").with("content-length", "4"),
                };
                Reaction::Respond(response)
            });
            let plan = plan(server, &format!("health = {health}"));
            let (_, service) = site.serve_worker(&plan);
            let is_up = || service.group(0).endpoints().all()[0].is_healthy();
            site.until("failures", || !is_up()).await;
            is_well.set(true);
            site.until("checks that pass", is_up).await;
            let asked = seen.asked.borrow();
            assert!(asked.iter().any(|asked| asked.path() == path));
        });
    }
}

#[test]
fn mirror_uses_http_2() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, echo_path);
        let (other, seen) = serve(&site, 100, echo_path);
        let plan = configured(&format!(
            "[[route]]\npath = \"/\"\nforward = \"up\"\nmirror = \"copies\"\n\
             [upstream.up]\nservers = [\"{server}\"]\nprotocol = \"h2\"\n\
             [upstream.copies]\nservers = [\"{other}\"]\nprotocol = \"h2\"\n"
        ));
        let request = "GET /copied HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let response = ask(&site, &plan, request).await;
        assert_eq!(payload(&response), "/copied");
        while seen.asked.borrow().is_empty() {
            site.core.yield_now().await;
        }
        assert_eq!(seen.asked.borrow()[0].path(), "/copied");
    });
}

#[test]
fn websocket_requires_extended_connect() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, echo_path);
        let plan = plan(server, "");
        let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let response = ask(&site, &plan, request).await;
        assert!(response.starts_with("HTTP/1.1 501 "), "{response}");
        let address = site.serve(&plan);
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        let more = [(":protocol", "websocket"), ("sec-websocket-version", "13")];
        let stream = client.open(("CONNECT", "/"), &more, End::Open);
        assert_eq!(client.response(stream).await.status, 501);
        assert!(seen.asked.borrow().is_empty());
    });
}

#[test]
fn http_1_server_is_distinguished_from_failed_server() {
    on_every_driver(|site| async move {
        let (listener, old) = site.listen();
        site.core.spawn(async move {
            let stream = listener.accept().await.expect("a client");
            let refused = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
            let _ = send_bytes(&stream, refused).await;
            let _ = stream.shutdown().await;
            let mut input = Input::default();
            while let Ok(1..) = stream.recv(&mut input).await {
                input.consume(input.bytes().len());
            }
        });
        let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let response = ask(&site, &plan(old, "eject = false"), request).await;
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    });
}
