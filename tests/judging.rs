//! `onrush load` after a run: conditions, other output formats, merged and compared results, and the search for the
//! highest rate.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::program::{Finished, Serve, run_onrush};

fn load(words: &[&str]) -> Finished {
    run_onrush(&[&["load"], words].concat()).on_any_machine()
}

fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn met_fail_condition_exits_4() {
    let serve = Serve::start(&["--respond", "404:hello"]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("result.json");
    let path = file.display().to_string();
    for (condition, code, fate) in [
        ("p50 > 1ns", 4, "failed"),
        ("p50 > 1m", 0, "passed"),
        ("p50 > 1x", 1, ""),
        ("p50 > 1000s", 0, "passed"),
        ("p99.9 > 1000s", 4, "undecided"),
        ("status.4xx >= 100%", 4, "failed"),
        ("errors > 0%", 0, "passed"),
    ] {
        let words = [
            &serve.url("/"),
            "-n",
            "100",
            "--json",
            &path,
            "--fail-if",
            condition,
        ];
        let finished = load(&words);
        assert_eq!(finished.code, Some(code), "{condition}: {finished:?}");
        if code == 1 {
            assert!(
                finished.err.contains("column 7: \"1x\" is not a duration"),
                "{finished:?}"
            );
            continue;
        }
        assert_eq!(json(&file)["thresholds"][0]["fate"], fate, "{condition}");
        assert!(finished.out.contains("fail if "), "{finished:?}");
    }
}

#[test]
fn unreachable_target_removes_older_result() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("result.json");
    let path = file.display().to_string();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    for url in [format!("http://{address}/"), format!("tcp://{address}")] {
        fs::write(&file, "{}").expect("it is ours");
        let finished = load(&[&url, "-n", "5", "--json", &path]);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(!file.exists(), "{finished:?}");
        assert!(finished.err.contains("removed "), "{finished:?}");
    }
}

#[test]
fn stop_condition_ends_run() {
    let serve = Serve::start(&["--respond", "404:hello"]);
    let url = serve.url("/");
    let finished = load(&[&url, "-d", "10m", "--stop-if", "status.4xx >= 1"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished
            .out
            .contains("stopped early: status.4xx >= 1 holds ("),
        "{finished:?}"
    );
    let refused = load(&[&url, "--stop-if", "status.404 >= 1"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("status.4xx"), "{refused:?}");
}

#[test]
fn certain_failure_ends_run_early() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let finished = load(&[&serve.url("/"), "-d", "1h", "--fail-if", "max > 1ns"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(
        finished
            .out
            .contains("stopped early: --fail-if max > 1ns is certain to hold"),
        "{finished:?}"
    );
}

#[test]
fn quiet_run_prints_only_summary() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let finished = load(&[&serve.url("/"), "-n", "100", "--quiet"]);
    assert!(
        finished.out.starts_with("requests     100 in "),
        "{finished:?}"
    );
    assert!(finished.out.contains("\nverdict      "), "{finished:?}");
    // Without a terminal there is no full-screen view.
    let finished = load(&[&serve.url("/"), "-n", "100", "--live"]);
    assert!(finished.out.contains("tot_req"), "{finished:?}");
}

#[test]
fn result_is_written_in_every_format() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (csv, html, hdr) = (path("a.csv"), path("a.html"), path("a.hdr"));
    let url = serve.url("/");
    let words = [
        &url, "-n", "2000", "-c", "4", "--csv", &csv, "--html", &html, "--hdr", &hdr,
    ];
    assert_eq!(load(&words).code, Some(0));
    let text =
        |path: &str| fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let csv = text(&csv);
    let rows: Vec<&str> = csv.lines().collect();
    assert!(
        rows[0].starts_with("time_s,unix_s,") && rows.len() > 1,
        "{csv}"
    );
    let requests = |row: &&str| {
        row.split(',')
            .nth(3)
            .and_then(|cell| cell.parse::<u64>().ok())
    };
    assert_eq!(
        rows[1..].iter().filter_map(requests).sum::<u64>(),
        2000,
        "{csv}"
    );
    assert!(text(&html).contains("<svg") && text(&html).ends_with("</html>\n"));
    let hdr = text(&hdr);
    assert!(
        hdr.contains("#[BaseTime: ") && hdr.contains("Tag=run.response,"),
        "{hdr}"
    );
    assert!(
        hdr.lines().any(|line| line.starts_with("Tag=response,")),
        "{hdr}"
    );
}

#[test]
fn merged_results_add_up() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let directory = tempfile::tempdir().expect("a directory");
    let url = serve.url("/");
    let paths: Vec<String> = ["a.json", "b.json", "sum.json"]
        .map(|name| directory.path().join(name).display().to_string())
        .into();
    std::thread::scope(|scope| {
        for path in &paths[..2] {
            let words = [&url, "-R", "200", "-d", "2s", "-c", "3", "--json", path];
            scope.spawn(move || load(&words));
        }
    });
    let finished = load(&["merge", &paths[0], &paths[1], "--json", &paths[2], "-q"]);
    assert!(finished.out.contains("2 generators"), "{finished:?}");
    let [a, b, sum] = [0, 1, 2].map(|at| json(Path::new(&paths[at])));
    for key in ["requests", "connections", "bytes", "errors"] {
        let of = |value: &Value| value[key].as_u64();
        assert_eq!(
            of(&sum),
            of(&a).zip(of(&b)).map(|(one, other)| one + other),
            "{key}"
        );
    }
    // Responses may still have been in flight at the end.
    let of_sum = |key: &str| sum[key].as_u64().expect("a count");
    let responses = of_sum("requests");
    let served = serve.stop().requests();
    assert!(
        (responses..=responses + of_sum("unfinished")).contains(&served),
        "{served}: {sum}"
    );
    assert_eq!(sum["options"]["rate"], 400);
    // A merged result can be compared; two seconds are too few to know how seconds vary.
    let finished = load(&["compare", &paths[2], &paths[2]]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished
            .out
            .contains("cannot compare: the runs are too short"),
        "{finished:?}"
    );
}

#[test]
fn invalid_result_files_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("no.json").display().to_string();
    let missing = load(&["merge", &path]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(
        missing.err.contains("no.json cannot be read"),
        "{missing:?}"
    );
    fs::write(&path, "{\"target\": 1}").expect("a file");
    for words in [&["merge", &path][..], &["compare", &path, &path]] {
        let finished = load(words);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(
            finished.err.contains("not JSON output of onrush load"),
            "{finished:?}"
        );
    }
}

#[test]
fn find_max_reports_if_no_rate_passes() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("search.json");
    let path = file.display().to_string();
    let url = serve.url("/");
    let finished = load(&[
        &url,
        "--find-max",
        "max < 1ns",
        "-R",
        "2",
        "-d",
        "600ms",
        "--json",
        &path,
    ]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(
        finished.out.contains("fails even at 1 request per second"),
        "{finished:?}"
    );
    let result = json(&file);
    assert_eq!(result["answer"]["result"], "never", "{result}");
    assert_eq!(result["trials"][0]["rate"], 2, "{result}");
}

#[test]
fn too_short_trial_is_refused() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let finished = load(&[
        &serve.url("/"),
        "--find-max",
        "p99 < 1s",
        "-R",
        "100",
        "-d",
        "100ms",
    ]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("use longer trials (-d)"),
        "{finished:?}"
    );
}

/// A server that accepts connections and never responds; its URL.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    (listener, url)
}

#[test]
fn stop_condition_counts_unanswered_requests() {
    for pace in [
        &["-c", "100"][..],
        &["-c", "2", "-R", "1000"],
        &["-c", "2", "--rate-per-connection", "500"],
    ] {
        // The kernel completes the connections, as many as fit in the listener's backlog.
        let (_listener, url) = silent();
        let words = [
            &url,
            "-d",
            "10m",
            "--timeout",
            "9m",
            "--stop-if",
            "p50 > 900ms",
        ];
        let finished = load(&[&words[..], pace].concat());
        assert_eq!(finished.code, Some(5), "{finished:?}");
        let said = "stopped early: p50 > 900ms holds (at least ";
        assert!(finished.out.contains(said), "{finished:?}");
    }
}

#[test]
fn seconds_without_response_have_rows() {
    let (_listener, url) = silent();
    let finished = load(&[&url, "-d", "2500ms", "-R", "10", "-q", "--json", "-"]);
    assert_eq!(finished.code, Some(5), "{finished:?}");
    let result: Value = serde_json::from_str(&finished.out).expect("JSON");
    let rows = result["seconds"].as_array().expect("a list");
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows.iter().all(|row| row["requests"] == 0), "{rows:?}");
    assert_eq!(rows[2]["t"], result["duration_s"]);
}
