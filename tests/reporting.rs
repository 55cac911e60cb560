//! Parsing the reports of foreign load generators: the numbers equal the server's. A missing program is skipped with a
//! message.

use std::process::Command;

use onrush_bench::collect::client::{ClientReport, read};
use onrush_bench::scenario::Results;

use crate::peer::{are_installed, found};
use crate::program::{Program, Serve, onrush};

const CONNECTIONS: u64 = 4;
/// Maximum number of requests that a client may make beyond those it reports: one in flight on each connection at the
/// end, and fortio's one on each before the start.
const UNREPORTED_MAX: u64 = 2 * CONNECTIONS;

/// Clients by program name; `URL` is replaced by the server's URL.
const CLIENTS: [(Results, &str, &[&str]); 7] = [
    (
        Results::Wrk,
        "wrk",
        &["-t1", "-c4", "-d1s", "--latency", "URL"],
    ),
    (
        Results::Wrk2,
        "wrk2",
        &["-t1", "-c4", "-d1s", "-R500", "--latency", "URL"],
    ),
    (
        Results::H1load,
        "h1load",
        &["-t", "1", "-c", "4", "-n", "2000", "-S", "-P", "URL"],
    ),
    (
        Results::H2load,
        "h2load",
        &["--h1", "-t1", "-c4", "-n2000", "URL"],
    ),
    (
        Results::Oha,
        "oha",
        &[
            "--no-tui",
            "--output-format",
            "json",
            "-c",
            "4",
            "-n",
            "2000",
            "URL",
        ],
    ),
    (
        Results::Ab,
        "ab",
        &["-k", "-q", "-c", "4", "-n", "2000", "URL"],
    ),
    (
        Results::Fortio,
        "fortio",
        &[
            "load",
            "-quiet",
            "-c",
            "4",
            "-qps",
            "0",
            "-n",
            "2000",
            "-allow-initial-errors",
            "-json",
            "-",
            "URL",
        ],
    ),
];

/// Our emulations of other tools, which are always available.
const OURS: [(Results, &[&str]); 3] = [
    (
        Results::Wrk,
        &[
            "load",
            "--as",
            "wrk",
            "-t1",
            "-c4",
            "-d1s",
            "--latency",
            "URL",
        ],
    ),
    (
        Results::Wrk2,
        &[
            "load", "--as", "wrk2", "-t1", "-c4", "-d1s", "-R500", "-U", "URL",
        ],
    ),
    (
        Results::H1load,
        &[
            "load", "--as", "h1load", "-t", "1", "-c", "4", "-n", "2000", "-S", "-P", "URL",
        ],
    ),
];

/// Runs a client against a server with this response; returns its report and the server's number of requests.
fn measured(
    results: Results,
    respond: &str,
    command: impl Fn(&str) -> Command,
) -> (ClientReport, u64) {
    let serve = Serve::start(&["--respond", respond]);
    let finished = Program::start(&mut command(&serve.url("/"))).finish();
    let served = serve.stop().requests();
    let report = read(results, &finished.out);
    (
        report.unwrap_or_else(|why| panic!("{why}: {finished:?}")),
        served,
    )
}

fn agrees(results: Results, command: impl Fn(&str) -> Command) {
    let (report, served) = measured(results, "200:hello", &command);
    let responses = report.requests;
    assert!(
        responses > 0 && (responses..=responses + UNREPORTED_MAX).contains(&served),
        "{results:?}: {served} were served of {report:?}"
    );
    assert_eq!(report.errors, 0, "{results:?}: {report:?}");
    assert!(
        report.rps > 0.0 && report.latency.is_some(),
        "{results:?}: {report:?}"
    );
    let (report, _) = measured(results, "500:no", &command);
    assert!(report.requests > 0, "{results:?}: {report:?}");
    assert_eq!(report.errors, report.requests, "{results:?}: {report:?}");
}

fn at(url: &str, words: &[&str]) -> Vec<String> {
    let words = words.iter().map(|word| word.replace("URL", url));
    words.collect()
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn client_reports_match_server_counts() {
    for (results, program, words) in CLIENTS {
        if !are_installed(&[program]) {
            continue;
        }
        let file = found(program).expect("it is here");
        agrees(results, |url| {
            let mut command = Command::new(&file);
            command.args(at(url, words));
            command
        });
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn vegeta_report_matches_server_counts() {
    if !are_installed(&["vegeta", "sh"]) {
        return;
    }
    agrees(Results::Vegeta, |url| {
        let line = "echo GET URL | vegeta attack -duration=1s -rate=500 | vegeta report -type=json";
        let mut command = Command::new("sh");
        command.args(["-c", &line.replace("URL", url)]);
        command
    });
}

#[test]
fn emulated_reports_match_server_counts() {
    for (results, words) in OURS {
        agrees(results, |url| {
            let words = at(url, words);
            onrush(&words.iter().map(String::as_str).collect::<Vec<_>>())
        });
    }
}
