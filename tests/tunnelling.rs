//! WebSocket through onrush: alone, before HAProxy and behind it, and through several of its own kind.

use std::fs;
use std::process::Command;

use crate::application::{Application, say_hello};
use crate::peer::{Peer, Secured, python};
use crate::program::{Client, Program, Serve, drivers};

#[test]
fn a_conversation_over_websocket_goes_through() {
    let application = Application::start("chat");
    for io in drivers() {
        let serve = Serve::start(&["--forward", &application.address, "--io", io]);
        let mut clients: Vec<_> = (0..3).map(|_| serve.connect()).collect();
        for client in &mut clients {
            say_hello(client, "/chat");
        }
        let totals = serve.stop();
        assert_eq!(totals.number_before(" tunnels"), 3, "{totals:?}");
        assert_eq!(totals.requests(), 3, "{totals:?}");
    }
}

#[test]
fn a_conversation_over_websocket_goes_through_haproxy_and_several_of_us() {
    let application = Application::start("chat");
    let last = Serve::start(&["--forward", &application.address]);
    let middle = Peer::haproxy(&last.address);
    let first = Serve::start(&["--forward", &middle.server()]);
    let front = Peer::haproxy(&first.address);
    say_hello(&mut first.connect(), "/");
    say_hello(&mut Client::connect(&front.socket), "/");
}

#[test]
fn a_conversation_over_websocket_goes_through_tls() {
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
        say_hello(&mut Client(Secured::connect(address)), "/chat");
        let totals = serve.stop();
        assert_eq!(totals.number_before(" tunnels"), 1, "{totals:?}");
    }
}

#[test]
fn a_conversation_over_websocket_goes_through_http_2() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("websocket.py");
    fs::write(&file, include_str!("tunnelling/websocket.py")).expect("it is ours");
    let packages = "python3-websockets python3-h2 python3-wsproto";
    let Some(program) = python(("websockets, h2, wsproto", packages)) else {
        return;
    };
    let python = |words: &[&str]| Program::start(Command::new(program).arg(&file).args(words));
    let server = python(&["server"]);
    server.out.wait_for("listening on port ");
    let said = server.out.wait_for("\n");
    let port = said.lines().next().and_then(|line| line.rsplit(' ').next());
    let target = format!("127.0.0.1:{}", port.expect("it says one"));
    for io in drivers() {
        let serve = Serve::start(&["--forward", &target, "--io", io]);
        let (host, port) = serve.address.rsplit_once(':').expect("of TCP");
        let client = python(&["client", host, port]);
        let finished = client.finish();
        assert!(finished.out.contains("done"), "{finished:?}");
        let totals = serve.stop();
        assert_eq!(totals.number_before(" tunnels"), 2, "{totals:?}");
        assert_eq!(totals.requests(), 4, "{totals:?}");
    }
}

#[test]
fn a_request_in_a_loop_is_stopped() {
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
