//! Temporary changes of `onrush tune apply`: they are undone even if the journal becomes read-only or disappears.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::machine::Kind;
use super::{cloud, onrush, path, text, wait_until};

/// Runs a script in a mount namespace of its own; `$0` is onrush. `None` if that is not permitted.
pub(super) fn in_own_mounts(script: &str) -> Option<Output> {
    let mut unshare = Command::new("unshare");
    let is_possible = unshare
        .args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"])
        .stderr(Stdio::null())
        .status();
    if !is_possible.is_ok_and(|status| status.success()) {
        eprintln!("skipped: nothing can be mounted here; it takes root (CAP_SYS_ADMIN)");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_onrush");
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, program])
        .output();
    Some(output.expect("unshare runs"))
}

#[test]
fn temporary_changes_are_undone_with_read_only_journal() {
    let root = cloud().write();
    let place = path(root.path());
    fs::create_dir_all(root.path().join("run")).expect("a directory");
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let shown = somaxconn.display();
    let script = format!(
        "mount -t tmpfs none {place}/run || exit
         $0 tune apply --root {place} --for 'cat {shown}; mount -o remount,ro {place}/run'; echo code $?
         $0 tune revert --root {place} >/dev/null; echo code $?
         mount -o remount,rw {place}/run; $0 tune revert --root {place}; echo code $?; ls -A {place}/run"
    );
    let Some(output) = in_own_mounts(&script) else {
        return;
    };
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("\n65535\n"), "it was in force: {out}{said}");
    assert!(out.contains("restored net.core.somaxconn"), "{out}{said}");
    assert!(
        out.contains("code 4\ncode 3\n") && out.ends_with("code 0\n"),
        "{out}{said}"
    );
    let expected = "onrush-tune.journal: its changes are undone, but it cannot be updated: Read-only file system";
    assert!(said.contains(expected), "{said}");
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
}

#[test]
fn full_disk_leaves_no_partial_plan() {
    let many = ["eth1", "eth2", "eth3", "eth4", "eth5", "eth6"];
    let machine = many.into_iter().fold(cloud(), |machine, name| {
        machine.with(name, Kind::Ixgbevf, -1, 4, 16)
    });
    let root = machine.write();
    let place = path(root.path());
    fs::create_dir_all(root.path().join("run")).expect("a directory");
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let steering = root.path().join("sys/class/net/eth0/queues/rx-0/rps_cpus");
    let before = fs::read_to_string(&steering).expect("read");
    // No room for the journal, and room for one page.
    for (free, words) in [(0, ""), (4096, "done     ")] {
        let script = format!(
            "mount -t tmpfs -o size=64k none {place}/run && cd {place}/run || exit
             head -c {} /dev/zero >fill
             $0 tune apply --root {place} --for true; echo code $?; ls -A",
            (64 << 10) - free
        );
        let Some(output) = in_own_mounts(&script) else {
            return;
        };
        let (out, said) = (text(&output.stdout), text(&output.stderr));
        assert!(out.contains(words), "{out}{said}");
        assert!(out.ends_with("code 1\nfill\n"), "{out}{said}");
        assert!(said.contains("No space left on device"), "{said}");
        assert_eq!(fs::read_to_string(&steering).expect("read"), before);
        assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
    }
}

#[test]
fn temporary_changes_are_undone_without_journal() {
    let root = cloud().write();
    let place = path(root.path());
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let journal = root.path().join("run/onrush-tune.journal");
    let gone = format!("rm {}", journal.display());
    let unreadable = format!("{gone}; mkdir {}", journal.display());
    for (command, expected) in [
        (
            gone,
            "was removed while the changes of this run were in force",
        ),
        (unreadable, "must be a file: remove that directory"),
    ] {
        let output = onrush(&["apply", "--root", place, "--for", &command]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
    }
}

#[test]
fn changes_by_other_programs_are_kept() {
    let root = cloud().write();
    let place = path(root.path());
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let program = env!("CARGO_BIN_EXE_onrush");
    let waiting = Command::new(program)
        .args(["tune", "apply", "--root", place, "--confirm-within", "10m"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    wait_until("nothing was applied", || {
        onrush(&["status", "--root", place])
            .stdout
            .starts_with(b"in force")
    });
    assert!(onrush(&["revert", "--root", place]).status.success());
    let ended = waiting.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(3));
    let said = text(&ended.stderr);
    let expected = "was removed: the changes of this run were already undone by another program, such as `onrush tune revert`";
    assert!(said.contains(expected), "{said}");

    let again = format!(
        "{program} tune revert --root {place}; {program} tune apply --root {place}; exit 7"
    );
    let output = onrush(&["apply", "--root", place, "--for", &again]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("was replaced: "), "{said}");
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "65535\n");
    assert!(onrush(&["status", "--root", place]).status.success());
}

/// Applies changes temporarily, and kills the process before it undoes them.
fn killed(root: &Path, until: &[&str]) {
    let place = path(root);
    let program = env!("CARGO_BIN_EXE_onrush");
    let mut waiting = Command::new(program)
        .args([&["tune", "apply", "--root", place], until].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let said = format!("process {} undoes it", waiting.id());
    wait_until("nothing was applied", || {
        text(&onrush(&["status", "--root", place]).stdout).contains(&said)
    });
    waiting.kill().expect("killed");
    waiting.wait().expect("it ends").signal().expect("a signal");
}

#[test]
fn watcher_undoes_killed_apply() {
    for until in [["--confirm-within", "10m"], ["--for", "10m"]] {
        let root = cloud().write();
        let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
        killed(root.path(), &until);
        wait_until("it was not undone", || {
            fs::read_to_string(&somaxconn).expect("read") == "4096\n"
        });
        wait_until("the journal stays", || {
            !root.path().join("run/onrush-tune.journal").exists()
        });
    }
}

#[test]
fn killed_apply_is_detected_and_undone() {
    for (verb, code, expected) in [
        (
            "status",
            3,
            "was killed before it undid this: `onrush tune revert` undoes it",
        ),
        (
            "confirm",
            1,
            "the changes were not confirmed in time and are undone",
        ),
        (
            "apply",
            0,
            "was killed before it undid its changes: undoing them",
        ),
    ] {
        let root = cloud().write();
        let place = path(root.path());
        let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
        let journal = root.path().join("run/onrush-tune.journal");
        // The journal of a killed process that no other process watched.
        assert!(onrush(&["apply", "--root", place]).status.success());
        let lines = fs::read_to_string(&journal).expect("a journal");
        let wish = lines
            .lines()
            .position(|line| line.contains("\"wish\""))
            .expect("a run");
        let mut lines: Vec<&str> = lines.lines().collect();
        lines.insert(
            wish + 1,
            r#"{"guard":{"process":1,"started":18446744073709551615}}"#,
        );
        lines.push("\"waits\"");
        fs::write(&journal, lines.join("\n") + "\n").expect("written");
        let output = onrush(&[verb, "--root", place]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{verb}: {said}");
        assert!(said.contains(expected), "{verb}: {said}");
        assert!(onrush(&["revert", "--root", place]).status.success());
        assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
    }
}

#[test]
fn empty_journal_is_damaged() {
    let root = cloud().write();
    let place = path(root.path());
    let journal = root.path().join("run/onrush-tune.journal");
    fs::create_dir_all(root.path().join("run")).expect("a directory");
    fs::write(&journal, "").expect("written");
    let status = onrush(&["status", "--root", place]);
    assert_eq!(status.status.code(), Some(3));
    let said = text(&status.stderr);
    assert!(said.contains("the file is empty"), "{said}");
    let reverted = onrush(&["revert", "--root", place]);
    assert_eq!(reverted.status.code(), Some(3));
    let words = text(&reverted.stdout);
    assert!(
        words.contains("damaged-1 cannot be read") && words.contains("the file is empty"),
        "{words}"
    );
    fs::write(&journal, "").expect("written");
    let applied = onrush(&["apply", "--root", place]);
    assert!(text(&applied.stderr).contains("the file is empty"));
    let reverted = onrush(&["revert", "--root", place]);
    assert_eq!(reverted.status.code(), Some(3));
    assert!(text(&reverted.stdout).contains("restored net.core.somaxconn"));
}

#[test]
fn unrecordable_run_preserves_journal() {
    let root = cloud().write();
    let place = path(root.path());
    fs::create_dir_all(root.path().join("run")).expect("a directory");
    let shown = root.path().join("proc/sys/net/core/somaxconn");
    // Blanks fill the journal's last page, and the disk has no room for another.
    let script = format!(
        "mount -t tmpfs -o size=64k none {place}/run && cd {place}/run || exit
         $0 tune apply --root {place} >/dev/null; j=onrush-tune.journal; size=$(stat -c %s $j)
         truncate -s -1 $j; printf \"%$((4096 - size % 4096))s\\n\" '' >>$j; cat /dev/zero >fill
         $0 tune apply --root {place} --role proxy --for true; echo code $?
         $0 tune status --root {place} >/dev/null; echo code $?; cat {}",
        shown.display()
    );
    let Some(output) = in_own_mounts(&script) else {
        return;
    };
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert!(said.contains("No space left on device"), "{out}{said}");
    assert!(out.ends_with("code 1\ncode 0\n65535\n"), "{out}{said}");
}

#[test]
fn run_without_changes_is_not_recorded() {
    let root = cloud().write();
    let place = path(root.path());
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let program = env!("CARGO_BIN_EXE_onrush");
    let within = format!("{program} tune apply --root {place} --for true");
    let outer = onrush(&["apply", "--root", place, "--for", &within]);
    assert!(outer.status.success(), "{}", text(&outer.stderr));
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
}

#[test]
fn signalled_command_is_reported_in_json() {
    let root = cloud().write();
    let place = path(root.path());
    let killed = onrush(&["apply", "--root", place, "--json", "--for", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(128 + 9));
    serde_json::from_slice::<serde_json::Value>(&killed.stdout).expect("JSON");
    assert!(text(&killed.stderr).contains("restored net.core.somaxconn"));
    let nothing = onrush(&["revert", "--root", place, "--json"]);
    assert_eq!(text(&nothing.stdout), "[]\n");
}

#[test]
fn missing_process_is_reported_first() {
    let root = cloud().write();
    let place = path(root.path());
    let file = root.path().join("machine.json");
    for verb in [&["plan"][..], &["snapshot", "-o", path(&file)]] {
        let refused = onrush(&[verb, &["--root", place, "--pid", "4711"]].concat());
        assert_eq!(refused.status.code(), Some(1), "{verb:?}");
        assert!(text(&refused.stderr).contains("process 4711 does not exist"));
        assert!(!file.exists());
    }
}
