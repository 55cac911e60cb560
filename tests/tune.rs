//! `onrush tune` as people use it: plans and snapshots of machines below a root directory.

#[path = "../crates/tune/tests/machine/mod.rs"]
mod machine;

use std::path::Path;
use std::process::{Command, Output};

use machine::{Kind, Machine};

fn onrush(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_onrush");
    Command::new(program)
        .arg("tune")
        .args(arguments)
        .output()
        .expect("it runs")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of a test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn cloud() -> Machine {
    Machine::new(2, 16, 1).with("eth0", Kind::Ixgbevf, -1, 1, 16)
}

#[test]
fn a_plan_of_a_snapshot_is_the_plan_of_its_machine() {
    let root = cloud().write();
    let snapshot = root.path().join("machine.json");
    let saved = onrush(&[
        "snapshot",
        "--root",
        path(root.path()),
        "-o",
        path(&snapshot),
    ]);
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    let plans =
        [root.path(), &snapshot].map(|root| onrush(&["plan", "--root", path(root), "--json"]));
    assert!(plans[0].status.success(), "{}", text(&plans[0].stderr));
    assert_eq!(text(&plans[0].stdout), text(&plans[1].stdout));
    let json: serde_json::Value = serde_json::from_slice(&plans[0].stdout).expect("JSON");
    assert_eq!(
        json["interfaces"][0]["steering_cpus"],
        serde_json::json!([17, 18, 19, 20, 21, 22, 23])
    );
}

#[test]
fn a_plan_as_a_script_does_what_it_proposes() {
    let root = cloud().write();
    let script = onrush(&["plan", "--root", path(root.path()), "--script"]);
    let script = text(&script.stdout).replace(" /", &format!(" {}/", path(root.path())));
    let ran = Command::new("sh")
        .arg("-c")
        .arg(&script)
        .output()
        .expect("sh");
    assert!(ran.status.success(), "{}\n{script}", text(&ran.stderr));
    let again = onrush(&["plan", "--root", path(root.path())]);
    assert!(
        text(&again.stdout).contains("nothing to change"),
        "{}",
        text(&again.stdout)
    );
}

#[test]
fn what_cannot_be_planned_says_why() {
    let root = cloud().write();
    let nothing = tempfile::tempdir().expect("a directory");
    for (arguments, expected) in [
        (
            &["plan", "--root", "/no/such/place"][..],
            "cannot read /no/such/place: No such file or directory",
        ),
        (
            &["plan", "--root", path(nothing.path())],
            "there are no CPUs here",
        ),
        (
            &["plan", "--root", path(root.path()), "--interface", "wlan7"],
            "there is no interface wlan7; there are eth0",
        ),
    ] {
        let output = onrush(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(expected),
            "{}",
            text(&output.stderr)
        );
    }
}
