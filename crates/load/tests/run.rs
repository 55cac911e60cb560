//! Whole runs with real threads and a real server, from options to JSON.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use onrush_load::error::Error;
use onrush_load::pace::{Pace, Start};
use onrush_load::plan::{Connecting, Options, Plan, Shard};
use onrush_load::report::Report;
use onrush_load::requests::Asks;
use onrush_load::run::start;
use onrush_load::stop::Stop;
use onrush_load::target::Target;
use onrush_load::{Io, Resume, Verify};
use serde_json::{Map, Value};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn options(url: &str, count: u64) -> Options {
    Options {
        target: Target::parse(url).unwrap(),
        connections: 4,
        threads: 2,
        cpus: Vec::new(),
        io: Io::Auto,
        busy_poll: false,
        stop: Stop {
            after: None,
            count: Some(count),
        },
        pace: Pace::Closed,
        start: Start::default(),
        warm_up: Duration::ZERO,
        connecting: Connecting::default(),
        catch_up: None,
        shard: Shard::default(),
        seed: 0,
        requests_per_connection: None,
        pipeline: 1,
        method: "GET".to_owned(),
        headers: Vec::new(),
        asks: Asks::default(),
        timeout: Duration::from_secs(60),
        verify: Verify::default(),
        resume: Resume::default(),
        groups: Vec::new(),
    }
}

fn run(options: Options) -> Report {
    start(Plan::new(options).unwrap())
        .unwrap()
        .finish(|_| ())
        .unwrap()
}

/// Answers every request on `stream`; requests come one at a time and in one piece.
fn answer_all(mut stream: impl Read + Write) {
    let mut request = [0; 4096];
    while let Ok(1..) = stream.read(&mut request) {
        if stream.write_all(ANSWER).is_err() {
            return;
        }
    }
}

/// A server on a free port, which lives as long as the test process. Returns its URL.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer_all(stream));
        }
    });
    url
}

#[test]
fn a_run_counts_exactly_and_prints_only_percentiles_its_count_supports() {
    let url = server();
    for (count, percentiles) in [
        (19, &[][..]),
        (101, &["50", "75", "90"]),
        (2001, &["50", "75", "90", "95", "99"]),
    ] {
        let report = run(options(&url, count));
        assert_eq!((report.requests, report.errors), (count, 0));
        assert_eq!(report.statuses, BTreeMap::from([(200, count)]));
        assert_eq!(report.bytes, count * ANSWER.len() as u64);
        assert_eq!(report.connections, 4);
        let keys: Vec<&str> = report
            .latency_us
            .percentiles
            .iter()
            .map(|(percentile, _)| percentile.as_str())
            .collect();
        assert_eq!(keys, percentiles);
        let in_rows: u64 = report.seconds.iter().map(|row| row.requests).sum();
        assert_eq!(in_rows, count);
    }
}

#[test]
fn the_shares_of_threads_and_connections_add_up_at_a_rate() {
    let mut options = options(&server(), 50);
    options.pace = Pace::rate(NonZeroU64::new(1000).unwrap());
    options.connections = 3;
    let report = run(options);
    assert_eq!((report.requests, report.options.rate), (50, Some(1000)));
}

#[test]
fn a_rate_that_was_missed_is_a_warning() {
    let mut options = options(&server(), 5000);
    options.pace = Pace::rate(NonZeroU64::new(1_000_000_000).unwrap());
    let report = run(options);
    let missed = "1,000,000,000 requests per second were asked for";
    let warned = report.warnings.iter().any(|text| text.starts_with(missed));
    assert!(warned, "{:?}", report.warnings);
}

#[test]
fn a_unix_socket_is_loaded_like_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer_all(stream));
        }
    });
    let report = run(options(&format!("unix:{}:/path", path.display()), 100));
    assert_eq!((report.requests, report.errors), (100, 0));
}

#[test]
fn a_target_where_nobody_listens_is_unreachable_in_one_sentence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let running = start(Plan::new(options(&format!("http://{address}/"), 100)).unwrap()).unwrap();
    let Err(Error::Unreachable(sentence)) = running.finish(|_| ()) else {
        panic!("it was reached");
    };
    assert!(sentence.contains(&address.to_string()), "{sentence}");
    assert!(sentence.contains("Connection refused"), "{sentence}");
}

#[test]
fn a_run_that_is_stopped_reports_what_it_has_and_says_so() {
    let mut options = options(&server(), 1);
    options.stop = Stop {
        after: Some(Duration::from_secs(3600)),
        count: None,
    };
    let running = start(Plan::new(options).unwrap()).unwrap();
    running.stopper().stop();
    let report = running.finish(|_| ()).unwrap();
    let ended = |text: &String| text.starts_with("ended early");
    assert!(report.warnings.iter().any(ended), "{:?}", report.warnings);
}

#[test]
fn the_json_of_a_run_is_what_the_schema_says() {
    let schema = include_str!("../../../docs/load-result.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let mut without_answers = options(&server(), 1);
    without_answers.stop.after = Some(Duration::from_nanos(1));
    for options in [options(&server(), 3000), without_answers] {
        let json: Value = serde_json::from_str(&run(options).to_json()).unwrap();
        check(&json, &schema, "result");
    }
}

#[test]
fn the_check_against_the_schema_finds_what_is_wrong() {
    let schema: Value = serde_json::from_str(
        r#"{"type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": ["integer", "null"], "minimum": 0}, "b": {"enum": ["c"]}}}"#,
    )
    .unwrap();
    let is_right = |json: &str| {
        let json: Value = serde_json::from_str(json).unwrap();
        let schema = schema.clone();
        std::panic::catch_unwind(move || check(&json, &schema, "test")).is_ok()
    };
    assert!(is_right(r#"{"a": 1, "b": "c"}"#) && is_right(r#"{"a": null}"#));
    for wrong in [
        "[]",
        "{}",
        r#"{"a": 1.5}"#,
        r#"{"a": -1}"#,
        r#"{"a": 1, "b": "d"}"#,
        r#"{"a": 1, "x": 1}"#,
    ] {
        assert!(!is_right(wrong), "{wrong}");
    }
}

/// Checks `value` against the parts of JSON Schema that ours is made of; panics where it differs.
#[track_caller]
fn check(value: &Value, schema: &Value, place: &str) {
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        Value::Null => Vec::new(),
        single => vec![single.clone()],
    };
    assert!(
        types.is_empty() || types.iter().any(|wanted| is_of_type(value, wanted)),
        "{place} is {value}, expected {types:?}"
    );
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{place} is {value}");
    }
    if let (Some(minimum), Some(number)) = (schema["minimum"].as_f64(), value.as_f64()) {
        assert!(number >= minimum, "{place} is {number}");
    }
    if let Some(items) = value.as_array() {
        for (at, item) in items.iter().enumerate() {
            check(item, &schema["items"], &format!("{place}[{at}]"));
        }
    }
    if let Some(object) = value.as_object() {
        check_object(object, schema, place);
    }
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the check does not know the type {other}"),
    }
}

fn check_object(object: &Map<String, Value>, schema: &Value, place: &str) {
    for required in schema["required"].as_array().into_iter().flatten() {
        let required = required.as_str().unwrap();
        assert!(object.contains_key(required), "{place} lacks {required}");
    }
    for (key, value) in object {
        let place = format!("{place}.{key}");
        let known = &schema["properties"][key];
        if !known.is_null() {
            check(value, known, &place);
            continue;
        }
        // Keys that are numbers: the one pattern stands for all of them.
        let patterns = schema["patternProperties"].as_object();
        let pattern = patterns.and_then(|patterns| patterns.values().next());
        let is_number = key.parse::<f64>().is_ok();
        let Some(pattern) = pattern.filter(|_| is_number) else {
            panic!("{place} is not in the schema");
        };
        check(value, pattern, &place);
    }
}
