//! Upstream groups in which some servers fail: killed, stopped, unreachable, misbehaving. Requests that may be retried
//! are not lost, and the others are counted.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Program, Serve, drivers, onrush, until};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// A load balancer for `servers`; `group` holds further lines of the group.
struct Balancer {
    serve: Serve,
    _directory: TempDir,
}

impl Balancer {
    fn start(servers: &[&str], group: &str, io: &str) -> Balancer {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        let written = |server: &&str| match server.starts_with('{') {
            true => server.to_string(),
            false => format!("{server:?}"),
        };
        let servers: Vec<String> = servers.iter().map(written).collect();
        // Long enough for a busy machine: live servers must not time out, and neither must cleanup by the kernel after
        // a kill (a worker closes io_uring sockets later).
        let text = format!(
            "io = \"{io}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"app\"\n[timeouts]\nconnect = \"2s\"\nupstream_first_byte = \"3s\"\n[upstream.app]\nservers = [{}]\n{group}\n",
            servers.join(", ")
        );
        fs::write(&path, text).expect("it is ours");
        Balancer {
            serve: Serve::start(&["--config", &path.display().to_string()]),
            _directory: directory,
        }
    }

    /// Starts a load of this many requests by ten clients.
    fn load(&self, requests: u64) -> Load {
        self.load_by("GET", requests)
    }

    fn load_by(&self, method: &str, requests: u64) -> Load {
        let directory = tempfile::tempdir().expect("a directory");
        let json = directory.path().join("result.json").display().to_string();
        let (url, requests) = (self.serve.url("/"), requests.to_string());
        let words = ["load", &url, "-n", &requests, "-c", "10", "--json", &json];
        Load {
            program: Program::start(onrush(&words).args(["--method", method])),
            directory,
        }
    }
}

struct Load {
    program: Program,
    directory: TempDir,
}

impl Load {
    /// Waits for the end and returns the number of responses with each status. Every request must have a response.
    fn finish<const N: usize>(self, statuses: [&str; N]) -> [u64; N] {
        let finished = self.program.finish();
        let text = fs::read_to_string(self.directory.path().join("result.json"));
        let text = text.unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(result["errors"].as_u64(), Some(0), "{result}");
        statuses.map(|status| result["statuses"][status].as_u64().unwrap_or(0))
    }
}

fn three_servers() -> [Serve; 3] {
    [(); 3].map(|()| Serve::start(&["--respond", "200:hello", "--threads", "1"]))
}

fn addresses(servers: &[Serve; 3]) -> [&str; 3] {
    servers.each_ref().map(|server| server.address.as_str())
}

/// Sends requests to three servers and kills the second; returns the number of responses of the others and of failures.
fn kill_one(method: &str, requests: u64, group: &str, io: &str) -> [u64; 2] {
    let servers = three_servers();
    let before = servers[1].descriptors();
    let balancer = Balancer::start(&addresses(&servers), group, io);
    let load = balancer.load_by(method, requests);
    until("requests at the server", || {
        (servers[1].descriptors() > before).then_some(())
    });
    servers[1].program.signal(Signal::KILL);
    let [good, failed] = load.finish(["200", "502"]);
    let totals = balancer.serve.stop();
    assert_eq!(
        totals.number_before(" failed upstream"),
        failed,
        "{totals:?}"
    );
    let retried = totals.number_before(" retried");
    assert!(failed + retried > 0, "it was noticed: {totals:?}");
    [good, failed]
}

#[test]
#[ignore = "slow: make test-all"]
fn killed_server_loses_no_request_by_default() {
    const REQUESTS: u64 = 20_000;
    for io in drivers() {
        for group in [
            "",
            "balance = \"random\"",
            "balance = \"least_connections\"",
        ] {
            let outcome = kill_one("GET", REQUESTS, group, io);
            assert_eq!(outcome, [REQUESTS, 0], "{io} {group}");
        }
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn killed_server_loses_no_request_with_any_ejection() {
    const REQUESTS: u64 = 20_000;
    for io in drivers() {
        for group in ["eject = { failures = 3 }", "eject = false"] {
            let outcome = kill_one("GET", REQUESTS, group, io);
            assert_eq!(outcome, [REQUESTS, 0], "{io} {group}");
        }
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn killed_server_loses_only_in_flight_posts() {
    const REQUESTS: u64 = 20_000;
    for io in drivers() {
        let [good, failed] = kill_one("POST", REQUESTS, "", io);
        assert_eq!(good + failed, REQUESTS);
        // Each of the ten clients has one request in flight.
        assert!(failed <= 10, "{failed} by {io}");
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn hung_server_loses_only_its_requests() {
    const REQUESTS: u64 = 2_000;
    for io in drivers() {
        for (retries, lost) in [
            ("retries = 0", 1..=10),
            ("retries = { on = [\"timeout\"] }", 0..=0),
        ] {
            let servers = three_servers();
            // The kernel still accepts connections for it.
            servers[1].program.signal(Signal::STOP);
            let group = format!("eject = {{ failures = 1, time = \"10m\" }}\n{retries}");
            let balancer = Balancer::start(&addresses(&servers), &group, io);
            let [good, timed_out] = balancer.load(REQUESTS).finish(["200", "504"]);
            assert_eq!(good + timed_out, REQUESTS);
            assert!(lost.contains(&timed_out), "{timed_out} of {lost:?}");
            let totals = balancer.serve.stop();
            if timed_out > 0 {
                let counted = format!("{timed_out} failed upstream ({timed_out} timeout)");
                assert!(totals.line.contains(&counted), "{totals:?}");
            }
        }
    }
}

/// The address of an unreachable server: nothing accepts connections, and the backlog is full. It exists as long as the
/// returned value.
fn unreachable_server() -> (String, impl Sized) {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    bind(&socket, &any).expect("a free port");
    listen(&socket, 0).expect("it is bound");
    let address = getsockname(&socket).expect("it is bound");
    let address = SocketAddrV4::try_from(address).expect("of IPv4");
    let second = Duration::from_secs(1);
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address.into(), second) {
        waiting.push(stream);
        assert!(waiting.len() < 100, "there is no room for so many");
    }
    (address.to_string(), (socket, waiting))
}

#[test]
#[ignore = "slow: make test-all"]
fn unreachable_server_loses_no_request() {
    const REQUESTS: u64 = 1_000;
    for io in drivers() {
        for (method, group) in [("GET", ""), ("POST", ""), ("POST", "balance = \"random\"")] {
            let alive = Serve::start(&["--respond", "200:hello", "--threads", "1"]);
            let (gone, _hole) = unreachable_server();
            let balancer = Balancer::start(&[&gone, &alive.address], group, io);
            let load = balancer.load_by(method, REQUESTS);
            assert_eq!(load.finish(["200"]), [REQUESTS], "{method} by {io}");
            let totals = balancer.serve.stop();
            assert_eq!(totals.number_before(" failed upstream"), 0, "{totals:?}");
            // Each of the ten clients reached it at most once before it was ejected.
            let retried = totals.number_before(" retried");
            assert!((1..=10).contains(&retried), "{totals:?}");
        }
    }
}

/// A server that calls `what` for each connection, and then closes it.
fn misbehaving_server(what: fn(&mut TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            what(&mut stream);
        }
    });
    address
}

fn read(stream: &mut TcpStream) {
    let mut request = [0; 4096];
    // Ignore the outcome: the connection ends anyway.
    let _ = stream.read(&mut request);
}

fn say(stream: &mut TcpStream, words: &str) {
    read(stream);
    let _ = stream.write_all(words.as_bytes());
}

#[test]
fn server_failures_are_counted_by_kind() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let refusing = nobody.local_addr().expect("bound").to_string();
    drop(nobody);
    let cases = [
        (refusing, "502", "1 connect"),
        (misbehaving_server(read), "502", "1 reset"),
        // Closing a socket with unread data resets the connection.
        (
            misbehaving_server(|stream| drop(stream.read(&mut [0]))),
            "502",
            "1 reset",
        ),
        (
            misbehaving_server(|stream| say(stream, "SSH-2.0-OpenSSH_10.0\r\n")),
            "502",
            "1 bad answer",
        ),
        (
            misbehaving_server(|stream| {
                say(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
                )
            }),
            "502",
            "1 bad answer",
        ),
        (
            misbehaving_server(|stream| {
                say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            }),
            "200",
            "1 cut off",
        ),
        (
            misbehaving_server(|stream| {
                read(stream);
                // Waits for more data until the connection ends.
                read(stream);
            }),
            "504",
            "1 timeout",
        ),
    ];
    for io in drivers() {
        for (server, status, kind) in &cases {
            let balancer = Balancer::start(&[server], "retries = 0", io);
            let response = balancer.serve.connect().exchange(GET);
            let line = format!("HTTP/1.1 {status} ");
            assert!(response.starts_with(&line), "{kind}: {response}");
            assert_eq!(response.contains("half"), *status == "200", "{response}");
            let totals = balancer.serve.stop();
            let counted = format!("; 1 failed upstream ({kind})");
            assert!(totals.line.contains(&counted), "{totals:?}");
        }
    }
}

#[test]
fn unresolvable_server_is_down() {
    let server = Serve::start(&["--respond", "200:hello"]);
    let (_, port) = server.address.rsplit_once(':').expect("it has a port");
    // RFC 6761: these two names need no DNS server.
    let named = format!("localhost:{port}");
    let balancer = Balancer::start(&["nobody.invalid:80", &named], "", "auto");
    let log = balancer
        .serve
        .program
        .err
        .wait_for("nobody.invalid:80 of app");
    assert!(log.contains("down until that changes"), "{log}");
    for _ in 0..3 {
        let response = balancer.serve.connect().exchange(GET);
        assert!(response.ends_with("hello"), "{response}");
    }
    balancer.serve.stop();
    let backup = format!("{{ address = {:?}, backup = true }}", server.address);
    let balancer = Balancer::start(&["nobody.invalid:80", &backup], "retries = 0", "auto");
    let response = balancer.serve.connect().exchange(GET);
    assert!(response.ends_with("hello"), "{response}");
    balancer.serve.stop();
    let balancer = Balancer::start(&["nobody.invalid:80"], "", "auto");
    let response = balancer.serve.connect().exchange(GET);
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    let totals = balancer.serve.stop();
    assert!(totals.line.contains("(1 no server)"), "{totals:?}");
}

#[test]
fn resolved_server_is_logged_with_address() {
    let server = Serve::start(&["--respond", "200:hello"]);
    let address = server.address.clone();
    let (_, port) = address.rsplit_once(':').expect("it has a port");
    let named = format!("localhost:{port}");
    // The name may have another address on which nothing listens.
    let balancer = Balancer::start(&[&named], "eject = false", "auto");
    let response = balancer.serve.connect().exchange(GET);
    assert!(response.ends_with("hello"), "{response}");
    server.stop();
    let response = balancer.serve.connect().exchange(GET);
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    let log = balancer.serve.program.err.wait_for("the client got 502");
    let both = format!("server {named} (127.0.0.1:{port}): ");
    let other = format!("server {named} ([::1]:{port}): ");
    assert!(log.contains(&both) || log.contains(&other), "{log}");
    balancer.serve.stop();
}
