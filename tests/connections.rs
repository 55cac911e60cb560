//! `onrush ctl connections`: the listed state of connections of every kind while they are open.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::administering::Administered;
use crate::application::{Application, HoldingServer, open_websocket};
use crate::peer::TlsClient;
use crate::program::{Client, TIMEOUT, drivers, until};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
/// More than the kernel buffers for a client that does not read.
const BULK: &[u8] = b"GET /bulk?s=100m HTTP/1.1\r\nHost: h\r\n\r\n";
const HEADER: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n";

/// Three listeners: plain, with TLS, and with the PROXY protocol.
fn configuration(application: &str, holding: &str) -> String {
    format!(
        "name = \"public\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\nname = \"secure\"\ntls = \"self-signed\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\nname = \"behind\"\nproxy_protocol = true\n\
         [[route]]\npath = \"/bulk\"\nsynthetic = true\n\
         [[route]]\npath = \"/chat\"\nforward = \"http://{application}\"\n\
         [[route]]\npath = \"/held\"\nforward = \"http://{holding}\"\n\
         [[route]]\nrespond = {{ status = 200, body = \"hello\" }}\n\
         [timeouts]\ntls_handshake = \"10m\"\nclient_head = \"10m\"\nclient_idle = \"10m\"\nclient_send = \"10m\"\ndrain = \"10m\"\n"
    )
}

fn addresses(server: &Administered) -> Vec<String> {
    let mut lines = server.serve.start_up_lines.lines();
    let line = lines.find_map(|line| line.strip_prefix("  listening on "));
    let all = line.expect("it listens").split(", ");
    all.map(|address| address.split(' ').next().unwrap_or("").to_owned())
        .collect()
}

fn connect(address: &str) -> Client<TcpStream> {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    Client(stream)
}

fn local(client: &Client<TcpStream>) -> SocketAddr {
    client.0.local_addr().expect("connected")
}

impl Administered {
    /// The response for these filters.
    fn connections(&self, words: &[&str]) -> Value {
        let finished = self.ctl(&[&["--json", "connections"], words].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        serde_json::from_str(&finished.out).expect("JSON")
    }

    /// Waits for the only connection that these filters match.
    fn connection(&self, words: &[&str]) -> Value {
        until(&format!("one connection by {words:?}"), || {
            let said = self.connections(words);
            (said["matching"] == 1).then(|| said["connections"][0].clone())
        })
    }

    fn matching(&self, words: &[&str]) -> u64 {
        self.connections(words)["matching"]
            .as_u64()
            .expect("a number")
    }
}

#[test]
fn connections_of_each_kind_are_listed() {
    let (application, holding) = (Application::start("chat"), HoldingServer::start());
    for io in drivers() {
        let text = configuration(&application.address, &holding.address);
        let server = Administered::start(io, &text);
        let [public, secure, behind] = &addresses(&server)[..] else {
            panic!("three addresses in {}", server.serve.start_up_lines);
        };
        // Idle, after three requests.
        let mut idle = connect(public);
        for _ in 0..3 {
            idle.send(GET);
            idle.receive().expect("a response");
        }
        let one = server.connection(&["--state", "idle"]);
        assert_eq!(one["listener"], "public", "{one}");
        assert_eq!(one["requests"], 3, "{one}");
        assert_eq!(one["bytes_in"], 3 * GET.len(), "{one}");
        assert_eq!(one["peer"], local(&idle).to_string(), "{one}");
        assert_eq!(
            (&one["client"], &one["introduced"]),
            (&one["peer"], &false.into())
        );
        assert_eq!(
            (&one["protocol"], &one["tls"]),
            (&"HTTP/1".into(), &Value::Null)
        );
        assert_eq!(one["request"], Value::Null, "{one}");
        // Ages have a resolution of 17 ms, and the oldest must come first.
        server.connection(&["--older", "50ms"]);
        // A client that does not read.
        let mut slow = connect(public);
        slow.send(BULK);
        let one = server.connection(&["--state", "sending"]);
        assert_eq!(
            (&one["peer"], &one["requests"]),
            (&local(&slow).to_string().into(), &1.into())
        );
        assert_eq!(one["request"]["target"], "/bulk?s=100m", "{one}");
        assert_eq!(
            server.connection(&["--sort", "bytes", "--limit", "1", "--state", "sending"])["id"],
            one["id"]
        );
        // A request that waits for its server.
        let mut held = connect(public);
        held.send(b"GET /held HTTP/1.1\r\nHost: h\r\n\r\n");
        let its_server = holding.next();
        let one = server.connection(&["--state", "request"]);
        assert_eq!(one["request"]["state"], "waiting", "{one}");
        let requests = server.said("requests");
        let mut requests = requests["requests"].as_array().expect("a list").iter();
        assert!(
            requests
                .any(|request| request["connection"] == one["id"] && request["target"] == "/held")
        );
        // Half a head, a tunnel, a stalled handshake, TLS, and a client of a proxy.
        let mut half = connect(public);
        half.send(b"GET / HTT");
        server.connection(&["--state", "head"]);
        let mut tunnel = connect(public);
        open_websocket(&mut tunnel, "/chat");
        let one = server.connection(&["--state", "tunnel"]);
        assert_eq!(one["request"]["state"], "tunnel", "{one}");
        let mut hung = connect(secure);
        hung.send(b"\x16\x03\x01");
        let one = server.connection(&["--state", "handshake"]);
        assert_eq!(
            (&one["listener"], &one["tls"]),
            (&"secure".into(), &Value::Null)
        );
        let mut encrypted = Client(TlsClient::connect(secure));
        encrypted.0.write_all(GET).expect("it is taken");
        let one = server.connection(&["--listener", "secure", "--state", "idle"]);
        assert_eq!(one["tls"]["version"], "TLSv1.3", "{one}");
        assert!(
            one["tls"]["cipher"]
                .as_str()
                .is_some_and(|name| name.starts_with("TLS_")),
            "{one}"
        );
        let mut silent = connect(behind);
        server.connection(&["--state", "introduction"]);
        silent.send(HEADER);
        silent.send(GET);
        silent.receive().expect("a response");
        let one = server.connection(&["--client", "192.0.2.0/24"]);
        assert_eq!(
            (&one["client"], &one["introduced"]),
            (&"192.0.2.7:56324".into(), &true.into())
        );
        assert_eq!(one["peer"], local(&silent).to_string(), "{one}");
        // All of them, the oldest first, limited to the requested number.
        let said = server.connections(&["--limit", "2"]);
        assert_eq!((&said["open"], &said["not_listed"]), (&8.into(), &6.into()));
        assert_eq!(said["connections"][0]["peer"], local(&idle).to_string());
        assert_eq!(server.matching(&["--older", "1h"]), 0);
        assert_eq!(server.matching(&["--listener", "public"]), 5);
        assert_eq!(server.matching(&["--client", "127.0.0.1"]), 8);
        let shown = server.ctl(&["connections"]).out;
        assert!(shown.contains("8 of 8 open connections\n"), "{shown}");
        assert!(
            shown.lines().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
        // A reload changes none of them; a stop keeps the busy ones.
        assert_eq!(server.ctl(&["reload"]).code, Some(0));
        assert_eq!(server.matching(&[]), 8);
        server.connection(&["--state", "tunnel"]);
        assert_eq!(server.ctl(&["stop"]).code, Some(0));
        until("idle connections to end", || {
            (server.matching(&["--state", "idle"]) == 0).then_some(())
        });
        server.connection(&["--state", "tunnel"]);
        server.connection(&["--state", "request"]);
        drop((
            idle, slow, held, its_server, half, tunnel, hung, encrypted, silent,
        ));
    }
}

#[test]
fn invalid_connection_filters_are_refused() {
    let server = Administered::start("epoll", "[[route]]\nrespond = { status = 200 }\n");
    assert_eq!(
        server.ctl(&["connections"]).out,
        "none of 0 open connections\n"
    );
    for (words, why) in [
        (
            ["--state", "busy"],
            "state: \"busy\" is not a state: expected one of introduction, ",
        ),
        (
            ["--client", "me"],
            "client: \"me\" is not a network: expected",
        ),
        (
            ["--older", "10"],
            "older: \"10\" is not a duration: expected",
        ),
        (
            ["--sort", "name"],
            "sort: \"name\" is not an order: expected age, idle, bytes or requests",
        ),
        (
            ["--limit", "0"],
            "limit: \"0\": expected a number from 1 to 1000",
        ),
        (
            ["--listener", "secure"],
            "listener: unknown listener \"secure\": expected one of 127.0.0.1:",
        ),
    ] {
        let finished = server.ctl(&[&["connections"][..], &words].concat());
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.err.contains(why), "{finished:?}");
    }
}

#[test]
fn profile_counts_work_by_kind() {
    let application = Application::start("app");
    for io in drivers() {
        let text = format!(
            "[[route]]\npath = \"/far\"\nforward = \"http://{}\"\n[[route]]\nrespond = {{ status = 200 }}\n",
            application.address
        );
        let server = Administered::start(io, &text);
        let mut client = server.serve.connect();
        for request in [GET, b"GET /far HTTP/1.1\r\nHost: h\r\n\r\n", GET] {
            client.send(request);
            client.receive().expect("a response");
        }
        let profile = server.said("profile");
        let figures = |whose: &Value, name: &str| {
            let mut works = whose["work"].as_array().expect("a list").iter();
            works
                .find(|work| work["work"] == name)
                .cloned()
                .unwrap_or_default()
        };
        let all = &profile["all"];
        assert_eq!(
            figures(all, "accept")["calls"]
                .as_u64()
                .map(|calls| calls > 0),
            Some(true),
            "{all}"
        );
        // Each of the three requests has woken its connection, and so has the response of the server.
        assert!(figures(all, "client")["calls"].as_u64() >= Some(3), "{all}");
        assert!(figures(all, "server")["calls"].as_u64() >= Some(1), "{all}");
        assert_eq!(figures(all, "TLS handshake"), Value::Null);
        let cores = profile["cores"].as_array().expect("cores");
        assert_eq!(cores.len(), 2);
        let sum: u64 = cores
            .iter()
            .filter_map(|core| figures(core, "client")["calls"].as_u64())
            .sum();
        assert_eq!(Some(sum), figures(all, "client")["calls"].as_u64());
        for core in cores.iter().chain([all]) {
            let works = core["work"].as_array().expect("a list").iter();
            let time: f64 = works.filter_map(|work| work["time"].as_f64()).sum();
            let elapsed = core["elapsed"].as_f64().expect("a number");
            assert!((time - elapsed).abs() < 1e-6, "{core}");
        }
        // An interval contains only what happened since its beginning.
        let between = server.ctl(&["--json", "profile", "--interval", "1ms"]);
        let between: Value = serde_json::from_str(&between.out).expect("JSON");
        assert_eq!(figures(&between["all"], "client"), Value::Null, "{between}");
        assert!(
            figures(&between["all"], "mail")["calls"].as_u64() >= Some(1),
            "{between}"
        );
        let shown = server.ctl(&["profile", "--core", "1"]).out;
        assert!(shown.starts_with("core 1: "), "{shown}");
        assert!(
            shown.lines().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
        assert_eq!(server.ctl(&["profile", "--core", "2"]).code, Some(1));
    }
}
