//! Slurm: one load from all nodes of a job, and `onrush bench` with roles on nodes. A controller and four nodes run,
//! each in a network namespace of its own. It needs root and several seconds, so it runs on request: `make slurm`.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::Value;

use crate::hosting::{agents, are_using, end_all_in, ip, is_gone, is_program};
use crate::program::{Finished, Program, Serve, until};

const NODES: usize = 4;

struct Cluster {
    /// Network namespaces; the first is the controller's.
    names: Vec<String>,
    daemons: Vec<Program>,
    directory: tempfile::TempDir,
}

fn is_asked_for() -> bool {
    let is_asked_for = std::env::var_os("ONRUSH_NEEDS_SLURM").is_some();
    if !is_asked_for {
        eprintln!("skipped: `make slurm` runs this");
    }
    is_asked_for
}

impl Cluster {
    fn start() -> Cluster {
        use std::sync::atomic::{AtomicU32, Ordering};
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let names = (0..=NODES).map(|node| format!("onrush-slurm{node}-{id}-{number}"));
        let mut cluster = Cluster {
            names: names.collect(),
            daemons: Vec::new(),
            directory: tempfile::tempdir().expect("a directory"),
        };
        cluster.connect().expect("root can do this");
        cluster.configure();
        cluster.start_daemons();
        cluster
    }

    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Creates the namespaces and links. The controller routes between the nodes.
    fn connect(&self) -> Result<(), String> {
        let hub = &self.names[0];
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link set lo up"))?;
        ip(&format!("netns exec {hub} sysctl -q net.ipv4.ip_forward=1"))?;
        for node in 1..=NODES {
            let name = &self.names[node];
            for step in [
                format!("netns add {name}"),
                format!("-n {hub} link add v{node} type veth peer name v0 netns {name}"),
                format!("-n {hub} address add 10.78.{node}.1/24 dev v{node}"),
                format!("-n {hub} link set v{node} up"),
                format!("-n {name} address add 10.78.{node}.2/24 dev v0"),
                format!("-n {name} link set lo up"),
                format!("-n {name} link set v0 up"),
                format!("-n {name} route add default via 10.78.{node}.1"),
            ] {
                ip(&step)?;
            }
        }
        Ok(())
    }

    fn configure(&self) {
        // munge(7) refuses a socket in a directory that others cannot reach, and a key that others can read.
        use std::os::unix::fs::PermissionsExt;
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.directory.path(), open).expect("ours");
        let key: Vec<u8> = (0..1_024_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        fs::write(self.file("key"), key).expect("room");
        let secret = fs::Permissions::from_mode(0o400);
        fs::set_permissions(self.file("key"), secret).expect("ours");
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost=controller(10.78.1.1)\nSlurmUser=root\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={socket}\n\
             StateSaveLocation={state}\nSlurmdSpoolDir={spool}-%n\n\
             SlurmctldPidFile={spool}.pid\nSlurmdPidFile={spool}-%n.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             MpiDefault=none\nReturnToService=2\n\
             PartitionName=main Nodes=ALL Default=YES State=UP\n",
            socket = self.file("munge"),
            state = self.file("state"),
            spool = self.file("spool"),
        );
        fs::create_dir(self.file("state")).expect("a new name");
        for node in 1..=NODES {
            fs::create_dir(self.file(&format!("spool-n{node}"))).expect("a new name");
            text.push_str(&format!(
                "NodeName=n{node} NodeHostname=n{node} NodeAddr=10.78.{node}.2 CPUs=2\n"
            ));
        }
        fs::write(self.file("slurm.conf"), text).expect("room");
    }

    fn start_daemons(&mut self) {
        let mut munged = Command::new("munged");
        munged.args(["--foreground", "--force"]);
        for (option, name) in [
            ("key-file", "key"),
            ("socket", "munge"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "munge.seed"),
        ] {
            munged.arg(format!("--{option}={}", self.file(name)));
        }
        self.daemons.push(Program::start(&mut munged));
        let socket = self.file("munge");
        until("munge", || Path::new(&socket).exists().then_some(()));
        let configuration = self.file("slurm.conf");
        let mut controller = self.command(0, "slurmctld", &["-D", "-c", "-f", &configuration]);
        self.daemons.push(Program::start(&mut controller));
        for node in 1..=NODES {
            let name = format!("n{node}");
            let words = ["-D", "-f", &configuration, "-N", &name];
            let mut slurmd = self.command(node, "slurmd", &words);
            self.daemons.push(Program::start(&mut slurmd));
        }
        until("four idle nodes", || {
            let output = self
                .command(0, "sinfo", &["-h", "-t", "idle", "-o", "%D"])
                .output();
            let output = String::from_utf8(output.ok()?.stdout).ok()?;
            (output.trim() == NODES.to_string()).then_some(())
        });
    }

    /// Command for a program on the controller (0) or a node. `ip netns exec` would hide the control groups that slurmd
    /// looks for.
    fn command(&self, node: usize, program: &str, words: &[&str]) -> Command {
        let name = match node {
            0 => "controller".to_owned(),
            node => format!("n{node}"),
        };
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.names[node]))
            .args(["unshare", "--uts", "sh", "-c"])
            .arg(format!("hostname {name}; exec \"$0\" \"$@\""))
            .arg(program)
            .args(words)
            .env("SLURM_CONF", self.file("slurm.conf"));
        command
    }

    fn onrush(&self, words: &[&str]) -> Command {
        self.command(0, env!("CARGO_BIN_EXE_onrush"), words)
    }

    fn agents(&self, node: usize) -> Vec<(u32, String)> {
        agents(&self.pids(node))
    }

    fn pids(&self, node: usize) -> Vec<u32> {
        let pids = ip(&format!("netns pids {}", self.names[node])).unwrap_or_default();
        pids.lines().filter_map(|pid| pid.parse().ok()).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // In reverse order: nodes before their controller, and all before munge.
        while self.daemons.pop().is_some() {}
        for name in &self.names {
            end_all_in(name);
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).expect("JSON")
}

/// Latencies of a result in nanoseconds.
fn histogram(result: &Value) -> Histogram<u64> {
    let text = result["histograms"]["response"].as_str().expect("a text");
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    let bytes = bytes.expect("Base64");
    let read = Deserializer::new().deserialize(&mut bytes.as_slice());
    read.expect("HdrHistogram V2")
}

#[test]
fn slurm_nodes_share_load_exactly() {
    if !is_asked_for() {
        return;
    }
    let cluster = Cluster::start();
    let words = ["serve", "--respond", "200:hello", "--listen", "10.78.1.1:0"];
    let serve = Serve::wait_until_listening(Program::start(&mut cluster.onrush(&words)));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slurm/load.sbatch");
    let script = script.display().to_string();
    let url = serve.url("/");
    let log = cluster.file("job.log");
    let options = ["--wait", "--nodes=4", "--output", &log, "--chdir=/"];
    let load = ["-c", "8", "-R", "2000", "-n", "6001"];
    let words = [&options[..], &[&script, &url], &load[..]].concat();
    let mut sbatch = cluster.command(0, "sbatch", &words);
    sbatch.env("ONRUSH", env!("CARGO_BIN_EXE_onrush"));
    sbatch.env("OUT", cluster.file("out"));
    let finished = Program::start(&mut sbatch).finish();
    let log = fs::read_to_string(&log).unwrap_or_default();
    // On a busy machine the verdict may be invalid (exit code 5), which does not depend on the merge.
    assert!(matches!(finished.code, Some(0 | 5)), "{finished:?} {log}");
    let out = cluster.directory.path().join("out");
    let whole = json(&out.join("all.json"));
    assert_eq!(whole["requests"], 6_001, "{log}");
    assert_eq!(whole["errors"], 0, "{log}");
    let mut union: Option<Histogram<u64>> = None;
    for part in 1..=NODES {
        let part = histogram(&json(&out.join(format!("part-{part}.json"))));
        match &mut union {
            None => union = Some(part),
            Some(union) => union.add(part).expect("the same range"),
        }
    }
    let union = union.expect("four parts");
    assert_eq!(union.len(), 6_001);
    let percentiles = whole["latency_us"]["percentiles"]
        .as_object()
        .expect("some");
    assert!(percentiles.len() >= 3, "{percentiles:?}");
    for (name, us) in percentiles {
        let us = us.as_f64().expect("a number");
        let percentile: f64 = name.parse().expect("a number");
        let exact = union.value_at_quantile(percentile / 100.0);
        let bucket = union.highest_equivalent(exact) - union.lowest_equivalent(exact) + 1;
        let apart = (us * 1e3 - exact as f64).abs();
        assert!(apart <= bucket as f64, "{name}: {us} us and {exact} ns");
    }
    let totals = serve.stop();
    assert_eq!((totals.requests(), totals.connections()), (6_001, 8));
}

/// An experiment with three nodes as clients and one as server; `length` is the client's option.
fn experiment(directory: &Path, measure: &str, length: &str) -> String {
    let path = directory.join("nodes.toml");
    let text = format!(
        r#"
name = "nodes"
rounds = 1
warm_up = "100ms"
measure = "{measure}"

[program.server]
onrush = ["serve", "--respond", "200", "--listen", "{{address}}:{{port}}", "--threads", "1", "--cpus", "{{cpus}}"]

[program.load]
onrush = ["load", "http://{{target}}/", "-c", "{{connections}}", "-R", "{{rate}}", "-t", "1", "--cpus", "{{cpus}}", {length}, "--shard", "{{shard}}", "--start-at", "{{start_at}}", "--json", "{{json}}"]

[host.generators]
slurm = {{ nodes = 3, partition = "main" }}
[host.served]
slurm = {{ partition = "main" }}

[[work]]
name = "one"
connections = 6
rate = 3_000
client = "load"
server = "server"
hosts = {{ client = "generators", server = "served" }}

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

fn jobs(cluster: &Cluster) -> String {
    let output = cluster.command(0, "squeue", &["-h"]).output();
    String::from_utf8(output.expect("it is there").stdout).expect("text")
}

#[test]
fn roles_run_on_nodes_of_slurm_allocation() {
    if !is_asked_for() {
        return;
    }
    let cluster = Cluster::start();
    let path = experiment(cluster.directory.path(), "2s", "\"-n\", \"6000\"");
    let out = cluster.directory.path().join("out");
    let words = ["bench", &path, "--out", &out.display().to_string()];
    let finished: Finished = Program::start(&mut cluster.onrush(&words)).finish();
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:?}");
    let result = json(&out.join("result.json"));
    let variant = &result["works"][0]["variants"][0];
    let trial = &variant["trials"][0];
    // The total is exact, however the nodes share it.
    assert_eq!(trial["requests"], 6_000, "{finished:?} {trial}");
    assert_eq!(trial["errors"], 0, "{trial}");
    let cpus = variant["placement"]["client"].as_array().expect("CPUs");
    let hosts = cpus.iter().filter_map(|cpu| Some(cpu.as_u64()? / 10_000));
    let mut hosts: Vec<u64> = hosts.collect();
    hosts.dedup();
    assert_eq!(hosts.len(), 3, "{cpus:?}");
    let environment = json(&out.join("environment.json"));
    let names: Vec<&String> = environment["hosts"]
        .as_object()
        .expect("hosts")
        .keys()
        .collect();
    assert_eq!(
        names,
        ["generators.1", "generators.2", "generators.3", "served"]
    );
    let commands = environment["commands"].as_object().expect("commands");
    for part in 1..=3 {
        let line = commands[&format!("one / direct / client {part}")].to_string();
        assert!(line.contains(&format!("\"{part}/3\"")), "{line}");
    }
    until("the allocation to be given back", || {
        jobs(&cluster).is_empty().then_some(())
    });
}

#[test]
fn interrupt_cancels_pending_allocation() {
    if !is_asked_for() {
        return;
    }
    let cluster = Cluster::start();
    let path = experiment(cluster.directory.path(), "1s", "\"-n\", \"100\"");
    let text = fs::read_to_string(&path).expect("it is ours");
    let later = "partition = \"main\", options = [\"--begin=now+1hour\"]";
    fs::write(&path, text.replace("partition = \"main\"", later)).expect("it is ours");
    let out = cluster.directory.path().join("out");
    let words = ["bench", &path, "--out", &out.display().to_string()];
    let program = Program::start(&mut cluster.onrush(&words));
    until("a request in the queue", || {
        (!jobs(&cluster).is_empty()).then_some(())
    });
    program.signal(rustix::process::Signal::INT);
    program.finish();
    until("the request to be cancelled", || {
        jobs(&cluster).is_empty().then_some(())
    });
}

#[test]
fn lost_node_ends_run_and_is_cleaned_up() {
    if !is_asked_for() {
        return;
    }
    let cluster = Cluster::start();
    let path = experiment(cluster.directory.path(), "30m", "\"-d\", \"{duration}\"");
    let out = cluster.directory.path().join("out");
    let words = ["bench", &path, "--out", &out.display().to_string()];
    let program = Program::start(&mut cluster.onrush(&words));
    let homes = until("programs on all nodes", || {
        let agents: Vec<(u32, String)> =
            (1..=NODES).flat_map(|node| cluster.agents(node)).collect();
        let are_busy = agents
            .iter()
            .all(|(_, home)| are_using(home).into_iter().any(is_program));
        (agents.len() == NODES && are_busy).then_some(agents)
    });
    ip(&format!("-n {} link set v3 down", cluster.names[0])).expect("root");
    let finished = program.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let result = json(&out.join("result.json"));
    let lost = result["lost"].as_str();
    let lost = lost.unwrap_or_else(|| panic!("no host is named: {finished:?}"));
    // Slurm assigns nodes in order, to hosts sorted by name.
    assert!(lost.starts_with("host `generators.3` is lost: "), "{lost}");
    for (_, home) in homes {
        is_gone(&home);
    }
}
