//! Real limiters in separate network namespaces, diagnosed without a process, with the process, and with the process
//! from another network namespace. The first finding must be the planted limiter, or "cannot know".
//!
//! Clients and servers are this test program, started again with a role. Other tests share the CPUs and disks of the
//! machine, so their readings are replaced by quiet ones, except in tests that plant a limiter there.

mod role;

use std::env;
use std::fs::{self};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onrush_tune::facts::{self};
use onrush_tune::tree::Tree;

use crate::namespace::Namespace;
use role::{
    answer, ask, connect_all, connect_often, hold, listener, nap, never_read, relay, report,
    send_datagrams, sleep, slow_accept, spin, swallow, upload, write,
};

/// Variable with the role of a child process and its arguments.
const ROLE: &str = "ONRUSH_PLANTED_ROLE";
const DURATION: Duration = Duration::from_millis(1_600);
/// Deadline for setting up a limiter.
const SETUP_TIMEOUT: Duration = Duration::from_secs(60);
const SERVER: &str = "10.99.0.1";
const CLIENT: &str = "10.99.0.2";
const PORT: u16 = 8_080;
/// Writing threads: enough that one waits for the disk at any time.
const WRITERS: usize = 4;
const REQUEST: [u8; 64] = [b'a'; 64];

/// A child process with a role; killed on drop.
struct Part(Child);

impl Part {
    fn start(namespace: Option<&Namespace>, role: &str) -> Part {
        let child = command(namespace, role).stdout(Stdio::null()).spawn();
        Part(child.expect("it starts"))
    }

    fn number(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This program with a role. `ip netns exec` replaces itself with it, so the PID stays the same.
fn command(namespace: Option<&Namespace>, role: &str) -> Command {
    let own = env::current_exe().expect("a path");
    let mut command = match namespace {
        Some(namespace) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace.name()]).arg(own);
            command
        }
        None => Command::new(own),
    };
    command
        .args(["--exact", "planted::child_process", "--nocapture"])
        .env(ROLE, role);
    command
}

struct Pair {
    client: Namespace,
    server: Namespace,
}

impl Pair {
    fn new(purpose: &str, steps: &[&str]) -> Option<Pair> {
        let server = Namespace::after(&format!("{purpose}-s"), &["ip link set lo up"])?;
        let name = server.name();
        let link = format!("ip link add v1 type veth peer name v0 netns {name}");
        let inside = |step: &str| format!("ip netns exec {name} {step}");
        let address = inside(&format!("ip addr add {SERVER}/24 dev v0"));
        let own = format!("ip addr add {CLIENT}/24 dev v1");
        let up = inside("ip link set v0 up");
        let mut all = vec![
            "ip link set lo up",
            &link,
            &own,
            "ip link set v1 up",
            &address,
            &up,
        ];
        let steps: Vec<String> = steps.iter().map(|step| inside(step)).collect();
        all.extend(steps.iter().map(String::as_str));
        let client = Namespace::after(&format!("{purpose}-c"), &all)?;
        Some(Pair { client, server })
    }
}

/// The limiter and evidence of the first finding.
fn first(namespace: Option<&Namespace>, process: Option<u32>, quiet: Quiet) -> (String, String) {
    let process = process.map_or_else(|| "none".to_owned(), |process| process.to_string());
    let quiet = match quiet {
        Quiet::All => "all",
        Quiet::Cpus => "cpus",
        Quiet::Nothing => "nothing",
    };
    let output = command(namespace, &format!("diagnose {process} {quiet}")).output();
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = text
        .split_once("FINDINGS ")
        .and_then(|(_, rest)| rest.lines().next());
    let json: serde_json::Value =
        serde_json::from_str(json.unwrap_or_else(|| panic!("{output:?}"))).expect("JSON");
    let of = |name: &str| json[0][name].as_str().expect("a string").to_owned();
    (of("limiter"), of("evidence"))
}

/// Readings of the machine to replace by quiet ones.
#[derive(Clone, Copy)]
enum Quiet {
    All,
    Cpus,
    Nothing,
}

/// Diagnoses in three ways and checks the first finding of each.
#[track_caller]
fn check(server: Option<&Namespace>, process: u32, quiet: Quiet, without: &[&str], with: &[&str]) {
    let ways = [
        ("without --pid", server, None, without),
        ("with --pid", server, Some(process), with),
        ("with --pid, from outside", None, Some(process), with),
    ];
    for (way, namespace, process, expected) in ways {
        if way.ends_with("outside") && server.is_none() {
            continue;
        }
        let (limiter, evidence) = first(namespace, process, quiet);
        println!("| {way} | {limiter} | {evidence} |");
        assert!(
            expected.contains(&limiter.as_str()),
            "{way}: {limiter} instead of {expected:?}: {evidence}"
        );
    }
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SETUP_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn live() -> Tree {
    Tree::open(Path::new("/")).expect("this machine")
}

fn waiting(process: u32) -> u64 {
    let sample = facts::sample(&live(), Some(process));
    sample
        .unaccepted
        .iter()
        .flatten()
        .map(|(_, count)| count)
        .sum()
}

fn listens(process: u32) -> bool {
    let sample = facts::sample(&live(), Some(process));
    sample.unaccepted.is_some_and(|ports| !ports.is_empty())
}

fn open(process: u32) -> u64 {
    let sample = facts::sample(&live(), Some(process));
    sample.connections.map_or(0, |connections| connections.open)
}

fn counter(process: u32, name: &str) -> u64 {
    let counts = facts::counts(&live(), Some(process));
    counts.network.get(name).copied().unwrap_or(0)
}

#[test]
fn saturated_server_link_is_diagnosed() {
    let shaper = "tc qdisc add dev v0 root tbf rate 20mbit burst 16kb latency 50ms";
    let Some(pair) = Pair::new("tbf", &[shaper]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "answer 200000 64");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "ask 16 200000 0");
    wait_until("nobody asks", || open(server.number()) >= 16);
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &["link"],
        &["link"],
    );
}

#[test]
fn saturated_client_link_is_diagnosed() {
    let Some(pair) = Pair::new("uplink", &[]) else {
        return;
    };
    let shaper = "tc qdisc add dev v1 root tbf rate 20mbit burst 16kb latency 50ms";
    let shaped = command_in(&pair.client, shaper);
    if !shaped {
        return;
    }
    let server = Part::start(Some(&pair.server), "swallow");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "upload 8");
    wait_until("nobody uploads", || open(server.number()) >= 8);
    let expected = ["cannot-know", "loss", "network", "link"];
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &expected,
        &expected,
    );
}

fn command_in(namespace: &Namespace, line: &str) -> bool {
    let words = line.split(' ');
    let output = Command::new("ip")
        .args(["netns", "exec", namespace.name()])
        .args(words)
        .output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn sleeping_server_is_diagnosed() {
    let Some(pair) = Pair::new("sleeps", &[]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "sleep 64");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "ask 29 100 0");
    // Another server in the namespace works well.
    let other = Part::start(Some(&pair.server), "answer-at 8081 100");
    wait_until("it does not listen", || listens(other.number()));
    let _others = Part::start(Some(&pair.client), "ask-at 8081 4 100 0");
    wait_until("nobody waits", || waiting(server.number()) == 29);
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &["application"],
        &["application"],
    );
}

#[test]
fn small_accept_queue_is_diagnosed() {
    let Some(pair) = Pair::new("queue", &[]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "slow-accept 1");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "connect-often 8");
    wait_until("nothing overflows", || {
        counter(server.number(), "TcpExtListenOverflows") > 100
    });
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &["accept-queue"],
        &["accept-queue"],
    );
}

#[test]
fn stopped_server_is_diagnosed() {
    let Some(pair) = Pair::new("stopped", &[]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "answer 100 64");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "ask 8 100 0");
    wait_until("nobody asks", || open(server.number()) >= 8);
    let number = rustix::process::Pid::from_raw(server.number().cast_signed()).expect("a number");
    rustix::process::kill_process(number, rustix::process::Signal::STOP).expect("it is ours");
    let _more = Part::start(Some(&pair.client), "connect-often 4");
    wait_until("nobody waits", || waiting(server.number()) > 0);
    let without = ["application", "accept-queue"];
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &without,
        &["application"],
    );
}

#[test]
fn port_exhaustion_is_diagnosed() {
    let range = "sh -c 'echo 40000 40199 > /proc/sys/net/ipv4/ip_local_port_range'";
    let Some(pair) = Pair::new("ports", &[range]) else {
        return;
    };
    let server = Part::start(Some(&pair.client), "answer 100 4096");
    wait_until("it does not listen", || listens(server.number()));
    let client = Part::start(Some(&pair.server), "connect-all 10.99.0.2");
    wait_until("ports are left", || open(client.number()) >= 200);
    check(
        Some(&pair.server),
        client.number(),
        Quiet::All,
        &["ports"],
        &["ports"],
    );
}

#[test]
fn unread_udp_socket_is_diagnosed() {
    let Some(pair) = Pair::new("udp", &[]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "ignore-datagrams");
    let _client = Part::start(Some(&pair.client), "send-datagrams");
    wait_until("nothing is dropped", || {
        counter(server.number(), "UdpRcvbufErrors") > 100
    });
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &["udp-buffers"],
        &["udp-buffers"],
    );
}

#[test]
fn client_not_reading_is_diagnosed() {
    let Some(pair) = Pair::new("deaf", &[]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "answer 30000000 64");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "deaf 8");
    let other = Part::start(Some(&pair.server), "answer-at 8081 100");
    wait_until("it does not listen", || listens(other.number()));
    let _others = Part::start(Some(&pair.client), "ask-at 8081 4 100 0");
    wait_until("nobody asks", || open(server.number()) >= 8);
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &["client"],
        &["client"],
    );
}

#[test]
fn server_holding_requests_is_diagnosed() {
    let Some(pair) = Pair::new("holds", &[]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "hold 64");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "ask 16 100 0");
    wait_until("nobody asks", || open(server.number()) >= 16);
    let expected = ["cannot-know", "application"];
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &expected,
        &expected,
    );
}

#[test]
fn slow_client_is_diagnosed() {
    let Some(pair) = Pair::new("slowly", &[]) else {
        return;
    };
    let server = Part::start(Some(&pair.server), "answer 100 64");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "ask 16 100 20");
    wait_until("nobody asks", || open(server.number()) >= 16);
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &["client"],
        &["client"],
    );
}

#[test]
fn busy_disk_is_diagnosed() {
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let file = directory.path().join("written");
    let server = Part::start(None, &format!("write {}", file.display()));
    let first = file.with_extension("0");
    let is_written = || fs::metadata(&first).is_ok_and(|file| file.len() > 64 << 10);
    wait_until("nothing is written", is_written);
    let is_real = facts::counts(&live(), None).disk_stall.is_some();
    let blocked = |_: u32| {
        let sample = facts::sample(&live(), Some(server.number()));
        sample.blocked.is_some_and(|blocked| blocked > 0)
    };
    // On a fast disk no thread is ever seen waiting.
    if !is_real || (0..200).filter(|at| blocked(*at)).count() < 100 {
        eprintln!("skipped: the disk of this machine does not make a program wait");
        return;
    }
    let expected = ["disk", "cannot-know"];
    check(None, server.number(), Quiet::Cpus, &expected, &expected);
}

#[test]
fn competing_programs_are_diagnosed() {
    // Each has the weight of the server, which gets a fifth of the CPU.
    let others: Vec<Part> = (0..4).map(|_| Part::start(None, "spin 0")).collect();
    let server = Part::start(None, "nap 0");
    let ticks = |part: &Part| {
        let counts = facts::counts(&live(), Some(part.number()));
        let threads = counts.process.map(|process| process.threads);
        let ticks = threads.unwrap_or_default();
        ticks.values().map(|thread| thread.ticks).sum::<u64>()
    };
    wait_until("they do not run", || {
        others.iter().all(|other| ticks(other) > 5)
    });
    let without = ["application", "steal"];
    let with = ["other-programs", "steal"];
    check(None, server.number(), Quiet::Nothing, &without, &with);
}

#[test]
fn wait_for_backend_is_diagnosed() {
    let Some(pair) = Pair::new("relay", &[]) else {
        return;
    };
    let other = Part::start(Some(&pair.client), "hold 64");
    wait_until("it does not listen", || listens(other.number()));
    let server = Part::start(Some(&pair.server), "relay");
    wait_until("it does not listen", || listens(server.number()));
    let _client = Part::start(Some(&pair.client), "ask 16 100 0");
    wait_until("nobody asks", || open(server.number()) >= 32);
    let expected = ["cannot-know"];
    check(
        Some(&pair.server),
        server.number(),
        Quiet::All,
        &expected,
        &expected,
    );
}

/// Runs the role of a child process; does nothing in an ordinary test run.
#[test]
fn child_process() {
    let Ok(role) = env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = role.split(' ').collect();
    let number = |at: usize| words[at].parse::<usize>().expect("a number");
    match words[0] {
        "answer" => answer(PORT, number(1), number(2)),
        "answer-at" => answer(u16::try_from(number(1)).expect("a port"), number(2), 64),
        "ask" => ask(PORT, number(1), number(2), number(3)),
        "ask-at" => {
            let port = u16::try_from(number(1)).expect("a port");
            ask(port, number(2), number(3), number(4));
        }
        "sleep" => {
            let _listener = listener(PORT, number(1));
            sleep();
        }
        "slow-accept" => slow_accept(number(1)),
        "connect-often" => connect_often(number(1)),
        "connect-all" => connect_all(),
        "swallow" => swallow(),
        "upload" => upload(number(1)),
        "hold" => hold(number(1)),
        "relay" => relay(),
        "deaf" => never_read(number(1)),
        "ignore-datagrams" => {
            let _socket = UdpSocket::bind((SERVER, PORT)).expect("bound");
            sleep();
        }
        "send-datagrams" => send_datagrams(),
        "write" => write(Path::new(words[1])),
        "spin" => spin(number(1)),
        "nap" => nap(number(1)),
        "diagnose" => report(words[1].parse().ok(), words[2]),
        other => panic!("{other} is no role"),
    }
}
