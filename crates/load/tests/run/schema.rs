//! JSON of runs checked against `docs/load-result.schema.json`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use onrush_load::journey;
use onrush_load::memcached::ratio::Ratio;
use onrush_load::merge::merge;
use onrush_load::merge::part::Part;
use onrush_load::plan::{Options, Shard};
use onrush_load::report::Report;
use onrush_load::stop::Stop;
use serde_json::Value;

use crate::options;
use crate::respond_to_all;
use crate::run;
use crate::server;

#[path = "schema/calls.rs"]
mod calls;
#[path = "schema/check.rs"]
mod check;

/// Returns the JSON of `report` after checking it against the schema.
#[track_caller]
fn checked(report: &Report) -> Value {
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    check::conforms(&json, "load-result.schema.json");
    json
}

/// Behaviour of a server on a connection.
#[derive(Clone, Copy)]
enum Behaviour {
    Respond,
    /// Reads requests, and sends nothing.
    Silence,
    /// Reads one request, and closes the connection.
    Close,
    /// Sends something other than HTTP.
    Nonsense,
}

/// Starts a server that behaves in these ways, connection by connection in turn. Returns its URL.
fn server_of(manners: &'static [Behaviour]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (stream, manner) in listener.incoming().flatten().zip(manners.iter().cycle()) {
            thread::spawn(move || serve(stream, *manner));
        }
    });
    url
}

fn serve(mut stream: TcpStream, manner: Behaviour) {
    let mut request = [0; 4096];
    match manner {
        Behaviour::Respond => respond_to_all(stream),
        Behaviour::Silence => while let Ok(1..) = stream.read(&mut request) {},
        Behaviour::Close => drop(stream.read(&mut request)),
        Behaviour::Nonsense => {
            if let Ok(1..) = stream.read(&mut request) {
                let _ = stream.write_all(b"nonsense\r\n\r\n");
            }
        }
    }
}

fn short(url: &str, milliseconds: u64) -> Options {
    let mut options = options(url, 1);
    options.stop = Stop {
        after: Some(Duration::from_millis(milliseconds)),
        count: None,
    };
    options
}

#[test]
fn run_conforms_to_schema() {
    let mut without_responses = options(&server(), 1);
    without_responses.stop.after = Some(Duration::from_nanos(1));
    for options in [options(&server(), 3000), without_responses] {
        checked(&run(options));
    }
}

#[test]
fn journeys_and_reconnects_conform_to_schema() {
    let text = r#"
[[setup]]
name = "before"
url = "/"
[[journey]]
name = "way"
[[journey.step]]
name = "there"
url = "/"
check = [{ name = "gone", status = 404 }, { name = "good", status = 200 }]
[[journey.step]]
name = "back"
url = "/"
take.none = { header = "X-None" }
"#;
    let mut users = options(&server(), 50);
    users.connections = 5;
    let found = journey::parse(text, Path::new("users.toml"), &users.target).unwrap();
    users.requests.taken = found.journeys.value_names();
    users.requests.requests = found.requests;
    users.journeys = Some(Arc::new(found.journeys));
    let json = checked(&run(users));
    let counts = |row: &Value| {
        ["begun", "completed", "failed", "unfinished"].map(|key| row[key].as_u64().unwrap())
    };
    assert_eq!(counts(&json["setup"]), [5, 5, 0, 0]);
    let way = &json["journeys"][0];
    assert_eq!(counts(way), [50, 0, 50, 0]);
    assert_eq!(
        counts(&way["steps"][0]),
        [50, 50, 0, 0],
        "a check that is not required"
    );
    assert_eq!(way["steps"][0]["checks"][0]["failed"], 50);
    assert_eq!(way["steps"][1]["errors_by_kind"]["no_value"], 50);
    assert_eq!(json["requests"], 100);
    assert_eq!(
        json["errors"], 100,
        "a failed check and a missing value of each"
    );
    let mut again = options(&server(), 20);
    again.requests_per_connection = Some(2);
    let json = checked(&run(again));
    assert_eq!(json["ports"]["addresses"], 1);
}

#[test]
fn unfinished_requests_conform_to_schema() {
    let url = server_of(&[Behaviour::Silence, Behaviour::Respond]);
    let json = checked(&run(short(&url, 300)));
    assert_eq!(
        json["unfinished"].as_u64().unwrap() - json["late"].as_u64().unwrap(),
        2
    );
    for key in ["latency_us", "service_us", "first_byte_us"] {
        let at_least = json[key]["at_least"].as_array();
        assert!(
            at_least.is_some_and(|figures| !figures.is_empty()),
            "{key}: {json}"
        );
    }
}

#[test]
fn errors_conform_to_schema() {
    let manners = &[
        Behaviour::Silence,
        Behaviour::Close,
        Behaviour::Nonsense,
        Behaviour::Respond,
    ];
    let mut options = short(&server_of(manners), 1000);
    options.timeout = Duration::from_millis(100);
    let json = checked(&run(options));
    for kind in ["timeout", "closed_before_answer", "protocol"] {
        assert!(
            json["errors_by_kind"][kind].as_u64() > Some(0),
            "{kind}: {json}"
        );
    }
}

/// Results of the two halves of a distributed run, made at the same time.
fn halves(options: impl Fn() -> Options + Sync) -> Vec<Part> {
    thread::scope(|scope| {
        let options = &options;
        let running = [0, 1].map(|index| {
            scope.spawn(move || {
                let mut options = options();
                options.shard = Shard { index, count: 2 };
                Part {
                    name: format!("{index}.json"),
                    report: run(options),
                }
            })
        });
        running.map(|part| part.join().unwrap()).into()
    })
}

#[test]
fn merged_result_conforms_to_schema() {
    let url = &server_of(&[Behaviour::Silence, Behaviour::Respond]);
    let parts = halves(|| short(url, 500));
    let json = checked(&merge(&parts).unwrap());
    assert!(json["service_us"]["at_least"].is_array(), "{json}");
}

/// Starts a memcached server that has no keys and fails every set for lack of memory. Returns its URL.
fn memcached() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("memcached://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut out = stream.try_clone().unwrap();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let said: &[u8] = match line.split(' ').next() {
                        Some("get") => b"END\r\n",
                        Some("set") => b"SERVER_ERROR out of memory storing object\r\n",
                        // Data blocks of sets.
                        _ => b"",
                    };
                    if out.write_all(said).is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

#[test]
fn memcached_conforms_to_schema() {
    // Enough requests for both halves to run at the same time.
    const REQUESTS: u64 = 20_000;
    let url = &memcached();
    let parts = halves(|| {
        let mut options = options(url, REQUESTS);
        options.memcached.ratio = Ratio::parse("1:1").unwrap();
        options
    });
    for part in &parts {
        let json = checked(&part.report);
        assert!(json["statuses"]["miss"].as_u64() > Some(0), "{json}");
    }
    let json = checked(&merge(&parts).unwrap());
    let row = &json["memcached"];
    assert_eq!(
        row["gets"].as_u64().unwrap() + row["sets"].as_u64().unwrap(),
        REQUESTS
    );
    assert_eq!(row["gets"], row["misses"]);
    assert_eq!(
        row["errors"]["SERVER_ERROR out of memory storing object"],
        row["sets"]
    );
    assert_eq!(json["evidence"]["failed_responses"], row["sets"]);
}

#[test]
fn schema_check_finds_errors() {
    let schema: Value = serde_json::from_str(
        r#"{"type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": ["integer", "null"], "minimum": 0}, "b": {"enum": ["c"]}},
            "patternProperties": {"^p[0-9]$": {"type": "string"}}}"#,
    )
    .unwrap();
    let is_right = |json: &str| {
        let json: Value = serde_json::from_str(json).unwrap();
        let schema = schema.clone();
        std::panic::catch_unwind(move || check::check(&json, &schema, (&schema, "test"))).is_ok()
    };
    assert!(is_right(r#"{"a": 1, "b": "c"}"#) && is_right(r#"{"a": null, "p1": ""}"#));
    for wrong in [
        "[]",
        "{}",
        r#"{"a": 1.5}"#,
        r#"{"a": -1}"#,
        r#"{"a": 1, "b": "d"}"#,
        r#"{"a": 1, "x": 1}"#,
        r#"{"a": 1, "p1": 1}"#,
        r#"{"a": 1, "p12": ""}"#,
    ] {
        assert!(!is_right(wrong), "{wrong}");
    }
    let unknown = serde_json::json!({ "maximum": 1 });
    let checked =
        std::panic::catch_unwind(|| check::check(&1.into(), &unknown, (&unknown, "test")));
    assert!(checked.is_err(), "a keyword that is not checked");
}
