//! A second protocol gets what HTTP/1 gets: framed messages, several requests at a time on one connection.

use std::collections::BTreeMap;
use std::rc::Rc;

use onrush_config::Plan;
use onrush_engine::{Input, Stream};
use onrush_http::encoding::Coding;
use onrush_http::forwarded::Scheme;
use onrush_tls::Transport;

use crate::client::{Client, Origin};
use crate::compress::decode::decode;
use crate::downstream::framed::{self, Frame, frame, parse};
use crate::harness::{Step, TestCore, on_every_driver, on_simulated_core, send, send_bytes};
use crate::record::End;
use crate::service::Service;

/// Of "open sesame".
const HASH: &str = "$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8";

/// A response as its client sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Response {
    status: u16,
    fields: BTreeMap<String, String>,
    interim: Vec<u16>,
    body: Vec<u8>,
    trailers: Vec<String>,
    is_whole: bool,
    is_reset: bool,
}

/// A client of the protocol.
struct Asking {
    stream: Rc<Stream>,
    received: Vec<u8>,
    responses: BTreeMap<u32, Response>,
}

impl Asking {
    /// One that is connected with what `service` serves.
    async fn connect(site: &TestCore, service: &Rc<Service>) -> Self {
        let (listener, address) = site.listen();
        let service = Rc::clone(service);
        site.core.spawn(async move {
            let stream = listener.accept().await.expect("somebody connects");
            let client = Client::new(Scheme::Http, Origin::OfSocket);
            framed::serve(Transport::plain(stream), client, service).await;
        });
        let address = onrush_engine::Address::Tcp(address);
        let stream = Stream::connect(&site.core, &address, None).await;
        Self {
            stream: Rc::new(stream.expect("it listens")),
            received: Vec::new(),
            responses: BTreeMap::new(),
        }
    }

    async fn send(&self, frames: &[Vec<u8>]) {
        let sent = send_bytes(&self.stream, &frames.concat()).await;
        sent.expect("the other side takes it");
    }

    /// Asks for `target`, with nothing behind its head.
    async fn ask(&self, id: u32, start: &str) {
        self.send(&[frame(Frame::HeadOnly, id, start.as_bytes())])
            .await;
    }

    /// The response with this number, when all of it has come.
    async fn response(&mut self, id: u32) -> Response {
        let mut input = Input::default();
        loop {
            while let Some((kind, of, payload, bytes)) = parse(&self.received) {
                self.responses.entry(of).or_default().take(kind, payload);
                self.received.drain(..bytes);
            }
            match self.responses.get(&id) {
                Some(response) if response.is_whole || response.is_reset => {
                    return self.responses.remove(&id).expect("just seen");
                }
                _ => {}
            }
            let bytes = self.stream.recv(&mut input).await.expect("no error");
            assert!(bytes > 0, "{:?} is all of {id}", self.responses.get(&id));
            self.received.extend_from_slice(input.bytes());
            input.consume(bytes);
        }
    }
}

impl Response {
    fn take(&mut self, kind: Frame, payload: &[u8]) {
        assert!(!self.is_whole, "{kind:?} behind its end");
        let text = String::from_utf8_lossy(payload);
        let mut lines = text.lines();
        match kind {
            Frame::Interim => {
                let status = lines.next().expect("a status");
                self.interim.push(status.parse().expect("a number"));
            }
            Frame::Head | Frame::HeadOnly => {
                assert_eq!(self.status, 0, "a second head");
                let status = lines.next().expect("a status");
                self.status = status.parse().expect("a number");
                let fields = lines.map(|line| line.split_once(':').expect("a field"));
                let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
                self.fields = fields.collect();
            }
            Frame::Data => self.body.extend_from_slice(payload),
            Frame::Trailer => self.trailers.push(text.into_owned()),
            Frame::End => self.is_whole = true,
            Frame::Reset => self.is_reset = true,
        }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| &**value)
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("it is text")
    }
}

fn plan(text: &str) -> Plan {
    let parsed = onrush_config::parse(text, std::path::Path::new("onrush.toml"));
    parsed
        .unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
        .plan
}

fn get(path: &str) -> String {
    format!("GET\n{path}\nexample.com\n")
}

#[test]
fn responses_of_our_own_are_the_same_in_another_protocol() {
    on_every_driver(|site| async move {
        let folder = std::env::temp_dir().join(format!("onrush-protocols-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let large: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(folder.join("small.txt"), "small").expect("a file");
        std::fs::write(folder.join("large.bin"), &large).expect("a file");
        let text = format!(
            "[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"fixed\" }}\n\
             response_headers = {{ set = {{ X-Route = \"{{path}}\" }}, remove = [\"server\"] }}\n\
             [[route]]\npath = \"/old\"\nredirect = {{ status = 301, to = \"/new{{uri}}\" }}\n\
             [[route]]\npath = \"/files/\"\nfiles = {{ root = \"{}\" }}\n\
             cache_control = [{{ type = \"text/plain\", value = \"max-age=7\" }}, {{ status = 404, value = \"no-store\" }}]\n\
             [[route]]\npath = \"/secret\"\nrespond = {{ status = 200, body = \"no\" }}\ndeny = [\"127.0.0.0/8\"]\n\
             [[route]]\npath = \"/synthetic\"\nsynthetic = true\n",
            folder.display()
        );
        let (_, service) = site.serve_worker(&plan(&text));
        let mut client = Asking::connect(&site, &service).await;
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
        for (id, path) in (1..).zip(asked) {
            client.ask(id, &get(path)).await;
        }
        let mut responses = Vec::new();
        for id in 1..=asked.len() as u32 {
            responses.push(client.response(id).await);
        }
        let statuses: Vec<u16> = responses.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [200, 301, 200, 200, 403, 200, 200, 404, 404]);
        assert!(responses.iter().all(|it| it.is_whole));
        assert_eq!(responses[0].text(), "fixed");
        assert_eq!(responses[0].field("x-route"), Some("/fixed"));
        assert_eq!(responses[0].field("server"), None);
        assert_eq!(responses[0].field("content-length"), Some("5"));
        assert_eq!(responses[1].field("location"), Some("/new/old?x"));
        assert_eq!(responses[2].text(), "small");
        assert_eq!(responses[2].field("cache-control"), Some("max-age=7"));
        assert_eq!(responses[3].field("cache-control"), None);
        assert!(responses[3].body == large);
        assert_eq!(responses[5].body.len(), 200_000);
        assert_eq!(responses[6].body.len(), 5, "no chunk line is seen");
        for response in &responses {
            assert_eq!(response.field("connection"), None);
            assert_eq!(response.field("transfer-encoding"), None);
        }
        client
            .ask(100, "HEAD\n/files/large.bin\nexample.com\n")
            .await;
        let head = client.response(100).await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.field("content-length"), Some("300000"));
        let range = "GET\n/files/large.bin\nexample.com\nrange:bytes=10-19\n";
        client.ask(101, range).await;
        let part = client.response(101).await;
        assert_eq!((part.status, &part.body[..]), (206, &large[10..20]));
        let seen = service.worker.meter.take_seen();
        assert_eq!(seen.len(), asked.len() + 2);
        assert!(seen.iter().all(|record| record.end == End::Complete));
        std::fs::remove_dir_all(&folder).ok();
    });
}

#[test]
fn requests_of_one_connection_are_forwarded_at_the_same_time() {
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
        let text = format!(
            "[[route]]\npath = \"/slow\"\nforward = \"slow\"\n\
             [[route]]\npath = \"/quick\"\nforward = \"quick\"\n\
             [[route]]\npath = \"/old\"\nforward = \"old\"\n\
             [upstream.slow]\nservers = [\"{slow}\"]\n\
             [upstream.quick]\nservers = [\"{quick}\"]\n\
             [upstream.old]\nservers = [\"{old}\"]\n"
        );
        let (_, service) = site.serve_worker(&plan(&text));
        let mut client = Asking::connect(&site, &service).await;
        client.ask(1, &get("/slow")).await;
        client.ask(2, &get("/quick")).await;
        client.ask(3, &get("/old")).await;
        let quick = client.response(2).await;
        assert!(!client.responses.contains_key(&1), "it came before");
        assert_eq!((quick.status, quick.text()), (200, "quick"));
        assert_eq!(quick.interim, [103]);
        assert_eq!(quick.trailers, ["x-sum:7"]);
        assert_eq!(quick.field("transfer-encoding"), None);
        let old = client.response(3).await;
        assert_eq!((old.status, old.text()), (200, "up to the end"));
        assert_eq!(client.response(1).await.text(), "slow");
        let seen = service.worker.meter.take_seen();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|record| record.end == End::Complete));
    });
}

#[test]
fn bodies_reach_servers_however_they_arrive() {
    on_every_driver(|site| async move {
        let echo = [
            Step::Read,
            send("HTTP/1.1 204 No Content\r\n\r\n"),
            Step::Again,
        ];
        let upstream = site.upstream(&[&echo]);
        let text = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{}\"]\n",
            upstream.address
        );
        let (_, service) = site.serve_worker(&plan(&text));
        let mut client = Asking::connect(&site, &service).await;
        let head = |id, more: &str| {
            let text = format!("POST\n/\nexample.com\nx-a:b\n{more}");
            frame(Frame::Head, id, text.as_bytes())
        };
        let data = |id, bytes: &str| frame(Frame::Data, id, bytes.as_bytes());
        client
            .send(&[
                head(1, "content-length:5\n"),
                data(1, "whole"),
                frame(Frame::End, 1, b""),
            ])
            .await;
        assert_eq!(client.response(1).await.status, 204);
        client.send(&[head(2, ""), data(2, "in ")]).await;
        client.send(&[data(2, "pieces")]).await;
        client.send(&[frame(Frame::End, 2, b"")]).await;
        assert_eq!(client.response(2).await.status, 204);
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
fn failures_of_servers_and_clients_are_told_by_request() {
    for seed in 0..20 {
        on_simulated_core(seed, |site| async move {
            let half = [
                Step::Read,
                send("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nhalf"),
            ];
            let scripts: [&[Step]; 2] = [&half, &[Step::Read, Step::Reset]];
            let [half, dead] = scripts.map(|script| site.upstream(&[script, script]).address);
            let text = format!(
                "[[route]]\npath = \"/half\"\nforward = \"half\"\n\
                 [[route]]\npath = \"/dead\"\nforward = \"dead\"\n\
                 [[route]]\nrespond = {{ status = 200, body = \"well\" }}\n\
                 [upstream.half]\nservers = [\"{half}\"]\n\
                 [upstream.dead]\nservers = [\"{dead}\"]\n"
            );
            let (_, service) = site.serve_worker(&plan(&text));
            let mut client = Asking::connect(&site, &service).await;
            client.ask(1, &get("/half")).await;
            client.ask(2, &get("/dead")).await;
            client.ask(3, &get("/")).await;
            let half = client.response(1).await;
            assert!(half.is_reset && half.text() == "half", "{half:?}");
            assert_eq!(client.response(2).await.status, 502);
            assert_eq!(client.response(3).await.text(), "well");
            client.ask(4, &get("/half")).await;
            drop(client);
            site.core.sleep(std::time::Duration::from_secs(5)).await;
            let seen = service.worker.meter.take_seen();
            assert_eq!(seen.len(), 4, "{seen:?}");
        });
    }
}

#[test]
fn what_is_encoded_is_encoded_for_another_protocol_too() {
    on_every_driver(|site| async move {
        let folder = std::env::temp_dir().join(format!("onrush-coded-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let text = "all work and no play ".repeat(20_000);
        std::fs::write(folder.join("large.txt"), &text).expect("a file");
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        let chunked = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{text}\r\n0\r\nX-Sum: 7\r\n\r\n",
            text.len()
        );
        let script = [Step::Read, send(&response), Step::Read, send(&chunked)];
        let upstream = site.upstream(&[&script]).address;
        let config = format!(
            "compress = true\n\
             [[route]]\npath = \"/files/\"\nfiles = {{ root = \"{}\" }}\n\
             [[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"{text}\" }}\n\
             [[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{upstream}\"]\n",
            folder.display()
        );
        let (_, service) = site.serve_worker(&plan(&config));
        let mut client = Asking::connect(&site, &service).await;
        let asked = ["/files/large.txt", "/fixed", "/", "/"];
        for (id, path) in (1..).zip(asked) {
            let head = format!("{}accept-encoding:gzip\n", get(path));
            client.ask(id, &head).await;
            let response = client.response(id).await;
            assert_eq!(response.field("content-encoding"), Some("gzip"), "{path}");
            assert!(response.is_whole && response.body.len() < text.len() / 10);
            let decoded = decode(Coding::Gzip, &response.body);
            assert!(decoded == text.as_bytes(), "{path}");
            let is_last = id as usize == asked.len();
            assert_eq!(response.trailers.len(), usize::from(is_last), "{path}");
        }
        std::fs::remove_dir_all(&folder).ok();
    });
}

#[test]
fn what_a_route_asks_of_its_requests_it_asks_of_another_protocol_too() {
    on_every_driver(|site| async move {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let script = [Step::Read, send(ok), Step::Again];
        let [app, copies, piped] = [(); 3].map(|()| site.upstream(&[&script]));
        let config = format!(
            "[[route]]\npath = \"/staff\"\nrespond = {{ status = 200, body = \"in\" }}\n\
             basic_auth = {{ realm = \"staff\", users = {{ ali = \"{HASH}\" }} }}\n\
             [[route]]\npath = \"/rare\"\nrespond = {{ status = 200 }}\n\
             rate_limit = {{ key = \"route\", requests = \"1/h\", burst = 0 }}\n\
             [[route]]\npath = \"/synthetic\"\nsynthetic = true\n\
             [[route]]\npath = \"/piped\"\nforward = \"piped\"\n\
             [[route]]\nforward = \"app\"\nmirror = {{ to = \"copies\", share = \"100%\" }}\n\
             request_headers = {{ set = {{ X-Id = \"{{request_id}}\" }} }}\n\
             [upstream.app]\nservers = [\"{}\"]\nsticky = {{ cookie = \"seat\" }}\n\
             [upstream.copies]\nservers = [\"{}\"]\n\
             [upstream.piped]\nservers = [\"{}\"]\npipeline = 4\n",
            app.address, copies.address, piped.address
        );
        let (_, service) = site.serve_worker(&plan(&config));
        let mut client = Asking::connect(&site, &service).await;
        let login = format!(
            "{}authorization:Basic YWxpOm9wZW4gc2VzYW1l\n",
            get("/staff")
        );
        client.ask(1, &login).await;
        client.ask(2, &get("/staff")).await;
        assert_eq!(client.response(1).await.text(), "in");
        assert_eq!(client.response(2).await.status, 401);
        client.ask(3, &get("/rare")).await;
        client.ask(4, &get("/rare")).await;
        assert_eq!(client.response(3).await.status, 200);
        let refused = client.response(4).await;
        assert_eq!(refused.status, 429);
        assert!(refused.field("retry-after").is_some());
        client.ask(5, &get("/")).await;
        let response = client.response(5).await;
        let cookie = response.field("set-cookie").expect("a cookie").to_owned();
        assert!(cookie.starts_with("seat="), "{cookie}");
        let named = cookie.split(';').next().expect("its value");
        client
            .ask(6, &format!("{}cookie:{named}\n", get("/")))
            .await;
        assert_eq!(client.response(6).await.field("set-cookie"), None);
        site.until("copies", || copies.requests().concat().len() == 2)
            .await;
        assert!(app.requests().concat()[0].contains("X-Id: "));
        for id in 10..16 {
            client.ask(id, &get("/piped")).await;
        }
        for id in 10..16 {
            assert_eq!(client.response(id).await.status, 200);
        }
        assert_eq!(piped.requests().concat().len(), 6);
        assert!(piped.connections() < 6, "they share connections");
        // Its body is read before the response.
        let head = "POST\n/synthetic?B=10\nexample.com\n";
        client.send(&[frame(Frame::Head, 7, head.as_bytes())]).await;
        client.send(&[frame(Frame::Data, 7, b"01234")]).await;
        client.ask(8, &get("/synthetic")).await;
        assert_eq!(client.response(8).await.status, 200);
        assert!(!client.responses.contains_key(&7));
        client
            .send(&[frame(Frame::Data, 7, b"56789"), frame(Frame::End, 7, b"")])
            .await;
        assert_eq!(client.response(7).await.status, 200);
    });
}
