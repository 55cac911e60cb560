//! Concurrent requests: their limit, and that each releases its slot however it ends.

use std::fs;
use std::io::Write;
use std::net::Shutdown;

use crate::application::HoldingServer;
use crate::program::{Client, Serve, drivers, until};

/// The response to a request that is not held.
fn now(serve: &Serve) -> String {
    let request = b"GET /now HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    serve.connect().exchange(request)
}

/// A client whose non-idempotent request the application has received and holds.
fn hold(
    serve: &Serve,
    application: &HoldingServer,
) -> (Client<std::net::TcpStream>, std::net::TcpStream) {
    let mut client = serve.connect();
    client
        .send(b"POST /held HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    (client, application.next())
}

fn is_refused(serve: &Serve) {
    let response = now(serve);
    assert!(response.starts_with("HTTP/1.1 429 "), "{response}");
    let wait = response.split("\r\nRetry-After: ").nth(1).expect("when");
    let wait = wait.split("\r\n").next().expect("split gives one");
    assert!(wait.parse::<u32>().is_ok_and(|wait| wait > 0), "{response}");
}

/// Waits until a slot is free: it may be released a moment after the client has the response.
fn is_let_in(serve: &Serve) {
    until("a place", || {
        let response = now(serve);
        let is_refused = response.starts_with("HTTP/1.1 429 ");
        assert!(
            is_refused || response.starts_with("HTTP/1.1 200 "),
            "{response}"
        );
        (!is_refused).then_some(())
    });
}

#[test]
fn concurrency_slot_is_always_released() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    for driver in drivers() {
        let application = HoldingServer::start();
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
            [[route]]\nrate_limit = {{ concurrent = 2, key = \"route\" }}\nforward = \"app\"\n\
            [upstream.app]\nservers = [\"{}\"]\nretries = 0\n",
            application.address
        );
        fs::write(&path, text).expect("it is ours");
        let serve = Serve::start(&["--config", &path.display().to_string(), "--io", driver]);
        let hold = || hold(&serve, &application);
        is_let_in(&serve);
        let (mut one, mut its_server) = hold();
        is_let_in(&serve);
        let (other, mut others_server) = hold();
        is_refused(&serve);

        // The request succeeds.
        its_server
            .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .expect("it is taken");
        let response = one.receive().expect("a response");
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
        is_let_in(&serve);
        let (mut one, its_server) = hold();
        is_refused(&serve);

        // Its client leaves, which the server notices when it has something to send.
        other.0.shutdown(Shutdown::Both).expect("it is connected");
        drop(other);
        others_server
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
            .expect("it is taken");
        while others_server.write_all(&[b'x'; 4096]).is_ok() {}
        is_let_in(&serve);
        let (mut other, others_server) = hold();
        is_refused(&serve);

        // Its server fails, before the response and within it.
        drop(its_server);
        let response = one.receive().expect("a response");
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
        is_let_in(&serve);
        let (_one, _its_server) = hold();
        is_refused(&serve);
        (&others_server)
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
            .expect("it is taken");
        drop(others_server);
        let cut = other.exchange(b"");
        assert!(cut.ends_with("\r\n\r\nhalf"), "{cut}");
        is_let_in(&serve);
    }
}
