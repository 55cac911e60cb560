//! Tests of exchanges with a scripted server on every driver: epoll, io_uring if the kernel has it, and simulated cores
//! with many seeds.

mod failing;
mod memcached;
mod pacing;
mod requests;
#[path = "../../../../tests/seeds.rs"]
mod seeds;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Input, Io, Listener, Simulation, Stream};

use super::run;
use crate::connection::core_run::CoreRun;
use crate::pace::start_barrier::StartBarrier;
use crate::plan::tests::options;
use crate::plan::{Options, Plan};
use crate::protocol::failure::Failure;
use crate::record::Record;
use crate::run::part::{Message, run_core};

use seeds::seeds;

const SEEDS: u64 = 20;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[derive(Clone)]
struct Reply {
    bytes: Vec<u8>,
    then: Then,
}

/// Action of the server after a response.
#[derive(Clone, Copy)]
enum Then {
    Stay,
    Close,
    /// Closes without having read the request's body.
    CloseEarly,
    /// Pauses for this long.
    Stall(Duration),
}

fn reply(bytes: &[u8], then: Then) -> Reply {
    Reply {
        bytes: bytes.to_vec(),
        then,
    }
}

/// Returns the response to a request, given its head, its number in the run, and its number on the connection, from 0.
type Script = Rc<dyn Fn(&str, u64, u64) -> Reply>;

pub(crate) struct Outcome {
    pub(crate) record: Record,
    /// Requests read by the server.
    pub(crate) seen: u64,
}

impl Outcome {
    pub(crate) fn failures(&self) -> Vec<(Failure, u64)> {
        Failure::ALL
            .into_iter()
            .map(|failure| (failure, self.record.failures_of(failure)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Asserts `count` responses and no failures.
    #[track_caller]
    pub(crate) fn has_responses(&self, count: u64) {
        assert_eq!(self.failures(), []);
        assert_eq!(self.record.responses(), count);
    }

    #[track_caller]
    pub(crate) fn adds_up(&self) {
        let record = &self.record;
        let failed: u64 = self.failures().iter().map(|(_, count)| count).sum();
        assert_eq!(record.tally.errors, failed);
        let measured = record.responses() - record.unmeasured;
        let late = record.late - record.late_unmeasured;
        assert_eq!(record.times.response.count(), measured + late);
        let statuses: u64 = record.outcome_counts().map(|(_, count)| count).sum();
        assert_eq!(statuses, record.responses());
        assert!(record.tally.requests <= record.responses() + failed);
        assert!(record.established + record.connect_failures() <= record.tally.connections);
    }
}

/// Runs the options as changed by `change` against a server that follows `script`, on every driver, and calls `check`
/// with the result.
#[track_caller]
fn play(
    change: impl Fn(&mut Options),
    script: impl Fn(&str, u64, u64) -> Reply + 'static,
    check: impl Fn(&Outcome),
) {
    let script: Script = Rc::new(script);
    on_every_core(|core| check(&play_one(core, &change, &script)));
}

/// Runs `test` on cores of every driver, including simulated ones.
#[track_caller]
pub(crate) fn on_every_core(test: impl Fn(Core)) {
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            eprintln!("skipped: this kernel has no {io:?}");
            continue;
        }
        eprintln!("{io:?}");
        test(Core::new(0, io).unwrap());
    }
    for seed in seeds(SEEDS) {
        eprintln!("simulated, seed {seed}");
        test(Core::simulated(Simulation::with_seed(seed)));
    }
}

/// The same on one simulated core.
#[track_caller]
fn play_simulated(
    simulation: Simulation,
    change: &impl Fn(&mut Options),
    script: &Script,
    check: &impl Fn(&Outcome),
) {
    eprintln!("simulated, seed {}", simulation.seed);
    check(&play_one(Core::simulated(simulation), change, script));
}

fn play_one(core: Core, change: &impl Fn(&mut Options), script: &Script) -> Outcome {
    let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let listener = Listener::new(&core, &claim).unwrap();
    let seen = Rc::new(Cell::new(0));
    core.spawn(listen(
        core.clone(),
        listener,
        Rc::clone(script),
        Rc::clone(&seen),
    ));
    let record = load(&core, change, claim.address().clone());
    let outcome = Outcome {
        record,
        seen: seen.get(),
    };
    outcome.adds_up();
    outcome
}

pub(crate) fn load(core: &Core, change: &impl Fn(&mut Options), address: Address) -> Record {
    let mut options = options("http://server/");
    change(&mut options);
    let plan = Arc::new(Plan::new(options).unwrap());
    let (messages, told) = channel();
    let gate = Arc::new(StartBarrier::new(1, None));
    let mut record = run_core(core, &plan, address, &gate, &messages).record;
    for message in told.try_iter() {
        if let Message::Second(_, _, Some(measured)) = message {
            record.times.merge(&measured.told.times);
        }
    }
    record
}

async fn listen(core: Core, listener: Listener, script: Script, seen: Rc<Cell<u64>>) {
    while let Ok(stream) = listener.accept().await {
        core.spawn(serve(stream, Rc::clone(&script), Rc::clone(&seen)));
    }
}

async fn serve(stream: Stream, script: Script, seen: Rc<Cell<u64>>) {
    let mut input = Input::default();
    let mut on_connection = 0;
    loop {
        let text = String::from_utf8(input.bytes().to_vec()).unwrap();
        let Some(end) = text.find("\r\n\r\n") else {
            match stream.recv(&mut input).await {
                Ok(1..) => continue,
                Ok(0) | Err(_) => return,
            }
        };
        let Reply { bytes, then } = script(&text[..end + 2], seen.get(), on_connection);
        seen.set(seen.get() + 1);
        on_connection += 1;
        input.consume(end + 4);
        if !matches!(then, Then::CloseEarly)
            && skip_body(&stream, &mut input, &text[..end]).await.is_none()
        {
            return;
        }
        let bytes: Rc<[u8]> = bytes.into();
        stream.queue(bytes);
        if stream.flush().await.is_err() {
            return;
        }
        match then {
            Then::Stay => {}
            Then::Close | Then::CloseEarly => {
                let _ = stream.shutdown().await;
                return;
            }
            Then::Stall(time) => stream.core().sleep(time).await,
        }
    }
}

/// Reads the body that the head of a request announces; `None` if it does not arrive.
async fn skip_body(stream: &Stream, input: &mut Input, head: &str) -> Option<()> {
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let mut left: usize = length.map_or(0, |length| length.parse().unwrap());
    while left > 0 {
        let here = left.min(input.bytes().len());
        input.consume(here);
        left -= here;
        if left > 0 && matches!(stream.recv(input).await, Ok(0) | Err(_)) {
            return None;
        }
    }
    Some(())
}

#[test]
fn request_count_is_exact_across_connections() {
    for (count, connections) in [(1, 1), (100, 7), (3, 10)] {
        play(
            |options| {
                options.stop.count = Some(count);
                options.connections = connections;
            },
            |_, _, _| reply(OK, Then::Stay),
            |outcome| {
                outcome.has_responses(count);
                assert_eq!(outcome.seen, count);
                assert!(outcome.record.established <= count.min(connections as u64));
                assert_eq!(outcome.record.tally.bytes, count * OK.len() as u64);
            },
        );
    }
}

#[test]
fn pipelined_responses_are_counted_exactly() {
    play(
        |options| {
            options.stop.count = Some(100);
            options.connections = 3;
            options.pipeline = 7;
        },
        |_, number, _| match number % 2 {
            0 => reply(OK, Then::Stay),
            _ => reply(b"HTTP/1.1 204 No Content\r\n\r\n", Then::Stay),
        },
        |outcome| {
            outcome.has_responses(100);
            assert_eq!(outcome.seen, 100);
            let statuses: Vec<_> = outcome.record.outcome_counts().collect();
            assert_eq!(statuses, [("200".to_owned(), 50), ("204".to_owned(), 50)]);
        },
    );
}

#[test]
fn all_response_framings_are_read() {
    let large = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".as_slice(),
        &[b'x'; 100_000],
    ]
    .concat();
    let stays: [(&str, &[u8]); 9] = [
        ("GET", OK),
        ("GET", &large),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (
            "GET",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n1\r\nd\r\n0\r\nX: y\r\n\r\n",
        ),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "GET",
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n",
        ),
        (
            "GET",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        ),
        (
            "GET",
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
        ),
    ];
    for (method, response) in stays {
        let response = response.to_vec();
        play(
            |options| {
                options.method = method.to_owned();
                options.stop.count = Some(6);
                options.connections = 2;
            },
            move |_, _, _| reply(&response, Then::Stay),
            |outcome| {
                outcome.has_responses(6);
                assert!(outcome.record.established <= 2, "connections were kept");
            },
        );
    }
}

#[test]
fn closed_connection_is_reopened() {
    let closes: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\n\r\nas long as it lasts",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.0 200 OK\r\n\r\n",
    ];
    for response in closes {
        play(
            |options| {
                options.stop.count = Some(6);
                options.connections = 2;
            },
            |_, _, _| reply(response, Then::Close),
            |outcome| {
                outcome.has_responses(6);
                assert_eq!((outcome.record.established, outcome.record.resent), (6, 0));
            },
        );
    }
}

#[test]
fn last_request_sends_connection_close() {
    for pipeline in [1, 2] {
        play(
            |options| {
                options.stop.count = Some(12);
                options.requests_per_connection = Some(3);
                options.pipeline = pipeline;
            },
            |head, _, on_connection| {
                let last = head.contains("Connection: close");
                assert_eq!(last, on_connection == 2, "request {on_connection}");
                reply(OK, if last { Then::Close } else { Then::Stay })
            },
            |outcome| {
                outcome.has_responses(12);
                assert_eq!((outcome.seen, outcome.record.established), (12, 4));
            },
        );
    }
}

#[test]
fn connection_close_request_ends_connection() {
    play(
        |options| {
            options.stop.count = Some(6);
            options
                .headers
                .push(("connection".to_owned(), "Keep-Alive, Close".to_owned()));
        },
        // The server keeps the connection open (RFC 9112 section 9.6: the client closes it as well).
        |_, _, on_connection| {
            assert_eq!(on_connection, 0, "one request on each connection");
            reply(OK, Then::Stay)
        },
        |outcome| {
            outcome.has_responses(6);
            assert_eq!((outcome.record.established, outcome.record.resent), (6, 0));
        },
    );
}

#[test]
fn idle_close_by_server_fails_no_request() {
    play(
        |options| {
            options.stop.count = Some(20);
            options.connections = 2;
        },
        |_, _, on_connection| match on_connection {
            2 => reply(OK, Then::Close),
            _ => reply(OK, Then::Stay),
        },
        |outcome| {
            // A simulated server may have read a request that crosses the close.
            let crossed = outcome.record.failures_of(Failure::ClosedBeforeResponse);
            assert_eq!(outcome.record.responses() + crossed, 20);
            assert_eq!(outcome.seen, outcome.record.responses());
        },
    );
}

#[test]
fn requests_read_by_server_are_not_resent() {
    for method in ["GET", "POST"] {
        play(
            |options| {
                options.stop.count = Some(40);
                options.connections = 2;
                options.method = method.to_owned();
            },
            // Every fourth request is read, and the connection closed without a response.
            |_, number, _| match number % 4 {
                3 => reply(b"", Then::Close),
                _ => reply(OK, Then::Stay),
            },
            |outcome| {
                assert_eq!(outcome.seen, 40, "each was read once");
                assert_eq!(outcome.failures(), [(Failure::ClosedBeforeResponse, 10)]);
                assert_eq!((outcome.record.responses(), outcome.record.resent), (30, 0));
            },
        );
    }
}

#[test]
fn pipelined_requests_after_connection_close_are_resent() {
    play(
        |options| {
            options.stop.count = Some(20);
            options.pipeline = 4;
        },
        |_, _, on_connection| match on_connection {
            1 => reply(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                Then::Stay,
            ),
            _ => reply(OK, Then::Stay),
        },
        |outcome| {
            outcome.has_responses(20);
            assert!(outcome.record.resent >= 20 / 2);
        },
    );
}

#[test]
fn connection_future_size_is_bounded() {
    let core = Core::simulated(Simulation::with_seed(0));
    let plan = Arc::new(Plan::new(options("http://a/")).unwrap());
    let core_run = CoreRun::new(&core, &plan, Address::Unix("/nowhere".into()));
    let bytes = std::mem::size_of_val(&run(core_run, 0, 0));
    eprintln!("a connection takes {bytes} bytes");
    assert!(bytes <= 700, "{bytes} bytes");
}
