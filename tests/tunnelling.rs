//! WebSocket through onrush: alone, before and behind HAProxy, and through several instances.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::application::{Application, exchange_over_websocket};
use crate::peer::{Peer, TlsClient, python};
use crate::program::{Client, Program, Serve, drivers};

#[test]
fn websocket_is_tunnelled() {
    let application = Application::start("chat");
    for io in drivers() {
        let serve = Serve::start(&["--forward", &application.address, "--io", io]);
        let mut clients: Vec<_> = (0..3).map(|_| serve.connect()).collect();
        for client in &mut clients {
            exchange_over_websocket(client, "/chat");
        }
        let totals = serve.stop();
        assert_eq!(totals.number_before(" tunnels"), 3, "{totals:?}");
        assert_eq!(totals.requests(), 3, "{totals:?}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn websocket_is_tunnelled_through_haproxy() {
    let application = Application::start("chat");
    let last = Serve::start(&["--forward", &application.address]);
    let middle = Peer::haproxy(&last.address);
    let first = Serve::start(&["--forward", &middle.server()]);
    let front = Peer::haproxy(&first.address);
    exchange_over_websocket(&mut first.connect(), "/");
    exchange_over_websocket(&mut Client::connect(&front.socket), "/");
}

#[test]
fn websocket_is_tunnelled_over_tls() {
    let application = Application::start("chat");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"self-signed\"\n[[route]]\nforward = \"http://{}\"\n",
        application.address
    );
    fs::write(&path, text).expect("it is ours");
    let path = path.display().to_string();
    for io in drivers() {
        let serve = Serve::start(&["--config", &path, "--io", io]);
        let address = serve.address.trim_end_matches(" with TLS");
        exchange_over_websocket(&mut Client(TlsClient::connect(address)), "/chat");
        let totals = serve.stop();
        assert_eq!(totals.number_before(" tunnels"), 1, "{totals:?}");
    }
}

/// Foreign clients and servers.
struct Others {
    program: &'static str,
    directory: TempDir,
}

impl Others {
    /// `None` if they are not installed.
    fn new() -> Option<Others> {
        let packages = "python3-websockets python3-h2 python3-wsproto";
        let program = python(("websockets, h2, wsproto", packages))?;
        let directory = tempfile::tempdir().expect("a directory");
        let others = Others { program, directory };
        fs::write(others.file(), include_str!("tunnelling/websocket.py")).expect("it is ours");
        Some(others)
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("websocket.py")
    }

    fn start(&self, words: &[&str]) -> Program {
        Program::start(Command::new(self.program).arg(self.file()).args(words))
    }

    /// Starts a server and returns its address.
    fn serve(&self) -> (Program, String) {
        let server = self.start(&["server"]);
        server.out.wait_for("listening on port ");
        let said = server.out.wait_for("\n");
        let port = said.lines().next().and_then(|line| line.rsplit(' ').next());
        let target = format!("127.0.0.1:{}", port.expect("it says one"));
        (server, target)
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn websocket_is_tunnelled_over_http2() {
    let Some(others) = Others::new() else {
        return;
    };
    let (_server, target) = others.serve();
    for io in drivers() {
        let serve = Serve::start(&["--forward", &target, "--io", io]);
        let (host, port) = serve.address.rsplit_once(':').expect("of TCP");
        let client = others.start(&["client", host, port]);
        let finished = client.finish();
        assert!(finished.out.contains("done"), "{finished:?}");
        let totals = serve.stop();
        assert_eq!(totals.number_before(" tunnels"), 2, "{totals:?}");
        assert_eq!(totals.requests(), 4, "{totals:?}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn websocket_is_tunnelled_over_http2_upstream() {
    let Some(others) = Others::new() else {
        return;
    };
    let (_server, target) = others.serve();
    for io in drivers() {
        let last = Serve::start(&["--forward", &target, "--io", io]);
        let path = others.directory.path().join("first.toml");
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"up\"\n\
             [upstream.up]\nservers = [\"{}\"]\nprotocol = \"h2\"\n",
            last.address
        );
        fs::write(&path, text).expect("it is ours");
        let path = path.display().to_string();
        let first = Serve::start(&["--config", &path, "--io", io]);
        let (host, port) = first.address.rsplit_once(':').expect("of TCP");
        // Two tunnels each. The HTTP/2 client also sends a request without a tunnel, and one for another protocol,
        // which only the first server sees.
        for client in ["old-client", "client"] {
            let finished = others.start(&[client, host, port]).finish();
            assert!(finished.out.contains("done"), "{finished:?}");
        }
        for (serve, requests) in [(first, 6), (last, 5)] {
            let totals = serve.stop();
            assert_eq!(totals.number_before(" tunnels"), 4, "{totals:?}");
            assert_eq!(totals.requests(), requests, "{totals:?}");
        }
    }
}

#[test]
fn request_loop_is_detected() {
    let directory = tempfile::tempdir().expect("a directory");
    let itself = format!("unix:{}", directory.path().join("socket").display());
    let serve = Serve::start(&["--forward", &itself, "--listen", &itself]);
    let path = directory.path().join("socket");
    let mut client = Client::connect(&path);
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let response = client.receive().expect("a response");
    assert!(
        response.starts_with("HTTP/1.1 508 Loop Detected\r\n"),
        "{response}"
    );
    assert_eq!(serve.stop().requests(), 10);
}
