//! Several generators of one run: processes that start at the same time, and machines, simulated by network namespaces.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::peer::create_network;
use crate::program::{Finished, Program, Serve, onrush, run_onrush};

/// A start time far enough ahead for all processes to be ready, even on a busy machine.
fn soon() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let soon = now.expect("it is later than 1970") + Duration::from_secs(8);
    format!("{}.{:06}", soon.as_secs(), soon.subsec_micros())
}

fn result(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("{number}.json"))
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Starts all parts of a run, each by its command, waits for their ends, and merges the results.
pub(crate) fn run_together(mut commands: Vec<Command>, directory: &Path) -> (Finished, Value) {
    let count = commands.len();
    let moment = soon();
    let parts: Vec<Program> = commands
        .iter_mut()
        .enumerate()
        .map(|(index, command)| {
            let shard = format!("{}/{count}", index + 1);
            command.args(["--shard", &shard, "--start-at", &moment, "--json"]);
            Program::start(command.arg(result(directory, index)))
        })
        .collect();
    for part in parts {
        let finished = part.finish().on_any_machine();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.out.contains("starts at 20"), "{finished:?}");
    }
    let files = (0..count).map(|index| result(directory, index).display().to_string());
    let files: Vec<String> = files.collect();
    let merged = directory.join("merged.json").display().to_string();
    let mut words = vec!["load", "merge", "--json", &merged];
    words.extend(files.iter().map(String::as_str));
    let finished = run_onrush(&words);
    let began = |file: &String| read(Path::new(file))["began_unix_s"].as_f64();
    let moment: f64 = moment.parse().expect("it is a number");
    for file in &files {
        // Seconds since 1970 as a number are exact to a quarter of a microsecond.
        assert!(began(file).expect("it began") >= moment - 2e-6, "{file}");
    }
    let merged = read(Path::new(&merged));
    (finished, merged)
}

#[test]
fn shard_results_add_up() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let directory = tempfile::tempdir().expect("a directory");
    let url = serve.url("/");
    let words = [
        "load",
        &url,
        "-n",
        "1001",
        "-c",
        "8",
        "-t",
        "2",
        "-R",
        "1000",
        "--source",
        "127.0.0.2-127.0.0.9",
    ];
    let parts = (0..3).map(|_| onrush(&words)).collect();
    let (finished, merged) = run_together(parts, directory.path());
    assert!(finished.out.contains("\nstarted      20"), "{finished:?}");
    assert_eq!(merged["requests"], 1001, "{merged}");
    assert_eq!(merged["errors"], 0);
    assert_eq!(merged["connections"], 8);
    assert_eq!(merged["statuses"]["200"], 1001);
    assert_eq!(merged["options"]["count"], 1001);
    assert_eq!(merged["options"]["rate"], 1000);
    assert_eq!(merged["options"]["connections"], 8);
    assert_eq!(merged["options"]["shard"], Value::Null);
    let in_rows = merged["seconds"].as_array().expect("rows").iter();
    let in_rows: u64 = in_rows.filter_map(|row| row["requests"].as_u64()).sum();
    assert_eq!(in_rows, 1001);
    let own = |index| read(&result(directory.path(), index));
    let counts = [0, 1, 2].map(|index| own(index)["requests"].as_u64());
    assert_eq!(counts, [334, 334, 333].map(Some));
    let totals = serve.stop();
    assert_eq!((totals.requests(), totals.connections()), (1001, 8));
    // One machine, one clock: a clock that is not synchronized does no harm.
    assert!(merged["clock"]["id"].is_string(), "{merged}");
    assert!(merged["clock"]["spread_us"].is_number(), "{merged}");
    let lacking = run_onrush(&[
        "load",
        "merge",
        &result(directory.path(), 0).display().to_string(),
        &result(directory.path(), 2).display().to_string(),
    ]);
    assert!(
        lacking.out.contains("parts of the run are missing: 1 of 3"),
        "{lacking:?}"
    );
}

#[test]
fn invalid_start_time_is_refused() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    for (moment, part) in [
        ("2001-01-01T00:00:00Z", "ago by this machine's clock"),
        (
            "9999-01-01T00:00:00Z",
            "hours ahead by this machine's clock",
        ),
        ("tomorrow", "expected one such as 2026-"),
    ] {
        let finished = run_onrush(&["load", &serve.url("/"), "-n", "1", "--start-at", moment]);
        assert_ne!(finished.code, Some(0), "{finished:?}");
        assert!(finished.err.contains(part), "{finished:?}");
    }
    assert_eq!(serve.stop().connections(), 0);
}

/// Network namespaces as machines; removed on drop.
struct Machines {
    names: Vec<String>,
}

/// Address of the server, which both networks can reach.
const SERVER: &str = "10.77.0.1";

impl Machines {
    /// Creates a server and two generators, each in a network of its own: 10.77.1.0/29 and 10.77.2.0/29. `None`, with a
    /// message, if that is not permitted.
    fn new() -> Option<Machines> {
        let name = |role: &str| format!("onrush-{role}-{}", std::process::id());
        let machines = Machines {
            names: ["server", "one", "two"].map(name).to_vec(),
        };
        let [server, one, two] = &machines.names[..] else {
            unreachable!("there are three");
        };
        let mut steps = vec![
            format!("netns add {server}"),
            format!("-n {server} link set lo up"),
            format!("-n {server} address add {SERVER}/32 dev lo"),
        ];
        for (number, generator) in [(1, one), (2, two)] {
            steps.extend([
                format!("netns add {generator}"),
                format!("-n {server} link add v{number} type veth peer name v0 netns {generator}"),
                format!("-n {server} address add 10.77.{number}.1/29 dev v{number}"),
                format!("-n {server} link set v{number} up"),
                format!("-n {generator} address add 10.77.{number}.2/29 dev v0"),
                format!("-n {generator} address add 10.77.{number}.3/29 dev v0"),
                format!("-n {generator} link set v0 up"),
                format!("-n {generator} route add {SERVER}/32 via 10.77.{number}.1"),
            ]);
        }
        create_network(&steps).then_some(machines)
    }

    /// Runs `onrush` on the machine with this index. `ip netns exec` is replaced by the program.
    fn onrush(&self, index: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.names[index]])
            .arg(env!("CARGO_BIN_EXE_onrush"))
            .args(words);
        command
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

#[test]
fn results_of_two_machines_add_up() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("onrush.toml");
    let text = format!(
        "[[listen]]\naddress = \"{SERVER}:0\"\n\
         [[route]]\nfrom = [\"10.77.1.2\", \"10.77.1.3\"]\nrespond = {{ status = 200 }}\n\
         [[route]]\nfrom = \"10.77.2.0/29\"\nrespond = {{ status = 201 }}\n"
    );
    std::fs::write(&config, text).expect("it is ours");
    let config = config.display().to_string();
    let serve = Serve::wait_until_listening(Program::start(
        &mut machines.onrush(0, &["serve", "--config", &config]),
    ));
    let url = serve.url("/");
    let words = ["load", &url, "-n", "501", "-c", "4", "-R", "500"];
    let parts = [(1, "10.77.1.2-10.77.1.3"), (2, "10.77.2.2,10.77.2.3")];
    let commands = parts.map(|(index, source)| {
        machines.onrush(index, &[&words[..], &["--source", source]].concat())
    });
    let (finished, merged) = run_together(commands.into(), directory.path());
    assert_eq!(merged["requests"], 501, "{finished:?}");
    assert_eq!(merged["statuses"]["200"], 251, "{merged}");
    assert_eq!(merged["statuses"]["201"], 250, "{merged}");
    let totals = serve.stop();
    assert_eq!((totals.requests(), totals.connections()), (501, 4));
}

#[test]
fn run_ended_before_start_time_is_reported() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = result(directory.path(), 0);
    let url = serve.url("/");
    let hours_ahead = SystemTime::now() + Duration::from_secs(2 * 3600);
    let since = hours_ahead.duration_since(SystemTime::UNIX_EPOCH);
    let moment = since.expect("it is later than 1970").as_secs().to_string();
    let words = [
        "load",
        &url,
        "-c",
        "2",
        "-R",
        "10",
        "-d",
        "1",
        "--start-at",
        &moment,
        "--json",
    ];
    let program = Program::start(onrush(&words).arg(&file));
    program.out.wait_for("#     time");
    program.signal(Signal::INT);
    let finished = program.finish();
    assert!(finished.out.contains("stopped early"), "{finished:?}");
    let own = read(&file);
    assert_eq!(
        (&own["requests"], &own["duration_s"]),
        (&0.into(), &0.0.into())
    );
    assert_eq!(own["clock"]["started_at"], Value::Null);
    let merged = run_onrush(&["load", "merge", &file.display().to_string()]);
    assert!(merged.err.contains("it was stopped before"), "{merged:?}");
    // Connections are opened only in the last seconds before the start.
    assert_eq!(serve.stop().connections(), 0);
}
