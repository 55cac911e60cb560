//! `onrush bench predict` and `onrush bench wire`: machines and costs from files, snapshots and results.

use std::fs;
use std::path::Path;

use crate::program::{Finished, run_onrush};

fn predict(arguments: &[&str]) -> Finished {
    run_onrush(&[&["bench", "predict"], arguments].concat())
}

fn file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).expect("it is ours");
    path.display().to_string()
}

const EIGHT_CPUS: &str =
    "nodes = [\"0-7\"]\napplication = \"1-7\"\n[[interface]]\nirq_cpus = \"0\"\n";

#[test]
fn prediction_from_files_states_limiter() {
    let directory = tempfile::tempdir().expect("a directory");
    let machine = file(directory.path(), "machine.toml", EIGHT_CPUS);
    let cost = file(directory.path(), "cost.toml", "application_us = 70\n");
    let finished = predict(&["--machine", &machine, "--cost", &cost]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let first = "100 k/s of requests; first limit: application CPUs";
    assert!(finished.out.starts_with(first), "{finished:?}");
    assert!(finished.out.contains("interrupt CPU"), "{finished:?}");
    // With eight times the driver's cost, the interrupt CPU is full first.
    let slow = file(directory.path(), "slow.toml", "driver_us = 100\n");
    let finished = predict(&["--machine", &machine, "--cost", &cost, "--cost", &slow]);
    assert!(
        finished.out.contains("first limit: interrupt CPU"),
        "{finished:?}"
    );
}

#[test]
fn prediction_works_from_snapshot_and_local_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let snapshot = directory.path().join("snapshot.json").display().to_string();
    let taken = run_onrush(&["tune", "snapshot", "-o", &snapshot]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let cost = file(directory.path(), "cost.toml", "application_us = 1000\n");
    let recorded = predict(&["--machine", &snapshot, "--cost", &cost]);
    let here = predict(&["--machine", "/", "--cost", &cost]);
    assert_eq!(
        (recorded.code, here.code),
        (Some(0), Some(0)),
        "{recorded:?} {here:?}"
    );
    assert_eq!(recorded.out.lines().next(), here.out.lines().next());
}

#[test]
fn model_check_needs_no_machine() {
    let finished = predict(&["--check"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.out.contains("all: median error"), "{finished:?}");
}

#[test]
fn invalid_prediction_input_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let good = file(directory.path(), "good.toml", "nodes = [\"0\"]\n");
    let bad = file(directory.path(), "bad.toml", "node = [\"0\"]\n");
    let json = file(directory.path(), "bad.json", "{}\n");
    let empty = directory.path().display().to_string();
    for (arguments, said) in [
        (&[][..], "--machine"),
        (&["--machine", &good], "expected a cost of a request"),
        (&["--machine", &bad], "did you mean `nodes`"),
        (&["--machine", &json], "snapshot"),
        (&["--machine", "/nowhere"], "/nowhere cannot be read"),
        (
            &["--machine", &good, "--cost", "/nowhere"],
            "cannot read /nowhere",
        ),
        (&["--check", "--cost", &empty], "environment.json"),
        (&["--check", "--cost", &good], "unknown key `nodes`"),
        (&["--check", "--machine", &good], "cannot be used with"),
    ] {
        let finished = predict(arguments);
        assert_eq!(finished.code, Some(1), "{arguments:?}: {finished:?}");
        assert!(finished.err.contains(said), "{arguments:?}: {finished:?}");
    }
}

#[test]
fn wire_rates_match_ethernet() {
    let finished = run_onrush(&["bench", "wire", "--rate", "10G", "--mtu", "64,1500"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.out.contains("14,880,952") && finished.out.contains("812,743"),
        "{finished:?}"
    );
    let finished = run_onrush(&["bench", "wire", "--rate", "fast"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("such as 100M"), "{finished:?}");
}
