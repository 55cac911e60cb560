//! `onrush bench` on a small experiment: results are there, also when it is stopped, and its programs are not.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::peer::are_here;
use crate::program::{Finished, Program, onrush, run_onrush, until};

/// An experiment of our own server and client whose window is `measure` long.
fn experiment(directory: &Path, measure: &str) -> String {
    let path = directory.join("tiny.toml");
    let text = format!(
        r#"
name = "tiny"
rounds = 1
warm_up = "100ms"
measure = "{measure}"
quick = {{ rounds = 1, warm_up = "100ms", measure = "1s" }}

[program.server]
onrush = ["serve", "--respond", "200", "--listen", "127.0.0.1:{{port}}", "--threads", "1", "--cpus", "{{cpus}}"]

[program.load]
onrush = ["load", "http://{{target}}/", "-c", "{{connections}}", "-t", "1", "--cpus", "{{cpus}}", "-d", "{{duration}}", "--json", "{{json}}"]

[[work]]
name = "one"
connections = 2
client = "load"
server = "server"

[[work.variant]]
name = "direct"

[[work.figure]]
metric = "rps"
ours = ["direct"]
"#
    );
    fs::write(&path, text).expect("it is ours");
    path.display().to_string()
}

fn results(out: &Path, finished: &Finished) -> Value {
    for name in ["result.json", "raw.csv", "environment.json", "report.html"] {
        let length = fs::metadata(out.join(name)).map(|file| file.len());
        assert!(
            matches!(length, Ok(1..)),
            "{name}: {length:?}, {finished:?}"
        );
    }
    let text = fs::read_to_string(out.join("result.json")).expect("it is there");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_quick_run_measures_and_reports() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "60s");
    let out = directory.path().join("out");
    let finished = run_onrush(&[
        "bench",
        "--quick",
        &path,
        "--out",
        &out.display().to_string(),
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.out.contains("requests per second"), "{finished:?}");
    results(&out, &finished);
}

/// An experiment of one work with these programs and variants, each a second long without a warm-up.
fn experiment_of(directory: &Path, programs: &str, variants: &[&str]) -> String {
    let path = directory.join("clients.toml");
    let lines: Vec<String> = variants
        .iter()
        .map(|name| {
            format!("[[work.variant]]\nname = \"{name}\"\nclient = \"{name}\"\nserver = \"{name}-server\"\n")
        })
        .collect();
    let text = format!(
        "name = \"clients\"\nrounds = 1\nwarm_up = \"0s\"\nmeasure = \"1s\"\n{programs}\n\
         [[work]]\nname = \"one\"\nconnections = 4\n{}\
         [[work.figure]]\nmetric = \"rps\"\nours = {variants:?}\n",
        lines.concat()
    );
    fs::write(&path, text).expect("it is ours");
    path.display().to_string()
}

/// The only trial of each variant, by name.
fn trials(result: &Value) -> Vec<(String, Value)> {
    let variants = result["works"][0]["variants"].as_array().expect("variants");
    let trials = variants.iter().map(|variant| {
        let name = variant["name"].as_str().expect("a name").to_owned();
        (name, variant["trials"][0].clone())
    });
    trials.collect()
}

/// The server of iperf3 closes its listener for a moment after a connection that says nothing, as the one is by which bench
/// sees that it is ready: its client tries again until it is let in (and exits with 0 where it is not).
#[test]
fn clients_of_other_protocols_take_part() {
    const OTHERS: [(&str, &[&str], &str, &str); 4] = [
        (
            "memcaslap",
            &["memcaslap", "memcached"],
            "requests",
            r#"
[program.memcaslap]
command = ["memcaslap", "-s", "{target}", "-T", "{threads}", "-c", "{connections}", "-t", "{seconds}s"]
results = "memcaslap"
[program.memcaslap-server]
command = ["memcached", "-l", "127.0.0.1", "-p", "{port}", "-U", "0", "-t", "1", "-u", "nobody"]
"#,
        ),
        (
            "sockperf",
            &["sockperf"],
            "messages",
            r#"
[program.sockperf]
command = ["sockperf", "ping-pong", "--tcp", "-i", "127.0.0.1", "-p", "{server.port}", "-t", "{seconds}"]
results = "sockperf"
[program.sockperf-server]
command = ["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", "{port}"]
"#,
        ),
        (
            "iperf3",
            &["iperf3"],
            "bytes",
            r#"
[program.iperf3]
command = ["sh", "-c", "while iperf3 -J -c 127.0.0.1 -p {server.port} -t {seconds} > {json}; grep -q error {json}; do :; done"]
results = "iperf3"
[program.iperf3-server]
command = ["iperf3", "-s", "-B", "127.0.0.1", "-p", "{port}"]
"#,
        ),
        (
            "iperf3-udp",
            &["iperf3"],
            "datagrams",
            r#"
[program.iperf3-udp]
command = ["sh", "-c", "while iperf3 -J -u -b 10M -c 127.0.0.1 -p {server.port} -t {seconds} > {json}; grep -q error {json}; do :; done"]
results = "iperf3"
[program.iperf3-udp-server]
command = ["iperf3", "-s", "-B", "127.0.0.1", "-p", "{port}"]
"#,
        ),
    ];
    let here = OTHERS.iter().filter(|(_, programs, ..)| are_here(programs));
    let here: Vec<_> = here.collect();
    if here.is_empty() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let programs: String = here.iter().map(|(.., programs)| *programs).collect();
    let names: Vec<&str> = here.iter().map(|(name, ..)| *name).collect();
    let path = experiment_of(directory.path(), &programs, &names);
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    for ((_, _, counted, _), (name, trial)) in here.iter().zip(trials(&results(&out, &finished))) {
        assert_eq!(trial["counted"], *counted, "{name}: {trial}");
        let requests = trial["requests"].as_u64().expect("a number");
        let rps = trial["rps"].as_f64().expect("a number");
        assert!(requests > 0 && rps > 0.0, "{name}: {trial}");
        let title = format!("{counted} per second");
        assert!(finished.out.contains(&title), "{name}: {finished:?}");
    }
}

#[test]
fn what_a_client_leaves_that_is_no_report_is_quoted() {
    let directory = tempfile::tempdir().expect("a directory");
    let programs = r#"
[program.printed]
command = ["sh", "-c", "echo first; echo last >&2"]
results = "ab"
[program.written]
command = ["sh", "-c", "echo half of a re > {json}"]
results = "fortio"
[program.none]
command = ["true"]
[program.printed-server]
onrush = ["serve", "--respond", "200", "--listen", "127.0.0.1:{port}", "--threads", "1"]
[program.written-server]
onrush = ["serve", "--respond", "200", "--listen", "127.0.0.1:{port}", "--threads", "1"]
[program.none-server]
onrush = ["serve", "--respond", "200", "--listen", "127.0.0.1:{port}", "--threads", "1"]
"#;
    let path = experiment_of(directory.path(), programs, &["printed", "written", "none"]);
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let trials = trials(&results(&out, &finished));
    let said = [
        "expected the text that ab prints at its end; no line begins with `Complete requests:`); it printed: first | last",
        "there is no JSON object); its file ends: half of a re; it printed nothing",
        "it wrote none into `{json}`); it printed nothing",
    ];
    for ((name, trial), part) in trials.iter().zip(said) {
        let why = trial["invalid"][0].as_str().unwrap_or_default();
        assert!(why.contains(part), "{name}: {why}");
    }
}

#[test]
fn ctrl_c_leaves_results_and_no_program_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "30m");
    let out = directory.path().join("out");
    let program = Program::start(&mut onrush(&[
        "bench",
        &path,
        "--out",
        &out.display().to_string(),
    ]));
    let children = until("a server and a client", || {
        let children = children_of(program.pid());
        (children.len() >= 2).then_some(children)
    });
    program.signal(Signal::INT);
    let finished = program.finish();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    for child in children {
        assert!(!is_onrush(child), "process {child} was left behind");
    }
    results(&out, &finished);
}

#[test]
fn what_cannot_be_measured_is_one_sentence_and_exit_code_1() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bad.toml");
    fs::write(&path, "nme = \"x\"\n").expect("it is ours");
    let place = format!("{}:1:1: ", path.display());
    for (file, part) in [
        (path.display().to_string(), place.as_str()),
        (
            "/nonexistent.toml".to_owned(),
            "cannot read /nonexistent.toml",
        ),
    ] {
        let finished = run_onrush(&["bench", &file]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
        assert!(finished.err.contains(part), "{finished:?}");
    }
}

/// The processes whose parent is `pid`.
fn children_of(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|child| parent_of(*child) == Some(pid))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc_pid_stat(5): the name stands in brackets and may contain anything, behind it state and parent.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// Whether the process is still one of ours; its number may be another's by now.
fn is_onrush(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe"))
        .is_ok_and(|path| path == Path::new(env!("CARGO_BIN_EXE_onrush")))
}
