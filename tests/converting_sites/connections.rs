//! Behaviour that a single response does not show: closed client connections, servers that fail or do not respond.

use std::net::Shutdown;

use super::*;
use crate::application::HoldingServer;

/// Number of responses to three requests on one connection.
fn responses(port: u16, host: &str) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    let request = format!("HEAD /a.html HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let is_answered = |_: &usize| {
        let mut received = Vec::new();
        let mut piece = [0; 1024];
        // Ignore the error: the peer may have closed the connection, or be about to reset it.
        let _ = stream.write_all(request.as_bytes());
        while !received.ends_with(b"\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return false,
                Ok(count) => received.extend_from_slice(&piece[..count]),
            }
        }
        true
    };
    (0..3).take_while(is_answered).count()
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn connections_remain_open_longer_with_note() {
    const SITES: [(&str, &str); 4] = [
        (
            "keepalive_requests 2; root $FILES/www;",
            "not after a number of requests",
        ),
        (
            "keepalive_timeout 0; root $FILES/www;",
            "nginx closes each after one response",
        ),
        (
            "keepalive_timeout 0; return 200;",
            "nginx closes each after one response",
        ),
        ("root $FILES/www;", ""),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let servers = SITES.iter().enumerate().map(|(at, (lines, _))| {
        format!(
            "server {{ listen 127.0.0.1:{port}; server_name {}; {lines} }}\n",
            name(at)
        )
    });
    let mut program = start_nginx(directory.path(), &servers.collect::<String>());
    wait_for(&mut program, port);
    let count = || [0, 1, 2, 3].map(|at| responses(port, &name(at)));
    assert_eq!(count(), [2, 1, 1, 3]);
    drop(program);
    let (_serve, converted) = serve_result("nginx", directory.path(), port);
    assert_eq!(count(), [3; 4]);
    for (at, (lines, note)) in SITES[..3].iter().enumerate() {
        let directive = lines.split(';').next().expect("a directive");
        let place = format!("conf:{}: ", at + 4);
        let mut notes = converted.err.lines();
        let found = notes.find(|line| line.contains(&place) && line.contains(directive));
        assert!(found.is_some_and(|line| line.contains(note)), "{found:?}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn read_timeout_is_per_location() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, silent) = (free_port(), HoldingServer::start());
    let text = format!(
        "server {{ listen 127.0.0.1:{port}; proxy_next_upstream off;
        location /fast/ {{ proxy_read_timeout 1s; proxy_pass http://{0}; }}
        location / {{ proxy_pass http://{0}; }} }}",
        silent.address
    );
    let ask_both = || {
        let mut slow = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        slow.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        let request = b"GET /slow HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        slow.write_all(request).expect("it is taken");
        let mut held = silent.next();
        let fast = ask(port, "h", "GET /fast/", &[]);
        // It has waited longer than the other one, and still gets its response.
        held.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .expect("it is taken");
        let head = receive_all(&mut slow);
        drop(silent.next());
        (fast.status, head["HTTP/1.1 ".len()..][..3].to_owned())
    };
    let expected = ("504".to_owned(), "204".to_owned());
    let mut program = start_nginx(directory.path(), &text);
    wait_for(&mut program, port);
    assert_eq!(ask_both(), expected);
    drop(program);
    let (_serve, converted) = serve_result("nginx", directory.path(), port);
    assert_eq!(ask_both(), expected, "{}", converted.out);
}

/// Parameters of a server, and the names of the servers that respond to five requests: failing, successful, failing,
/// successful, successful.
const FAILURES: [(&str, &str); 4] = [
    ("max_fails=2 fail_timeout=1h", "babbb"),
    ("max_fails=1 fail_timeout=1h", "bbbbb"),
    ("", "bbbbb"),
    ("max_fails=0", "babaa"),
];

/// Result of Onrush for the first parameters, which a note announces.
const IN_A_ROW: &str = "babaa";

#[test]
#[ignore = "foreign programs: make test-all"]
fn failing_servers_are_ejected_as_in_nginx() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let (a, b) = (Application::start("a"), Application::start("b"));
    let servers = FAILURES.iter().enumerate().map(|(at, (words, _))| {
        format!(
            "upstream u{at} {{ server {} {words}; server {} backup; }}
server {{ listen 127.0.0.1:{port}; server_name {}; location / {{ proxy_pass http://u{at}; }} }}\n",
            a.address,
            b.address,
            name(at)
        )
    });
    let fail = "GET /\nX-Close: a";
    let responders = || {
        FAILURES
            .iter()
            .enumerate()
            .map(|(at, _)| {
                let requests = [fail, "GET /", fail, "GET /", "GET /"];
                requests
                    .map(|request| responder(port, &name(at), request))
                    .concat()
            })
            .collect::<Vec<String>>()
    };
    let mut program = start_nginx(directory.path(), &servers.collect::<String>());
    wait_for(&mut program, port);
    let expected = FAILURES.map(|(_, names)| names);
    assert_eq!(responders(), expected);
    drop(program);
    let (_serve, converted) = serve_result("nginx", directory.path(), port);
    let found = responders();
    // A request that fails on a kept-alive connection is retried on a new one, and both failures count.
    assert!([expected[0], IN_A_ROW].contains(&&*found[0]), "{found:?}");
    assert_eq!(found[1..], expected[1..], "{}", converted.out);
    assert!(
        converted.err.contains("consecutive failures count"),
        "{converted:?}"
    );
}

/// Name of the server that responds.
fn responder(port: u16, host: &str, request: &str) -> String {
    let fields: String = request
        .lines()
        .skip(1)
        .map(|field| format!("{field}\r\n"))
        .collect();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).expect("it is taken");
    let response = receive_all(&mut stream);
    let (_, body) = response.split_once("\r\n\r\n").expect("a head");
    body.lines().next().unwrap_or_default().to_owned()
}

/// Opens a WebSocket through the proxy at `port` and closes the client's side. Returns the connections of client and server.
fn half_closed(port: u16, server: &HoldingServer) -> (TcpStream, TcpStream) {
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    client.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    let key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket";
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{upgrade}\r\n{key}\r\n\r\n");
    client.write_all(request.as_bytes()).expect("it is taken");
    let mut held = server.next();
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    );
    held.write_all(response.as_bytes()).expect("it is taken");
    let (mut head, mut letter) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut letter).expect("a head");
        head.push(letter[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    client.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(held.read(&mut letter).expect("an end"), 0);
    (client, held)
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn half_closed_tunnels_close_after_server_fin() {
    let server = HoldingServer::start();
    // The tunnel with client-fin opens first and has the shorter timeout, but it must outlive the other.
    let sites = ["timeout client-fin 1s", "timeout server-fin 2s"].map(|line| {
        let (directory, port) = (tempfile::tempdir().expect("a directory"), free_port());
        let text = format!(
            "defaults\n mode http\n timeout connect 1s\n timeout client 60s\n timeout server 60s\n timeout tunnel 60s\n {line}
frontend f\n bind 127.0.0.1:{port}\n default_backend b\nbackend b\n server s {}\n",
            server.address
        );
        (directory, port, text)
    });
    let check = || {
        let (mut kept, mut server_of_kept) = half_closed(sites[0].1, &server);
        let (mut ended, _server_of_ended) = half_closed(sites[1].1, &server);
        assert_eq!(receive_all(&mut ended), "");
        server_of_kept.write_all(b"late").expect("it is taken");
        drop(server_of_kept);
        assert_eq!(receive_all(&mut kept), "late");
    };
    let programs = sites.each_ref().map(|(directory, port, text)| {
        let mut program = start_haproxy(directory.path(), text);
        wait_for(&mut program, *port);
        program
    });
    check();
    drop(programs);
    let _results = sites
        .each_ref()
        .map(|(directory, port, _)| serve_result("haproxy", directory.path(), *port));
    check();
}
