//! Output of `onrush tune`: files that are complete or unchanged, and a standard output that cannot be written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::tune_lasting::in_own_mounts;
use super::{cloud, onrush, path, text};

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("read")
}

#[test]
fn failed_snapshot_keeps_old_one() {
    let root = cloud().write();
    let place = path(root.path());
    let disk = tempfile::tempdir().expect("a directory");
    let disk = path(disk.path());
    let script = format!(
        "mount -t tmpfs -o size=64k none {disk} && cd {disk} && echo old >s && echo older >p.svg && cat /dev/zero >fill
         $0 tune snapshot --root {place} -o s; echo $?
         $0 tune show --root {place} --for 1ms --svg p.svg; echo $?
         cat s p.svg; ls -A"
    );
    let Some(output) = in_own_mounts(&script) else {
        return;
    };
    assert_eq!(text(&output.stdout), "1\n1\nold\nolder\nfill\np.svg\ns\n");
    let words = text(&output.stderr);
    assert!(words.contains("cannot write s: No space left"), "{words}");
    assert!(
        words.contains("p.svg cannot be written: No space left"),
        "{words}"
    );
}

#[test]
fn persist_writes_atomically() {
    let root = cloud().write();
    let place = path(root.path());
    fs::create_dir_all(root.path().join("etc/sysctl.d")).expect("a directory");
    let mark = "# Written by onrush tune apply --persist; onrush tune revert --persist removes it.";
    let script = format!(
        "mount -t tmpfs -o size=64k none {place}/etc && cd {place}/etc && mkdir sysctl.d
         echo '{mark}' >sysctl.d/90-onrush.conf && cat /dev/zero >fill
         $0 tune apply --root {place} --persist >/dev/null; echo $?
         cat sysctl.d/90-onrush.conf; ls -A sysctl.d"
    );
    let Some(output) = in_own_mounts(&script) else {
        return;
    };
    let expected = format!("3\n{mark}\n90-onrush.conf\n");
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn outputs_never_overwrite_inputs() {
    let root = cloud().write();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let input = file("machine.json");
    let place = path(root.path());
    let taken = onrush(&["snapshot", "--root", place, "-o", path(&input)]);
    assert!(taken.status.success(), "{}", text(&taken.stderr));
    let whole = read(&input);
    symlink("machine.json", file("link")).expect("a link");
    fs::hard_link(&input, file("twin")).expect("a link");
    for name in ["machine.json", "link", "twin"] {
        for verb in [&["show", "--svg"][..], &["snapshot", "-o"]] {
            let over = file(name);
            let words = [verb[0], "--root", path(&input), verb[1], path(&over)];
            let refused = onrush(&words);
            assert_eq!(refused.status.code(), Some(1), "{words:?}");
            let said = text(&refused.stderr);
            let expected = format!("{} would overwrite the input {}", verb[1], path(&input));
            assert!(said.contains(&expected), "{said}");
            assert_eq!(read(&input), whole, "{words:?}");
        }
    }
}

#[test]
fn unwritable_output_error_is_one_line() {
    let root = cloud().write();
    let place = path(root.path());
    let fifo = root.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo runs").success());
    for (file, expected) in [
        (path(&fifo), "it is a pipe without a reader"),
        ("/dev/full", "No space left on device"),
        ("/no/such/file", "/no/such/file cannot be written: No such"),
        (place, "Is a directory"),
    ] {
        for verb in [&["show", "--for", "1ms", "--svg"][..], &["snapshot", "-o"]] {
            let words = [verb, &[file, "--root", place]].concat();
            let refused = onrush(&words);
            assert_eq!(refused.status.code(), Some(1), "{words:?}");
            let said = text(&refused.stderr).to_lowercase();
            assert!(said.contains(&expected.to_lowercase()), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
    let piped = onrush(&["snapshot", "--root", place, "-o", "/dev/stdout"]);
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    serde_json::from_slice::<serde_json::Value>(&piped.stdout).expect("JSON");
}

#[test]
fn unwritable_standard_output_is_reported() {
    let root = cloud().write();
    let place = path(root.path());
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let unit = root.path().join("etc/systemd/system/onrush-tune.service");
    for (into, why) in [
        (">/dev/full", "No space left on device"),
        (">&-", "Bad file descriptor"),
    ] {
        let run = |words: &str| {
            let script = format!("\"$0\" tune {words} --root {place} {into}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script, env!("CARGO_BIN_EXE_onrush")]);
            let output = shell.output().expect("sh runs");
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{script}: {said}");
            let expected = format!("cannot write to standard output: {why}");
            assert!(said.contains(&expected), "{script}: {said}");
        };
        run("plan");
        run("plan --json");
        run("show --for 1ms");
        run("diagnose --for 1ms");
        run("apply --persist");
        assert_eq!(read(&somaxconn), "65535\n");
        assert!(unit.exists());
        run("status");
        run("revert --persist");
        assert_eq!(read(&somaxconn), "4096\n");
        assert!(!unit.exists());
        run("revert");
        run("search --measure 'echo 1' --turns 1");
        let status = onrush(&["status", "--root", place]);
        assert_eq!(text(&status.stdout), "no changes are applied\n");
    }
}
