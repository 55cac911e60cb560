//! `onrush bench` on a small experiment: results are there, also when it is stopped, and its programs are not.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

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
    let result = results(&out, &finished);
    let trial = &result["works"][0]["variants"][0]["trials"][0];
    let packets = trial["metrics"]["packets_per_request.lo"].as_f64();
    // A request and a response on a connection that stays; other tests have packets on loopback, too.
    assert!(packets.is_some_and(|packets| packets >= 1.9), "{trial}");
    assert!(
        trial["collector"]["cpu_s"]
            .as_f64()
            .is_some_and(|used| used > 0.0)
    );
    assert!(
        trial["totals"]["tcp"]["OutSegs"]
            .as_f64()
            .is_some_and(|sent| sent > 0.0)
    );
    assert_eq!(trial["profiles"], serde_json::json!({}));
    let samples = fs::read_to_string(out.join("samples.csv")).expect("it is there");
    for subject in [
        ",collector,cpus,",
        ",server,wait,",
        ",machine,context_switches_per_s,",
    ] {
        assert!(samples.contains(subject), "{subject} in {samples}");
    }
}

#[test]
fn a_profile_is_a_flame_graph_or_the_reason_why_there_is_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "60s");
    let out = directory.path().join("out");
    let finished = run_onrush(&[
        "bench",
        "--quick",
        "--profile",
        &path,
        "--out",
        &out.display().to_string(),
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let result = results(&out, &finished);
    let trial = &result["works"][0]["variants"][0]["trials"][0];
    let Some(folded) = trial["profiles"]["server"].as_str() else {
        // No perf, or none that may look.
        let left_out = trial["left_out"].to_string();
        assert!(
            left_out.contains("the CPU profile of the server"),
            "{trial}"
        );
        eprintln!("skipped: {left_out}");
        return;
    };
    let stacks = fs::read_to_string(out.join(folded)).expect("it is there");
    assert!(stacks.lines().any(|line| line.contains("_[k]")), "{stacks}");
    let graph = out.join(folded).with_extension("svg");
    let graph = fs::read_to_string(graph).expect("it stands beside it");
    assert!(graph.starts_with("<svg ") && graph.contains("samples</title>"));
    assert!(result["notes"].to_string().contains("Profiled"), "{result}");
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
