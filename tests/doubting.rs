//! `onrush bench` when programs fail: the measurement is not a result, and the exit code reports that.

use std::fs;

use serde_json::Value;

use crate::benching::{experiment, results};
use crate::program::run_onrush;

/// The experiment with one work, its client run by this script, without figures.
fn run_by(script: &str, measure: &str, more: &str) -> (Option<i32>, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), measure);
    let text = fs::read_to_string(&path).expect("it is there");
    let (without_figures, _) = text.split_once("[[work.figure]]").expect("it has one");
    let client = text
        .lines()
        .find(|line| line.starts_with("onrush = [\"load\""))
        .expect("it has one");
    let shell = format!("command = [\"sh\", \"-c\", '''{script}''']");
    let text = without_figures.replace(client, &shell) + more;
    fs::write(&path, text).expect("it is ours");
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    let trial = results(&out, &finished)["works"][0]["variants"][0]["trials"][0].clone();
    (finished.code, trial)
}

const LOAD: &str = "{onrush} load http://{target}/ -c 2 -t 1 -d {duration} --json {json}";

#[test]
fn stopped_client_invalidates_trial() {
    let stopped = format!("{LOAD} & sleep 1.5; kill -STOP $!; sleep 3; kill -CONT $!; wait $!");
    let (code, trial) = run_by(&stopped, "6s", "");
    let invalid = trial["invalid"].to_string();
    assert!(invalid.contains("the client was stalled for "), "{trial}");
    assert_eq!(code, Some(3), "{trial}");
}

#[test]
fn overlong_client_invalidates_trial() {
    let (code, trial) = run_by(&LOAD.replace("{duration}", "4s"), "1s", "");
    let invalid = trial["invalid"].to_string();
    let expected = "s, but 1 s were requested";
    assert!(invalid.contains(expected), "{trial}");
    assert_eq!(code, Some(3), "{trial}");
}

#[test]
fn failing_work_without_figures_sets_exit_code() {
    let (code, trial) = run_by("exit 7", "1s", "");
    let invalid = trial["invalid"].to_string();
    assert!(invalid.contains("exit status 7"), "{trial}");
    assert_eq!(code, Some(3), "{trial}");
    let (code, trial) = run_by(LOAD, "1s", "");
    assert_eq!(code, Some(0), "{trial}");
}

#[test]
fn missing_control_report_does_not_invalidate_trial() {
    let control =
        "control = \"mute\"\n[program.mute]\ncommand = [\"sh\", \"-c\", \"echo nothing to say\"]\n";
    let (code, trial) = run_by(LOAD, "1s", control);
    let disturbed = trial["control_disturbed"].to_string();
    assert!(disturbed.contains("it printed: nothing to say"), "{trial}");
    assert_eq!(trial["invalid"], Value::Array(Vec::new()), "{trial}");
    assert!(trial["metrics"]["control.latency.p99"].is_null(), "{trial}");
    assert_eq!(code, Some(0), "{trial}");
}

#[test]
fn charts_are_written_as_png() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "1s");
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--png", "--out", &out.display().to_string()]);
    let names = |ending: &str| -> Vec<String> {
        let entries = fs::read_dir(out.join("charts")).into_iter().flatten();
        let names = entries.map(|entry| entry.expect("a file").file_name().into_string());
        let names = names.map(|name| name.expect("plain letters"));
        let mut stems: Vec<String> = names
            .filter_map(|name| Some(name.strip_suffix(ending)?.to_owned()))
            .collect();
        stems.sort();
        stems
    };
    if finished.err.contains("--png needs rsvg-convert") {
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(!out.exists(), "nothing was begun");
        return;
    }
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!names(".svg").is_empty());
    assert_eq!(names(".png"), names(".svg"));
    let first = out.join("charts").join(format!("{}.png", names(".png")[0]));
    let bytes = fs::read(first).expect("a picture");
    assert!(bytes.starts_with(b"\x89PNG"), "{:?}", &bytes[..8]);
}
