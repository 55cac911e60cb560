//! A proxy whose process is stopped for longer than its timeouts: data that arrived meanwhile counts.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::program::{Serve, drivers, until};

/// More sockets than one wait returns with io_uring (20).
const CLIENTS: usize = 60;

/// Longer than the timeouts below.
const STOP: Duration = Duration::from_secs(3);

/// Starts two servers that respond to all of [`CLIENTS`] at the same time: their addresses, the number of requests
/// received, and the barrier that releases the responses.
fn servers() -> ([String; 2], Arc<AtomicUsize>, Arc<Barrier>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let told = Arc::new(Barrier::new(CLIENTS + 1));
    let addresses = [(); 2].map(|()| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let (counted, telling) = (Arc::clone(&requests), Arc::clone(&told));
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (requests, told) = (Arc::clone(&counted), Arc::clone(&telling));
                thread::spawn(move || respond(stream, &requests, &told));
            }
        });
        address
    });
    (addresses, requests, told)
}

/// The first [`CLIENTS`] requests wait for the barrier, later ones do not.
fn respond(mut stream: TcpStream, requests: &AtomicUsize, told: &Barrier) {
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(1..) = stream
        .read(&mut piece)
        .inspect(|&count| received.extend(&piece[..count]))
    {
        if !received.ends_with(b"\r\n\r\n") {
            continue;
        }
        received.clear();
        if requests.fetch_add(1, Ordering::Relaxed) < CLIENTS {
            told.wait();
        }
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        if stream.write_all(response).is_err() {
            return;
        }
    }
}

#[test]
fn stalled_proxy_delivers_received_responses() {
    for io in drivers() {
        let ([one, other], requests, told) = servers();
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        let text = format!(
            "io = \"{io}\"\nthreads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"app\"\n[timeouts]\nupstream_first_byte = \"2s\"\nclient_head = \"2s\"\n[upstream.app]\nservers = [\"{one}\", \"{other}\"]\nretries = 0\neject = {{ failures = 1, time = \"10m\" }}\n"
        );
        fs::write(&path, text).expect("it is ours");
        let serve = Serve::start(&["--config", &path.display().to_string()]);
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| serve.connect()).collect();
        for client in &mut clients {
            client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        let all_asked = || (requests.load(Ordering::Relaxed) == CLIENTS).then_some(());
        until("all requests at the server", all_asked);
        let mut slow = serve.connect();
        slow.send(b"GET / HTTP/1.1\r\n");
        serve.program.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", serve.program.pid());
        until("the stop", || {
            let stat = fs::read_to_string(&stat).expect("it is there");
            stat.contains(") T ").then_some(())
        });
        told.wait();
        slow.send(b"Host: h\r\n\r\n");
        thread::sleep(STOP);
        serve.program.signal(Signal::CONT);
        for client in clients.iter_mut().chain([&mut slow]) {
            let response = client.receive().expect("a response");
            assert!(response.starts_with("HTTP/1.1 200 "), "{io}: {response}");
        }
        drop((clients, slow));
        let totals = serve.stop();
        assert_eq!(totals.number_before(" failed upstream"), 0, "{totals:?}");
    }
}
