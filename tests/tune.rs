//! `onrush tune` on the command line: plans and snapshots of machines below a root directory.

#[path = "../crates/tune/tests/machines/machine/mod.rs"]
mod machine;
#[path = "../crates/tune/tests/live/namespace/mod.rs"]
mod namespace;
mod tune_lasting;
mod tune_live;
mod tune_output;
mod tune_process;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use machine::{Kind, Machine};
use rustix::process::{Pid, Signal, kill_process};

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
fn plan_of_snapshot_equals_plan_of_machine() {
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
fn script_applies_plan() {
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
fn notes_contain_process_limits() {
    let root = cloud().write();
    let limits = root.path().join("proc/77/limits");
    fs::create_dir_all(limits.parent().expect("a directory")).expect("a directory");
    let row = |soft: &str| {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max open files            {soft:<20} 524288               files     \n"
        )
    };
    for (soft, is_noted) in [("1024", true), ("65536", false), ("unlimited", false)] {
        fs::write(&limits, row(soft)).expect("written");
        let plan = onrush(&["plan", "--root", path(root.path()), "--pid", "77"]);
        let found = text(&plan.stdout)
            .contains("the process has a limit of 1024 open files (hard limit 524288)");
        assert_eq!(found, is_noted, "{}", text(&plan.stdout));
    }
}

#[test]
fn invalid_plans_are_refused() {
    let root = cloud().write();
    let nothing = tempfile::tempdir().expect("a directory");
    for (arguments, expected) in [
        (
            &["plan", "--root", "/no/such/place"][..],
            "cannot read /no/such/place: No such file or directory",
        ),
        (&["plan", "--root", path(nothing.path())], "no CPUs found"),
        (
            &["plan", "--root", path(root.path()), "--interface", "wlan7"],
            "interface wlan7 not found: expected one of eth0",
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

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn applied_changes_are_shown_and_reverted() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let applied = onrush(&["apply", "--root", &place]);
    assert!(applied.status.success(), "{}", text(&applied.stderr));
    assert!(
        text(&applied.stdout).contains("done     eth0 queue 0 packet steering"),
        "{}",
        text(&applied.stdout)
    );
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "65535\n");
    assert!(onrush(&["status", "--root", &place]).status.success());

    fs::write(&somaxconn, "9\n").expect("written");
    let status = onrush(&["status", "--root", &place]);
    assert_eq!(status.status.code(), Some(3));
    assert!(
        text(&status.stdout).contains("9, was set to 65535"),
        "{}",
        text(&status.stdout)
    );
    let reverted = onrush(&["revert", "--root", &place]);
    assert_eq!(reverted.status.code(), Some(3));
    assert!(
        text(&reverted.stdout)
            .contains("conflict net.core.somaxconn: another program has set it to 9")
    );
    assert!(
        onrush(&["revert", "--root", &place, "--force"])
            .status
            .success()
    );
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
    assert_eq!(
        text(&onrush(&["revert", "--root", &place]).stdout),
        "no changes are applied\n"
    );
}

#[test]
fn unconfirmed_changes_are_undone() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let output = onrush(&["apply", "--root", &place, "--confirm-within", "1ms"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("not confirmed: undoing"));
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
}

#[test]
fn unconfirmed_changes_are_undone_with_closed_output() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let before = fs::read_to_string(root.path().join("proc/sys/net/core/somaxconn")).expect("read");
    for guard in [["--confirm-within", "1ms"], ["--for", "true"]] {
        for (out, err) in [(true, false), (false, true), (true, true)] {
            let words = ["tune", "apply", "--root", &place, guard[0], guard[1]];
            // A pipe whose reader has gone, like that of a closed session, and a full disk.
            let (unread, gone) = std::io::pipe().expect("a pipe");
            drop(unread);
            let full = || Stdio::from(fs::File::create("/dev/full").expect("it is there"));
            let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
            command.stdout(if out { full() } else { Stdio::null() });
            command.stderr(if err { Stdio::from(gone) } else { full() });
            let status = command.args(words).status().expect("it runs");
            assert!(status.code().is_some(), "{guard:?}: {status}");
            let now = fs::read_to_string(root.path().join("proc/sys/net/core/somaxconn"));
            assert_eq!(now.expect("read"), before, "{guard:?}, {out}, {err}");
            let status = onrush(&["status", "--root", &place]);
            assert_eq!(text(&status.stdout), "no changes are applied\n");
        }
    }
}

#[test]
fn permanent_changes_outlast_temporary_ones() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let setting = root.path().join("proc/sys/net/ipv4/tcp_tw_reuse");
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let read = |file: &Path| fs::read_to_string(file).expect("read");
    assert!(onrush(&["apply", "--root", &place]).status.success());
    let (usual, stays) = (read(&setting), read(&somaxconn));
    let meanwhile = format!("cat {}", setting.display());
    for (wish, guard) in [
        ("proxy", ["--for", meanwhile.as_str()]),
        ("proxy", ["--confirm-within", "1ms"]),
        ("server", ["--for", "true"]),
        ("server", ["--confirm-within", "10m"]),
    ] {
        let words = [
            "apply", "--root", &place, "--role", wish, guard[0], guard[1],
        ];
        let applied = onrush(&words);
        if guard[1] == meanwhile {
            assert!(
                text(&applied.stdout).contains("\n1\n"),
                "{}",
                text(&applied.stdout)
            );
        }
        assert_eq!(
            (read(&setting), read(&somaxconn)),
            (usual.clone(), stays.clone()),
            "{words:?}"
        );
    }
    assert!(onrush(&["status", "--root", &place]).status.success());
    let nothing = onrush(&["confirm", "--root", &place]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("no changes wait for confirmation"));
    assert!(onrush(&["revert", "--root", &place]).status.success());
    assert_ne!(read(&somaxconn), stays);
}

#[test]
fn signal_ends_command_and_its_children() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let file = root.path().join("number");
    let during = format!("sleep 600 & echo $! >{}; wait; echo more", path(&file));
    let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
    command.args(["tune", "apply", "--root", &place, "--for", &during]);
    let child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let number = || fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok();
    wait_until("the command does not start", || number().is_some());
    let number = number().expect("a number");
    let own = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(own.expect("a number"), Signal::TERM).expect("it runs");
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.code().is_some());
    wait_until("what it started runs on", || {
        let stat = fs::read_to_string(format!("/proc/{number}/stat"));
        // Gone, or a zombie.
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
    assert_eq!(
        text(&onrush(&["status", "--root", &place]).stdout),
        "no changes are applied\n"
    );
}

#[test]
fn second_apply_changes_nothing() {
    let root = Machine::new(1, 8, 1).write();
    let place = path(root.path()).to_owned();
    assert!(onrush(&["apply", "--root", &place]).status.success());
    let again = onrush(&["apply", "--root", &place]);
    assert_eq!(
        (again.status.code(), text(&again.stdout)),
        (Some(0), String::new())
    );
    assert!(onrush(&["revert", "--root", &place]).status.success());

    // If everything is already as planned, no journal is left.
    let set = onrush(&["plan", "--root", &place, "--script"]);
    let script = text(&set.stdout).replace(" /", &format!(" {place}/"));
    assert!(
        Command::new("sh")
            .arg("-c")
            .arg(&script)
            .status()
            .expect("sh")
            .success()
    );
    let idle = onrush(&["apply", "--root", &place, "--confirm-within", "10m"]);
    assert!(idle.status.success(), "{}", text(&idle.stderr));
    assert_eq!(
        text(&onrush(&["status", "--root", &place]).stdout),
        "no changes are applied\n"
    );
}

#[test]
fn readable_part_of_damaged_journal_is_undone() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let steering = root.path().join("sys/class/net/eth0/queues/rx-0/rps_cpus");
    let before = fs::read_to_string(&steering).expect("read");
    assert!(onrush(&["apply", "--root", &place]).status.success());
    let journal = root.path().join("run/onrush-tune.journal");
    let text_of = fs::read_to_string(&journal).expect("read");
    let damaged = |line: &str| match line.contains("somaxconn") && line.contains("\"change\"") {
        true => "\u{1b}[2J{\"change\":{\"somaxconn".to_owned(),
        false => line.to_owned(),
    };
    let lines: Vec<String> = text_of.lines().map(damaged).collect();
    fs::write(&journal, lines.join("\n") + "\n").expect("written");
    let status = onrush(&["status", "--root", &place]);
    assert_eq!(status.status.code(), Some(3));
    assert!(
        text(&status.stderr).contains("cannot be read"),
        "{}",
        text(&status.stderr)
    );
    let reverted = onrush(&["revert", "--root", &place]);
    assert_eq!(reverted.status.code(), Some(3));
    let words = text(&reverted.stdout);
    assert!(
        words.contains("restored eth0 queue 0 packet steering"),
        "{words}"
    );
    assert!(
        words.contains("\nlost     line ")
            && words.contains("onrush-tune.journal.damaged-1 cannot be read"),
        "{words}"
    );
    assert!(!words.contains('\u{1b}'), "{words}");
    assert_eq!(fs::read_to_string(&steering).expect("read"), before);
    // Changes on the damaged line stay in force, and the line is kept in a file.
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "65535\n");
    assert!(
        root.path()
            .join("run/onrush-tune.journal.damaged-1")
            .exists()
    );
    let again = onrush(&["revert", "--root", &place]);
    assert_eq!(text(&again.stdout), "no changes are applied\n");
}

#[test]
fn invalid_duration_is_refused_before_changes() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let mut ended = Command::new("true").spawn().expect("it starts");
    ended.wait().expect("it ends");
    let gone = ended.id().to_string();
    for (wish, code, words) in [
        (
            gone.as_str(),
            1,
            " does not exist; for a time add its unit: ",
        ),
        ("0", 1, "not a process number"),
        ("1.5x", 1, "is not a duration"),
    ] {
        let refused = onrush(&["apply", "--root", &place, "--for", wish]);
        assert_eq!(refused.status.code(), Some(code), "{wish}");
        assert!(
            text(&refused.stderr).contains(words),
            "{}",
            text(&refused.stderr)
        );
        assert_eq!(text(&refused.stdout), "", "nothing was done");
        assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
    }
    let timed = onrush(&["apply", "--root", &place, "--for", "1ms"]);
    assert!(timed.status.success(), "{}", text(&timed.stderr));
    assert!(text(&timed.stdout).contains("restored net.core.somaxconn"));
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
}

#[test]
fn confirmed_changes_are_kept() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let child = Command::new(env!("CARGO_BIN_EXE_onrush"))
        .args(["tune", "apply", "--root", &place, "--confirm-within", "10m"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // It waits for a confirmation once everything is applied; before that, the journal is locked.
    wait_until("nothing was applied", || {
        onrush(&["status", "--root", &place])
            .stdout
            .starts_with(b"in force")
    });
    wait_until("it was not confirmed", || {
        onrush(&["confirm", "--root", &place]).status.success()
    });
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).ends_with("confirmed\n"));
    assert!(onrush(&["status", "--root", &place]).status.success());
}

#[test]
fn changes_last_until_command_ends() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let somaxconn = root.path().join("proc/sys/net/core/somaxconn");
    let command = format!("cat {}; exit 7", somaxconn.display());
    let output = onrush(&["apply", "--root", &place, "--for", &command]);
    assert_eq!(
        output.status.code(),
        Some(7),
        "the command's own code; {}",
        text(&output.stderr)
    );
    assert!(
        text(&output.stdout).contains("\n65535\n"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(fs::read_to_string(&somaxconn).expect("read"), "4096\n");
}

#[test]
fn latency_goal_keeps_cpus_awake() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    fs::create_dir(root.path().join("dev")).expect("a directory");
    let limit = root.path().join("dev/cpu_dma_latency");
    let states = [("POLL", 0, 0), ("C1", 2, 0), ("C6", 133, 0), ("C8", 200, 1)];
    for (at, (name, latency, is_off)) in states.iter().enumerate() {
        let state = format!("sys/devices/system/cpu/cpu0/cpuidle/state{at}");
        let state = root.path().join(state);
        fs::create_dir_all(&state).expect("a directory");
        for (file, text) in [
            ("name", (*name).to_owned()),
            ("latency", latency.to_string()),
            ("disable", is_off.to_string()),
        ] {
            fs::write(state.join(file), text + "\n").expect("written");
        }
    }
    let applied = |goal: &str| {
        fs::write(&limit, "").expect("written");
        onrush(&["apply", "--root", &place, "--goal", goal, "--for", "true"])
    };
    let planned = onrush(&["plan", "--root", &place, "--goal", "latency"]);
    assert!(
        text(&planned.stdout).contains("idle state C6 takes 133 microseconds to leave"),
        "{}",
        text(&planned.stdout)
    );
    let short = applied("latency");
    assert!(
        text(&short.stderr)
            .contains("CPU wake-up latency is limited to 2 us until the end of this run"),
        "{}",
        text(&short.stderr)
    );
    assert_eq!(fs::read(&limit).expect("read"), 2_i32.to_ne_bytes());
    applied("throughput");
    assert_eq!(fs::read(&limit).expect("read"), b"");
    fs::remove_file(&limit).expect("removed");
    let without = onrush(&[
        "apply", "--root", &place, "--goal", "latency", "--for", "true",
    ]);
    assert!(
        text(&without.stderr)
            .contains("deep CPU sleep states are not disabled: /dev/cpu_dma_latency: is gone"),
        "{}",
        text(&without.stderr)
    );
}

#[test]
fn machine_can_be_shown_diagnosed_and_searched() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let picture = root.path().join("machine.svg");
    let shown = onrush(&["show", "--root", &place, "--planned"]);
    assert!(
        text(&shown.stdout).contains("CPU 17  steers eth0"),
        "{}",
        text(&shown.stdout)
    );
    assert!(
        onrush(&["show", "--root", &place, "--svg", path(&picture)])
            .status
            .success()
    );
    assert!(
        fs::read_to_string(&picture)
            .expect("read")
            .starts_with("<svg")
    );
    let diagnosed = onrush(&["diagnose", "--root", &place]);
    assert!(
        text(&diagnosed.stdout).contains("no resource was saturated"),
        "{}",
        text(&diagnosed.stdout)
    );

    // The best mask is the one with the fewest digits other than zero.
    let measure =
        format!("cat {place}/sys/class/net/eth0/queues/rx-0/rps_cpus | tr -d '0,\\n' | wc -c");
    let command = format!("expr 100 + 10 '*' $({measure})");
    let searched = onrush(&[
        "search",
        "--root",
        &place,
        "--measure",
        &command,
        "--turns",
        "2",
    ]);
    assert!(searched.status.success(), "{}", text(&searched.stderr));
    let table = text(&searched.stdout);
    let kept = table
        .lines()
        .rfind(|line| line.ends_with("kept"))
        .unwrap_or_default();
    assert!(
        kept.starts_with("packet steering to all 32 CPUs"),
        "{table}"
    );
    assert!(onrush(&["revert", "--root", &place]).status.success());
    let failed = onrush(&["search", "--root", &place, "--measure", "echo nothing"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        text(&failed.stderr)
            .contains("last word of the measurement's output is not a number: \"nothing\""),
        "{}",
        text(&failed.stderr)
    );
}

#[test]
fn process_is_diagnosed_and_shown() {
    // This process: it has threads, and a listening socket.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = std::process::id().to_string();
    let diagnosed = onrush(&["diagnose", "--pid", &own, "--for", "10ms", "--json"]);
    assert!(diagnosed.status.success(), "{}", text(&diagnosed.stderr));
    assert!(text(&diagnosed.stdout).starts_with('['));
    let shown = onrush(&["show", "--pid", &own, "--for", "1ms"]);
    let name = fs::read_to_string("/proc/self/comm").expect("read");
    assert!(
        text(&shown.stdout).contains(&format!("runs {}", name.trim())),
        "{}",
        text(&shown.stdout)
    );
    drop(listener);

    let root = cloud().write();
    let place = path(root.path());
    // A master process and its worker.
    let process = root.path().join("proc/4242");
    let worker = root.path().join("proc/4243");
    fs::create_dir_all(process.join("net")).expect("a directory");
    fs::create_dir_all(worker.join("fd")).expect("a directory");
    fs::write(worker.join("stat"), "4243 (nginx) S 4242 0 0").expect("written");
    std::os::unix::fs::symlink("socket:[777]", worker.join("fd/3")).expect("a link");
    for (file, words) in [
        ("comm", "nginx"),
        (
            "limits",
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1                    4096                 files",
        ),
        (
            "net/tcp",
            "sl local\n 0: 00000000:1F90 00000000:0000 0A 00000000:00000081 00:00000000 00000000 0 0 777 1",
        ),
        ("net/netstat", "TcpExt: ListenOverflows\nTcpExt: 12"),
    ] {
        fs::write(process.join(file), format!("{words}\n")).expect("written");
    }
    fs::rename(process.join("limits"), worker.join("limits")).expect("moved");
    let diagnosed = onrush(&["diagnose", "--root", place, "--pid", "4242"]);
    let words = text(&diagnosed.stdout);
    assert!(words.contains("of nginx, 129 wait on port 8080"), "{words}");
    assert!(
        words.contains("nginx has 1 files open (limit 1)"),
        "{words}"
    );
    let missing = onrush(&["diagnose", "--root", place, "--pid", "4244"]);
    assert!(
        text(&missing.stderr).contains("process 4244 does not exist"),
        "{}",
        text(&missing.stderr)
    );
}

#[test]
fn exceeded_allowance_is_diagnosed_from_snapshot() {
    let root = cloud().write();
    let file = root.path().join("machine.json");
    let place = path(root.path()).to_owned();
    let taken = onrush(&["snapshot", "--root", &place, "-o", path(&file)]);
    assert!(taken.status.success(), "{}", text(&taken.stderr));
    let mut snapshot: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("read")).expect("JSON");
    // A counter of ENA's driver, added to the snapshot: drivers can only be asked on this machine's own root.
    snapshot["driver_counters"]["eth0"]["pps_allowance_exceeded"] = 1_234.into();
    fs::write(&file, snapshot.to_string()).expect("written");
    let diagnosed = onrush(&["diagnose", "--root", path(&file)]);
    assert!(
        text(&diagnosed.stdout).starts_with(
            "sure     packet-rate allowance exceeded: the provider delayed or dropped packets (eth0 pps_allowance_exceeded by 1234)"
        ),
        "{}",
        text(&diagnosed.stdout)
    );
    let planned = onrush(&["plan", "--root", path(&file)]);
    assert!(
        text(&planned.stdout).contains("eth0 packet-rate allowance exceeded"),
        "{}",
        text(&planned.stdout)
    );
}

/// On the machine that runs the tests: recommended settings exist, and no limit is lowered.
#[test]
fn recommended_settings_exist_and_are_not_lowered() {
    for (goal, role) in [
        ("throughput", "server"),
        ("latency", "proxy"),
        ("throughput", "client"),
    ] {
        let plan = onrush(&["plan", "--json", "--goal", goal, "--role", role]);
        let json: serde_json::Value = serde_json::from_slice(&plan.stdout).expect("JSON");
        for action in json["actions"].as_array().expect("actions") {
            let path = action["path"].as_str().expect("a path");
            if !path.starts_with("/proc/sys/") {
                continue;
            }
            assert!(Path::new(path).exists(), "{path}");
            let number = |key: &str| {
                action[key]
                    .as_str()
                    .expect("a value")
                    .split(' ')
                    .next_back()?
                    .parse::<u64>()
                    .ok()
            };
            // Switches are 0 and 1; everything else is a limit.
            if number("proposed") > Some(1) {
                assert!(number("proposed") > number("current"), "{action}");
            }
        }
    }
}

#[test]
fn unprivileged_apply_reports_missing_capability() {
    let directory = tempfile::tempdir().expect("a directory");
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), everybody).expect("permitted");
    // A copy, since not everybody may be able to read the build directory.
    let program = directory.path().join("onrush");
    fs::copy(env!("CARGO_BIN_EXE_onrush"), &program).expect("copied");
    let mut command = Command::new(&program);
    command.args(["tune", "apply"]);
    if rustix::process::geteuid().is_root() {
        const NOBODY: u32 = 65_534;
        command.uid(NOBODY).gid(NOBODY);
    }
    let refused = command.output().expect("it runs");
    assert_eq!(refused.status.code(), Some(1));
    let words = text(&refused.stderr);
    assert!(
        words.contains("CAP_NET_ADMIN") && words.contains("Permission denied"),
        "{words}"
    );
    let plan = Command::new(&program).args(["tune", "plan"]).output();
    let plan = text(&plan.expect("it runs").stdout);
    let first = plan.lines().next().expect("a plan");
    assert!(
        text(&refused.stdout).starts_with(first),
        "{}",
        text(&refused.stdout)
    );
}

#[test]
fn ctrl_c_restores_settings_of_search() {
    let root = cloud().write();
    let place = path(root.path()).to_owned();
    let steering = root.path().join("sys/class/net/eth0/queues/rx-0/rps_cpus");
    let before = fs::read_to_string(&steering).expect("read");
    let measured = root.path().join("measured");
    let measure = format!("echo >>{}; echo 1", path(&measured));
    let words = [
        "search",
        "--root",
        &place,
        "--turns",
        "100",
        "--measure",
        &measure,
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
    command.arg("tune").args(words).stderr(Stdio::piped());
    let child = command.stdout(Stdio::null()).spawn().expect("it starts");
    // A hundred measurements precede the first candidate.
    wait_until("it does not measure", || {
        fs::metadata(&measured).is_ok_and(|file| file.len() > 120)
    });
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(number.expect("a number"), Signal::INT).expect("it runs");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended.stderr));
    assert!(
        text(&ended.stderr).contains("stopped: the remaining settings were not tried"),
        "{}",
        text(&ended.stderr)
    );
    assert_eq!(
        fs::read_to_string(&steering).expect("read").trim(),
        before.trim()
    );
    assert_eq!(
        text(&onrush(&["status", "--root", &place]).stdout),
        "no changes are applied\n"
    );
}
