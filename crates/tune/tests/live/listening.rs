//! Listening sockets of this machine's kernel.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process;

use onrush_tune::diagnose::{self, Limiter};
use onrush_tune::facts::{self, Counts, Listening};
use onrush_tune::tree::{Snapshot, Tree};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// More connections than any queue of these tests holds; the kernel drops from the second excess one on.
const CONNECTS_MAX: usize = 64;

fn live() -> Tree {
    Tree::open(Path::new("/")).expect("this machine")
}

/// A socket whose accept queue holds two: the kernel accepts one more than the backlog.
fn listener() -> (OwnedFd, SocketAddr) {
    let socket =
        rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    rustix::net::bind(&socket, &any).expect("a port");
    rustix::net::listen(&socket, 1).expect("it listens");
    let address = rustix::net::getsockname(&socket).expect("an address");
    (socket, address.try_into().expect("of the internet"))
}

fn connect(to: SocketAddr) -> OwnedFd {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
        .expect("a socket");
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => socket,
        Err(error) => panic!("{to}: {}", io::Error::from(error)),
    }
}

fn of_port(counts: &Counts, port: u16) -> Vec<&Listening> {
    let sockets = counts.listening.iter();
    sockets.filter(|socket| socket.port == port).collect()
}

#[test]
fn full_accept_queue_is_reported_with_drops() {
    let tree = live();
    let own = Some(process::id());
    let facts = facts::read(&tree, None).expect("facts");
    let (_listener, address) = listener();
    let before = facts::counts(&tree, own);
    let [socket] = of_port(&before, address.port())[..] else {
        eprintln!("skipped: this kernel does not answer sock_diag(7)");
        return;
    };
    assert_eq!(
        (socket.waiting, socket.limit, socket.dropped),
        (0, Some(1), Some(0))
    );

    let mut connections = Vec::new();
    let after = loop {
        connections.push(connect(address));
        let counts = facts::counts(&tree, own);
        if of_port(&counts, address.port())[0].dropped > Some(0) {
            break counts;
        }
        assert!(connections.len() < CONNECTS_MAX, "none of them was dropped");
    };
    let findings = diagnose::judge(&facts, &before, &after);
    let found = findings
        .iter()
        .find(|finding| finding.limiter == Limiter::AcceptQueue)
        .expect("connections were dropped");
    let words = format!("2 of 1 wait on port {}, ", address.port());
    assert!(found.evidence.contains(&words), "{found:#?}");
    let words = format!(
        "accept queue of port {} is limited to 1 by the backlog",
        address.port()
    );
    assert!(found.remedy.contains(&words), "{found:#?}");

    // Without a process, the sockets of all are named.
    let [before, after] = [before, after].map(|counts| Counts {
        process: None,
        ..counts
    });
    let findings = diagnose::judge(&facts, &before, &after);
    let words = format!("2 of 1 wait on port {}, ", address.port());
    assert!(
        findings
            .iter()
            .any(|finding| finding.evidence.contains(&words)),
        "{findings:#?}"
    );
}

#[test]
fn snapshot_has_ipv4_and_ipv6_listeners() {
    let listeners = [
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
        TcpListener::bind((Ipv6Addr::LOCALHOST, 0)),
    ];
    let tree = live();
    tree.record();
    let counts = facts::counts(&tree, None);
    if counts.listening.is_empty() {
        eprintln!("skipped: this kernel does not answer sock_diag(7)");
        return;
    }
    let ports: Vec<u16> = listeners
        .into_iter()
        // A machine without IPv6 has no such address.
        .filter_map(|listener| Some(listener.ok()?.local_addr().expect("an address").port()))
        .collect();
    for port in ports {
        assert_eq!(
            of_port(&counts, port).len(),
            1,
            "port {port} of {:?}",
            counts.listening
        );
    }
    let text = serde_json::to_string(&tree.recorded()).expect("JSON");
    let snapshot: Snapshot = serde_json::from_str(&text).expect("a snapshot");
    let again = facts::counts(&Tree::of_snapshot(snapshot), None);
    assert_eq!(again.listening, counts.listening);
}
