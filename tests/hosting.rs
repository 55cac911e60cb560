//! `onrush bench` with roles on other machines: agents without a network, and over sshd in network namespaces.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::peer::found;
use crate::program::{Finished, Program, TIMEOUT, onrush, run_onrush, until};

/// An experiment with our own server and client on two hosts, written as `a` and `b`.
fn experiment(directory: &Path, measure: &str, a: &str, b: &str) -> String {
    let path = directory.join("far.toml");
    let text = format!(
        r#"
name = "far"
rounds = 1
warm_up = "100ms"
measure = "{measure}"

[program.server]
onrush = ["serve", "--config", "{{dir}}/site.toml", "--cpus", "{{cpus}}"]
files = {{ "site.toml" = "[[listen]]\naddress = \"{{address}}:{{port}}\"\n[[route]]\nrespond = {{ status = 200 }}\n" }}

[program.load]
onrush = ["load", "http://{{target}}/", "-c", "{{connections}}", "-t", "1", "--cpus", "{{cpus}}", "-d", "{{duration}}", "--json", "{{json}}"]

[host.a]
{a}
[host.b]
{b}

[[work]]
name = "one"
connections = 2
client = "load"
server = "server"
hosts = {{ client = "a", server = "b" }}

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

const HERE: &str = "local = { address = \"127.0.0.1\" }";

fn json(out: &Path, name: &str) -> Value {
    let text = fs::read_to_string(out.join(name)).expect("it was written");
    serde_json::from_str(&text).expect("JSON")
}

/// Checks the result of a run on two hosts: a trial with rows and CPU times of both, and facts of both.
fn check_trial(out: &Path, finished: &Finished) {
    // On a busy machine a trial may be disturbed or too short, but it was made.
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:?}");
    let result = json(out, "result.json");
    let variant = &result["works"][0]["variants"][0];
    let trial = &variant["trials"][0];
    assert!(trial["requests"].as_u64() > Some(0), "{finished:?} {trial}");
    for role in ["client", "server"] {
        let used = trial["roles"][role]["cpu_s"].as_f64();
        assert!(used > Some(0.0), "{role}: {trial}");
    }
    assert_eq!(variant["hosts"]["server"], "b", "{variant}");
    let rows = trial["samples"].as_array().expect("rows");
    let times: Vec<f64> = rows.iter().filter_map(|row| row["t"].as_f64()).collect();
    assert!(times.is_sorted() && times.len() >= 2, "{times:?}");
    let hosts_of_rows = |first: u64| {
        let of_host = rows.iter().filter(move |row| {
            let cpu = row["cpus"][0]["cpu"].as_u64();
            cpu.is_some_and(|cpu| (first..first + 10_000).contains(&cpu))
        });
        of_host.count()
    };
    assert!(hosts_of_rows(10_000) > 0 && hosts_of_rows(20_000) > 0);
    let environment = json(out, "environment.json");
    for host in ["a", "b"] {
        let facts = &environment["hosts"][host];
        assert!(facts["machine"]["kernel"].is_string(), "{facts}");
        for clock in ["clock", "clock_at_end"] {
            let error = facts[clock]["error_s"].as_f64().expect("a number");
            let ahead = facts[clock]["ahead_s"].as_f64().expect("a number");
            // Both hosts are this machine, whose clock two programs read.
            assert!(ahead.abs() <= error + 0.001, "{facts}");
        }
    }
}

/// Running agents with their directories.
pub(crate) fn agents(pids: &[u32]) -> Vec<(u32, String)> {
    let of_agent = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.split('\0').collect();
        let is_agent = words.get(1..3) == Some(&["bench", "agent"]);
        Some((*pid, words.get(3).filter(|_| is_agent)?.to_string()))
    };
    pids.iter().filter_map(of_agent).collect()
}

fn all_pids() -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.collect()
}

/// Agents among the descendants of process `pid`.
fn agents_below(pid: u32) -> Vec<(u32, String)> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split(' ').nth(1)?.parse().ok()
    };
    let is_below = |child: &u32| {
        let mut at = Some(*child);
        while let Some(one) = at.filter(|one| *one > 1) {
            if one == pid {
                return true;
            }
            at = parent(one);
        }
        false
    };
    let below: Vec<u32> = all_pids().into_iter().filter(is_below).collect();
    agents(&below)
}

/// Processes whose command line contains this directory.
pub(crate) fn are_using(directory: &str) -> Vec<u32> {
    let uses = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(directory)
    };
    all_pids().into_iter().filter(uses).collect()
}

/// Waits until the agent and its directory are gone.
pub(crate) fn is_gone(directory: &str) {
    until("the agent and all it started to be gone", || {
        (are_using(directory).is_empty() && !Path::new(directory).exists()).then_some(())
    });
}

#[test]
fn agents_use_common_clock() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "2s", HERE, HERE);
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    check_trial(&out, &finished);
    let environment = json(&out, "environment.json");
    let line = environment["commands"]["one / direct / server"].clone();
    let program = line[3].as_str().expect("behind taskset").to_owned();
    let home = program.strip_suffix("/onrush").expect("the agent's copy");
    is_gone(home);
    let files = environment["files"].as_object().expect("files");
    let site = files["one / direct / server / site.toml"].as_str();
    assert!(
        site.is_some_and(|text| text.contains("0.0.0.0:")),
        "{files:?}"
    );
}

#[test]
#[ignore = "slow: make test-all"]
fn remote_client_exit_status_is_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "1s", HERE, HERE);
    let text = fs::read_to_string(&path).expect("it was written");
    let load = text
        .lines()
        .find(|line| line.starts_with("onrush = [\"load\""));
    let ends_badly = "command = [\"sh\", \"-c\", \"{onrush} load http://{target}/ -c {connections} -t 1 -d {duration} --json {json}; exit 7\"]";
    let text = text.replace(load.expect("a client"), ends_badly);
    fs::write(&path, text).expect("it is ours");
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let result = json(&out, "result.json");
    let trial = &result["works"][0]["variants"][0]["trials"][0];
    let reasons = trial["invalid"].as_array().expect("a list");
    let said = Value::from("the client ended with exit status 7");
    assert!(reasons.contains(&said), "{trial}");
}

/// Starts a run and waits until it is in its long window; also returns the agents with their directories.
fn long_run(directory: &Path) -> (Program, Vec<(u32, String)>) {
    let path = experiment(directory, "30m", HERE, HERE);
    let out = directory.join("out").display().to_string();
    let program = Program::start(&mut onrush(&["bench", &path, "--out", &out]));
    let agents = until("two agents with their programs", || {
        let agents = agents_below(program.pid());
        let are_busy = agents.iter().all(|(pid, home)| {
            // The agent itself also uses the directory.
            are_using(home)
                .iter()
                .any(|user| user != pid && is_program(*user))
        });
        (agents.len() == 2 && are_busy).then_some(agents)
    });
    (program, agents)
}

/// Whether a process is a program of the experiment: the command line of the shell that waits for an agent contains its
/// script.
pub(crate) fn is_program(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    let second = line.split('\0').nth(1).unwrap_or_default();
    second == "load" || second == "serve"
}

#[test]
#[ignore = "slow: make test-all"]
fn killed_run_leaves_no_agents() {
    let directory = tempfile::tempdir().expect("a directory");
    let (program, agents) = long_run(directory.path());
    program.signal(Signal::KILL);
    program.finish();
    for (_, home) in agents {
        is_gone(&home);
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn agents_exit_without_heartbeat() {
    let directory = tempfile::tempdir().expect("a directory");
    let (program, agents) = long_run(directory.path());
    program.signal(Signal::STOP);
    for (_, home) in agents {
        is_gone(&home);
    }
    program.signal(Signal::KILL);
    program.signal(Signal::CONT);
    program.finish();
}

#[test]
#[ignore = "slow: make test-all"]
fn lost_agent_ends_run_and_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let (program, agents) = long_run(directory.path());
    let (pid, _) = agents[0];
    let agent = rustix::process::Pid::from_raw(pid as i32).expect("not 0");
    rustix::process::kill_process(agent, Signal::KILL).expect("ours");
    let finished = program.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let result = json(&directory.path().join("out"), "result.json");
    let lost = result["lost"].as_str().expect("it is named");
    assert!(
        lost.contains("is lost: its connection was closed"),
        "{lost}"
    );
    assert_eq!(result["complete"], false);
    let notes = result["notes"].to_string();
    assert!(
        notes.contains("Stopped early, in one · direct: host `"),
        "{notes}"
    );
    for (_, home) in agents {
        is_gone(&home);
    }
}

/// Three network namespaces: `hub` for the experiment, and two hosts that reach each other through it. Each host runs
/// an sshd. Removed on drop.
struct Hosts {
    names: [String; 3],
    sshds: Vec<Program>,
    directory: tempfile::TempDir,
}

fn address(host: usize) -> String {
    format!("10.79.{host}.2")
}

fn succeeds(command: &mut Command) -> Result<String, String> {
    let outcome = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match outcome.status.success() {
        true => Ok(String::from_utf8_lossy(&outcome.stdout).into_owned()),
        false => Err(format!("{command:?}: {outcome:?}")),
    }
}

pub(crate) fn ip(words: &str) -> Result<String, String> {
    succeeds(Command::new("ip").args(words.split(' ')))
}

impl Hosts {
    /// Creates them; `None`, with a message, if that is not possible.
    fn new() -> Option<Hosts> {
        let programs = ["ip", "sshd", "ssh", "ssh-keygen", "ssh-keyscan"];
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can make network namespaces");
            return None;
        }
        if let Some(missing) = programs.iter().find(|name| found(name).is_none()) {
            eprintln!("skipped: {missing} is not here; this takes openssh-server and iproute2");
            return None;
        }
        use std::sync::atomic::{AtomicU32, Ordering};
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let name = |role: &str| format!("onrush-{role}-{id}-{number}");
        let mut hosts = Hosts {
            names: ["hub", "one", "two"].map(name),
            sshds: Vec::new(),
            directory: tempfile::tempdir().expect("a directory"),
        };
        if let Err(why) = hosts.connect().and_then(|()| hosts.keys()) {
            panic!("root can do this: {why}");
        }
        for host in [1, 2] {
            hosts.listen(host, "");
        }
        Some(hosts)
    }

    fn connect(&self) -> Result<(), String> {
        let [hub, ..] = &self.names;
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link set lo up"))?;
        ip(&format!("netns exec {hub} sysctl -q net.ipv4.ip_forward=1"))?;
        for host in [1, 2] {
            let name = &self.names[host];
            for step in [
                format!("netns add {name}"),
                format!("-n {hub} link add v{host} type veth peer name v0 netns {name}"),
                format!("-n {hub} address add 10.79.{host}.1/24 dev v{host}"),
                format!("-n {hub} link set v{host} up"),
                format!("-n {name} address add {}/24 dev v0", address(host)),
                format!("-n {name} link set lo up"),
                format!("-n {name} link set v0 up"),
                format!("-n {name} route add default via 10.79.{host}.1"),
            ] {
                ip(&step)?;
            }
        }
        Ok(())
    }

    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn keys(&self) -> Result<(), String> {
        for name in ["host", "user", "stranger"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            succeeds(Command::new("ssh-keygen").args(words).arg(self.file(name)))?;
        }
        fs::copy(self.file("user.pub"), self.file("authorized"))
            .map_err(|error| error.to_string())?;
        let key = fs::read_to_string(self.file("host.pub")).map_err(|error| error.to_string())?;
        let known = [1, 2].map(|host| format!("[{}]:2222 {key}", address(host)));
        fs::write(self.file("known"), known.concat()).map_err(|error| error.to_string())
    }

    /// Starts the sshd of a host, after a preparation in its own mount namespace, and waits until it listens.
    fn listen(&mut self, host: usize, preparation: &str) {
        // Directory for sshd's privilege separation, which a fresh file system lacks.
        let _ = fs::create_dir_all("/run/sshd");
        let sshd = found("sshd").expect("looked for before");
        let options = format!(
            "-D -e -f /dev/null -h {} -p 2222 -o PidFile=none -o UsePAM=no -o StrictModes=no \
             -o AuthorizedKeysFile={} -o PasswordAuthentication=no",
            self.file("host"),
            self.file("authorized")
        );
        let script = format!("{preparation} exec {} {options}", sshd.display());
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[host], "sh", "-c", &script]);
        let program = Program::start(&mut command);
        program.err.wait_for("Server listening on 0.0.0.0");
        self.sshds.push(program);
    }

    fn written(&self, host: usize, key: &str) -> String {
        format!(
            "ssh = {{ to = \"root@{}\", options = [\"-F\", \"none\", \"-p\", \"2222\", \"-i\", \"{}\", \"-o\", \"IdentitiesOnly=yes\", \"-o\", \"UserKnownHostsFile={}\"] }}",
            address(host),
            self.file(key),
            self.file("known")
        )
    }

    fn onrush(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[0]]);
        command.arg(env!("CARGO_BIN_EXE_onrush")).args(words);
        command
    }

    fn agents(&self, host: usize) -> Vec<(u32, String)> {
        let pids = ip(&format!("netns pids {}", self.names[host])).expect("it is there");
        let pids: Vec<u32> = pids.lines().filter_map(|pid| pid.parse().ok()).collect();
        agents(&pids)
    }
}

/// Kills what daemons left in one of our network namespaces: on a link that is down their sessions would wait for
/// minutes.
pub(crate) fn end_all_in(name: &str) {
    let pids = ip(&format!("netns pids {name}")).unwrap_or_default();
    let pids = pids.lines().filter_map(|pid| pid.parse().ok());
    for pid in pids.filter_map(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.sshds.clear();
        for name in &self.names {
            end_all_in(name);
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn ssh_hosts_run_roles_and_restore_settings() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (hosts.written(1, "user"), hosts.written(2, "user"));
    let setting = "net.ipv4.tcp_fin_timeout";
    let read = || {
        let words = format!("netns exec {} sysctl -n {setting}", hosts.names[2]);
        ip(&words).expect("it is there").trim().to_owned()
    };
    let before = read();
    let two = format!(
        "{two}\nsysctl = {{ \"{setting}\" = \"{{timeout}}\" }}\nsteering = {{ v0 = \"1\" }}"
    );
    let path = experiment(directory.path(), "1s", &one, &two);
    let text = fs::read_to_string(&path).expect("ours");
    let text = text.replace(
        "connections = 2\n",
        "connections = 2\nsweep = { timeout = [7, 8] }\n",
    );
    fs::write(&path, text).expect("ours");
    let out = directory.path().join("out");
    let words = ["bench", &path, "--out", &out.display().to_string()];
    let finished = Program::start(&mut hosts.onrush(&words)).finish();
    check_trial(&out, &finished);
    assert_eq!(read(), before);
    let environment = json(&out, "environment.json");
    let commands = environment["commands"].to_string();
    let said = format!("(b) echo 7 > /proc/sys/net/ipv4/tcp_fin_timeout (was {before})");
    assert!(commands.contains(&said), "{commands}");
    let said = format!("(b) echo 8 > /proc/sys/net/ipv4/tcp_fin_timeout (was {before})");
    assert!(commands.contains(&said), "{commands}");
    let said = "(b) echo 1 > /sys/class/net/v0/queues/rx-0/rps_cpus (was ";
    assert!(commands.contains(said), "{commands}");
    let target = format!("http://{}:", address(2));
    assert!(commands.contains(&target), "{commands}");
    let access = environment["hosts"]["b"]["access"]
        .as_str()
        .expect("a text");
    assert!(
        access.starts_with("ssh ") && access.ends_with("root@10.79.2.2"),
        "{access}"
    );
    for host in [1, 2] {
        let none = || hosts.agents(host).is_empty().then_some(());
        until("the agents to be gone", none);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn unreachable_host_ends_run_and_is_cleaned_up() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (hosts.written(1, "user"), hosts.written(2, "user"));
    let path = experiment(directory.path(), "30m", &one, &two);
    let out = directory.path().join("out");
    let words = ["bench", &path, "--out", &out.display().to_string()];
    let program = Program::start(&mut hosts.onrush(&words));
    let homes = until("programs on both hosts", || {
        let agents = [hosts.agents(1), hosts.agents(2)].concat();
        let are_busy = agents
            .iter()
            .all(|(_, home)| are_using(home).into_iter().any(is_program));
        (agents.len() == 2 && are_busy).then_some(agents)
    });
    ip(&format!("-n {} link set v2 down", hosts.names[0])).expect("root");
    let finished = program.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let result = json(&out, "result.json");
    let lost = result["lost"].as_str().expect("it is named");
    assert!(
        lost.starts_with("host `b` is lost: nothing was received from it"),
        "{lost}"
    );
    assert!(finished.err.contains("LOST: host `b`"), "{finished:?}");
    for (_, home) in homes {
        is_gone(&home);
    }
    // A host that is cut off cleans up within 60 s.
    assert!(TIMEOUT.as_secs() <= 60);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn host_is_tuned_and_restored() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (hosts.written(1, "user"), hosts.written(2, "user"));
    let two = format!("{two}\ntune = \"{{how}}\"");
    let path = experiment(directory.path(), "1s", &one, &two);
    let text = fs::read_to_string(&path).expect("ours");
    let sweep = "connections = 2\nsweep = { how = [\"none\", \"--goal=latency\"] }\n";
    fs::write(&path, text.replace("connections = 2\n", sweep)).expect("ours");
    let read = || {
        let words = format!("netns exec {} sysctl -n net.core.somaxconn", hosts.names[2]);
        ip(&words).expect("it is there").trim().to_owned()
    };
    let before = read();
    let out = directory.path().join("out");
    let words = ["bench", &path, "--out", &out.display().to_string()];
    let finished = Program::start(&mut hosts.onrush(&words)).finish();
    check_trial(&out, &finished);
    let commands = json(&out, "environment.json")["commands"].clone();
    let none = &commands["one · how=none / direct / hosts"];
    assert!(none.is_null(), "{none}");
    let tuned = commands["one · how=--goal=latency / direct / hosts"].to_string();
    assert!(
        tuned.contains("(b) onrush tune apply --goal=latency"),
        "{tuned}"
    );
    assert!(tuned.contains(&format!("{before} -> ")), "{tuned}");
    assert_eq!(read(), before);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn settings_of_killed_agent_are_restored() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let setting = "net.ipv4.tcp_fin_timeout";
    let read = || {
        let words = format!("netns exec {} sysctl -n {setting}", hosts.names[2]);
        ip(&words).expect("it is there").trim().to_owned()
    };
    let before = read();
    let (one, two) = (hosts.written(1, "user"), hosts.written(2, "user"));
    let two = format!("{two}\nsysctl = {{ \"{setting}\" = \"7\" }}");
    let path = experiment(directory.path(), "30m", &one, &two);
    let out = directory.path().join("out").display().to_string();
    let program = Program::start(&mut hosts.onrush(&["bench", &path, "--out", &out]));
    until("the setting", || (read() == "7").then_some(()));
    let (pid, home) = hosts.agents(2).pop().expect("it has set something");
    let agent = rustix::process::Pid::from_raw(pid as i32).expect("not 0");
    rustix::process::kill_process(agent, Signal::KILL).expect("ours");
    assert_eq!(program.finish().code, Some(3));
    is_gone(&home);
    assert_eq!(read(), before);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn unusable_host_error_is_one_line() {
    let Some(mut hosts) = Hosts::new() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let one = hosts.written(1, "user");
    let nobody = one.replace(&address(1), "10.80.1.1");
    let stranger = hosts.written(1, "stranger");
    // Nothing below its /tmp can be executed, as with a program for another C library.
    hosts.sshds.pop();
    hosts.listen(
        2,
        "mount --bind /tmp /tmp && mount -o remount,bind,noexec /tmp &&",
    );
    let unable = hosts.written(2, "user");
    let odd = directory.path().join("odd");
    fs::create_dir(&odd).expect("a new name");
    for (a, expected) in [
        (
            nobody,
            "host `a` cannot be used: `ssh` fails; it printed: ssh: connect to host 10.80.1.1 port 2222: Network is unreachable; expected that `ssh root@10.80.1.1 true` works without a question",
        ),
        (stranger, "Permission denied (publickey"),
        (
            unable,
            "host `a` cannot be used: this program cannot run there (",
        ),
    ] {
        let path = experiment(directory.path(), "1s", &a, &one);
        let finished = Program::start(&mut hosts.onrush(&["bench", &path])).finish();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.err.contains(expected), "{finished:?}");
        // The other line reports that nothing can be measured.
        assert_eq!(finished.err.lines().count(), 2, "{finished:?}");
    }
    let path = experiment(directory.path(), "1s", &one, &one);
    let link = |name: &str| {
        let to = found(name).expect("coreutils and iproute2");
        std::os::unix::fs::symlink(to, odd.join(name)).expect("a new name");
    };
    link("sha256sum");
    let mut command = onrush(&["bench", &path]);
    let finished = Program::start(command.env("PATH", &odd)).finish();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let said = "host `a` cannot be used: ssh is not installed: apt-get install openssh-client";
    assert!(finished.err.contains(said), "{finished:?}");
}
