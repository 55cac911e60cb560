//! Tests of connections, counters and reports with a protocol other than HTTP; their code is the same for all
//! protocols.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Input, Io, Listener, Simulation, Stream};

use super::{SEEDS, seeds};
use crate::merge::merge;
use crate::merge::part::Part;
use crate::pace::Pace;
use crate::pace::start_barrier::StartBarrier;
use crate::plan::tests::options;
use crate::plan::{Options, Plan};
use crate::protocol::failure::Failure;
use crate::record::Record;
use crate::run;
use crate::run::part::run_core;

fn plan(change: impl Fn(&mut Options), url: &str) -> Plan {
    let mut options = options(url);
    change(&mut options);
    Plan::new(options).unwrap()
}

/// Returns the response to the n-th request, for this key, or an empty string to close the connection.
type Script = fn(u64, &str) -> String;

/// Runs the options as changed by `change` against a server that follows `script`, on every driver, and calls `check`
/// with the record.
#[track_caller]
fn play(change: impl Fn(&mut Options), script: Script, check: impl Fn(&Record)) {
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            eprintln!("skipped: this kernel has no {io:?}");
            continue;
        }
        eprintln!("{io:?}");
        check(&play_one(&Core::new(0, io).unwrap(), &change, script));
    }
    for seed in seeds(SEEDS) {
        eprintln!("simulated, seed {seed}");
        let core = Core::simulated(Simulation::with_seed(seed));
        check(&play_one(&core, &change, script));
    }
}

fn play_one(core: &Core, change: &impl Fn(&mut Options), script: Script) -> Record {
    let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let listener = Listener::new(core, &claim).unwrap();
    let own = core.clone();
    core.spawn(async move {
        let number = Rc::new(Cell::new(0));
        while let Ok(stream) = listener.accept().await {
            own.spawn(serve(stream, script, Rc::clone(&number)));
        }
    });
    let plan = Arc::new(plan(change, "memcached://server"));
    let (messages, _told) = channel();
    let gate = Arc::new(StartBarrier::new(1, None));
    run_core(core, &plan, claim.address().clone(), &gate, &messages).record
}

async fn serve(stream: Stream, script: Script, number: Rc<Cell<u64>>) {
    let mut input = Input::default();
    loop {
        let text = String::from_utf8(input.bytes().to_vec()).unwrap();
        let Some((line, _)) = text.split_once("\r\n") else {
            match stream.recv(&mut input).await {
                Ok(1..) => continue,
                Ok(0) | Err(_) => return,
            }
        };
        input.consume(line.len() + 2);
        let answer = script(number.get(), key(line));
        number.set(number.get() + 1);
        stream.queue(Rc::<[u8]>::from(answer.as_bytes()));
        if stream.flush().await.is_err() || answer.is_empty() {
            return;
        }
    }
}

fn key(line: &str) -> &str {
    line.strip_prefix("get ").unwrap()
}

fn hit_or_miss(number: u64, key: &str) -> String {
    match number % 4 {
        0 => "END\r\n".to_owned(),
        1 => "SERVER_ERROR out of memory\r\n".to_owned(),
        2 => format!("VALUE {key} 0 0\r\n\r\nEND\r\n"),
        _ => format!("VALUE {key} 0 5\r\na\r\nbc\r\nEND\r\n"),
    }
}

fn named(said: &[(&str, u64)]) -> Vec<(String, u64)> {
    let named = said.iter().map(|(name, count)| (name.to_string(), *count));
    named.collect()
}

#[test]
fn responses_are_counted_by_protocol_outcome() {
    for pipeline in [1, 7] {
        play(
            |options| {
                options.stop.count = Some(40);
                options.connections = 3;
                options.pipeline = pipeline;
            },
            hit_or_miss,
            |record| {
                assert_eq!((record.responses(), record.tally.errors), (40, 10));
                let said: Vec<_> = record.outcome_counts().collect();
                assert_eq!(
                    said,
                    named(&[("hit", 20), ("miss", 10), ("server_error", 10)])
                );
                assert_eq!(record.tally.statuses, [0, 20, 10, 0, 10]);
                assert_eq!(record.refusals(), 10);
            },
        );
    }
}

#[test]
fn memcached_failures_are_classified() {
    let cases: [(Failure, Script); 4] = [
        (Failure::Protocol, |_, _| {
            "HTTP/1.1 200 OK\r\n\r\n".to_owned()
        }),
        (Failure::Timeout, |_, key| format!("VALUE {key} 0 9\r\nabc")),
        (Failure::Timeout, |_, _| "VAL".to_owned()),
        (Failure::ClosedBeforeResponse, |_, _| String::new()),
    ];
    for (failure, script) in cases {
        play(
            |options| {
                options.stop.count = Some(4);
                options.timeout = Duration::from_millis(20);
            },
            script,
            |record| {
                assert_eq!(record.failures_of(failure), 4);
                assert_eq!((record.responses(), record.tally.errors), (0, 4));
            },
        );
    }
}

#[test]
fn connections_end_after_request_limit() {
    play(
        |options| {
            options.stop.count = Some(12);
            options.requests_per_connection = Some(3);
        },
        hit_or_miss,
        |record| assert_eq!((record.responses(), record.established), (12, 4)),
    );
}

fn answer_all(mut stream: TcpStream, number: &AtomicU64) {
    let reader = BufReader::new(stream.try_clone().unwrap());
    for line in reader.lines().map_while(Result::ok) {
        let answer = match &*line {
            "version" => "VERSION 1\r\n".to_owned(),
            get => hit_or_miss(number.fetch_add(1, Ordering::Relaxed), key(get)),
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn reports_and_merges_have_protocol_outcome_names() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("memcached://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let number = Arc::new(AtomicU64::new(0));
        for stream in listener.incoming().flatten() {
            let number = Arc::clone(&number);
            std::thread::spawn(move || answer_all(stream, &number));
        }
    });
    // Both at the same time, as the parts of one load.
    let runs = ["a", "b"].map(|name| {
        let plan = plan(
            |options| {
                options.stop.count = Some(400);
                options.pace = Pace::rate(NonZeroU64::new(400).unwrap());
            },
            &url,
        );
        (name.to_owned(), run::start(plan).unwrap())
    });
    let parts = runs.map(|(name, running)| {
        let mut classes = BTreeMap::new();
        let report = running.finish(|moment| classes = moment.figures().statuses);
        assert!(classes.contains_key("hits"), "{classes:?}");
        Part {
            name,
            report: report.unwrap(),
        }
    });
    let report = &parts[0].report;
    assert!(report.evidence.is_count_consistent);
    assert_eq!(report.options.method, "get");
    let warnings = report.other_warnings().join("; ");
    assert!(
        warnings.contains("of 400 responses were server errors"),
        "{warnings}"
    );
    let text = report.to_string();
    assert!(text.contains("hit: ") && text.contains("miss: "), "{text}");
    assert!(crate::report::html::page(report).contains("<th scope=\"row\">hit</th>"));
    let sum = merge(&parts).unwrap();
    let all = named(&[("hit", 400), ("miss", 200), ("server_error", 200)]);
    assert_eq!(Vec::from_iter(sum.statuses), all);
}
