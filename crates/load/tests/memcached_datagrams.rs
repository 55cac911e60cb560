//! Runs of memcached over UDP against test servers that lose, delay, duplicate, reorder or garble answers.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use onrush_load::Io;
use onrush_load::error::Error;
use onrush_load::memcached::{TransportKind, Verify};
use onrush_load::pace::Pace;
use onrush_load::plan::{Options, Plan};
use onrush_load::report::Report;
use onrush_load::run;
use onrush_load::stop::Stop;
use onrush_load::target::Target;
use onrush_packet::memcached::Frame;

/// Server on the loopback; it stops when dropped.
struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Behaviour of a server for a request: its number, its frame, its text, and a function that sends a datagram back.
type Behaviour = dyn Fn(u64, Frame, &str, &dyn Fn(&[u8])) + Send;

impl Server {
    /// Starts a server that answers requests for its version, and calls `answer` for the others.
    fn start(answer: Box<Behaviour>) -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_millis(20));
        socket.set_read_timeout(patience).unwrap();
        let address = socket.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let (mut bytes, mut number) = (vec![0; 65_536], 0);
            while !theirs.load(Ordering::Relaxed) {
                let Ok((count, from)) = socket.recv_from(&mut bytes) else {
                    continue;
                };
                let (frame, text) = Frame::read(&bytes[..count]).unwrap();
                let text = std::str::from_utf8(text).unwrap();
                let send = |datagram: &[u8]| {
                    socket.send_to(datagram, from).unwrap();
                };
                match text {
                    "version\r\n" => send(&datagram(Frame::only(frame.id), "VERSION 1\r\n")),
                    text => {
                        answer(number, frame, text, &send);
                        number += 1;
                    }
                }
            }
        });
        Server {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    /// Runs twenty gets on every driver.
    fn load(&self, change: impl Fn(&mut Options)) -> Vec<Report> {
        let drivers = [Io::Epoll, Io::IoUring].into_iter();
        let drivers = drivers.filter(|io| onrush_engine::choose(*io).is_ok());
        let reports = drivers.map(|io| {
            let mut options = options(self.address);
            options.io = io;
            change(&mut options);
            run::start(Plan::new(options).unwrap())
                .unwrap()
                .finish(|_| ())
                .unwrap()
        });
        reports.collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is joined once");
        // A panic of the thread has printed its message.
        let ended = thread.join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

fn options(address: SocketAddr) -> Options {
    let target = Target::parse(&format!("memcached://{address}")).unwrap();
    let mut options = Options::new(target);
    options.memcached.carrier = TransportKind::Datagrams;
    options.timeout = Duration::from_millis(300);
    options.stop = Stop {
        after: None,
        count: Some(20),
    };
    options
}

fn datagram(frame: Frame, text: &str) -> Vec<u8> {
    [&frame.bytes()[..], text.as_bytes()].concat()
}

/// Datagrams, of `bytes` bytes each, of an answer with `value` for the only key of a request.
fn datagrams_of(id: u16, request: &str, value: &str, bytes: usize) -> Vec<Vec<u8>> {
    let key = request.split_ascii_whitespace().nth(1).unwrap();
    let text = format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", value.len());
    let parts: Vec<&[u8]> = text.as_bytes().chunks(bytes).collect();
    let part = |(sequence, part): (usize, &&[u8])| {
        let frame = Frame {
            id,
            sequence: sequence as u16,
            datagrams: parts.len() as u16,
        };
        [&frame.bytes()[..], part].concat()
    };
    parts.iter().enumerate().map(part).collect()
}

fn end(id: u16) -> Vec<u8> {
    datagram(Frame::only(id), "END\r\n")
}

#[test]
fn missing_response_is_lost() {
    let server = Server::start(Box::new(|number, frame, _, send| {
        if number % 5 != 1 {
            send(&end(frame.id));
        }
    }));
    for report in server.load(|_| ()) {
        assert_eq!((report.requests, report.errors_by_kind["lost"]), (16, 4));
        assert_eq!(report.connections, 1);
        let row = report.memcached.unwrap();
        assert_eq!((row.gets, row.misses), (16, 16));
        assert_eq!(row.datagrams.unwrap().received, 16);
    }
}

#[test]
fn lost_response_does_not_block_socket() {
    // Every twentieth request stays without an answer; the others are answered at once.
    let server = Server::start(Box::new(|number, frame, _, send| {
        if number % 20 != 0 {
            send(&end(frame.id));
        }
    }));
    for report in server.load(|options| options.pipeline = 4) {
        assert_eq!((report.requests, report.errors_by_kind["lost"]), (19, 1));
        // A single lost request does not cost a timeout for each turn of four.
        assert_eq!(report.evidence.failures, 1);
    }
}

#[test]
fn reordered_and_duplicate_datagrams_are_accepted() {
    let value = "v".repeat(100);
    let server = Server::start(Box::new(move |_, frame, request, send| {
        let all = datagrams_of(frame.id, request, &value, 20);
        for datagram in all.iter().rev() {
            send(datagram);
            send(datagram);
        }
    }));
    for report in server.load(|options| options.pipeline = 3) {
        assert_eq!((report.requests, report.errors), (20, 0), "{report:?}");
        let row = report.memcached.unwrap();
        assert_eq!((row.hits, row.value_bytes_read), (20, 2000));
        let datagrams = row.datagrams.unwrap();
        // Seven per answer, and fewer if the run ended before they arrived.
        assert!((130..=140).contains(&datagrams.duplicated), "{datagrams:?}");
        assert_eq!(datagrams.foreign + datagrams.wrong_sequence, 0);
    }
}

#[test]
fn late_responses_match_their_request() {
    // Each request is answered when the next arrives, at which time it already counts as lost.
    let before = std::sync::Mutex::new(None);
    let server = Server::start(Box::new(move |number, frame, _, send| {
        let before = before.lock().unwrap().replace(frame.id);
        if number % 20 > 0 {
            send(&end(before.expect("one was asked before")));
        }
    }));
    for report in server.load(|options| options.timeout = Duration::from_millis(10)) {
        assert_eq!((report.requests, report.errors_by_kind["lost"]), (0, 20));
        let datagrams = report.memcached.unwrap().datagrams.unwrap();
        // The last answer may arrive after the end of the run.
        assert!((1..=19).contains(&datagrams.late), "{datagrams:?}");
        assert_eq!(datagrams.late, datagrams.received);
    }
}

#[test]
fn invalid_datagrams_are_counted_by_kind() {
    let server = Server::start(Box::new(|_, frame, _, send| {
        let id = frame.id;
        send(b"abc");
        send(&[&frame.bytes()[..6], &[0, 1], b"END\r\n"].concat());
        let beyond = Frame {
            sequence: 3,
            datagrams: 3,
            ..frame
        };
        send(&datagram(beyond, "END\r\n"));
        send(&end(id.wrapping_add(1000)));
        send(&end(id));
    }));
    for report in server.load(|_| ()) {
        assert_eq!((report.requests, report.errors), (20, 0), "{report:?}");
        let datagrams = report.memcached.unwrap().datagrams.unwrap();
        assert_eq!((datagrams.received, datagrams.truncated), (100, 20));
        assert_eq!((datagrams.wrong_frame, datagrams.wrong_sequence), (20, 20));
        assert_eq!(datagrams.foreign, 20);
    }
}

#[test]
fn invalid_response_fails_one_request() {
    let server = Server::start(Box::new(|number, frame, request, send| {
        let key = request.split_ascii_whitespace().nth(1).unwrap();
        match number % 4 {
            0 => send(&datagram(
                Frame::only(frame.id),
                "HTTP/1.1 400 Bad Request\r\n",
            )),
            1 => send(&datagram(
                Frame::only(frame.id),
                &format!("VALUE {key} 0 4\r\nab"),
            )),
            _ => send(&end(frame.id)),
        }
    }));
    for report in server.load(|_| ()) {
        assert_eq!(
            (report.requests, report.errors_by_kind["protocol"]),
            (10, 10)
        );
        assert_eq!(report.connections, 1);
    }
}

#[test]
fn wrong_values_are_detected() {
    let value = "x".repeat(100);
    let server = Server::start(Box::new(move |_, frame, request, send| {
        for datagram in datagrams_of(frame.id, request, &value, 1400) {
            send(&datagram);
        }
    }));
    for report in server.load(|options| options.memcached.verify = Verify::Yes) {
        assert_eq!(report.memcached.unwrap().wrong_values, 20);
        assert_eq!(report.statuses["wrong_value"], 20);
    }
}

#[test]
fn response_may_have_message_per_value() {
    // As memcached 1.6 and later.
    let server = Server::start(Box::new(|_, frame, request, send| {
        let keys = request.split_ascii_whitespace().skip(1);
        for key in keys {
            let value = format!("VALUE {key} 0 4\r\nabcd\r\n");
            send(&datagram(Frame::only(frame.id), &value));
        }
        let nothing = Frame {
            datagrams: 0,
            ..frame
        };
        send(&datagram(nothing, ""));
        send(&end(frame.id));
    }));
    for report in server.load(|options| options.memcached.multiget = 3) {
        assert_eq!((report.requests, report.errors), (20, 0));
        let row = report.memcached.unwrap();
        assert_eq!((row.hits, row.keys_asked), (60, 60));
    }
}

#[test]
fn unreachable_server_prevents_run() {
    let unused = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = unused.local_addr().unwrap();
    // Bound and never read, so it is silent.
    let plan = |address| Plan::new(options(address)).unwrap();
    let Err(Error::Unreachable(error)) = run::start(plan(address)).map(|_| ()) else {
        panic!("nobody answers");
    };
    assert!(
        error.contains("did not respond over UDP to 3 version requests"),
        "{error}"
    );
    drop(unused);
    let Err(Error::Unreachable(error)) = run::start(plan(address)).map(|_| ()) else {
        panic!("nobody listens");
    };
    assert!(
        error.contains("refused the UDP datagram (port unreachable)"),
        "{error}"
    );
    assert!(error.contains("-U PORT"), "{error}");
}

#[test]
fn stopped_server_is_connect_failure() {
    let server = Server::start(Box::new(|_, frame, _, send| send(&end(frame.id))));
    let mut options = options(server.address);
    options.stop = Stop {
        after: Some(Duration::from_secs(1)),
        count: None,
    };
    options.pace = Pace::rate(std::num::NonZeroU64::new(200).unwrap());
    let running = run::start(Plan::new(options).unwrap()).unwrap();
    // The server stops after it has answered some requests.
    let gone = std::thread::spawn(move || drop(server));
    gone.join().unwrap();
    let report = running.finish(|_| ()).unwrap();
    assert!(report.errors_by_kind["connect_refused"] > 0, "{report:?}");
    // The request that it received and no longer answered.
    assert!(report.errors_by_kind["lost"] <= 1, "{report:?}");
}
