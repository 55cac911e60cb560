//! `onrush bench` on a small experiment: results are written, also when it is stopped, and no program is left running.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::peer::are_installed;
use crate::program::{Finished, Program, onrush, run_onrush, until};

/// An experiment with our own server and client, and a window of length `measure`.
pub(crate) fn experiment(directory: &Path, measure: &str) -> String {
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

pub(crate) fn results(out: &Path, finished: &Finished) -> Value {
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
fn terminal_shows_progress_of_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let experiment = experiment(directory.path(), "3s");
    let out = directory.path().join("out");
    let bench = onrush(&["bench", &experiment, "--out", &out.display().to_string()]);
    // script(1), which every Debian has, provides a terminal.
    let words = std::iter::once(bench.get_program()).chain(bench.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &words.join(" "), "/dev/null"]);
    let finished = Program::start(&mut script).finish();
    results(&out, &finished);
    let lines: Vec<&str> = finished.out.split('\r').collect();
    let says = |parts: &[&str]| {
        let mut lines = lines.iter();
        lines.any(|line| parts.iter().all(|part| line.contains(part)))
    };
    assert!(
        says(&["[0/1]", "one", "direct", "starting"]),
        "{finished:?}"
    );
    assert!(
        says(&["measuring, ", " requests/s, ttlb ", " left"]),
        "{finished:?}"
    );
}

#[test]
fn quick_run_writes_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "60s");
    let out = directory.path().join("out");
    let finished = run_onrush(&[
        "bench",
        "--quick",
        &path,
        "--out",
        &out.display().to_string(),
    ])
    .on_any_machine();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.out.contains("requests per second"), "{finished:?}");
    let result = results(&out, &finished);
    let trial = &result["works"][0]["variants"][0]["trials"][0];
    let packets = trial["metrics"]["packets_per_request.lo"].as_f64();
    // A request and a response on a kept-alive connection; packets of other tests on loopback count, too.
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
fn summary_is_printed_to_stdout() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "60s");
    let out = directory.path().join("out");
    let finished = run_onrush(&[
        "bench",
        "--quick",
        &path,
        "--out",
        &out.display().to_string(),
        "--markdown",
        "-",
    ])
    .on_any_machine();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let summary = fs::read_to_string(out.join("summary.md")).expect("it is there");
    assert_eq!(finished.out, summary);
    assert!(finished.err.contains("report: "), "{finished:?}");
}

#[test]
fn summary_never_overwrites_experiment() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "60s");
    let finished = run_onrush(&["bench", "--quick", &path, "--markdown", &path]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("would overwrite"), "{finished:?}");
    let text = fs::read_to_string(&path).expect("it stays");
    assert!(text.starts_with("\nname = \"tiny\""), "{text}");
}

#[test]
fn profile_has_flame_graph_or_reason() {
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
    // On a busy machine the client reports its own figures as invalid; the profile is still made.
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:?}");
    let result = results(&out, &finished);
    let trial = &result["works"][0]["variants"][0]["trials"][0];
    let Some(folded) = trial["profiles"]["server"].as_str() else {
        // No perf, or no permission to profile.
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

/// An experiment of one work with these programs and variants, each one second long without a warm-up.
fn experiment_of(directory: &Path, programs: &str, variants: &[&str]) -> String {
    let path = directory.join("clients.toml");
    let lines: Vec<String> = variants
        .iter()
        .map(|name| {
            format!("[[work.variant]]\nname = \"{name}\"\nclient = \"{name}\"\nserver = \"{name}-server\"\n")
        })
        .collect();
    let text = format!(
        "name = \"clients\"\nrounds = 1\nwarm_up = \"0s\"\nmeasure = \"1s\"\n{programs}\n\
         [[work]]\nname = \"one\"\nconnections = 4\n{}\
         [[work.figure]]\nmetric = \"rps\"\nours = {variants:?}\n",
        lines.concat()
    );
    fs::write(&path, text).expect("it is ours");
    path.display().to_string()
}

/// The only trial of each variant, by name.
fn trials(result: &Value) -> Vec<(String, Value)> {
    let variants = result["works"][0]["variants"].as_array().expect("variants");
    let trials = variants.iter().map(|variant| {
        let name = variant["name"].as_str().expect("a name").to_owned();
        (name, variant["trials"][0].clone())
    });
    trials.collect()
}

/// The iperf3 server closes its listener briefly after a connection without data, such as the readiness check of bench:
/// its client retries until it connects (and exits with 0 if it does not).
#[test]
#[ignore = "foreign programs: make test-all"]
fn non_http_clients_are_supported() {
    const OTHERS: [(&str, &[&str], &str, &str); 4] = [
        (
            "memcaslap",
            &["memcaslap", "memcached"],
            "requests",
            r#"
[program.memcaslap]
command = ["memcaslap", "-s", "{target}", "-T", "{threads}", "-c", "{connections}", "-t", "{seconds}s"]
results = "memcaslap"
[program.memcaslap-server]
command = ["memcached", "-l", "127.0.0.1", "-p", "{port}", "-U", "0", "-t", "1", "-u", "nobody"]
"#,
        ),
        (
            "sockperf",
            &["sockperf"],
            "messages",
            r#"
[program.sockperf]
command = ["sockperf", "ping-pong", "--tcp", "-i", "127.0.0.1", "-p", "{server.port}", "-t", "{seconds}"]
results = "sockperf"
[program.sockperf-server]
command = ["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", "{port}"]
"#,
        ),
        (
            "iperf3",
            &["iperf3"],
            "bytes",
            r#"
[program.iperf3]
command = ["sh", "-c", "while iperf3 -J -c 127.0.0.1 -p {server.port} -t {seconds} > {json}; grep -q error {json}; do :; done"]
results = "iperf3"
[program.iperf3-server]
command = ["iperf3", "-s", "-B", "127.0.0.1", "-p", "{port}"]
"#,
        ),
        (
            "iperf3-udp",
            &["iperf3"],
            "datagrams",
            r#"
[program.iperf3-udp]
command = ["sh", "-c", "while iperf3 -J -u -b 10M -c 127.0.0.1 -p {server.port} -t {seconds} > {json}; grep -q error {json}; do :; done"]
results = "iperf3"
[program.iperf3-udp-server]
command = ["iperf3", "-s", "-B", "127.0.0.1", "-p", "{port}"]
"#,
        ),
    ];
    let here = OTHERS
        .iter()
        .filter(|(_, programs, ..)| are_installed(programs));
    let here: Vec<_> = here.collect();
    if here.is_empty() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let programs: String = here.iter().map(|(.., programs)| *programs).collect();
    let names: Vec<&str> = here.iter().map(|(name, ..)| *name).collect();
    let path = experiment_of(directory.path(), &programs, &names);
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    for ((_, _, counted, _), (name, trial)) in here.iter().zip(trials(&results(&out, &finished))) {
        assert_eq!(trial["counted"], *counted, "{name}: {trial}");
        let requests = trial["requests"].as_u64().expect("a number");
        let rps = trial["rps"].as_f64().expect("a number");
        assert!(requests > 0 && rps > 0.0, "{name}: {trial}");
        let title = format!("{counted} per second");
        assert!(finished.out.contains(&title), "{name}: {finished:?}");
    }
}

#[test]
fn malformed_client_report_is_quoted() {
    let directory = tempfile::tempdir().expect("a directory");
    let programs = r#"
[program.printed]
command = ["sh", "-c", "echo first; echo last >&2"]
results = "ab"
[program.written]
command = ["sh", "-c", "echo half of a re > {json}"]
results = "fortio"
[program.none]
command = ["true"]
[program.printed-server]
onrush = ["serve", "--respond", "200", "--listen", "127.0.0.1:{port}", "--threads", "1"]
[program.written-server]
onrush = ["serve", "--respond", "200", "--listen", "127.0.0.1:{port}", "--threads", "1"]
[program.none-server]
onrush = ["serve", "--respond", "200", "--listen", "127.0.0.1:{port}", "--threads", "1"]
"#;
    let path = experiment_of(directory.path(), programs, &["printed", "written", "none"]);
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let trials = trials(&results(&out, &finished));
    let said = [
        "expected the text that ab prints at its end; no line begins with `Complete requests:`); it printed: first | last",
        "no JSON object found); its file ends with: half of a re; it printed nothing",
        "it wrote no report into `{json}`); it printed nothing",
    ];
    for ((name, trial), part) in trials.iter().zip(said) {
        let why = trial["invalid"][0].as_str().unwrap_or_default();
        assert!(why.contains(part), "{name}: {why}");
    }
}

#[test]
fn invalid_client_verdict_invalidates_trial() {
    let directory = tempfile::tempdir().expect("a directory");
    let programs = r#"
[program.late]
onrush = ["load", "http://{target}/?t=100", "-c", "1", "-t", "1", "-R", "100000", "-d", "{duration}", "--json", "{json}"]
[program.late-server]
onrush = ["serve", "--synthetic", "--listen", "127.0.0.1:{port}", "--threads", "1"]
"#;
    let path = experiment_of(directory.path(), programs, &["late"]);
    let out = directory.path().join("out");
    let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let result = results(&out, &finished);
    let invalid = trials(&result)[0].1["invalid"].to_string();
    let expected =
        "the client reports its own figures as invalid: scheduled requests that were never sent";
    assert!(invalid.contains(expected), "{invalid}");
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains("complete, no valid figure"), "{finished:?}");
}

#[test]
fn ctrl_c_keeps_results_and_stops_programs() {
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
fn dry_run_starts_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = swept(directory.path());
    let finished = run_onrush(&["bench", "--dry-run", "--seed", "7", &path]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let said = "tiny: 3 trials a round, one round";
    assert!(finished.out.contains(said), "{finished:?}");
    let again = run_onrush(&["bench", "--dry-run", "--seed", "7", &path]);
    assert_eq!(finished.out, again.out);
    let one = ["--only", "one/dir*", "--only", "connections=3", &path];
    let one = run_onrush(&[&["bench", "--dry-run"][..], &one].concat());
    let trial = "1  one · connections=3 · direct: client load on CPU";
    assert!(one.out.contains(trial), "{one:?}");
    assert!(!one.out.contains("connections=2"), "{one:?}");
    let list = run_onrush(&["bench", "--list", &path]);
    assert!(list.out.contains("  at connections=1\n"), "{list:?}");
    let nothing = run_onrush(&["bench", "--only", "two", &path]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    let said = "--only \"two\" matches no work";
    assert!(nothing.err.contains(said), "{nothing:?}");
    let files = fs::read_dir(directory.path()).expect("ours");
    assert_eq!(files.count(), 1);
}

/// The experiment at three points, with a variant whose program is missing.
fn swept(directory: &Path) -> String {
    let path = experiment(directory, "1s");
    let text = fs::read_to_string(&path).expect("it is there");
    let text = text.replace("connections = 2", "sweep = { connections = [1, 2, 3] }");
    let text = text.replace(
        "[[work.figure]]",
        "[[work.variant]]\nname = \"other\"\nserver = \"missing\"\n[[work.figure]]",
    );
    let missing =
        "[program.missing]\ncommand = [\"not-here\", \"{port}\"]\npackage = \"a-package\"\n";
    fs::write(&path, format!("{text}\n{missing}")).expect("it is ours");
    path
}

#[test]
fn killed_run_is_resumed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = swept(directory.path());
    let out = directory.path().join("out");
    let out_text = out.display().to_string();
    let program = Program::start(&mut onrush(&["bench", &path, "--out", &out_text]));
    let journal = out.join("trials.jsonl");
    // A line that the kill cut short has no newline.
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.matches('\n').count());
    until("a trial", || (lines() >= 2).then_some(()));
    program.signal(Signal::KILL);
    program.finish();
    let made = lines() - 1;
    assert!((1..3).contains(&made), "{made}");
    // An incomplete line, as a crash leaves it.
    let text = fs::read_to_string(&journal).expect("it is there");
    fs::write(&journal, format!("{text}{{\"work\":\"o")).expect("it is ours");
    let finished = run_onrush(&["bench", "--resume", &out_text]);
    // The figure with the missing program does not fail the run; on a busy machine a trial of one second may be too
    // short for it.
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:?}");
    assert!(finished.err.contains("[3/3]"), "{finished:?}");
    let results = results(&out, &finished);
    assert_eq!(results["complete"], true);
    let works = results["works"].as_array().expect("works");
    assert_eq!(works.len(), 3);
    for work in works {
        let variants = &work["variants"];
        let count = |of: usize| variants[of]["trials"].as_array().map(Vec::len);
        assert_eq!((count(0), count(1)), (Some(1), Some(0)), "{work}");
        let why = "not-here is not installed: apt-get install a-package";
        assert_eq!(variants[1]["left_out"], why, "{work}");
    }
    let notes = results["notes"].to_string();
    let resumed = format!("Resumed: {made} trials");
    assert!(notes.contains(&resumed), "{notes}");
    let environment = fs::read_to_string(out.join("environment.json")).expect("it is there");
    let environment: Value = serde_json::from_str(&environment).expect("JSON");
    let commands = environment["commands"].as_object().expect("commands");
    assert_eq!(commands.len(), 6, "{commands:?}");
    assert!(!journal.exists(), "all of it is in the results");
    let again = run_onrush(&["bench", "--resume", &out_text]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("it has no trials.jsonl"), "{again:?}");
}

#[test]
fn programs_in_new_session_end_with_trial() {
    let left_behind = [
        (
            "setsid sleep 1000 &",
            "a process that a program had started",
        ),
        (
            "env -i setsid sleep 1000 &",
            "a process that a program had started",
        ),
        (
            "env -i setsid sh -c 'sleep 1000 & exec sleep 1000' &",
            "2 processes that programs had started",
        ),
    ];
    for (script, expected) in left_behind {
        let directory = tempfile::tempdir().expect("a directory");
        let path = experiment(directory.path(), "1s");
        let text = fs::read_to_string(&path).expect("it is there");
        let server = text
            .lines()
            .find(|line| line.starts_with("onrush = [\"serve\""))
            .expect("it has one");
        let wrapped = format!(
            "command = [\"sh\", \"-c\", \"{script} exec {{onrush}} serve --respond 200 --listen 127.0.0.1:{{port}} --threads 1\"]"
        );
        fs::write(&path, text.replace(server, &wrapped)).expect("it is ours");
        let out = directory.path().join("out");
        let finished = run_onrush(&["bench", &path, "--out", &out.display().to_string()]);
        let results = results(&out, &finished);
        let trial = &results["works"][0]["variants"][0]["trials"][0];
        let notes = trial["notes"].to_string();
        assert!(notes.contains(expected), "{script}: {notes}");
    }
}

#[test]
fn network_hosts_are_removed_after_kill() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make network namespaces");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = experiment(directory.path(), "1s");
    let text = fs::read_to_string(&path).expect("it is there");
    let text = text
        .replace("127.0.0.1:{port}", "{address}:{port}")
        .replace(
            "connections = 2",
            "connections = 2\nhosts = { client = \"left\", server = \"right\" }",
        );
    let hosts = "[host.left]\nnamespace = {}\n[host.right]\nnamespace = { sysctl = { \"net.ipv4.tcp_fin_timeout\" = 7 } }\n\
        [[link]]\nbetween = [\"left\", \"right\"]\nqueues = 2\ninterfaces = 2\nrate = \"1g\"\nsteering = { right = \"1\" }\n";
    fs::write(&path, format!("{text}\n{hosts}")).expect("it is ours");
    let out = directory.path().join("out");
    let out_text = out.display().to_string();
    let finished = run_onrush(&["bench", &path, "--out", &out_text]);
    let results = results(&out, &finished);
    let trial = &results["works"][0]["variants"][0]["trials"][0];
    assert!(trial["requests"].as_u64() > Some(0), "{finished:?}");
    let environment = fs::read_to_string(out.join("environment.json")).expect("it is there");
    assert!(environment.contains("http://198.18.0.2:"), "{environment}");
    assert!(environment.contains("(right) echo 1 > /sys/class/net/veth1/queues/rx-1/rps_cpus"));

    let long = fs::read_to_string(&path)
        .expect("ours")
        .replace("measure = \"1s\"", "measure = \"30m\"");
    fs::write(&path, long).expect("it is ours");
    let program = Program::start(&mut onrush(&["bench", &path, "--out", &out_text]));
    let own = fs::read_link("/proc/self/ns/net").expect("Linux");
    // A child process starts in our namespace before it enters its own.
    let namespaces = until("two hosts, a server and a client on them", || {
        let children = children_of(program.pid());
        let links = children
            .iter()
            .filter_map(|child| fs::read_link(format!("/proc/{child}/ns/net")).ok());
        let others: Vec<_> = links.filter(|namespace| *namespace != own).collect();
        (others.len() >= 4).then_some(others)
    });
    program.signal(Signal::KILL);
    program.finish();
    until("the namespaces to be gone", || {
        let processes = fs::read_dir("/proc").expect("Linux");
        let mut used =
            processes.filter_map(|entry| fs::read_link(entry.ok()?.path().join("ns/net")).ok());
        (!used.any(|namespace| namespaces.contains(&namespace))).then_some(())
    });
}

#[test]
fn invalid_experiment_exits_1_with_one_line() {
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

fn children_of(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|child| parent_of(*child) == Some(pid))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc_pid_stat(5): the name is in parentheses and may contain anything; state and parent follow.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// Whether the process is still one of ours; its ID may have been reused.
fn is_onrush(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe"))
        .is_ok_and(|path| path == Path::new(env!("CARGO_BIN_EXE_onrush")))
}
