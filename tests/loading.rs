//! `onrush load`: our counts equal the server's, and the exit code reports the outcome.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::peer::{Peer, are_installed, curl};
use crate::program::{Program, Serve, drivers, onrush, run_onrush, until};
use crate::schema;

/// Runs the load; returns the exit code and the JSON result.
pub(crate) fn load(url: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("result.json").display().to_string();
    let words = [&["load", url, "--json", &json], arguments].concat();
    let finished = run_onrush(&words).on_any_machine();
    let text = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    schema::conforms(&value, "load-result.schema.json");
    (finished.code, value)
}

pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn counts_match_server_counts() {
    for io in drivers() {
        for arguments in [
            &["-n", "1000", "-c", "7"][..],
            &["-n", "1000", "-c", "10", "-t", "2"],
            &["-n", "1000", "-c", "4", "--pipeline", "8"],
            &["-n", "100", "-c", "5", "-r", "4"],
            &["-n", "1", "-c", "1"],
        ] {
            let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
            let arguments = [arguments, &["--io", io]].concat();
            let (code, result) = load(&serve.url("/"), &arguments);
            assert_eq!(code, Some(0), "{arguments:?}: {result}");
            let requests: u64 = arguments[1].parse().unwrap();
            let totals = serve.stop();
            assert_eq!(number(&result, "requests"), requests, "{arguments:?}");
            assert_eq!(number(&result, "errors"), 0, "{arguments:?}");
            assert_eq!(
                number(&result["statuses"], "200"),
                requests,
                "{arguments:?}"
            );
            assert_eq!(totals.requests(), requests, "{arguments:?}: {totals:?}");
            let connections = number(&result, "connections");
            assert_eq!(
                totals.connections(),
                connections,
                "{arguments:?}: {totals:?}"
            );
            if !arguments.contains(&"-r") {
                assert_eq!(connections.to_string(), arguments[3], "{arguments:?}");
            }
        }
    }
}

#[test]
fn timed_run_omits_only_in_flight_requests() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let (code, result) = load(
        &serve.url("/"),
        &["-d", "300ms", "-c", "8", "--pipeline", "4"],
    );
    assert_eq!(code, Some(0), "{result}");
    let (counted, served) = (number(&result, "requests"), serve.stop().requests());
    assert!(
        counted > 0 && (counted..=counted + 8 * 4).contains(&served),
        "{counted} and {served}"
    );
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn load_works_with_nginx_and_haproxy() {
    let nginx = Peer::nginx();
    let haproxy = Peer::haproxy("127.0.0.1:9");
    for url in [nginx.url("/"), haproxy.url("/own")] {
        for arguments in [
            &["-n", "2000", "-c", "10"][..],
            &["-n", "2000", "-c", "10", "--pipeline", "8"],
            &["-n", "200", "-c", "10", "-r", "3"],
            &["-n", "200", "-c", "10", "-X", "HEAD"],
        ] {
            let (code, result) = load(&url, arguments);
            assert_eq!(code, Some(0), "{url} {arguments:?}: {result}");
            assert_eq!(number(&result["statuses"], "200").to_string(), arguments[1]);
        }
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn load_through_haproxy_loses_no_response() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let haproxy = Peer::haproxy(&serve.address);
    let (code, result) = load(&haproxy.url("/"), &["-n", "3000", "-c", "20"]);
    assert_eq!(code, Some(0), "{result}");
    assert_eq!(number(&result, "requests"), 3000);
    assert_eq!(serve.stop().requests(), 3000);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn load_through_proxy_to_nginx_loses_no_response() {
    let nginx = Peer::nginx();
    for io in drivers() {
        let serve = Serve::start(&["--forward", &nginx.server(), "--io", io]);
        for arguments in [
            &["-n", "2000", "-c", "20"][..],
            &["-n", "2000", "-c", "5", "--pipeline", "8"],
            &["-n", "100", "-c", "5", "-r", "3"],
        ] {
            let (code, result) = load(&serve.url("/"), arguments);
            assert_eq!(code, Some(0), "{arguments:?}: {result}");
        }
        let totals = serve.stop();
        assert_eq!(totals.requests(), 4100, "{totals:?}");
        assert_eq!(totals.number_before(" failed upstream"), 0, "{totals:?}");
    }
    assert_eq!(nginx.log().lines().count(), drivers().len() * 4100);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn server_closing_keepalive_connections_loses_no_response() {
    let nginx = Peer::nginx_keeping(7);
    for io in drivers() {
        let serve = Serve::start(&["--forward", &nginx.server(), "--io", io]);
        let (code, result) = load(&serve.url("/"), &["-n", "3000", "-c", "20"]);
        assert_eq!(code, Some(0), "{result}");
        assert_eq!(number(&result["statuses"], "200"), 3000, "{result}");
        assert_eq!(serve.stop().requests(), 3000);
    }
    // The same without a proxy: the client opens new connections.
    let (code, result) = load(&nginx.url("/"), &["-n", "3000", "-c", "20"]);
    assert_eq!(
        (code, number(&result, "requests")),
        (Some(0), 3000),
        "{result}"
    );
    assert!(number(&result, "connections") >= 3000 / 7, "{result}");
}

#[test]
fn server_restart_loses_no_proxied_get() {
    // Both listen on the same socket path, one after the other; in between requests are refused.
    let directory = tempfile::tempdir().expect("a directory");
    let unix = format!("unix:{}", directory.path().join("server").display());
    for io in drivers() {
        let first = Serve::start(&["--respond", "200:hello", "--listen", &unix]);
        let proxy = Serve::start(&["--forward", &unix, "--io", io]);
        // Idle connections remain in the proxy's pools.
        assert_eq!(load(&proxy.url("/"), &["-n", "200", "-c", "20"]).0, Some(0));
        first.stop();
        let second = Serve::start(&["--respond", "200:hello", "--listen", &unix]);
        let (code, result) = load(&proxy.url("/"), &["-n", "200", "-c", "20"]);
        assert_eq!(code, Some(0), "{result}");
        assert_eq!(number(&result["statuses"], "200"), 200, "{result}");
        assert_eq!(second.stop().requests(), 200);
        let totals = proxy.stop();
        assert_eq!(totals.number_before(" failed upstream"), 0, "{totals:?}");
    }
}

#[test]
fn load_over_unix_sockets_loses_no_response() {
    let directory = tempfile::tempdir().expect("a directory");
    let unix = |name: &str| format!("unix:{}", directory.path().join(name).display());
    let last = Serve::start(&["--respond", "200:hello", "--listen", &unix("last")]);
    let first = Serve::start(&["--forward", &unix("last"), "--listen", &unix("first")]);
    let (code, result) = load(&format!("{}:/", unix("first")), &["-n", "3000", "-c", "20"]);
    assert_eq!(code, Some(0), "{result}");
    assert_eq!(
        (first.stop().requests(), last.stop().requests()),
        (3000, 3000)
    );
}

#[test]
fn error_responses_are_counted_by_status() {
    let serve = Serve::start(&["--respond", "503:no"]);
    let (code, result) = load(&serve.url("/"), &["-n", "10"]);
    assert_eq!(number(&result["statuses"], "503"), 10);
    assert_eq!((code, number(&result, "errors")), (Some(0), 0));
}

#[test]
fn malformed_responses_are_errors() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut request = [0; 1000];
            let _ = std::io::Read::read(&mut stream, &mut request);
            let _ = std::io::Write::write_all(&mut stream, b"SSH-2.0-OpenSSH\r\n");
        }
    });
    let (code, result) = load(&url, &["-n", "3"]);
    assert_eq!(code, Some(5), "{result}");
    assert!(number(&result, "errors") > 0, "{result}");
}

#[test]
fn unreachable_target_exits_2() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let refusing = format!("http://{}/", nobody.local_addr().expect("bound"));
    drop(nobody);
    for (url, part) in [
        (refusing.as_str(), "refused"),
        ("http://no-such-host.invalid/", "no-such-host.invalid"),
        ("unix:/nonexistent/socket:/", "/nonexistent/socket"),
    ] {
        let finished = run_onrush(&["load", url, "-n", "5"]);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
        assert!(finished.err.contains(part), "{finished:?}");
    }
}

#[test]
fn invalid_flags_exit_1() {
    let url = "http://127.0.0.1:9/";
    for (arguments, part) in [
        (&["load", url, "-c", "0"][..], "out of range"),
        (
            &["load", url, "-c", "2", "-t", "3"],
            "threads are more than",
        ),
        (&["load", url, "-n", "0"], "a run of 0 requests"),
        (&["load", url, "-X", "G T"], "not a method"),
        (
            &["load", url, "-H", "Content-Length: 3"],
            "--body or --body-file",
        ),
        (
            &["load", url, "--json", "/nonexistent/file"],
            "cannot be written",
        ),
        (&["load", "ftp://h/"], "does not begin with http://"),
        (&["load", "ftp://127.0.0.1:9"], "http://"),
        (&["load"], "<URL>"),
        (&["load", url, "--frequency", "3"], "--frequency"),
    ] {
        let finished = run_onrush(arguments);
        assert_eq!(finished.code, Some(1), "{arguments:?}: {finished:?}");
        assert!(finished.err.contains(part), "{arguments:?}: {finished:?}");
        assert_eq!(finished.out, "", "{arguments:?}");
    }
}

#[test]
fn too_many_connections_for_descriptors_are_refused() {
    let mut command = std::process::Command::new("prlimit");
    command.args(["--nofile=50:50", env!("CARGO_BIN_EXE_onrush")]);
    command.args(["load", "http://127.0.0.1:9/", "-c", "100", "-n", "100"]);
    let finished = Program::start(&mut command).finish();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("file descriptors"), "{finished:?}");
    assert!(finished.err.contains("ulimit"), "{finished:?}");
    assert_eq!(finished.out, "");
}

#[test]
fn unwritable_result_error_is_one_line() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let finished = run_onrush(&["load", &serve.url("/"), "-n", "10", "--json", "/dev/full"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
    assert!(
        finished
            .err
            .contains("/dev/full cannot be written: No space left"),
        "{finished:?}"
    );
    // The measurement was still printed.
    assert!(
        finished.out.contains("\nrequests     10 in "),
        "{finished:?}"
    );
}

#[test]
fn ctrl_c_ends_run_with_report() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let program = Program::start(&mut onrush(&[
        "load",
        &serve.url("/"),
        "-d",
        "1h",
        "-c",
        "4",
    ]));
    // A run without any response yet would be invalid.
    program.out.wait_for("\n         1 ");
    program.signal(Signal::INT);
    let finished = program.finish().on_any_machine();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.out.contains("\nrequests "), "{finished:?}");
    assert!(finished.out.contains("stopped early"), "{finished:?}");
}

#[test]
fn connection_rate_sends_one_request_each() {
    for io in drivers() {
        let serve = Serve::start(&["--respond", "200:hello", "--io", io]);
        let rate = ["--connections-per-second", "200", "-n", "100", "-c", "20"];
        let more = ["--source", "127.0.0.1-127.0.0.4", "--io", io];
        let (code, result) = load(&serve.url("/"), &[&rate[..], &more].concat());
        assert_eq!(code, Some(0), "{result}");
        let begun = number(&result, "requests");
        assert_eq!(begun + number(&result, "missed"), 100, "{result}");
        assert_eq!(number(&result, "connections"), begun);
        let totals = serve.stop();
        assert_eq!((totals.connections(), totals.requests()), (begun, begun));
        let ports = &result["ports"];
        assert_eq!(number(ports, "addresses"), 4, "{ports}");
        assert!(number(ports, "local") > 0, "{ports}");
    }
}

#[test]
fn run_exports_metrics_with_oha_and_hey_flags() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let url = serve.url("/");
    let words = [
        "load",
        &url,
        "-d",
        "50s",
        "-R",
        "100",
        "-c",
        "2",
        "--metrics",
        "127.0.0.1:0",
    ];
    let load = Program::start(&mut onrush(&words));
    let said = load.err.wait_for("/metrics\n");
    let metrics = said
        .split_whitespace()
        .last()
        .expect("its address")
        .to_owned();
    let text = until("a second of responses", || {
        let text = curl(&[&metrics]).out;
        text.contains("responses_total{class=\"2xx\"} ")
            .then_some(text)
    });
    for line in [
        "onrush_load_rate_asked 100",
        "onrush_load_connections_open 2",
        "onrush_load_errors_total{kind=\"timeout\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let count = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.trim().parse().ok());
        number.unwrap_or_else(|| panic!("no {name}: {text}"))
    };
    let responses = count(&text, "onrush_load_responses_total{class=\"2xx\"}");
    assert_eq!(
        count(&text, "onrush_load_response_seconds_count"),
        responses
    );
    if are_installed(&["promtool"]) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("text");
        fs::write(&file, &text).expect("it is ours");
        let file = fs::File::open(&file).expect("it is there");
        let checked = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(file)
            .output();
        let checked = checked.expect("it is there");
        assert!(checked.status.success(), "{checked:?}");
    }
    load.signal(Signal::INT);
    assert!(load.finish().out.contains("verdict"));
    for (tool, line) in [
        ("oha", ["-n", "30", "-c", "3", "--disable-keepalive"]),
        ("hey", ["-n", "30", "-c", "3", "-disable-keepalive"]),
    ] {
        let finished = run_onrush(&[&["load", "--as", tool], &line[..], &[&url]].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(
            finished
                .out
                .contains("statuses     200: 30\nconnections  30"),
            "{finished:?}"
        );
        assert!(
            finished.err.contains("the format of onrush load"),
            "{finished:?}"
        );
    }
}
