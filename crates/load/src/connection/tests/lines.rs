//! The same connections, counters and reports under another protocol: they know none.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Input, Io, Listener, Simulation, Stream};

use super::SEEDS;
use crate::failure::Failure;
use crate::gate::Gate;
use crate::merge::merge;
use crate::merge::part::Part;
use crate::pace::Pace;
use crate::part::run_core;
use crate::plan::tests::options;
use crate::plan::{Options, Plan};
use crate::protocol::Protocol;
use crate::protocol::lines::Lines;
use crate::record::Record;
use crate::run;

fn plan(change: impl Fn(&mut Options), url: &str) -> Plan {
    let mut options = options(url);
    change(&mut options);
    Plan {
        protocol: Protocol::Lines(Lines::new()),
        ..Plan::new(options).unwrap()
    }
}

/// What the server says to the request with this number; nothing where it ends the connection instead.
type Script = fn(u64) -> &'static str;

/// Runs what `change` makes of the options against a server that does as `script` says, on every driver, and shows
/// `check` what was recorded.
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
    for seed in SEEDS {
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
        while let Ok(stream) = listener.accept().await {
            own.spawn(serve(stream, script));
        }
    });
    let plan = Arc::new(plan(change, "http://server/"));
    let (messages, _told) = channel();
    let gate = Arc::new(Gate::new(1, None));
    run_core(core, &plan, claim.address().clone(), &gate, &messages).record
}

async fn serve(stream: Stream, script: Script) {
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
        let said = script(number(line));
        stream.queue(Rc::<[u8]>::from(said.as_bytes()));
        if stream.flush().await.is_err() || said.is_empty() {
            return;
        }
    }
}

fn number(line: &str) -> u64 {
    line.strip_prefix("get ").unwrap().parse().unwrap()
}

fn hit_or_miss(number: u64) -> &'static str {
    match number % 4 {
        0 => "MISS\r\n",
        1 => "ERROR\r\n",
        2 => "VALUE 0\r\n\r\n",
        _ => "VALUE 5\r\na\r\nbc\r\n",
    }
}

fn named(said: &[(&str, u64)]) -> Vec<(String, u64)> {
    let named = said.iter().map(|(name, count)| (name.to_string(), *count));
    named.collect()
}

#[test]
fn what_was_said_is_counted_by_its_name_in_the_protocol() {
    for pipeline in [1, 7] {
        play(
            |options| {
                options.stop.count = Some(40);
                options.connections = 3;
                options.pipeline = pipeline;
            },
            hit_or_miss,
            |record| {
                assert_eq!((record.responses(), record.tally.errors), (40, 0));
                let said: Vec<_> = record.said().collect();
                assert_eq!(said, named(&[("hit", 20), ("miss", 10), ("error", 10)]));
                assert_eq!(record.tally.statuses, [20, 10, 10, 0, 0]);
                assert_eq!(record.refusals(), 10);
            },
        );
    }
}

#[test]
fn what_goes_wrong_is_told_apart_as_in_any_protocol() {
    let cases: [(Failure, Script); 4] = [
        (Failure::Protocol, |_| "HTTP/1.1 200 OK\r\n\r\n"),
        (Failure::Timeout, |_| "VALUE 9\r\nabc"),
        (Failure::Timeout, |_| "VAL"),
        (Failure::ClosedUnanswered, |_| ""),
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
fn a_connection_carries_as_many_requests_as_it_may() {
    play(
        |options| {
            options.stop.count = Some(12);
            options.requests_per_connection = Some(3);
        },
        hit_or_miss,
        |record| assert_eq!((record.responses(), record.established), (12, 4)),
    );
}

fn respond_to_all(mut stream: TcpStream) {
    let reader = BufReader::new(stream.try_clone().unwrap());
    for line in reader.lines().map_while(Result::ok) {
        let said = hit_or_miss(number(&line));
        if stream.write_all(said.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn reports_sums_and_views_have_the_names_of_the_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || respond_to_all(stream));
        }
    });
    // Both at once, as parts of one load are.
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
        let by_class = named(&[("errors", 100), ("hits", 200), ("misses", 100)]);
        assert_eq!(Vec::from_iter(classes), by_class);
        Part {
            name,
            report: report.unwrap(),
        }
    });
    let report = &parts[0].report;
    let said = named(&[("error", 100), ("hit", 200), ("miss", 100)]);
    assert_eq!(Vec::from_iter(report.statuses.clone()), said);
    assert!(report.evidence.is_count_consistent);
    assert_eq!(report.options.method, "get");
    let warnings = report.other_warnings().join("; ");
    assert!(
        warnings.contains("100 of 400 responses were errors of the server"),
        "{warnings}"
    );
    let text = report.to_string();
    assert!(text.contains("error: 100, hit: 200, miss: 100"), "{text}");
    assert!(crate::html::page(report).contains("<th scope=\"row\">hit</th>"));
    let sum = merge(&parts).unwrap();
    assert_eq!(sum.statuses["hit"], 400);
}
