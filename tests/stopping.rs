//! Graceful shutdown on SIGINT, SIGTERM and SIGQUIT: requests in flight are finished, nothing is lost, and the exit
//! code is 0.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Client, Serve, Totals, drivers, onrush, until};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A client that pauses less than this between a response and its next request learns of the shutdown from a response;
/// half of the time that the server waits.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Sends requests on one connection until a response announces that it is the last, and returns the number of
/// responses. Panics when one is truncated or missing.
fn ask_until_the_end(serve: &Serve, responses: &AtomicU64) -> u64 {
    let mut client = serve.connect();
    let mut count = 0;
    loop {
        let asked = Instant::now();
        let is_sent = client.0.write_all(GET).is_ok();
        let Some(response) = client.receive().filter(|_| is_sent) else {
            // On a busy machine this thread may have waited for a CPU.
            assert!(asked.elapsed() > PAUSE_MAX, "a request got no response");
            return count;
        };
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nhello"), "{response}");
        count += 1;
        responses.fetch_add(1, Ordering::Relaxed);
        if response.contains("\r\nConnection: close\r\n") {
            return count;
        }
    }
}

/// Stops `serve` while clients send requests; returns its totals and the number of responses received.
fn stop_under_load(serve: Serve, signal: Signal) -> (Totals, u64) {
    let responses = AtomicU64::new(0);
    let counted = thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| ask_until_the_end(&serve, &responses)))
            .collect();
        until("responses", || {
            (responses.load(Ordering::Relaxed) > 500).then_some(())
        });
        serve.program.signal(signal);
        let counts = clients
            .into_iter()
            .map(|client| client.join().expect("no response is cut"));
        counts.sum()
    });
    let finished = serve.program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    (Totals::wait_until_listening(&finished), counted)
}

#[test]
fn server_stop_under_load_loses_no_response() {
    for io in drivers() {
        for signal in [Signal::INT, Signal::TERM, Signal::QUIT] {
            let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
            let (totals, counted) = stop_under_load(serve, signal);
            assert_eq!(totals.requests(), counted, "{totals:?}");
            assert_eq!(
                totals.number_before(" connections cut off"),
                0,
                "{totals:?}"
            );
        }
    }
}

#[test]
fn proxy_stop_under_load_loses_no_response() {
    for io in drivers() {
        let server = Serve::start(&["--respond", "200:hello"]);
        let proxy = Serve::start(&["--forward", &server.url("/"), "--io", io]);
        let (totals, counted) = stop_under_load(proxy, Signal::TERM);
        assert_eq!(totals.requests(), counted, "{totals:?}");
        assert_eq!(totals.number_before(" failed upstream"), 0, "{totals:?}");
        assert_eq!(server.stop().requests(), counted);
    }
}

#[test]
fn clients_connected_before_stop_get_responses() {
    for io in drivers() {
        // The server waits for handshakes only where clients may be remote.
        let serve = Serve::start(&[
            "--respond",
            "200:hello",
            "--io",
            io,
            "--listen",
            "0.0.0.0:0",
        ]);
        let port = serve.address.rsplit(':').next().expect("it has one");
        let address = format!("127.0.0.1:{port}");
        // A stopped process cannot accept them before it receives the signal.
        serve.program.signal(Signal::STOP);
        let connect = |_| TcpStream::connect(&address).expect("it listens");
        let mut clients: Vec<_> = (0..100).map(connect).map(Client).collect();
        for client in &mut clients {
            client.send(GET);
        }
        serve.program.signal(Signal::TERM);
        serve.program.signal(Signal::CONT);
        for client in &mut clients {
            let response = client.receive().expect("a response");
            assert!(response.ends_with("\r\n\r\nhello"), "{io}: {response}");
        }
        drop(clients);
        let totals = Totals::wait_until_listening(&serve.program.finish());
        assert_eq!(totals.requests(), 100, "{totals:?}");
        assert_eq!(totals.number_before(" connections cut off"), 0);
    }
}

#[test]
fn requests_sent_while_suspended_get_responses() {
    for io in drivers() {
        let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
        let mut clients: Vec<_> = (0..50).map(|_| serve.connect()).collect();
        for client in &mut clients {
            client.send(GET);
            assert!(client.receive().is_some());
        }
        serve.program.signal(Signal::STOP);
        // All of them count as idle for long when the process continues.
        let frozen = Instant::now();
        until("its connections to be idle for long", || {
            (frozen.elapsed() > 2 * PAUSE_MAX).then_some(())
        });
        for client in &mut clients {
            client.send(GET);
        }
        serve.program.signal(Signal::TERM);
        serve.program.signal(Signal::CONT);
        for client in &mut clients {
            let response = client.receive().expect("a response");
            assert!(response.ends_with("\r\n\r\nhello"), "{io}: {response}");
        }
        drop(clients);
        let totals = Totals::wait_until_listening(&serve.program.finish());
        assert_eq!(totals.requests(), 100, "{io}: {totals:?}");
    }
}

#[test]
fn draining_server_frees_unix_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listen = format!("unix:{}", path.display());
    let (listener, address) = silent_server();
    let first = Serve::start(&["--forward", &address, "--listen", &listen]);
    let mut client = Client::<UnixStream>::connect(&path);
    client.send(GET);
    let (mut server, _) = listener.accept().expect("the request comes");
    first.program.signal(Signal::TERM);
    until("the file to be gone", || (!path.exists()).then_some(()));
    let second = Serve::start(&["--respond", "200:second", "--listen", &listen]);
    server
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
        .expect("it is waited for");
    let response = client.receive().expect("a response");
    assert!(response.ends_with("\r\n\r\nfirst"), "{response}");
    drop(client);
    assert_eq!(first.program.finish().code, Some(0));
    let response = Client::<UnixStream>::connect(&path).exchange(GET);
    assert!(response.ends_with("\r\n\r\nsecond"), "{response}");
    second.stop();
}

#[test]
fn unneeded_reload_signals_are_ignored() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    for (signal, words) in [
        (Signal::HUP, "SIGHUP: nothing was done"),
        (
            Signal::USR1,
            "SIGUSR1: nothing was done: no access log is configured",
        ),
    ] {
        serve.program.signal(signal);
        serve.program.err.wait_for(words);
        let response = serve.connect().exchange(GET);
        assert!(response.ends_with("\r\n\r\nhello"), "{response}");
    }
    assert_eq!(serve.stop().requests(), 2);
}

#[test]
fn idle_clients_do_not_delay_stop() {
    for io in drivers() {
        let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
        let mut clients: Vec<_> = (0..50).map(|_| serve.connect()).collect();
        for client in &mut clients {
            client.send(GET);
            assert!(client.receive().is_some());
        }
        serve.program.signal(Signal::TERM);
        for client in &mut clients {
            assert_eq!(client.receive(), None, "it ends without a response");
        }
        let finished = serve.program.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(
            Totals::wait_until_listening(&finished).number_before(" connections cut off"),
            0
        );
    }
}

#[test]
fn in_flight_request_gets_response() {
    let (listener, address) = silent_server();
    let serve = Serve::start(&["--forward", &address]);
    let mut client = serve.connect();
    client.send(GET);
    let (mut server, _) = listener.accept().expect("the request comes");
    serve.program.signal(Signal::TERM);
    // Every core knows of the shutdown once none accepts connections.
    until("nobody to listen", || {
        TcpStream::connect(&serve.address).is_err().then_some(())
    });
    let mut request = [0; 1000];
    assert!(server.read(&mut request).expect("it was sent") > 0);
    server
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        .expect("it is waited for");
    let response = client.receive().expect("a response");
    assert!(response.ends_with("\r\n\r\nhello"), "{response}");
    assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
    drop(client);
    let finished = serve.program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(Totals::wait_until_listening(&finished).requests(), 1);
}

#[test]
fn second_signal_ends_drain() {
    // Connections to servers that requests share belong to no client, and are not counted among those cut off.
    let kinds = ["", "protocol = \"h2\""];
    for (io, kind) in drivers().iter().flat_map(|io| kinds.map(|kind| (io, kind))) {
        let directory = tempfile::tempdir().expect("a directory");
        let (listener, address) = silent_server();
        let path = directory.path().join("onrush.toml");
        // Without the second signal this would take longer than the test waits.
        let text = format!(
            "io = \"{io}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{address}\"]\n{kind}\n[timeouts]\ndrain = \"1h\"\nupstream_first_byte = \"1h\"\n"
        );
        std::fs::write(&path, text).expect("it is ours");
        let serve = Serve::start(&["--config", &path.display().to_string()]);
        let mut client = serve.connect();
        client.send(GET);
        let _server = listener.accept().expect("the request comes");
        serve.program.signal(Signal::INT);
        serve.program.err.wait_for("SIGINT: no new connections");
        serve.program.signal(Signal::INT);
        let finished = serve.program.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let totals = Totals::wait_until_listening(&finished);
        assert_eq!(
            totals.number_before(" connections cut off"),
            1,
            "{totals:?}"
        );
        assert_eq!(client.receive(), None);
    }
}

#[test]
fn drain_timeout_closes_and_counts_connections() {
    let directory = tempfile::tempdir().expect("a directory");
    let (listener, address) = silent_server();
    let path = directory.path().join("onrush.toml");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"http://{address}\"\n[timeouts]\ndrain = \"50ms\"\n"
    );
    std::fs::write(&path, text).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string()]);
    let mut clients: Vec<_> = (0..3).map(|_| serve.connect()).collect();
    let mut servers = Vec::new();
    for client in &mut clients {
        client.send(GET);
        servers.push(listener.accept().expect("the request comes"));
    }
    let totals = serve.stop();
    assert_eq!(
        totals.number_before(" connections cut off"),
        3,
        "{totals:?}"
    );
}

/// A server that accepts connections and sends nothing, and its address.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    (listener, address)
}

#[test]
fn unread_error_log_does_not_block() {
    for io in drivers() {
        let (_reader, mut writer) = std::io::pipe().expect("a pipe");
        // The capacity of a pipe (pipe(7)): the first log line does not fit.
        writer.write_all(&[b'x'; 64 * 1024]).expect("room");
        // Nothing listens on port 1: each request gets a 502 and writes a line to the log.
        let words = ["--forward", "http://127.0.0.1:1", "--io", io];
        let serve = Serve::start_with_log(&words, writer.into());
        for _ in 0..50 {
            let mut client = serve.connect();
            client.0.write_all(GET).expect("it is read");
            let response = client.receive().expect("a response");
            assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
        }
        let finished = serve.stop();
        assert_eq!(finished.requests(), 50);
    }
}

#[test]
fn server_with_full_output_handles_signals() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    // The capacity of a pipe (pipe(7)).
    writer.write_all(&[0; 64 * 1024]).expect("it is empty");
    let listen = format!("unix:{}", socket.display());
    let mut command = onrush(&["serve", "--respond", "200:hello", "--listen", &listen]);
    let mut server = command
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut client = until("a server", || UnixStream::connect(&socket).ok().map(Client));
    client.send(GET);
    assert!(client.receive().expect("a response").ends_with("hello"));
    drop(client);
    for _ in 0..2 {
        kill_process(Pid::from_child(&server), Signal::TERM).expect("it is ours");
        // The removed socket file shows that the signal has been handled.
        until("the end of the socket", || (!socket.exists()).then_some(()));
    }
    let status = until("its end", || server.try_wait().expect("it is ours"));
    assert_eq!(status.code(), Some(0));
}
