//! JSON results of each scheme and command: they conform to the shipped schemas and contain their provenance.

use std::fs;

use serde_json::Value;

use crate::datagrams::listener;
use crate::loading::load;
use crate::program::{Serve, run_onrush};
use crate::schema;

/// Runs `onrush load` with these words and returns its JSON, which must conform to this schema.
#[track_caller]
fn result(words: &[&str], name: &str) -> (String, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("result.json").display().to_string();
    let words = [&["load"], words, &["--json", &json]].concat();
    let finished = run_onrush(&words).on_any_machine();
    let text = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let value: Value = serde_json::from_str(&text).expect("it is JSON");
    schema::conforms(&value, name);
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert!(value["host"]["cpus"].as_u64() > Some(0), "{value:#}");
    assert!(value["host"]["kernel"].is_string(), "{value:#}");
    let line = value["command_line"].as_array().expect("a list");
    assert_eq!(
        line[1..],
        words
            .iter()
            .map(|word| Value::from(*word))
            .collect::<Vec<_>>()
    );
    (finished.out, value)
}

const RUN: &str = "load-result.schema.json";
const PACKETS: &str = "load-packets.schema.json";
const SEARCH: &str = "load-search.schema.json";

#[test]
fn results_conform_to_json_schema() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let tls = Serve::start(&["--respond", "200:hello", "--tls", "self-signed"]);
    let (echo, _echo) = listener("echo", "");
    let (datagrams, _datagrams) = listener("echo", "transport = \"udp\"");
    let (sink, _sink) = listener("sink", "transport = \"udp\"");
    let (http, https) = (serve.url("/"), tls.tls_url("/"));
    let tcp = format!("tcp://{}", echo.address);
    let udp = format!("udp://{}", datagrams.address);
    let one_way = format!("udp://{}", sink.address);
    for (words, name) in [
        (&[&http[..], "-n", "100"][..], RUN),
        (&[&http, "--http2", "-n", "100"], RUN),
        (&[&https, "-k", "-n", "100"], RUN),
        (&[&https, "-k", "--http2", "-n", "100"], RUN),
        (&[&tcp, "-n", "100"], RUN),
        (&[&tcp, "-n", "100", "--one-way"], RUN),
        (&[&udp, "-n", "100", "-R", "1000"], PACKETS),
        (&[&one_way, "-n", "100", "-R", "1000"], PACKETS),
        (&[&http, "--find-max", "p50 < 1ns", "-d", "200ms"], SEARCH),
        (
            &[
                &one_way,
                "--find-max",
                "loss < 1%",
                "-d",
                "200ms",
                "-R",
                "100",
            ],
            SEARCH,
        ),
    ] {
        result(words, name);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("run.json").display().to_string();
    let finished =
        run_onrush(&["load", &http, "-d", "7s", "-R", "200", "--json", &file]).on_any_machine();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    result(&["compare", &file, &file], "load-compare.schema.json");
    result(&["merge", &file], RUN);
}

#[test]
fn result_has_no_credentials() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let (_, value) = load(
        &serve.url("/"),
        &[
            "-n",
            "3",
            "--bearer",
            "s3cret",
            "-HCookie: a=s3cret",
            "--header=X-Api-Key: s3cret",
            "--body",
            "s3cret",
        ],
    );
    let text = value.to_string();
    assert!(!text.contains("s3cret"), "{text}");
    let line = value["command_line"].to_string();
    assert!(line.contains("Cookie: (not shown)"), "{line}");
}

#[test]
fn dns_lookup_time_is_reported() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let port = serve.address.rsplit(':').next().expect("it has a port");
    let url = format!("http://localhost:{port}/");
    let (text, value) = result(&[&url, "-n", "3"], RUN);
    assert_eq!(value["dns"][0]["name"], "localhost");
    assert_eq!(value["dns"].as_array().map(Vec::len), Some(1));
    assert!(text.contains("\nDNS          localhost: "), "{text}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("users.toml").display().to_string();
    let journey = "[[journey]]\nname = \"a\"\n[[journey.step]]\nname = \"b\"\nurl = \"/\"\n";
    fs::write(&file, journey).expect("it is ours");
    let (_, value) = result(&[&url, "-n", "3", "--journeys", &file], RUN);
    assert_eq!(value["dns"][0]["name"], "localhost");
    let (text, value) = result(&[&serve.url("/"), "-n", "3"], RUN);
    assert!(
        value["dns"] == Value::Array(Vec::new()) && !text.contains("DNS"),
        "{text}"
    );
}

#[test]
fn latencies_are_split_by_status_class() {
    let serve = Serve::start(&["--synthetic"]);
    let words = [
        &serve.url("/?r=200"),
        &serve.url("/?r=503"),
        "--in-turn",
        "-n",
        "100",
    ];
    let (text, value) = result(&words, RUN);
    let rows = value["by_class"].as_array().expect("a list");
    let rows: Vec<(&Value, &Value)> = rows
        .iter()
        .map(|row| (&row["class"], &row["responses"]))
        .collect();
    assert_eq!(
        rows,
        [(&"2xx".into(), &50.into()), (&"5xx".into(), &50.into())]
    );
    assert!(text.contains("\nby class "), "{text}");
    let (text, value) = result(&[&serve.url("/"), "-n", "10"], RUN);
    assert_eq!(value["by_class"][0]["responses"], 10);
    assert!(!text.contains("by class"), "{text}");
}

#[test]
fn report_uses_singular_for_one_request() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let (text, _) = result(&[&serve.url("/"), "-n", "1"], RUN);
    let nouns = ["requests", "connections", "threads", "responses", "errors"];
    for noun in nouns {
        assert!(!text.contains(&format!(" 1 {noun}")), "{text}");
    }
}

#[test]
fn fewer_requests_than_connections_are_not_suspect() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let (text, value) = result(&[&serve.url("/"), "-c", "5", "-n", "3"], RUN);
    assert_eq!(value["requests"], 3);
    assert_eq!(value["evidence"]["missed"], 0);
    assert!(!text.contains("fewer connections"), "{text}");
}

#[test]
fn bursts_send_planned_requests() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let words = [&serve.url("/"), "--burst", "50/1s", "-d", "3s", "-c", "50"];
    let (text, value) = result(&words, RUN);
    assert_eq!(value["requests"], 150, "{text}");
    assert_eq!(value["evidence"]["missed"], 0, "{text}");
    let reasons = value["verdict"]["reasons"].as_array().expect("a list");
    let is_about_rate = |reason: &&Value| {
        let what = reason["what"].to_string();
        what.contains("rate") || what.contains("sent") || what.contains("started")
    };
    assert_eq!(reasons.iter().find(is_about_rate), None, "{text}");
}
