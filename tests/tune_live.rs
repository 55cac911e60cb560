//! `onrush tune` on real interfaces: pairs of veth with four queues, in network namespaces created for the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::namespace::Namespace;
use super::{path, text, wait_until};

impl Namespace {
    /// Creates a namespace with a veth pair of four queues.
    fn with_veth(purpose: &str) -> Option<Namespace> {
        let steps = [
            "ip link add v0 numrxqueues 4 numtxqueues 4 type veth peer name v1",
            "ip link set v0 up",
            "ip link set v1 up",
        ];
        Namespace::after(purpose, &steps)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", self.name(), program])
            .args(arguments);
        command
    }

    fn onrush(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["tune"];
        all.extend(arguments);
        self.command(env!("CARGO_BIN_EXE_onrush"), &all)
            .output()
            .expect("ip runs")
    }

    /// Path of the namespace's journal.
    fn journal(&self) -> String {
        let identity = self
            .command("readlink", &["/proc/self/ns/net"])
            .output()
            .expect("readlink runs");
        let digits: String = text(&identity.stdout)
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        format!("/run/onrush-tune.{digits}.journal")
    }

    /// Contents of the files in the namespace's /sys and /proc that a plan may change, as `path:value` lines.
    fn values(&self) -> String {
        let script = "cd /sys/class/net/v0/queues && grep -H . */rps_cpus */rps_flow_cnt */xps_cpus; \
                      cd /proc/sys/net && grep -H . core/somaxconn ipv4/tcp_* ipv4/ip_local_port_range";
        let output = self
            .command("sh", &["-c", script])
            .output()
            .expect("sh runs");
        // tcp_fastopen_key changes by itself.
        let lines = text(&output.stdout);
        lines
            .lines()
            .filter(|line| !line.contains("tcp_fastopen_key"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[test]
fn interface_of_remote_session_requires_guard() {
    let Some(namespace) = Namespace::with_veth("session") else {
        return;
    };
    let addressed = namespace
        .command("ip", &["address", "add", "10.99.0.1/24", "dev", "v0"])
        .status();
    assert!(addressed.expect("ip runs").success());
    let from = |client: &str, arguments: &[&str]| {
        let mut all = vec!["tune"];
        all.extend(arguments);
        namespace
            .command(env!("CARGO_BIN_EXE_onrush"), &all)
            .env("SSH_CONNECTION", format!("{client} 40000 10.99.0.1 22"))
            .output()
            .expect("ip runs")
    };
    let planned = from("10.99.0.2", &["plan", "--interface", "v0"]);
    assert!(
        text(&planned.stdout).contains("v0 carries this SSH session"),
        "{}",
        text(&planned.stdout)
    );
    let before = namespace.values();
    let refused = from("10.99.0.2", &["apply", "--interface", "v0"]);
    assert_eq!(refused.status.code(), Some(1));
    let words = text(&refused.stderr);
    assert!(
        words.contains("this session arrives on v0, and the plan has ")
            && words.contains("--confirm-within 60s"),
        "{words}"
    );
    assert_eq!(namespace.values(), before);
    let refused = from(
        "10.99.0.2",
        &["search", "--interface", "v0", "--measure", "echo 1"],
    );
    assert!(
        text(&refused.stderr).contains("pass --keep-queues"),
        "{}",
        text(&refused.stderr)
    );
    // sudo does not pass the variable on; parent processes have it.
    let program = env!("CARGO_BIN_EXE_onrush");
    let script = format!("env -i PATH=$PATH {program} tune apply --interface v0; exit $?");
    let behind = namespace
        .command("sh", &["-c", &script])
        .env("SSH_CONNECTION", "10.99.0.2 40000 10.99.0.1 22")
        .output()
        .expect("ip runs");
    assert_eq!(behind.status.code(), Some(1));
    assert!(
        text(&behind.stderr).contains("this session arrives on v0, and the plan has "),
        "{}",
        text(&behind.stderr)
    );
    // Other interfaces may be changed, and so may anything that is undone when the program ends.
    let other = from(
        "10.99.0.2",
        &["apply", "--interface", "v1", "--for", "true"],
    );
    assert!(other.status.success(), "{}", text(&other.stderr));
    let other = from("10.99.0.2", &["apply", "--interface", "v1"]);
    assert!(other.status.success(), "{}", text(&other.stderr));
    assert!(namespace.onrush(&["revert"]).status.success());
    let guarded = from(
        "10.99.0.2",
        &["apply", "--interface", "v0", "--for", "true"],
    );
    assert!(guarded.status.success(), "{}", text(&guarded.stderr));
    assert_eq!(namespace.values(), before);
}

#[test]
fn snapshot_has_driver_counters() {
    let Some(namespace) = Namespace::with_veth("counters") else {
        return;
    };
    let file = tempfile::NamedTempFile::new().expect("a file");
    let taken = namespace.onrush(&["snapshot", "-o", path(file.path())]);
    assert!(taken.status.success(), "{}", text(&taken.stderr));
    let snapshot: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(file.path()).expect("read")).expect("JSON");
    // veth's driver counter with the index of the peer interface.
    let peer = &snapshot["driver_counters"]["v0"]["peer_ifindex"];
    assert!(peer.as_u64().is_some_and(|peer| peer > 0), "{peer}");
}

#[test]
fn interface_is_changed_and_restored() {
    let Some(namespace) = Namespace::with_veth("apply") else {
        return;
    };
    let before = namespace.values();
    assert!(before.contains("rx-3/rps_cpus"), "{before}");
    let wish = ["--interface", "v0"];

    let plan = namespace.onrush(&["plan", wish[0], wish[1], "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    let actions = json["actions"].as_array().expect("actions");
    assert!(actions.len() >= 8, "{}", text(&plan.stdout));
    assert_eq!(namespace.values(), before, "a plan changes nothing");
    let applied = namespace.onrush(&["apply", wish[0], wish[1]]);
    assert!(
        !text(&applied.stdout).contains("/queues/"),
        "{}",
        text(&applied.stdout)
    );
    assert!(namespace.onrush(&["status"]).status.success());
    let again = namespace.onrush(&["plan", wish[0], wish[1], "--json"]);
    let left: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    let is_queue = |action: &&serde_json::Value| {
        action["path"]
            .as_str()
            .is_some_and(|path| path.contains("/queues/"))
    };
    assert_eq!(
        left["actions"]
            .as_array()
            .expect("actions")
            .iter()
            .filter(is_queue)
            .count(),
        0
    );

    // Another program narrows the mask to CPU 0.
    let file = "/sys/class/net/v0/queues/rx-1/rps_cpus";
    let shell = |script: String| {
        let output = namespace.command("sh", &["-c", &script]).output();
        text(&output.expect("sh runs").stdout)
    };
    let ours = shell(format!("cat {file}; echo 1 >{file}"));
    let theirs = shell(format!("cat {file}"));
    if ours == theirs {
        eprintln!("skipped: with one CPU there is nothing else to set");
        return;
    }
    let status = namespace.onrush(&["status"]);
    assert_eq!(status.status.code(), Some(3), "{}", text(&status.stdout));
    assert!(
        text(&status.stdout).contains("drifted  v0 queue 1 packet steering"),
        "{}",
        text(&status.stdout)
    );
    let reverted = namespace.onrush(&["revert"]);
    assert_eq!(reverted.status.code(), Some(3));
    let conflict = format!(
        "conflict v0 queue 1 packet steering: another program has set it to {}",
        theirs.trim()
    );
    assert!(
        text(&reverted.stdout).contains(&conflict),
        "{}",
        text(&reverted.stdout)
    );
    assert_eq!(shell(format!("cat {file}")), theirs, "it is theirs");
    assert!(namespace.onrush(&["revert", "--force"]).status.success());
    assert_eq!(namespace.values(), before);

    // A constant measurement keeps no change, and everything is restored.
    let searched = namespace.onrush(&[
        "search",
        wish[0],
        wish[1],
        "--turns",
        "1",
        "--measure",
        "echo 1",
    ]);
    assert!(searched.status.success(), "{}", text(&searched.stderr));
    assert!(
        text(&searched.stdout).contains("restored"),
        "{}",
        text(&searched.stdout)
    );
    assert_eq!(namespace.values(), before);
    assert!(namespace.onrush(&["revert"]).status.success());

    for lines in [1, 3, 5, 8] {
        kill_in_the_middle(&namespace, &wish, lines);
        let reverted = namespace.onrush(&["revert"]);
        assert!(
            reverted.status.success(),
            "{}{}",
            text(&reverted.stdout),
            text(&reverted.stderr)
        );
        assert_eq!(
            namespace.values(),
            before,
            "killed after {lines} lines of the journal"
        );
    }
}

#[test]
fn renamed_interface_is_restored() {
    let Some(namespace) = Namespace::with_veth("renamed") else {
        return;
    };
    let before = namespace.values();
    let applied = namespace.onrush(&["apply", "--interface", "v0"]);
    assert!(applied.status.success(), "{}", text(&applied.stderr));
    let changed = namespace.values();
    assert_ne!(changed, before);
    // Swap the names of the two interfaces.
    let rename = |from: &str, to: &str| {
        for step in [
            &["link", "set", from, "down"][..],
            &["link", "set", from, "name", to],
            &["link", "set", to, "up"],
        ] {
            let done = namespace.command("ip", step).status();
            assert!(done.expect("ip runs").success(), "{step:?}");
        }
    };
    for (from, to) in [("v0", "v2"), ("v1", "v0"), ("v2", "v1")] {
        rename(from, to);
    }
    let other = namespace.values();
    let status = namespace.onrush(&["status"]);
    assert!(status.status.success(), "{}", text(&status.stdout));
    assert!(
        text(&status.stdout).contains("in force v1 queue 0 packet steering"),
        "{}",
        text(&status.stdout)
    );
    let reverted = namespace.onrush(&["revert"]);
    assert!(reverted.status.success(), "{}", text(&reverted.stdout));
    assert!(
        text(&reverted.stdout).contains("restored v1 queue 0 packet steering"),
        "{}",
        text(&reverted.stdout)
    );
    let queues = |values: &str| {
        let lines = values.lines().filter(|line| line.contains("ps_cpus"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        queues(&namespace.values()),
        queues(&other),
        "v0 is another one"
    );
    for (from, to) in [("v0", "v2"), ("v1", "v0"), ("v2", "v1")] {
        rename(from, to);
    }
    assert_eq!(namespace.values(), before);
}

#[test]
fn changes_beyond_namespace_are_reported() {
    let Some(namespace) = Namespace::with_veth("beyond") else {
        return;
    };
    // Settings of the whole machine, such as the NMI watchdog and vm.stat_interval; without one there is nothing to
    // test.
    let words = ["--interface", "v0", "--goal", "latency"];
    let planned = namespace.onrush(&[&["plan"][..], &words, &["--json"]].concat());
    let plan: serde_json::Value = serde_json::from_slice(&planned.stdout).expect("JSON");
    let actions = plan["actions"].as_array().expect("actions");
    let is_beyond = |action: &&serde_json::Value| {
        let path = action["path"].as_str().expect("a path");
        path.starts_with("/proc/sys/") && !path.starts_with("/proc/sys/net/")
    };
    if !actions.iter().any(|action| is_beyond(&action)) {
        eprintln!("skipped: nothing outside of the network is to be changed on this kernel");
        return;
    }
    let applied = namespace.onrush(&[&["apply"][..], &words, &["--for", "1ms"]].concat());
    assert!(
        text(&applied.stderr).contains(
            "the whole machine is affected by settings of this plan outside of its network namespace: "
        ),
        "{}",
        text(&applied.stderr)
    );
}

/// Maximum number of namespaces created before one gets the number of a removed one.
const NUMBERS_MAX: usize = 64;

#[test]
fn journal_of_dead_namespace_is_ignored() {
    if let Err(error) = onrush_engine::network_namespace_cookie() {
        eprintln!("skipped: this kernel does not tell namespaces apart (Linux 5.14 does): {error}");
        return;
    }
    let Some(dead) = Namespace::with_veth("dead") else {
        return;
    };
    let applied = dead.onrush(&["apply", "--interface", "v0"]);
    assert!(applied.status.success(), "{}", text(&applied.stderr));
    let journal = dead.journal();
    drop(dead);
    // The kernel assigns the smallest free number.
    let mut others = Vec::new();
    let again = (0..NUMBERS_MAX).find_map(|at| {
        let namespace = Namespace::after(&format!("new-{at}"), &[])?;
        match namespace.journal() == journal {
            true => Some(namespace),
            false => {
                others.push(namespace);
                None
            }
        }
    });
    let Some(again) = again else {
        eprintln!("skipped: the number of the namespace that is gone was not given again");
        fs::remove_file(journal).expect("nobody reverts it");
        return;
    };
    let status = again.onrush(&["status"]);
    assert_eq!(text(&status.stdout), "no changes are applied\n");
    let reverted = again.onrush(&["revert"]);
    assert_eq!(text(&reverted.stdout), "no changes are applied\n");
    assert!(!fs::exists(journal).expect("/run can be read"));
}

#[test]
fn plan_reports_two_network_namespaces() {
    let Some(namespace) = Namespace::with_veth("mixed") else {
        return;
    };
    let words = "/sys belongs to another network namespace";
    let planned = namespace.onrush(&["plan", "--interface", "v0"]);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    assert!(!text(&planned.stdout).contains(words));
    let net = format!("--net=/run/netns/{}", namespace.name());
    let entered = Command::new("nsenter")
        .args([&net, env!("CARGO_BIN_EXE_onrush"), "tune", "plan"])
        .output();
    let Ok(entered) = entered else {
        eprintln!("skipped: there is no nsenter (Debian's package is util-linux)");
        return;
    };
    let plan = text(&entered.stdout);
    assert!(plan.contains(words), "{plan}{}", text(&entered.stderr));
}

/// Kills an apply as soon as its journal has this many lines, or after its end, which also serves the test.
fn kill_in_the_middle(namespace: &Namespace, wish: &[&str], lines: usize) {
    let journal = namespace.journal();
    let program = env!("CARGO_BIN_EXE_onrush");
    let mut child = namespace
        .command(program, &[&["tune", "apply"], wish].concat())
        .stdout(Stdio::null())
        .spawn()
        .expect("ip runs");
    wait_until("it neither wrote its journal nor ended", || {
        let written = fs::read_to_string(&journal)
            .unwrap_or_default()
            .lines()
            .count();
        written >= lines || child.try_wait().expect("a child").is_some()
    });
    // `ip netns exec` is replaced by the program, so this kills the program.
    child.kill().expect("a child");
    child.wait().expect("a child");
}

struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("it starts"))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Shell function: packets that one CPU has handed to another since boot.
const STEERED: &str = "steered() { all=0; while read -r _ _ _ _ _ _ _ _ _ steered _; do all=$((all + 0x$steered)); done \
                       </proc/net/softnet_stat; echo $all; }";

#[test]
fn search_keeps_effective_steering() {
    let (Some(namespace), Some(peer)) = (
        Namespace::with_veth("search"),
        Namespace::after("search-peer", &[]),
    ) else {
        return;
    };
    let (here, there) = (namespace.name(), peer.name());
    for step in [
        &["-n", here, "link", "set", "v1", "netns", there][..],
        &["-n", here, "address", "add", "10.98.0.1/24", "dev", "v0"],
        &["-n", there, "address", "add", "10.98.0.2/24", "dev", "v1"],
        &["-n", there, "link", "set", "v1", "up"],
    ] {
        let done = Command::new("ip").args(step).status();
        assert!(done.expect("ip runs").success(), "{step:?}");
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        eprintln!("skipped: packets are steered from one CPU to another, and there is one");
        return;
    }
    let program = env!("CARGO_BIN_EXE_onrush");
    let words = ["serve", "--respond", "200", "--listen", "10.98.0.1:80"];
    let mut serve = namespace.command(program, &words);
    let server = Running::start(serve.stdout(Stdio::null()));
    wait_until("the server does not listen", || {
        let sockets = fs::read_to_string(format!("/proc/{}/net/tcp", server.id()));
        // 10.98.0.1:80 in state LISTEN.
        sockets.is_ok_and(|text| text.contains("0100620A:0050 00000000:0000 0A"))
    });
    let before = namespace.values();
    let measure = format!(
        "{STEERED}; before=$(steered); ip netns exec {there} {program} load http://10.98.0.1/ -c 20 -n 400 >/dev/null; \
         echo $((100 + $(steered) - before))"
    );
    let searched = namespace.onrush(&[
        "search",
        "--interface",
        "v0",
        "--turns",
        "2",
        "--measure",
        &measure,
    ]);
    let table = text(&searched.stdout);
    assert!(searched.status.success(), "{}", text(&searched.stderr));
    let kept = table.lines().filter(|line| line.ends_with(" kept"));
    let kept: Vec<&str> = kept.collect();
    assert!(
        kept.iter()
            .any(|line| line.starts_with("packet steering to")),
        "{table}"
    );
    assert_ne!(namespace.values(), before, "{table}");
    let reverted = namespace.onrush(&["revert"]);
    assert!(reverted.status.success(), "{}", text(&reverted.stdout));
    assert_eq!(namespace.values(), before, "{table}");
}

#[test]
fn search_moves_program_and_revert_restores_it() {
    let Some(namespace) = Namespace::with_veth("threads") else {
        return;
    };
    let cpus_of = |process: &str| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("read");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.expect("a list").trim().to_owned()
    };
    let all = cpus_of("self");
    let last = all.rsplit(['-', ',']).next().expect("a CPU").to_owned();
    let first = all.split(['-', ',']).next().expect("a CPU").to_owned();
    if first == last {
        eprintln!("skipped: there is one CPU, and nowhere to move to");
        return;
    }
    // The shell waits for a child process, both on the last CPU.
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &last, "sh", "-c", "sleep 600 & echo $!; wait"]);
    let mut shell = Running::start(command.stdout(Stdio::piped()));
    let mut sleeping = String::new();
    let out = shell.0.stdout.take().expect("it is piped");
    BufReader::new(out)
        .read_line(&mut sleeping)
        .expect("its number");
    let sleeping = sleeping.trim().to_owned();
    let processes = [shell.id(), sleeping.clone()];
    for process in &processes {
        assert_eq!(cpus_of(process), last);
    }
    let measure = format!("grep -c '^Cpus_allowed_list:.{first}$' /proc/{sleeping}/status || true");
    let searched = namespace.onrush(&[
        "search",
        "--interface",
        "v0",
        "--pid",
        &processes[0],
        "--turns",
        "2",
        "--measure",
        &format!("expr 1 + $({measure})"),
    ]);
    let table = text(&searched.stdout);
    assert!(searched.status.success(), "{}", text(&searched.stderr));
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("application on CPUs") && line.ends_with("kept")),
        "{table}"
    );
    for process in &processes {
        assert_eq!(cpus_of(process), first, "{table}");
    }
    let reverted = namespace.onrush(&["revert"]);
    assert!(reverted.status.success(), "{}", text(&reverted.stdout));
    for process in &processes {
        assert_eq!(cpus_of(process), last);
    }
    let nobody = namespace.onrush(&["search", "--pid", "999999999", "--measure", "echo 1"]);
    assert!(
        text(&nobody.stderr).contains("process 999999999 does not exist"),
        "{}",
        text(&nobody.stderr)
    );
    let sleeping = sleeping
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("a number");
    kill_process(sleeping, Signal::KILL).expect("it is ours");
}

#[test]
fn read_only_file_system_is_reported() {
    let Some(namespace) = Namespace::with_veth("read-only") else {
        return;
    };
    let before = namespace.values();
    let program = env!("CARGO_BIN_EXE_onrush");
    // The namespace's own mount of /sys, which disappears with this process.
    let script = format!("mount -o remount,ro /sys && exec {program} tune apply --interface v0");
    let applied = namespace.command("sh", &["-c", &script]).output();
    let applied = applied.expect("sh runs");
    assert_eq!(applied.status.code(), Some(3), "{}", text(&applied.stderr));
    let lines = text(&applied.stdout);
    let refused = lines
        .lines()
        .filter(|line| line.starts_with("refused  v0 queue "));
    let refused: Vec<&str> = refused.collect();
    assert!(
        !refused.is_empty()
            && refused
                .iter()
                .all(|line| line.contains("mounted read-only")),
        "{lines}"
    );
    assert!(
        lines
            .lines()
            .any(|line| line.starts_with("done     net.core.somaxconn")),
        "{lines}"
    );
    assert_ne!(namespace.values(), before);
    let reverted = namespace.onrush(&["revert"]);
    assert!(reverted.status.success(), "{}", text(&reverted.stdout));
    assert_eq!(namespace.values(), before);
}
