//! Clients that disconnect: their waiting and running requests are aborted and counted as such, and do not delay others.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Client, Serve, TIMEOUT, Totals, drivers};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// A server played by the test, behind a proxy that sends it one request at a time.
struct Chain {
    listener: TcpListener,
    proxy: Serve,
    _directory: TempDir,
}

impl Chain {
    fn start(io: &str) -> Chain {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = listener.local_addr().expect("it is bound");
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        let text = format!(
            "io = \"{io}\"\nthreads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[route]]\npath = \"/here\"\nrespond = {{ status = 200, body = \"here\" }}\n\
             [[route]]\nforward = \"app\"\n\
             [upstream.app]\nservers = [{{ address = \"{server}\", connections_max = 1 }}]\n\
             [timeouts]\ndrain = \"1h\"\n"
        );
        fs::write(&path, text).expect("it is ours");
        Chain {
            listener,
            proxy: Serve::start(&["--config", &path.display().to_string()]),
            _directory: directory,
        }
    }

    /// A client whose request for `path` the proxy has read, since it arrived together with a request that got its
    /// response.
    fn ask(&self, path: &str) -> Client<TcpStream> {
        let mut client = self.proxy.connect();
        client.send((get("/here") + &get(path)).as_bytes());
        let response = client.receive().expect("a response");
        assert!(response.ends_with("\r\n\r\nhere"), "{response}");
        client
    }

    /// The server's end of the next connection, and the path of its request.
    fn accept(&self) -> (Client<TcpStream>, String) {
        let (stream, _) = self.listener.accept().expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        let mut server = Client(stream);
        let path = asked(&mut server);
        (server, path)
    }
}

/// Path of the next request.
fn asked(server: &mut Client<TcpStream>) -> String {
    let request = server.receive().expect("a request");
    request.split(' ').nth(1).expect("a path").to_owned()
}

/// Closes the connection with a reset.
fn hang_up(client: Client<TcpStream>) {
    set_socket_linger(&client.0, Some(Duration::ZERO)).expect("a socket");
}

fn assert_is_reset(mut server: Client<TcpStream>) {
    let error = server.0.read(&mut [0]).expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn aborted_clients_free_connections_and_queue_entries() {
    for io in drivers() {
        let chain = Chain::start(io);
        let working = chain.ask("/working");
        let (server, path) = chain.accept();
        assert_eq!(path, "/working");
        let queued = chain.ask("/queued");
        let mut stays = chain.ask("/stays");
        hang_up(queued);
        hang_up(working);
        assert_is_reset(server);
        let (mut server, path) = chain.accept();
        assert_eq!(path, "/stays", "{io}");
        server.send(OK);
        let response = stays.receive().expect("a response");
        assert!(response.ends_with("\r\n\r\nhello"), "{response}");
        drop(stays);
        let totals = chain.proxy.stop();
        assert_eq!(
            totals.number_before(" given up by clients"),
            2,
            "{totals:?}"
        );
        // Three received their responses immediately, and one waited.
        assert_eq!(totals.requests(), 4, "{totals:?}");
        assert_eq!(totals.number_before(" failed upstream"), 0, "{totals:?}");
        assert_eq!(totals.number_before(" retried"), 0, "{totals:?}");
    }
}

#[test]
fn half_closed_client_gets_response() {
    for io in drivers() {
        let chain = Chain::start(io);
        let mut working = chain.ask("/working");
        let (mut server, _) = chain.accept();
        let mut queued = chain.ask("/queued");
        for client in [&working, &queued] {
            client.0.shutdown(Shutdown::Write).expect("it is connected");
        }
        server.send(OK);
        assert_eq!(asked(&mut server), "/queued");
        server.send(OK);
        for client in [&mut working, &mut queued] {
            let response = client.receive().expect("a response");
            assert!(response.ends_with("\r\n\r\nhello"), "{io}: {response}");
        }
        let totals = chain.proxy.stop();
        assert_eq!(
            totals.number_before(" given up by clients"),
            0,
            "{totals:?}"
        );
        assert_eq!(totals.requests(), 4, "{totals:?}");
    }
}

#[test]
fn stop_does_not_wait_for_aborted_requests() {
    for io in drivers() {
        let chain = Chain::start(io);
        let working = chain.ask("/working");
        let (server, _) = chain.accept();
        let queued = chain.ask("/queued");
        // It would wait for an hour.
        chain.proxy.program.signal(Signal::TERM);
        hang_up(queued);
        hang_up(working);
        assert_is_reset(server);
        let finished = chain.proxy.program.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let totals = Totals::wait_until_listening(&finished);
        assert_eq!(
            totals.number_before(" given up by clients"),
            2,
            "{totals:?}"
        );
        assert_eq!(
            totals.number_before(" connections cut off"),
            0,
            "{totals:?}"
        );
    }
}
