//! Reloads under load: no request is lost, and none gets a response from a configuration that was replaced before the
//! request started.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use onrush_engine::Address;
use onrush_serve::{ApplyError, Checked, Server, Totals, check};

const CHANGES: usize = 40;

fn checked(text: &str) -> Checked {
    let text = match text.contains("[[listen]]") {
        true => text.to_owned(),
        false => format!("{text}\n[[listen]]\naddress = \"127.0.0.1:0\"\n"),
    };
    let parsed = onrush_config::parse(&text, Path::new("onrush.toml"));
    let plan = parsed.unwrap_or_else(|errors| panic!("{errors:?}")).plan;
    check(plan).expect("it names no files")
}

fn started(text: &str) -> (Server, SocketAddr) {
    let server = Server::start(checked(text)).expect("it can be served");
    let address = match server.addresses().next() {
        Some(Address::Tcp(address)) => address,
        other => panic!("{other:?}"),
    };
    (server, address)
}

/// Configuration `number`: a route that responds with the number, and a route that forwards.
fn numbered(number: usize, servers: &[SocketAddr]) -> String {
    // Servers are added and removed, and change their order and weights.
    let mut servers: Vec<String> = servers
        .iter()
        .enumerate()
        .filter(|(index, _)| number % 3 != index + 1)
        .map(|(index, server)| {
            let weight = 1 + (number + index) % 4;
            format!("{{ address = \"{server}\", weight = {weight} }}")
        })
        .collect();
    servers.rotate_left(number % 2);
    format!(
        "threads = 2\n[[route]]\npath = \"/number\"\nrespond = {{ status = 200, body = \"{number}\" }}\n\
         [[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{}]\n",
        servers.join(", ")
    )
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).expect("it is not zero");
        Self(BufReader::new(stream))
    }

    /// The body of a 200.
    fn get(&mut self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        (self.0.get_mut().write_all(request.as_bytes())).expect("it is taken");
        let mut length = None;
        let mut status = String::new();
        self.0.read_line(&mut status).expect("a status line");
        assert!(status.starts_with("HTTP/1.1 200 "), "{status:?} of {path}");
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a head");
            if line == "\r\n" {
                break;
            }
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = Some(value.trim().parse().expect("a number"));
            }
        }
        let mut body = vec![0; length.expect("a length")];
        self.0.read_exact(&mut body).expect("a body");
        String::from_utf8(body).expect("text")
    }
}

fn stop(server: Server) -> Totals {
    server.stop()
}

#[test]
fn reloads_under_load_lose_no_request() {
    let behind = [(); 2].map(|()| {
        started("threads = 1\n[[route]]\nrespond = { status = 200, body = \"behind\" }\n")
    });
    let servers: Vec<SocketAddr> = behind.iter().map(|(_, address)| *address).collect();
    let (mut server, address) = started(&numbered(1, &servers));
    let applied = AtomicUsize::new(1);
    let ends = AtomicBool::new(false);
    let asked: usize = thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut asked = 0;
                    while !ends.load(Ordering::Relaxed) {
                        let mut client = Client::new(address);
                        for _ in 0..20 {
                            let at_least = applied.load(Ordering::Acquire);
                            let number: usize = client.get("/number").parse().expect("a number");
                            assert!(number >= at_least, "{number} and {at_least} is in force");
                            assert_eq!(client.get("/"), "behind");
                            asked += 2;
                        }
                    }
                    asked
                })
            })
            .collect();
        for number in 2..=CHANGES {
            let done = server.apply(checked(&numbered(number, &servers)));
            let done = done.expect("it can be applied");
            assert_eq!(done.generation(), number as u64);
            applied.store(number, Ordering::Release);
            assert!(done.wait(Duration::from_secs(60)), "requests are short");
        }
        ends.store(true, Ordering::Relaxed);
        let asked = clients.into_iter().map(|client| client.join());
        asked.map(|asked| asked.expect("no assertion failed")).sum()
    });
    let totals = stop(server);
    assert_eq!(totals.requests, asked as u64, "{totals}");
    assert_eq!((totals.failed(), totals.given_up), (0, 0), "{totals}");
    behind.into_iter().for_each(|(server, _)| {
        stop(server);
    });
}

#[test]
fn changed_startup_settings_fail_reload() {
    let text = "threads = 1\n[[route]]\nrespond = { status = 200, body = \"one\" }\n";
    let (mut server, address) = started(text);
    for (other, what) in [
        (text.replace("threads = 1", "threads = 2"), "threads"),
        (
            text.replace("threads = 1", "threads = 1\nio = \"epoll\""),
            "io",
        ),
        (
            text.replace("threads = 1", "threads = 1\naccept = \"hash\""),
            "accept",
        ),
    ] {
        let other = other.replace("one", "two");
        match server.apply(checked(&other)) {
            Err(ApplyError::Fixed(fixed)) => assert_eq!(fixed, what),
            other => panic!("{other:?}"),
        }
        assert_eq!(Client::new(address).get("/"), "one");
    }
    let done = server.apply(checked(&text.replace("one", "two")));
    assert_eq!(done.expect("only the body differs").generation(), 2);
    assert_eq!(Client::new(address).get("/"), "two");
    stop(server);
}

#[test]
fn missing_directory_fails_reload() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "threads = 2\n[[route]]\nrespond = { status = 200, body = \"one\" }\n";
    let (mut server, address) = started(text);
    let files = directory.path().join("files");
    std::fs::create_dir(&files).expect("a directory");
    let other = checked(&format!(
        "threads = 2\n[[route]]\nfiles = {{ root = \"{}\" }}\n",
        files.display()
    ));
    std::fs::remove_dir(&files).expect("it is there");
    let error = server.apply(other).expect_err("the directory is gone");
    assert!(error.to_string().contains("it does not exist"), "{error}");
    assert_eq!(Client::new(address).get("/"), "one");
    let done = server.apply(checked(&text.replace("one", "two")));
    assert!(
        done.expect("it can be applied")
            .wait(Duration::from_secs(60))
    );
    assert_eq!(Client::new(address).get("/"), "two");
    stop(server);
}

/// The listening addresses.
fn ports(server: &Server) -> Vec<SocketAddr> {
    let tcp = |address: Address| match address {
        Address::Tcp(address) => address,
        other => panic!("{other}"),
    };
    server.addresses().map(tcp).collect()
}

#[test]
fn listener_changes_do_not_affect_other_listeners() {
    let route = "threads = 2\n[[route]]\nrespond = { status = 200, body = \"one\" }\n";
    let listen = |addresses: &[&str]| {
        let listen = addresses.iter();
        let listen = listen.map(|address| format!("[[listen]]\naddress = \"{address}\"\n"));
        route.to_owned() + &listen.collect::<String>()
    };
    let (mut server, first) = started(&listen(&["127.0.0.1:0"]));
    let mut early = Client::new(first);
    assert_eq!(early.get("/"), "one");
    // Another listener in front: the existing one keeps its port and its connections.
    let two = listen(&["127.0.0.2:0", "127.0.0.1:0"]).replace("one", "two");
    let done = server.apply(checked(&two)).expect("it can be applied");
    let [second, same] = ports(&server)[..] else {
        panic!("two addresses");
    };
    assert_eq!(
        (same, done.added().len(), done.removed().len()),
        (first, 1, 0)
    );
    let mut late = Client::new(second);
    for client in [&mut early, &mut late, &mut Client::new(first)] {
        assert_eq!(client.get("/"), "two");
    }
    // Without the first: its connections stay.
    let three = listen(&["127.0.0.2:0"]).replace("one", "three");
    let done = server.apply(checked(&three)).expect("it can be applied");
    assert_eq!(
        (done.added().len(), done.removed()),
        (0, &[Address::Tcp(first)][..])
    );
    assert!(done.wait(Duration::from_secs(60)));
    assert_eq!(ports(&server), [second]);
    for client in [&mut early, &mut late] {
        assert_eq!(client.get("/"), "three");
    }
    while TcpStream::connect(first).is_ok() {
        thread::sleep(Duration::from_millis(1));
    }
    // The port is free again, also for this server.
    let four = listen(&["127.0.0.2:0", &first.to_string()]).replace("one", "four");
    server.apply(checked(&four)).expect("it can be applied");
    assert_eq!(ports(&server), [second, first]);
    assert_eq!(Client::new(first).get("/"), "four");
    drop((early, late));
    stop(server);
}

#[test]
fn address_in_use_fails_reload() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let text = "threads = 2\n[[route]]\nrespond = { status = 200, body = \"one\" }\n[[listen]]\naddress = \"127.0.0.1:0\"\n";
    let (mut server, address) = started(text);
    let other = format!(
        "{}[[listen]]\naddress = \"{}\"\n",
        text.replace("one", "two"),
        taken.local_addr().expect("it is bound")
    );
    let error = server.apply(checked(&other)).expect_err("it is taken");
    assert!(
        error.to_string().contains("another program uses it"),
        "{error}"
    );
    assert_eq!(
        (Client::new(address).get("/"), server.generation()),
        ("one".into(), 1)
    );
    drop(taken);
    server.apply(checked(&other)).expect("it is free");
    assert_eq!(Client::new(address).get("/"), "two");
    stop(server);
}

#[test]
fn address_changes_under_load_lose_no_request() {
    let text = |number: usize| {
        let more = "[[listen]]\naddress = \"127.0.0.3:0\"\n".repeat(number % 3);
        format!(
            "threads = 2\n[[route]]\nrespond = {{ status = 200, body = \"{number}\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n{more}"
        )
    };
    let (mut server, address) = started(&text(0));
    let ends = AtomicBool::new(false);
    let asked: usize = thread::scope(|scope| {
        let client = || {
            let mut asked = 0;
            while !ends.load(Ordering::Relaxed) {
                let mut client = Client::new(address);
                for _ in 0..5 {
                    client.get("/");
                    asked += 1;
                }
            }
            asked
        };
        let clients = [(); 4].map(|()| scope.spawn(client));
        for number in 1..=CHANGES {
            let done = server
                .apply(checked(&text(number)))
                .expect("it can be applied");
            // Connections to a removed address are still served.
            let mut there = ports(&server)
                .into_iter()
                .map(Client::new)
                .collect::<Vec<_>>();
            there
                .iter_mut()
                .for_each(|client| assert_eq!(client.get("/"), number.to_string()));
            drop(done);
        }
        ends.store(true, Ordering::Relaxed);
        let asked = clients.map(|client| client.join().expect("no assertion failed"));
        asked.into_iter().sum()
    });
    let totals = stop(server);
    assert!(totals.requests as usize > asked, "{totals}");
    assert_eq!((totals.failed(), totals.given_up), (0, 0), "{totals}");
}
