//! The admin interface of a running server, used by `onrush ctl` and by other clients.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::application::{Application, HoldingServer};
use crate::program::{Client, Finished, Serve, TIMEOUT, drivers, run_onrush, until};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server with an admin interface on a Unix socket.
pub(crate) struct Administered {
    pub(crate) serve: Serve,
    pub(crate) path: PathBuf,
    pub(crate) socket: PathBuf,
    directory: TempDir,
}

impl Administered {
    /// Starts a server with this configuration below `[admin]` and one listener.
    pub(crate) fn start(io: &str, text: &str) -> Administered {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        let socket = directory.path().join("admin.sock");
        let whole = whole(&socket, text);
        fs::write(&path, whole).expect("it is ours");
        let words = [
            "--config",
            &path.display().to_string(),
            "--io",
            io,
            "--threads",
            "2",
        ];
        let serve = Serve::start(&words);
        Administered {
            serve,
            path,
            socket,
            directory,
        }
    }

    pub(crate) fn ctl(&self, words: &[&str]) -> Finished {
        let address = format!("unix:{}", self.socket.display());
        run_onrush(&[&["ctl", "--address", &address], words].concat())
    }

    /// Output of `ctl --json` for this command.
    pub(crate) fn said(&self, what: &str) -> Value {
        let finished = self.ctl(&["--json", what]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        serde_json::from_str(&finished.out).expect("JSON")
    }

    pub(crate) fn client(&self) -> Client<UnixStream> {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        Client(stream)
    }

    /// Status of the response to these bytes.
    fn status(&self, request: &[u8]) -> String {
        let mut client = self.client();
        client.send(request);
        status(&client.receive().expect("a response"))
    }
}

pub(crate) fn whole(socket: &std::path::Path, text: &str) -> String {
    format!(
        "admin = {{ address = \"unix:{}\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n{text}",
        socket.display()
    )
}

fn first_line(body: &str) -> String {
    body.lines().next().unwrap_or_default().to_owned()
}

fn status(response: &str) -> String {
    response
        .split(' ')
        .nth(1)
        .expect("a status line")
        .to_owned()
}

pub(crate) fn responding(body: &str) -> String {
    format!("[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n")
}

#[test]
fn status_counts_are_exact() {
    for io in drivers() {
        let text = format!(
            "[[route]]\npath = \"/missing\"\nrespond = {{ status = 404 }}\n[[route]]\nhost = \"a.example\"\n{}",
            "respond = { status = 200, body = \"hello\" }\n"
        );
        let server = Administered::start(io, &text);
        let (mut kept, mut other) = (server.serve.connect(), server.serve.connect());
        for _ in 0..7 {
            kept.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
            kept.receive().expect("a response");
        }
        other.send(b"GET /missing HTTP/1.1\r\nHost: a.example\r\n\r\nGET /x HTTP/1.1\r\nHost: b.example\r\n\r\n");
        other.receive().expect("a response");
        other.receive().expect("a response");
        let status = server.said("status");
        assert_eq!(status["requests"], 9, "{status}");
        assert_eq!(status["connections"], 2, "{status}");
        assert_eq!(status["in_flight"], 0, "{status}");
        assert_eq!(status["phase"], "ready", "{status}");
        let cores = status["cores"].as_array().expect("cores");
        let numbers: Vec<&Value> = cores.iter().map(|core| &core["core"]).collect();
        assert_eq!(numbers, [0, 1]);
        let routes = server.said("routes");
        let counts = |name: &str| {
            let routes = routes["routes"].as_array().expect("routes");
            let route = routes.iter().find(|route| route["name"] == name);
            let route = route.unwrap_or_else(|| panic!("no {name} in {routes:?}"));
            (route["requests"].clone(), route["responses"]["4xx"].clone())
        };
        assert_eq!(counts("/missing*"), (1.into(), 1.into()));
        assert_eq!(counts("a.example/*"), (7.into(), 0.into()));
        assert_eq!(counts("(none)"), (1.into(), 1.into()));
        // Nine responses, received completely: heads, and seven bodies.
        let listeners = server.said("listeners");
        let listener = &listeners["listeners"][0];
        assert_eq!(listener["duration"]["count"], 9, "{listener}");
        let sent = listener["bytes_sent"].as_u64().expect("a number");
        kept.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let bytes = kept.receive().expect("a response").len() as u64;
        let sent_then = server.said("listeners")["listeners"][0]["bytes_sent"].as_u64();
        assert_eq!(sent_then, Some(sent + bytes));
        server.serve.stop();
        assert!(!server.socket.exists());
    }
}

#[test]
fn server_state_can_be_set() {
    for io in drivers() {
        let (one, two) = (Application::start("one"), Application::start("two"));
        let text = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{}\", \"{}\"]\n",
            one.address, two.address
        );
        let server = Administered::start(io, &text);
        let address = one.address.to_string();
        let bodies = |count: usize| -> Vec<String> {
            let mut bodies: Vec<String> = (0..count)
                .map(|_| first_line(&server.serve.body()))
                .collect();
            bodies.sort_unstable();
            bodies.dedup();
            bodies
        };
        assert_eq!(bodies(20), ["one", "two"]);
        for state in ["drain", "down"] {
            let changed = server.ctl(&["server", "app", &address, state]);
            assert_eq!(
                (changed.code, &*changed.out),
                (Some(0), "changed 1 server\n")
            );
            assert_eq!(bodies(20), ["two"], "{state}");
            // A reload keeps the state.
            assert_eq!(server.ctl(&["reload"]).code, Some(0));
            assert_eq!(bodies(20), ["two"], "{state}, after a reload");
            let groups = server.said("servers");
            let wanted = &groups["groups"][0]["servers"][0]["wanted"];
            assert_eq!(wanted, state, "{groups}");
        }
        // No server is left: a server that is down gets no request, not even as a last resort.
        let both = [address.clone(), two.address.to_string()];
        assert_eq!(
            server.ctl(&["server", "app", &both[1], "down"]).code,
            Some(0)
        );
        let mut client = server.serve.connect();
        client.send(GET);
        assert_eq!(status(&client.receive().expect("a response")), "503");
        for address in &both {
            assert_eq!(server.ctl(&["server", "app", address, "up"]).code, Some(0));
        }
        assert_eq!(bodies(20), ["one", "two"]);
        assert_eq!(
            server
                .ctl(&["server", "app", &address, "--weight", "3"])
                .code,
            Some(0)
        );
        let weighed = server.said("servers");
        assert_eq!(weighed["groups"][0]["servers"][0]["weight"], 3, "{weighed}");
        assert_eq!(
            server
                .ctl(&["server", "app", &address, "--weight", "config"])
                .code,
            Some(0)
        );
        let weighed = server.said("servers");
        assert_eq!(weighed["groups"][0]["servers"][0]["weight"], 1, "{weighed}");
        let unknown = server.ctl(&["server", "app", "192.0.2.1:80", "up"]);
        assert_eq!(unknown.code, Some(1));
        assert!(
            unknown.err.contains("has no server \"192.0.2.1:80\""),
            "{unknown:?}"
        );
    }
}

/// Resets the connection: after an orderly shutdown the client might still expect its response.
fn leave(client: Client<TcpStream>) {
    set_socket_linger(&client.0, Some(Duration::ZERO)).expect("a socket");
}

#[test]
fn requests_are_listed_until_they_end() {
    for io in drivers() {
        let application = HoldingServer::start();
        let text = format!(
            "[[route]]\npath = \"/files\"\nsynthetic = true\n[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{{ address = \"{}\", connections_max = 1 }}]\n",
            application.address
        );
        let server = Administered::start(io, &text);
        let none = server.ctl(&["requests"]);
        assert_eq!(none.out, "no requests in flight\n");
        let mut first = server.serve.connect();
        first.send(b"POST /first?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
        let listed = |count: usize| {
            until("requests under way", || {
                let said = server.said("requests");
                let all = said["requests"].as_array().expect("a list").clone();
                (all.len() == count).then_some(all)
            })
        };
        until("the server's turn", || {
            (listed(1)[0]["state"] == "waiting").then_some(())
        });
        let mut second = server.serve.connect();
        second.send(b"GET /second HTTP/1.1\r\nHost: h\r\n\r\n");
        until("the queue", || {
            let all = listed(2);
            // The oldest comes first.
            let first = (&all[0]["method"], &all[0]["target"], &all[0]["server"]);
            assert_eq!(
                first,
                (
                    &"POST".into(),
                    &"/first?x=1".into(),
                    &application.address.clone().into()
                )
            );
            assert_eq!(all[1]["target"], "/second");
            (all[1]["state"] == "queued" && all[1]["server"] == Value::Null).then_some(())
        });
        let shown = server.ctl(&["requests"]).out;
        assert!(
            shown.contains("POST /first?x=1") && shown.contains("queued"),
            "{shown}"
        );
        assert_eq!(server.said("status")["in_flight"], 2);
        // A request is no longer listed after its client has left.
        leave(first);
        leave(second);
        listed(0);
        let mut slow = server.serve.connect();
        slow.send(b"GET /files?t=60000 HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(listed(1)[0]["state"], "responding");
        leave(slow);
        listed(0);
    }
}

#[test]
fn ctl_commands_match_signals() {
    let server = Administered::start("auto", &responding("one"));
    fs::write(&server.path, whole(&server.socket, &responding("two"))).expect("it is ours");
    let reloaded = server.ctl(&["reload"]);
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    assert!(
        reloaded
            .out
            .starts_with("generation 2 is in force\n  route[1].respond.body: \"one\" -> \"two\"\n"),
        "{reloaded:?}"
    );
    assert_eq!(server.serve.body(), "two");
    let shown = server.ctl(&["config"]);
    assert!(
        shown.out.contains("in force as generation 2") && shown.out.contains("body = \"two\""),
        "{shown:?}"
    );
    fs::write(&server.path, "nonsense").expect("it is ours");
    let refused = server.ctl(&["reload"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused
            .err
            .contains("was rejected, generation 2 stays in force"),
        "{refused:?}"
    );
    let refused = server.ctl(&["upgrade"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("failed to start serving"),
        "{refused:?}"
    );
    // Health checks of load balancers fail before anything ends.
    let ready = || server.status(b"GET /ready HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(ready(), "200");
    assert_eq!(server.ctl(&["drain"]).out, "draining\n");
    assert_eq!(ready(), "503");
    assert_eq!(server.serve.body(), "two", "it goes on");
    assert_eq!(server.ctl(&["undrain"]).out, "ready\n");
    assert_eq!(ready(), "200");
    fs::write(&server.path, whole(&server.socket, &responding("three"))).expect("it is ours");
    let upgraded = server.ctl(&["upgrade"]);
    assert_eq!(upgraded.code, Some(0), "{upgraded:?}");
    // The next process binds the socket as soon as its predecessor has released it.
    until("the next process", || {
        let status = server.ctl(&["--json", "status"]);
        let said: Value = serde_json::from_str(&status.out).ok()?;
        (said["process"] != server.serve.program.pid()).then_some(())
    });
    assert_eq!(server.serve.body(), "three");
    assert_eq!(server.ctl(&["stop"]).code, Some(0));
    until("the end of both", || {
        TcpStream::connect(&server.serve.address)
            .is_err()
            .then_some(())
    });
    let address = format!("unix:{}", server.socket.display());
    let nobody = || run_onrush(&["ctl", "--address", &address, "status"]).code;
    until("the end of the interface", || {
        (nobody() == Some(2)).then_some(())
    });
    assert_eq!(server.serve.program.finish().code, Some(0));
}

#[test]
fn tcp_interface_requires_token() {
    let directory = tempfile::tempdir().expect("a directory");
    let (serve, address, file) = administered_by_tcp(directory.path());
    let ask = |request: String| {
        let stream = TcpStream::connect(&address).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        let mut client = Client(stream);
        client.send(request.as_bytes());
        status(&client.receive().expect("a response"))
    };
    let with =
        |path: &str, fields: &str| ask(format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(with("/v1/status", &right), "200");
    assert_eq!(with("/v1/status", ""), "401");
    assert_eq!(
        with(
            "/metrics",
            &format!("Authorization: Bearer {}\r\n", TOKEN.replace('0', "1"))
        ),
        "401"
    );
    assert_eq!(with("/ready", ""), "200", "balancers have no token");
    // A page of another site, by its own name or by a name that resolves to this host.
    assert_eq!(
        with(
            "/v1/status",
            &format!("{right}Origin: http://evil.example\r\n")
        ),
        "403"
    );
    assert_eq!(with("/ready", "Sec-Fetch-Site: cross-site\r\n"), "403");
    let stop = format!(
        "POST /v1/stop HTTP/1.1\r\nHost: h\r\nOrigin: null\r\n{right}Content-Length: 0\r\n\r\n"
    );
    assert_eq!(ask(stop), "403");
    let words = [
        "ctl",
        "--address",
        &address,
        "--token-file",
        &file,
        "status",
    ];
    assert_eq!(run_onrush(&words).code, Some(0));
    let without = run_onrush(&["ctl", "--address", &address, "status"]);
    assert_eq!(without.code, Some(1));
    assert!(
        without.err.contains("expected Authorization: Bearer"),
        "{without:?}"
    );
    assert_eq!(serve.body(), "hello");
    serve.stop();
}

/// A server with an admin interface on a TCP address, that address, and its token file.
pub(crate) fn administered_by_tcp(directory: &std::path::Path) -> (Serve, String, String) {
    let token = directory.join("token");
    fs::write(&token, format!("{TOKEN}\n")).expect("it is ours");
    let path = directory.join("onrush.toml");
    let text = format!(
        "admin = {{ address = \"127.0.0.1:0\", token_file = \"token\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n{}",
        responding("hello")
    );
    fs::write(&path, text).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string()]);
    let greeting = serve.program.out.wait_for("  admin interface on ");
    let address = greeting
        .lines()
        .find_map(|line| line.strip_prefix("  admin interface on "));
    let address = address.expect("it was said").to_owned();
    (serve, address, token.display().to_string())
}

/// Receives everything that a client sends, and responds with success.
fn received_by(listener: &std::net::TcpListener) -> String {
    let mut heard = Vec::new();
    let (mut stream, _) = listener.accept().expect("a client");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    let mut piece = [0; 4096];
    while !heard.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut piece).expect("more of the request");
        assert!(count > 0, "the client went away");
        heard.extend_from_slice(&piece[..count]);
    }
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    stream.write_all(response).expect("it is taken");
    // Everything up to the end of the stream.
    stream.read_to_end(&mut heard).expect("an orderly end");
    String::from_utf8_lossy(&heard).into_owned()
}

#[test]
fn token_is_sent_to_admin_interfaces_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    fs::write(&token, format!("{TOKEN}\n")).expect("it is ours");
    let token = token.display().to_string();
    let serve = Serve::start(&["--respond", "200"]);
    let verbs: &[&[&str]] = &[
        &["ctl", "status"],
        &["ctl", "servers"],
        &["ctl", "server", "app", "10.0.0.1:80", "drain"],
        &["ctl", "requests"],
        &["ctl", "connections"],
        &["ctl", "profile"],
        &["ctl", "routes"],
        &["ctl", "listeners"],
        &["ctl", "config"],
        &["ctl", "events"],
        &["ctl", "events", "--follow"],
        &["ctl", "log", "level", "debug"],
        &["ctl", "metrics"],
        &["ctl", "explain", "GET http://h/"],
        &["ctl", "reload"],
        &["ctl", "upgrade"],
        &["ctl", "drain"],
        &["ctl", "undrain"],
        &["ctl", "stop"],
        &["ctl", "--json", "stop"],
        &["top", "--once"],
    ];
    for verb in verbs {
        let to = |address: &str| {
            let place = ["--address", address, "--token-file", &token];
            let finished = run_onrush(&[*verb, &place].concat());
            assert_eq!(finished.code, Some(2), "{verb:?}: {finished:?}");
            let why = "not an admin interface of this version of Onrush";
            assert!(finished.err.contains(why), "{verb:?}: {finished:?}");
            assert!(finished.out.is_empty(), "{verb:?}: {finished:?}");
        };
        to(&serve.address);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let listening = std::thread::spawn(move || received_by(&listener));
        to(&address);
        let heard = listening.join().expect("it heard one request");
        assert!(heard.starts_with("GET /ready HTTP/1.1\r\n"), "{heard}");
        assert!(
            !heard.contains(TOKEN) && !heard.contains("Authorization"),
            "{heard}"
        );
    }
    serve.stop();
}

#[test]
fn authenticated_client_connects_at_connection_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let (serve, address, file) = administered_by_tcp(directory.path());
    let connect = || {
        let stream = TcpStream::connect(&address).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        Client(stream)
    };
    let right =
        format!("GET /v1/status HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    // An authenticated client, which stays connected.
    let mut kept = connect();
    kept.send(right.as_bytes());
    assert_eq!(status(&kept.receive().expect("a response")), "200");
    let began = [
        "",
        "GET /v1/status HTTP/1.1\r\nHost: h\r\n",
        "GET /ready HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n",
        "GET /ready HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: h\r\n\r\n",
    ];
    let mut strangers = Vec::new();
    for round in 0..10 {
        for began in began.iter().cycle().take(40) {
            let mut stranger = connect();
            // Ignore the error: the server may already have closed the connection in favour of another.
            let _ = stranger.0.write_all(began.as_bytes());
            strangers.push(stranger);
        }
        let words = [
            "ctl",
            "--address",
            &address,
            "--token-file",
            &file,
            "status",
        ];
        let asked = run_onrush(&words);
        assert_eq!(asked.code, Some(0), "round {round}: {asked:?}");
    }
    kept.send(right.as_bytes());
    assert_eq!(status(&kept.receive().expect("a response")), "200");
    assert_eq!(serve.body(), "hello");
    drop(strangers);
    serve.stop();
}

#[test]
fn probes_are_answered_when_connections_are_exhausted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (serve, address, _) = administered_by_tcp(directory.path());
    let connect = || {
        let stream = TcpStream::connect(&address).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        Client(stream)
    };
    let ask = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n")
    };
    let holders: Vec<_> = (0..16)
        .map(|_| {
            let mut holder = connect();
            holder.send(ask("/v1/status").as_bytes());
            assert_eq!(status(&holder.receive().expect("a response")), "200");
            holder
        })
        .collect();
    for (path, expected) in [("/live", "200"), ("/ready", "200"), ("/v1/status", "503")] {
        let mut client = connect();
        client.send(ask(path).as_bytes());
        let response = client.receive().expect("a response");
        assert_eq!(status(&response), expected, "{path}");
    }
    // Silent clients do not use up the connections for probes.
    let silent: Vec<_> = (0..20).map(|_| connect()).collect();
    let mut client = connect();
    client.send(ask("/ready").as_bytes());
    assert_eq!(status(&client.receive().expect("a response")), "200");
    drop((silent, holders));
    serve.stop();
}

#[test]
fn malformed_admin_requests_are_refused() {
    let server = Administered::start("auto", &responding("hello"));
    let long = "x".repeat(20_000);
    for (request, expected) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (format!("GET /{long} HTTP/1.1\r\nHost: h\r\n\r\n"), "414"),
        (
            "GET /v2/status HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "404",
        ),
        (
            "GET /v1/reload HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "405",
        ),
        (
            "DELETE /v1/servers HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "405",
        ),
        (
            "POST /v1/servers HTTP/1.1\r\nHost: h\r\nContent-Length: 10485760\r\n\r\n".to_owned(),
            "413",
        ),
        (
            "POST /v1/servers HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            "411",
        ),
        (
            "POST /v1/servers HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
            "400",
        ),
        (
            "GET /v1/profile?core=1 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "GET /v1/live?interval=5s HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n"
                .to_owned(),
            "400",
        ),
        (
            "GET /v1/connections?limit=1&limit=2 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "POST /v1/reload HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
            "400",
        ),
        (
            "GET /ready?verbose HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "200",
        ),
    ] {
        assert_eq!(
            server.status(request.as_bytes()),
            expected,
            "{}",
            &request[..30]
        );
    }
    // A client that opens many connections, sends requests and reads nothing.
    let stuck: Vec<UnixStream> = (0..200)
        .map(|_| {
            let mut stream = UnixStream::connect(&server.socket).expect("it listens");
            // Ignore the error: the server may have closed it.
            let _ = stream.write_all(&b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n".repeat(100));
            stream
        })
        .collect();
    assert_eq!(server.serve.body(), "hello");
    let crowded = server.ctl(&["status"]);
    assert!(matches!(crowded.code, Some(1 | 2)), "{crowded:?}");
    drop(stuck);
    until("room", || {
        (server.ctl(&["status"]).code == Some(0)).then_some(())
    });
    // Several requests on one connection, in one packet.
    let mut client = server.client();
    let questions = b"GET /live HTTP/1.1\r\nHost: h\r\n\r\nHEAD /ready HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    client.send(questions);
    let mut all = String::new();
    client.0.read_to_string(&mut all).expect("two responses");
    assert_eq!(all.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{all}");
    assert!(all.ends_with("\r\n\r\n"), "HEAD has no body: {all}");
}

#[test]
fn global_options_are_accepted_anywhere() {
    let server = Administered::start("epoll", &responding("hello"));
    let address = format!("unix:{}", server.socket.display());
    for words in [
        &["--address", &address, "--json", "connections"][..],
        &["connections", "--json", "--address", &address],
        &["--json", "connections", "--address", &address],
        &["--address", &address, "log", "--json", "level"],
        &["log", "level", "--address", &address, "--json"],
    ] {
        let said = run_onrush(&[&["ctl"], words].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.starts_with('{'), "{words:?}: {said:?}");
    }
    for (words, why) in [
        (
            &["--address", &address, "status", "--pid", "1"][..],
            "--address and --pid both select a server",
        ),
        (
            &["--token-file", "token", "status"],
            "--token-file needs --address",
        ),
    ] {
        let said = run_onrush(&[&["ctl"], words].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains(why), "{said:?}");
    }
}

#[test]
fn missing_socket_file_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("web.sock");
    let text = format!(
        "[[listen]]\naddress = \"unix:{}\"\n{}",
        path.display(),
        responding("hello")
    );
    let server = Administered::start("epoll", &text);
    assert_eq!(server.said("status")["sockets_gone"], json!([]));
    fs::remove_file(&path).expect("it is there");
    let name = format!("unix:{}", path.display());
    assert_eq!(server.said("status")["sockets_gone"], json!([name]));
    let shown = server.ctl(&["status"]).out;
    assert!(
        shown.contains(&format!("the socket file {name} is gone")),
        "{shown}"
    );
    let log = server
        .serve
        .program
        .err
        .wait_for("no client can connect to it");
    assert!(log.contains(&name), "{log}");
    let events = server.said("events");
    assert_eq!(events["events"][0]["event"], "socket_gone", "{events}");
    // The file that now has the name is not removed.
    fs::write(&path, "another's").expect("it is ours");
    assert_eq!(server.said("status")["sockets_gone"], json!([name]));
    server.serve.stop();
    assert!(path.exists());
}

#[test]
fn connection_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let server = Administered::start("auto", &responding("hello"));
    let everybody = fs::Permissions::from_mode(0o777);
    for path in [server.directory.path(), &server.socket] {
        fs::set_permissions(path, everybody.clone()).expect("it is ours");
    }
    let mut ask = std::process::Command::new("setpriv");
    let socket = server.socket.display().to_string();
    ask.args([
        "--reuid=65534",
        "--clear-groups",
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
    ]);
    ask.args(["--unix-socket", &socket, "http://h/v1/status"]);
    let asked = ask.output().expect("curl and setpriv are there");
    assert_eq!(String::from_utf8_lossy(&asked.stdout), "403");
    assert_eq!(server.ctl(&["status"]).code, Some(0), "root is not");
}

#[test]
fn metrics_are_exact_and_well_formed() {
    let server = Administered::start("auto", &responding("hello"));
    let mut client = server.serve.connect();
    for _ in 0..50 {
        client.send(GET);
        client.receive().expect("a response");
    }
    let metrics = server.ctl(&["metrics"]).out;
    let value = |name: &str| {
        let line = metrics
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {metrics}"));
        line.rsplit(' ')
            .next()
            .and_then(|number| number.parse::<f64>().ok())
            .expect("a number")
    };
    assert_eq!(
        value("onrush_route_requests_total{route=\"/*\",code=\"2xx\"}"),
        50.0
    );
    assert_eq!(
        value("onrush_route_duration_seconds_count{route=\"/*\"}"),
        50.0
    );
    assert_eq!(
        value("onrush_route_duration_seconds_bucket{route=\"/*\",le=\"+Inf\"}"),
        50.0
    );
    assert_eq!(value("onrush_cores_silent"), 0.0);
    assert_eq!(value("onrush_config_generation"), 1.0);
    // Bucket counts increase, and each family has its type before its first value.
    let mut typed = Vec::new();
    let (mut series, mut last) = (String::new(), 0.0);
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            typed.push(rest.split(' ').next().expect("a name").to_owned());
        } else if !line.starts_with('#') {
            let (name, number) = line.rsplit_once(' ').expect("a value");
            let number: f64 = number.parse().expect("a number");
            let family = name.split('{').next().expect("a name");
            let is_typed = |family: &str| typed.iter().any(|typed| typed == family);
            let stem = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| family.strip_suffix(end));
            assert!(is_typed(family) || stem.is_some_and(is_typed), "{line}");
            if let Some((before, _)) = name.split_once("le=") {
                last = if before == series { last } else { 0.0 };
                assert!(number >= last, "{line} after {last}");
                (series, last) = (before.to_owned(), number);
            }
        }
    }
    let mut open = server.client();
    open.send(b"GET /metrics HTTP/1.1\r\nHost: h\r\nAccept: application/openmetrics-text\r\n\r\n");
    let text = open.receive().expect("a response");
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(
        text.contains("# TYPE onrush_route_requests counter\n"),
        "{text}"
    );
}

#[test]
fn default_admin_interface_exists() {
    let serve = Serve::start(&["--respond", "200:hello", "--listen", "127.0.0.1:0"]);
    let process = serve.program.pid().to_string();
    let status = run_onrush(&["ctl", "--pid", &process, "--json", "status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let said: Value = serde_json::from_str(&status.out).expect("JSON");
    assert_eq!(said["process"], json!(serve.program.pid()));
    let refused = run_onrush(&["ctl", "--pid", &process, "reload"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("without --config FILE"), "{refused:?}");
    serve.stop();
    let gone = run_onrush(&["ctl", "--pid", &process, "status"]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
}
