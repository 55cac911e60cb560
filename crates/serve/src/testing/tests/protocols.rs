//! HTTP/2 clients get the same as HTTP/1 clients: local and forwarded responses, route rules, compression.

use onrush_http::encoding::Coding;
use onrush_http::http2::{self, LocalSettings};

use super::http2::{Http2Client, Response};
use crate::observe::record::RequestEnd;
use crate::testing::harness::{Step, configured, on_every_driver, on_simulated_core, send};
use crate::worker::compress::decode::decode;

/// Hash of "open sesame".
const HASH: &str = "$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8";

const WINDOW: u32 = LocalSettings::DEFAULT.stream_window;

fn text(response: &Response) -> &str {
    str::from_utf8(&response.body).expect("it is text")
}

fn get(client: &mut Http2Client, path: &str, fields: &[(&str, &str)]) -> http2::Stream {
    client.open(("GET", path), fields, http2::End::Stream)
}

fn field<'r>(response: &'r Response, name: &str) -> Option<&'r str> {
    response.fields.get(name).map(|value| &**value)
}

async fn data(client: &mut Http2Client, stream: http2::Stream, bytes: &[u8], end: http2::End) {
    let written = client.http.data(stream, bytes.len(), end, &mut client.out);
    written.expect("it is open");
    client.out.extend_from_slice(bytes);
    client.flush().await;
}

#[test]
fn generated_responses_match_over_http2() {
    on_every_driver(|site| async move {
        let folder = std::env::temp_dir().join(format!("onrush-protocols-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let large: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(folder.join("small.txt"), "small").expect("a file");
        std::fs::write(folder.join("large.bin"), &large).expect("a file");
        let config = format!(
            "[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"fixed\" }}\n\
             response_headers = {{ set = {{ X-Route = \"{{path}}\" }}, remove = [\"server\"] }}\n\
             [[route]]\npath = \"/old\"\nredirect = {{ status = 301, to = \"/new{{uri}}\" }}\n\
             [[route]]\npath = \"/files/\"\nfiles = {{ root = \"{}\" }}\n\
             cache_control = [{{ type = \"text/plain\", value = \"max-age=7\" }}, {{ status = 404, value = \"no-store\" }}]\n\
             [[route]]\npath = \"/secret\"\nrespond = {{ status = 200, body = \"no\" }}\ndeny = [\"127.0.0.0/8\"]\n\
             [[route]]\npath = \"/synthetic\"\nsynthetic = true\n",
            folder.display()
        );
        let (address, service) = site.serve_worker(&configured(&config));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let asked = [
            "/fixed",
            "/old?x",
            "/files/small.txt",
            "/files/large.bin",
            "/secret",
            "/synthetic?s=200000&t=5",
            "/synthetic?s=5&k=1",
            "/nowhere",
            "/files/missing",
        ];
        let streams = asked.map(|path| get(&mut client, path, &[]));
        let mut responses = Vec::new();
        for stream in streams {
            responses.push(client.response(stream).await);
        }
        let statuses: Vec<u16> = responses.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [200, 301, 200, 200, 403, 200, 200, 404, 404]);
        assert!(responses.iter().all(|it| it.is_whole));
        assert_eq!(text(&responses[0]), "fixed");
        assert_eq!(field(&responses[0], "x-route"), Some("/fixed"));
        assert_eq!(field(&responses[0], "server"), None);
        assert_eq!(field(&responses[0], "content-length"), Some("5"));
        assert_eq!(field(&responses[1], "location"), Some("/new/old?x"));
        assert_eq!(text(&responses[2]), "small");
        assert_eq!(field(&responses[2], "cache-control"), Some("max-age=7"));
        assert_eq!(field(&responses[3], "cache-control"), None);
        assert!(responses[3].body == large);
        assert_eq!(responses[5].body.len(), 200_000);
        assert_eq!(responses[6].body.len(), 5, "no chunk line is seen");
        for response in &responses {
            assert_eq!(field(response, "connection"), None);
            assert_eq!(field(response, "transfer-encoding"), None);
        }
        let stream = client.open(("HEAD", "/files/large.bin"), &[], http2::End::Stream);
        let head = client.response(stream).await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(field(&head, "content-length"), Some("300000"));
        let stream = get(&mut client, "/files/large.bin", &[("range", "bytes=10-19")]);
        let part = client.response(stream).await;
        assert_eq!((part.status, &part.body[..]), (206, &large[10..20]));
        let seen = service.worker.meter.take_seen();
        assert_eq!(seen.len(), asked.len() + 2);
        assert!(seen.iter().all(|record| record.end == RequestEnd::Complete));
        std::fs::remove_dir_all(&folder).ok();
    });
}

#[test]
fn concurrent_streams_are_forwarded_concurrently() {
    on_every_driver(|site| async move {
        let slow = [
            Step::Read,
            Step::Wait(std::time::Duration::from_millis(50)),
            send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow"),
            Step::Again,
        ];
        let quick = [
            Step::Read,
            send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
            send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"),
            send("3\r\nqui\r\n2;x=y\r\nck\r\n0\r\nX-Sum: 7\r\n\r\n"),
            Step::Again,
        ];
        let until_close = [
            Step::Read,
            send("HTTP/1.0 200 OK\r\nServer: old\r\n\r\nup to the end"),
        ];
        let scripts: [&[Step]; 3] = [&slow, &quick, &until_close];
        let [slow, quick, old] = scripts.map(|script| site.upstream(&[script]).address);
        let config = format!(
            "[[route]]\npath = \"/slow\"\nforward = \"slow\"\n\
             [[route]]\npath = \"/quick\"\nforward = \"quick\"\n\
             [[route]]\npath = \"/old\"\nforward = \"old\"\n\
             [upstream.slow]\nservers = [\"{slow}\"]\n\
             [upstream.quick]\nservers = [\"{quick}\"]\n\
             [upstream.old]\nservers = [\"{old}\"]\n"
        );
        let (address, service) = site.serve_worker(&configured(&config));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let [slow, quick, old] =
            ["/slow", "/quick", "/old"].map(|path| get(&mut client, path, &[]));
        let quick = client.response(quick).await;
        assert!(!client.responses.contains_key(&slow.id()), "it came before");
        assert_eq!((quick.status, text(&quick)), (200, "quick"));
        assert_eq!(quick.interim, [103]);
        assert_eq!(quick.trailers, [("x-sum".to_owned(), "7".to_owned())]);
        assert_eq!(field(&quick, "transfer-encoding"), None);
        let old = client.response(old).await;
        assert_eq!((old.status, text(&old)), (200, "up to the end"));
        assert_eq!(text(&client.response(slow).await), "slow");
        let seen = service.worker.meter.take_seen();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|record| record.end == RequestEnd::Complete));
    });
}

#[test]
fn request_bodies_are_forwarded() {
    on_every_driver(|site| async move {
        let echo = [
            Step::Read,
            send("HTTP/1.1 204 No Content\r\n\r\n"),
            Step::Again,
        ];
        let upstream = site.upstream(&[&echo]);
        let config = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{}\"]\n",
            upstream.address
        );
        let address = site.serve(&configured(&config));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let fields = [("x-a", "b"), ("content-length", "5")];
        let stream = client.open(("POST", "/"), &fields, http2::End::Open);
        client.send_body(stream, b"whole").await;
        assert_eq!(client.response(stream).await.status, 204);
        let stream = client.open(("POST", "/"), &[("x-a", "b")], http2::End::Open);
        data(&mut client, stream, b"in ", http2::End::Open).await;
        data(&mut client, stream, b"pieces", http2::End::Open).await;
        data(&mut client, stream, b"", http2::End::Stream).await;
        assert_eq!(client.response(stream).await.status, 204);
        let received: Vec<String> = upstream.requests().concat();
        let whole = &received[0];
        assert!(
            whole.contains("x-a: b") && whole.ends_with("whole"),
            "{whole}"
        );
        assert!(
            received[1].contains("Transfer-Encoding: chunked"),
            "{received:?}"
        );
    });
}

#[test]
fn failures_are_recorded_per_request() {
    for seed in 0..20 {
        on_simulated_core(seed, |site| async move {
            let half = [
                Step::Read,
                send("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nhalf"),
            ];
            let scripts: [&[Step]; 2] = [&half, &[Step::Read, Step::Reset]];
            let [half, dead] = scripts.map(|script| site.upstream(&[script, script]).address);
            let config = format!(
                "[[route]]\npath = \"/half\"\nforward = \"half\"\n\
                 [[route]]\npath = \"/dead\"\nforward = \"dead\"\n\
                 [[route]]\nrespond = {{ status = 200, body = \"well\" }}\n\
                 [upstream.half]\nservers = [\"{half}\"]\n\
                 [upstream.dead]\nservers = [\"{dead}\"]\n"
            );
            let (address, service) = site.serve_worker(&configured(&config));
            let mut client = Http2Client::connect(&site, &address, WINDOW).await;
            let [half, dead, well] =
                ["/half", "/dead", "/"].map(|path| get(&mut client, path, &[]));
            let half = client.response(half).await;
            assert!(half.reset.is_some() && text(&half) == "half", "{half:?}");
            assert_eq!(client.response(dead).await.status, 502);
            assert_eq!(text(&client.response(well).await), "well");
            get(&mut client, "/half", &[]);
            client.flush().await;
            drop(client);
            site.core.sleep(std::time::Duration::from_secs(5)).await;
            let seen = service.worker.meter.take_seen();
            assert_eq!(seen.len(), 4, "{seen:?}");
        });
    }
}

#[test]
fn responses_are_compressed_over_http2() {
    on_every_driver(|site| async move {
        let folder = std::env::temp_dir().join(format!("onrush-coded-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let content = "all work and no play ".repeat(20_000);
        std::fs::write(folder.join("large.txt"), &content).expect("a file");
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{content}",
            content.len()
        );
        let chunked = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{content}\r\n0\r\nX-Sum: 7\r\n\r\n",
            content.len()
        );
        let script = [Step::Read, send(&response), Step::Read, send(&chunked)];
        let upstream = site.upstream(&[&script]).address;
        let config = format!(
            "compress = true\n\
             [[route]]\npath = \"/files/\"\nfiles = {{ root = \"{}\" }}\n\
             [[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"{content}\" }}\n\
             [[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{upstream}\"]\n",
            folder.display()
        );
        let address = site.serve(&configured(&config));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let asked = ["/files/large.txt", "/fixed", "/", "/"];
        for (number, path) in (1..).zip(asked) {
            let stream = get(&mut client, path, &[("accept-encoding", "gzip")]);
            let response = client.response(stream).await;
            assert_eq!(field(&response, "content-encoding"), Some("gzip"), "{path}");
            assert!(response.is_whole && response.body.len() < content.len() / 10);
            let decoded = decode(Coding::Gzip, &response.body);
            assert!(decoded == content.as_bytes(), "{path}");
            let is_last = number == asked.len();
            assert_eq!(response.trailers.len(), usize::from(is_last), "{path}");
        }
        std::fs::remove_dir_all(&folder).ok();
    });
}

#[test]
fn route_rules_apply_over_http2() {
    on_every_driver(|site| async move {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let script = [Step::Read, send(ok), Step::Again];
        let [app, copies] = [(); 2].map(|()| site.upstream(&[&script]));
        let config = format!(
            "[[route]]\npath = \"/staff\"\nrespond = {{ status = 200, body = \"in\" }}\n\
             basic_auth = {{ realm = \"staff\", users = {{ ali = \"{HASH}\" }} }}\n\
             [[route]]\npath = \"/rare\"\nrespond = {{ status = 200 }}\n\
             rate_limit = {{ key = \"route\", requests = \"1/h\", burst = 0 }}\n\
             [[route]]\npath = \"/synthetic\"\nsynthetic = true\n\
             [[route]]\nforward = \"app\"\nmirror = {{ to = \"copies\", share = \"100%\" }}\n\
             request_headers = {{ set = {{ X-Id = \"{{request_id}}\" }} }}\n\
             [upstream.app]\nservers = [\"{}\"]\nsticky = {{ cookie = \"seat\" }}\n\
             [upstream.copies]\nservers = [\"{}\"]\n",
            app.address, copies.address
        );
        let address = site.serve(&configured(&config));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let login = [("authorization", "Basic YWxpOm9wZW4gc2VzYW1l")];
        let allowed = get(&mut client, "/staff", &login);
        let denied = get(&mut client, "/staff", &[]);
        assert_eq!(text(&client.response(allowed).await), "in");
        assert_eq!(client.response(denied).await.status, 401);
        let [first, second] = ["/rare"; 2].map(|path| get(&mut client, path, &[]));
        assert_eq!(client.response(first).await.status, 200);
        let refused = client.response(second).await;
        assert_eq!(refused.status, 429);
        assert!(field(&refused, "retry-after").is_some());
        let response = client.get("/").await;
        let cookie = field(&response, "set-cookie").expect("a cookie").to_owned();
        assert!(cookie.starts_with("seat="), "{cookie}");
        let named = cookie.split(';').next().expect("its value");
        let stream = get(&mut client, "/", &[("cookie", named)]);
        let response = client.response(stream).await;
        assert_eq!(field(&response, "set-cookie"), None);
        site.until("copies", || copies.requests().concat().len() == 2)
            .await;
        assert!(app.requests().concat()[0].contains("X-Id: "));
        // Its body is read before the response.
        let slow = client.open(("POST", "/synthetic?B=10"), &[], http2::End::Open);
        data(&mut client, slow, b"01234", http2::End::Open).await;
        assert_eq!(client.get("/synthetic").await.status, 200);
        assert!(!client.responses.contains_key(&slow.id()));
        data(&mut client, slow, b"56789", http2::End::Stream).await;
        assert_eq!(client.response(slow).await.status, 200);
    });
}
