//! Roles of a child process: clients and servers that make a limiter, and a diagnosis.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use onrush_tune::diagnose;
use onrush_tune::facts::{self, Counts, sample};
use rustix::net::{AddressFamily, SocketType};

use super::{CLIENT, DURATION, PORT, REQUEST, SERVER, SETUP_TIMEOUT, WRITERS, live};

pub(crate) fn sleep() -> ! {
    loop {
        thread::park_timeout(SETUP_TIMEOUT);
    }
}

pub(crate) fn listener(port: u16, backlog: usize) -> TcpListener {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.expect("a socket");
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).expect("an option");
    let any: SocketAddr = ([0, 0, 0, 0], port).into();
    rustix::net::bind(&socket, &any).expect("bound");
    rustix::net::listen(&socket, i32::try_from(backlog).expect("few")).expect("it listens");
    socket.into()
}

/// Answers each request with a number of bytes.
pub(crate) fn answer(port: u16, bytes: usize, backlog: usize) {
    let listener = listener(port, backlog);
    let response = vec![b'x'; bytes];
    thread::scope(|scope| {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            let response = &response;
            scope.spawn(move || {
                let mut request = REQUEST;
                while connection.read_exact(&mut request).is_ok() {
                    if connection.write_all(response).is_err() {
                        break;
                    }
                }
            });
        }
    });
}

/// Sends requests on several connections, with a pause in milliseconds before each.
pub(crate) fn ask(port: u16, connections: usize, bytes: usize, pause: usize) {
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(move || {
                let mut connection = TcpStream::connect((SERVER, port)).expect("connected");
                let mut response = vec![0; bytes];
                loop {
                    let pause = u64::try_from(pause).expect("short").max(1);
                    thread::sleep(Duration::from_millis(pause));
                    let sent = connection.write_all(&REQUEST);
                    if sent
                        .and_then(|()| connection.read_exact(&mut response))
                        .is_err()
                    {
                        break;
                    }
                }
            });
        }
    });
}

/// Accepts one connection per 5 ms.
pub(crate) fn slow_accept(backlog: usize) {
    let listener = listener(PORT, backlog);
    for connection in listener.incoming() {
        drop(connection);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Connects repeatedly with a short timeout.
pub(crate) fn connect_often(threads: usize) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let server: SocketAddr =
                        (SERVER.parse::<std::net::IpAddr>().expect("one"), PORT).into();
                    let connection = TcpStream::connect_timeout(&server, Duration::from_millis(20));
                    drop(connection);
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
}

/// Keeps every connection and tries to open more.
pub(crate) fn connect_all() {
    let mut connections = Vec::new();
    let mut request = REQUEST;
    loop {
        match TcpStream::connect((CLIENT, PORT)) {
            Ok(connection) => connections.push(connection),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
                thread::sleep(Duration::from_millis(1));
            }
        }
        if let Some(connection) = connections.first_mut() {
            connection.write_all(&request).expect("sent");
            let mut response = [0; 100];
            connection.read_exact(&mut response).expect("answered");
            request[0] = response[0];
        }
    }
}

pub(crate) fn swallow() {
    let listener = listener(PORT, 64);
    thread::scope(|scope| {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            scope.spawn(move || {
                let mut bytes = vec![0; 64 << 10];
                while connection.read(&mut bytes).is_ok_and(|bytes| bytes > 0) {}
            });
        }
    });
}

pub(crate) fn upload(connections: usize) {
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut connection = TcpStream::connect((SERVER, PORT)).expect("connected");
                while connection.write_all(&[b'u'; 16 << 10]).is_ok() {}
            });
        }
    });
}

/// Answers each request after 100 ms.
pub(crate) fn hold(backlog: usize) {
    let listener = listener(PORT, backlog);
    thread::scope(|scope| {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            scope.spawn(move || {
                let mut request = REQUEST;
                while connection.read_exact(&mut request).is_ok() {
                    thread::sleep(Duration::from_millis(100));
                    if connection.write_all(&[b'x'; 100]).is_err() {
                        break;
                    }
                }
            });
        }
    });
}

/// Forwards each request to a server in the client's namespace.
pub(crate) fn relay() {
    let listener = listener(PORT, 64);
    thread::scope(|scope| {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            scope.spawn(move || {
                let mut other = TcpStream::connect((CLIENT, PORT)).expect("connected");
                let (mut request, mut response) = (REQUEST, [0; 100]);
                loop {
                    let asked = connection.read_exact(&mut request);
                    let asked = asked.and_then(|()| other.write_all(&request));
                    let answered = asked.and_then(|()| other.read_exact(&mut response));
                    if answered
                        .and_then(|()| connection.write_all(&response))
                        .is_err()
                    {
                        break;
                    }
                }
            });
        }
    });
}

/// Sends one request per connection and never reads.
pub(crate) fn never_read(connections: usize) {
    let connection = |_| {
        let mut connection = TcpStream::connect((SERVER, PORT)).expect("connected");
        connection.write_all(&REQUEST).expect("sent");
        connection
    };
    let _connections: Vec<TcpStream> = (0..connections).map(connection).collect();
    sleep();
}

pub(crate) fn send_datagrams() {
    let socket = UdpSocket::bind((CLIENT, 0)).expect("bound");
    loop {
        for _ in 0..20 {
            let _ = socket.send_to(&[b'd'; 1_000], (SERVER, PORT));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Writes several files synchronously.
pub(crate) fn write(path: &Path) {
    const O_DSYNC: i32 = 0o10_000;
    let block = vec![b'w'; 4 << 10];
    thread::scope(|scope| {
        for at in 0..WRITERS {
            let mut options = File::options();
            options.create(true).write(true).custom_flags(O_DSYNC);
            let file = options.open(path.with_extension(at.to_string()));
            let (mut file, block) = (file.expect("a file"), &block);
            scope.spawn(move || {
                loop {
                    for _ in 0..1_024 {
                        file.write_all(block).expect("written");
                    }
                    io::Seek::rewind(&mut file).expect("back");
                }
            });
        }
    });
}

pub(crate) fn pin(cpu: usize) {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(cpu);
    rustix::thread::sched_setaffinity(None, &cpus).expect("a CPU that is there");
    // The main thread only waits for this one.
    let first = rustix::process::getpid();
    rustix::thread::sched_setaffinity(Some(first), &cpus).expect("a CPU that is there");
}

pub(crate) fn spin(cpu: usize) {
    pin(cpu);
    loop {
        std::hint::spin_loop();
    }
}

/// Computes for about 2 ms, then sleeps for as long.
pub(crate) fn nap(cpu: usize) {
    pin(cpu);
    loop {
        for _ in 0..1_000_000u32 {
            std::hint::spin_loop();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Prints the findings as a line of JSON.
pub(crate) fn report(process: Option<u32>, quiet: &str) {
    let tree = live();
    let facts = facts::read(&tree, None).expect("facts");
    let programs = facts::programs(&tree);
    let mut samples = vec![facts::sample(&tree, process)];
    let mut before = facts::counts(&tree, process);
    before.programs = Some(programs);
    for _ in 0..sample::SAMPLES {
        thread::sleep(DURATION / sample::SAMPLES);
        samples.push(facts::sample(&tree, process));
    }
    let mut after = facts::counts(&tree, process);
    after.unread = Some(facts::unread(&tree, process));
    after.programs = Some(facts::programs(&tree));
    after.samples = samples;
    if quiet != "nothing" {
        quiet_cpus(&mut before, &mut after);
    }
    if quiet == "all" {
        (before.disk_stall, after.disk_stall) = (Some(0), Some(0));
        after
            .samples
            .iter_mut()
            .for_each(|sample| sample.blocked = Some(0));
    }
    let findings = diagnose::judge(&facts, &before, &after);
    let json = serde_json::to_string(&findings).expect("JSON");
    println!("FINDINGS {json}");
}

/// Replaces the load of the CPUs: each is busy for a quarter of the time.
pub(crate) fn quiet_cpus(before: &mut Counts, after: &mut Counts) {
    for (cpu, time) in &mut after.cpus {
        let then = before.cpus.get(cpu).copied().unwrap_or_default();
        let all = time.total() - then.total();
        *time = then;
        (time.user, time.idle) = (then.user + all / 4, then.idle + all - all / 4);
    }
    for counts in [before, after] {
        counts.softnet.values_mut().for_each(|row| row.dropped = 0);
        let threads = counts
            .process
            .iter_mut()
            .flat_map(|process| &mut process.threads);
        threads.for_each(|(_, thread)| thread.delayed = Some(0));
    }
}
