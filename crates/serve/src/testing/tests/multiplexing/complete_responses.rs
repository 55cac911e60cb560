//! Responses that are complete when their request is woken, and are forwarded without a task.

use onrush_config::Plan;
use onrush_http::http2::End;
use onrush_http::http2::code::Code;
use onrush_http::http2::hpack::Sensitivity::{NeverIndexed, Unmarked};

use super::echo_path;
use super::server::{Reaction, Response, serve};
use crate::testing::harness::{configured, on_every_driver};
use crate::testing::tests::http2::{Http2Client, SECRET};

/// Forwards everything to these servers, with further keys of the group and the route.
fn plan(servers: &[std::net::SocketAddr], group: &str, route: &str) -> Plan {
    let servers: Vec<String> = servers.iter().map(|it| format!("\"{it}\"")).collect();
    configured(&format!(
        "[[route]]\npath = \"/\"\nforward = \"up\"\n{route}\n[upstream.up]\nservers = [{}]\nprotocol = \"h2\"\n\
         balance = \"first\"\neject = false\n{group}\n",
        servers.join(", ")
    ))
}

#[test]
fn complete_response_is_forwarded() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match asked.path() {
            "/empty" => Reaction::Respond(Response {
                status: 204,
                ..Response::default()
            }),
            "/trailers" => Reaction::Respond(Response::ok("told").trailer("x-sum", "7")),
            "/missing" => Reaction::Respond(Response {
                status: 404,
                ..Response::ok("none of these")
            }),
            _ => Reaction::Respond(Response::ok("body").with("x-own", asked.path())),
        });
        let route = "response_headers = { add = { X-Version = \"1\" } }";
        let address = site.serve(&plan(&[server], "", route));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        // The first request waits for the connection to the server, the others only for their responses.
        assert_eq!(client.get("/first").await.fields["x-own"], "/first");
        let paths = ["/one", "/empty", "/trailers", "/missing", "/two"];
        let streams: Vec<_> = paths
            .iter()
            .map(|path| client.open(("GET", path), &[], End::Stream))
            .collect();
        let head = client.open(("HEAD", "/head"), &[], End::Stream);
        let mut responses = Vec::new();
        for stream in streams {
            responses.push(client.response(stream).await);
        }
        let said: Vec<_> = responses
            .iter()
            .map(|it| (it.status, String::from_utf8_lossy(&it.body).into_owned()))
            .collect();
        let wanted = [
            (200, "body"),
            (204, ""),
            (200, "told"),
            (404, "none of these"),
            (200, "body"),
        ];
        assert_eq!(said, wanted.map(|(status, body)| (status, body.to_owned())));
        assert!(responses.iter().all(|it| it.is_whole));
        assert!(responses.iter().all(|it| it.fields["x-version"] == "1"));
        assert_eq!(responses[2].trailers, [("x-sum".into(), "7".into())]);
        assert_eq!(responses[4].fields["x-own"], "/two");
        let head = client.response(head).await;
        assert_eq!(
            (head.status, &*head.body, head.is_whole),
            (200, &b""[..], true)
        );
        assert_eq!(seen.connections.get(), 1);
    });
}

#[test]
fn malformed_response_is_retried() {
    on_every_driver(|site| async move {
        let (broken, asked_first) = serve(&site, 100, |asked| match asked.path() {
            "/" => echo_path(asked),
            "/head" => Reaction::Respond(Response {
                status: 999,
                ..Response::ok("x").with("content-length", "one")
            }),
            _ => Reaction::Respond(Response {
                status: 503,
                ..Response::ok("busy")
            }),
        });
        let (good, asked_then) = serve(&site, 100, echo_path);
        let group = "retries = { count = 2, on = [\"connect\", \"garbage\"], statuses = [503] }";
        let address = site.serve(&plan(&[broken, good], group, ""));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        assert_eq!(client.get("/").await.status, 200);
        for path in ["/head", "/busy"] {
            let response = client.get(path).await;
            assert_eq!((response.status, &*response.body), (200, path.as_bytes()));
            let once = client.open(("POST", path), &[], End::Stream);
            let status = client.response(once).await.status;
            assert_eq!(status, if path == "/head" { 502 } else { 503 });
        }
        assert_eq!(asked_first.asked.borrow().len(), 5);
        assert_eq!(asked_then.asked.borrow().len(), 2);
    });
}

#[test]
fn error_page_replaces_complete_response() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| {
            Reaction::Respond(Response {
                status: 500,
                ..Response::ok(asked.path())
            })
        });
        let route = "error_pages = { 5xx = { body = \"ours\" }, intercept = true }";
        let address = site.serve(&plan(&[server], "", route));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        for _ in 0..3 {
            let response = client.get("/").await;
            assert_eq!((response.status, &*response.body), (500, &b"ours"[..]));
        }
    });
}

#[test]
fn compressed_response_is_forwarded() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |_| {
            Reaction::Respond(
                Response::ok(&"words ".repeat(1000)).with("content-type", "text/plain"),
            )
        });
        let address = site.serve(&plan(&[server], "", "compress = true"));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        for _ in 0..3 {
            let gzip = [("accept-encoding", "gzip")];
            let stream = client.open(("GET", "/"), &gzip, End::Stream);
            let response = client.response(stream).await;
            assert_eq!(response.fields["content-encoding"], "gzip");
            assert!(response.is_whole && response.body.len() < 1000);
        }
    });
}

#[test]
fn early_response_is_complete_despite_reset() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |_| Reaction::Respond(Response::ok("enough")));
        let address = site.serve(&plan(&[server], "", ""));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        for _ in 0..3 {
            let stream = client.open(("POST", "/early"), &[], End::Open);
            let response = client.response(stream).await;
            assert_eq!((response.status, &*response.body), (200, &b"enough"[..]));
        }
    });
}

#[test]
fn client_disconnect_does_not_affect_others() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, echo_path);
        let address = site.serve(&plan(&[server], "", ""));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        assert_eq!(client.get("/before").await.body, b"/before");
        for _ in 0..20 {
            let left = client.open(("GET", "/left"), &[], End::Stream);
            client.flush().await;
            client.http.reset(left, Code::CANCEL, &mut client.out);
            assert_eq!(client.get("/after").await.body, b"/after");
        }
    });
}

#[test]
fn oversized_response_is_streamed() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| match asked.path() {
            "/long" => Reaction::Respond(Response::ok(&"x".repeat(17_000))),
            _ => Reaction::Respond(Response::ok("words").trailer("x-sum", "7")),
        });
        let address = site.serve(&plan(&[server], "", ""));
        for (path, window, bytes) in [("/long", 65_535, 17_000), ("/short", 1, 5)] {
            let mut client = Http2Client::connect(&site, &address, window).await;
            // The first request waits for the connection to the server. The client then sends nothing else that would
            // make the proxy look at its connection.
            for _ in 0..3 {
                let response = client.get(path).await;
                assert_eq!((response.status, response.body.len()), (200, bytes));
            }
        }
    });
}

#[test]
fn cached_heads_are_not_confused() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| {
            let response = |status, body: &str, field: &str| {
                let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
                let response = Response::ok(body).with(date.0, date.1).with("x-own", field);
                Reaction::Respond(Response { status, ..response })
            };
            match asked.path() {
                "/other" => response(200, "body", "2"),
                "/created" => response(201, "body", "1"),
                "/empty" => response(200, "", "1"),
                "/longer" => response(200, "longer", "1"),
                _ => response(200, "body", "1"),
            }
        });
        let address = site.serve(&plan(&[server], "", ""));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        for path in [
            "/", "/", "/", "/other", "/other", "/", "/created", "/", "/empty", "/empty", "/longer",
            "/",
        ] {
            let response = client.get(path).await;
            let wanted = match path {
                "/other" => (200, "body", "2"),
                "/created" => (201, "body", "1"),
                "/empty" => (200, "", "1"),
                "/longer" => (200, "longer", "1"),
                _ => (200, "body", "1"),
            };
            let body = String::from_utf8_lossy(&response.body);
            assert_eq!(
                (response.status, &*body, &*response.fields["x-own"]),
                wanted
            );
            assert_eq!(response.fields["date"], "Sun, 06 Nov 1994 08:49:37 GMT");
            let length = response.fields.get("content-length").map(|it| &**it);
            assert_eq!(length, (path == "/empty").then_some("0"), "{path}");
            let head = client.open(("HEAD", path), &[], End::Stream);
            let head = client.response(head).await;
            assert_eq!((head.status, head.body.len()), (wanted.0, 0), "{path}");
            assert_eq!(head.fields.get("content-length"), None, "{path}");
        }
    });
}

#[test]
fn never_indexed_fields_are_forwarded_never_indexed() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| {
            let response = Response::ok("body").with("x-own", "1");
            Reaction::Respond(match asked.path() {
                "/secret" => response.with(SECRET, "2"),
                _ => response,
            })
        });
        for route in ["", "response_headers = { add = { X-Version = \"1\" } }"] {
            seen.asked.borrow_mut().clear();
            let address = site.serve(&plan(&[server], "", route));
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            // Fields before and after the secret one are indexed, then repeated.
            let mut wanted = Vec::new();
            for (path, secret) in [
                ("/", None),
                ("/", Some("1")),
                ("/secret", None),
                ("/secret", None),
                ("/", Some("1")),
                ("/secret", Some("1")),
                ("/", None),
                ("/", None),
            ] {
                let fields: Vec<_> = secret.iter().map(|value| (SECRET, *value)).collect();
                let stream = client.open(("GET", path), &fields, End::Stream);
                let response = client.response(stream).await;
                let is_secret = path == "/secret";
                let field = response.fields.get(SECRET).map(|value| &**value);
                assert_eq!(field, is_secret.then_some("2"));
                let sensitivity = if is_secret { NeverIndexed } else { Unmarked };
                assert_eq!(response.sensitivity, sensitivity, "{path}");
                let field = secret.map(str::to_owned);
                wanted.push((
                    field,
                    if secret.is_some() {
                        NeverIndexed
                    } else {
                        Unmarked
                    },
                ));
            }
            let asked = seen.asked.borrow();
            let asked = asked
                .iter()
                .map(|asked| (asked.fields.get(SECRET).cloned(), asked.sensitivity));
            assert!(asked.eq(wanted), "{:?}", seen.asked.borrow());
        }
    });
}
