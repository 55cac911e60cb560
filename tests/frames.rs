//! `onrush load udp://` through named interfaces, and past the network stack (`--via xdp`), in network namespaces of
//! this machine. Needs root and iproute2.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use onrush_engine::CountingDrop;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::peer::{are_installed, create_network};
use crate::privileges::runs_as;
use crate::program::{Finished, Program, Serve};

/// Two network namespaces as machines, with two links between them: `v0` is 10.78.0.1 here and 10.78.0.2 there, `v1`
/// 10.78.1.1 and 10.78.1.2, and both lead to 10.78.9.9 there. Removed on drop.
struct Machines {
    here: String,
    there: String,
}

impl Machines {
    /// Creates them; `None`, with a message, if that is not permitted.
    fn new() -> Option<Machines> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |side| format!("onrush-{side}-{}-{number}", std::process::id());
        let machines = Machines {
            here: name("here"),
            there: name("there"),
        };
        let Machines { here, there } = &machines;
        let mut steps = vec![
            format!("netns add {here}"),
            format!("netns add {there}"),
            format!("-n {there} link set lo up"),
            format!("-n {there} address add 10.78.9.9/32 dev lo"),
        ];
        for link in 0..2 {
            steps.extend([
                format!("-n {here} link add v{link} type veth peer name v{link} netns {there}"),
                format!("-n {here} address add 10.78.{link}.1/24 dev v{link}"),
                format!("-n {there} address add 10.78.{link}.2/24 dev v{link}"),
                format!("-n {here} address add fd78:{link}::1/64 dev v{link} nodad"),
                format!("-n {there} address add fd78:{link}::2/64 dev v{link} nodad"),
                format!("-n {here} link set v{link} up"),
                format!("-n {there} link set v{link} up"),
                format!("-n {here} route add 10.78.9.9/32 via 10.78.{link}.2 metric {link}00"),
                // Replies on the second link do not match the first link's route.
                format!("netns exec {here} sysctl -qw net.ipv4.conf.v{link}.rp_filter=0"),
            ]);
        }
        steps.push(format!(
            "netns exec {here} sysctl -qw net.ipv4.conf.all.rp_filter=0"
        ));
        create_network(&steps).then_some(machines)
    }

    /// Runs a program in a namespace. `ip netns exec` is replaced by the program.
    fn command(namespace: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).args(words);
        command
    }

    fn load(&self, url: &str, words: &[&str]) -> (Finished, Value) {
        let directory = tempfile::tempdir().expect("a directory");
        let json = directory.path().join("result.json");
        let json = json.to_str().expect("a path of text");
        let mut all = vec![BINARY, "load", url, "--json", json];
        all.extend(words);
        let finished = Program::start(&mut Machines::command(&self.here, &all)).finish();
        let text = std::fs::read_to_string(json).unwrap_or_default();
        let result = serde_json::from_str(&text);
        let result = result.unwrap_or_else(|_| panic!("no result: {words:?} {finished:?}"));
        (finished, result)
    }

    /// Starts a sink there on this address.
    fn sink(&self, address: &str) -> (Serve, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("sink.toml");
        let text = format!(
            "threads = 1\n[[listen]]\naddress = \"{address}\"\nprotocol = \"sink\"\ntransport = \"udp\"\nreceive_buffer = \"4m\"\n"
        );
        std::fs::write(&file, text).expect("it is written");
        let file = file.to_str().expect("a path of text");
        let words = [BINARY, "serve", "--config", file];
        let serve = Serve::wait_until_listening(Program::start(&mut Machines::command(
            &self.there,
            &words,
        )));
        (serve, directory)
    }

    /// Attaches a program that counts and drops packets received on this interface there; `None`, with a message, if
    /// the kernel does not support it.
    fn counting_drop(&self, interface: &'static str) -> Option<CountingDrop> {
        let namespace = File::open(format!("/run/netns/{}", self.there)).expect("it is there");
        let attached = thread::spawn(move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).expect("who made it may enter");
            let asks = socket(AddressFamily::INET, SocketType::DGRAM, None).expect("a socket");
            let index = name_to_index(&asks, interface).expect("it is there");
            CountingDrop::attach(index, [0xd7, 0x11])
        });
        match attached.join().expect("no assertion fails") {
            Ok(drop) => Some(drop),
            Err(error) => {
                eprintln!("skipped: {error}");
                None
            }
        }
    }

    /// Enables GRO on the peer interfaces, which lets the interfaces here send frames.
    fn take_frames(&self) -> bool {
        if !are_installed(&["ethtool"]) {
            return false;
        }
        for link in ["v0", "v1"] {
            let words = ["ethtool", "-K", link, "gro", "on"];
            let finished = Program::start(&mut Machines::command(&self.there, &words)).finish();
            assert_eq!(finished.code, Some(0), "{finished:?}");
        }
        true
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in [&self.here, &self.there] {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

const BINARY: &str = env!("CARGO_BIN_EXE_onrush");

fn number(result: &Value, key: &str) -> u64 {
    let found = result.pointer(key).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{key} is no number in {result:#}"))
}

fn unsent(result: &Value) -> u64 {
    let unsent = result["unsent"].as_object().expect("an object");
    unsent.values().filter_map(Value::as_u64).sum()
}

#[test]
fn every_sent_frame_is_counted() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let (Some(first), Some(second)) = (machines.counting_drop("v0"), machines.counting_drop("v1"))
    else {
        return;
    };
    let drops = [&first, &second];
    for (words, asked, links) in [
        (&["-n", "300k", "--interface", "v0"][..], 300_000, 1),
        (
            &[
                "-n",
                "20k",
                "-R",
                "100k",
                "--size",
                "1400",
                "--interface",
                "v0",
            ],
            20_000,
            1,
        ),
        (
            &["-n", "100k", "-c", "3", "-t", "2", "--interface", "v0,v1"],
            100_000,
            2,
        ),
    ] {
        let before = drops.map(CountingDrop::count);
        let mut all = vec!["--via", "xdp", "--one-way"];
        all.extend(words);
        let (finished, result) = machines.load("udp://10.78.9.9:9", &all);
        let sent = number(&result, "/sent");
        // Two threads may find the queue of one interface full.
        assert_eq!(sent + unsent(&result), asked, "{finished:?}");
        assert_eq!(result["departure"], "xdp");
        let origins = result["origins"].as_array().expect("a list");
        assert_eq!(origins.len(), links, "{result:#}");
        for (at, origin) in origins.iter().enumerate() {
            let came = drops[at].count() - before[at];
            assert_eq!(number(origin, "/sent"), came, "{words:?}: {result:#}");
            assert_eq!(origin["interface"], format!("v{at}"));
            assert!(came > 0, "{result:#}");
        }
        let all: u64 = origins.iter().map(|origin| number(origin, "/sent")).sum();
        assert_eq!(sent, all);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn sink_receives_frames_on_sockets() {
    let Some(machines) = Machines::new() else {
        return;
    };
    if !machines.take_frames() {
        return;
    }
    for address in ["10.78.0.2:0", "[fd78:0::2]:0"] {
        let (serve, _directory) = machines.sink(address);
        let url = format!("udp://{}", serve.address);
        let words = [
            "--via",
            "xdp",
            "--interface",
            "v0",
            "-n",
            "20k",
            "-R",
            "20k",
            "-c",
            "2",
        ];
        let (finished, result) = machines.load(&url, &words);
        let [sent, received, lost] =
            ["/sent", "/received", "/losses/lost"].map(|key| number(&result, key));
        assert_eq!(sent, 20_000, "{finished:?}");
        assert_eq!(sent, received + lost, "{result:#}");
        // A frame with a wrong checksum does not reach a socket; some may find the buffer full.
        assert!(received > 0, "{result:#}");
        assert_eq!(number(&result, "/duplicated"), 0, "{result:#}");
        assert_eq!(result.get("jitter_us"), None, "{result:#}");
        serve.stop();
    }
}

#[test]
fn sockets_are_distributed_over_interfaces() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let (serve, _directory) = machines.sink("10.78.9.9:0");
    let url = format!("udp://{}", serve.address);
    let words = ["--interface", "v0,v1", "-n", "9000", "-R", "9k", "-c", "3"];
    let (finished, result) = machines.load(&url, &words);
    assert_eq!(number(&result, "/sent"), 9000, "{finished:?}");
    let mut all = 0;
    for (at, flows) in [2, 1].into_iter().enumerate() {
        let origin = &result["origins"][at];
        let sent = number(origin, "/sent");
        all += sent;
        assert_eq!(origin["interface"], format!("v{at}"), "{result:#}");
        assert_eq!(origin["source"], format!("10.78.{at}.1"), "{result:#}");
        assert_eq!(number(origin, "/flows"), flows);
        let (received, lost) = (number(origin, "/received"), number(origin, "/lost"));
        assert_eq!(received + lost, sent, "{result:#}");
        assert!(received > 0, "{result:#}");
        let counted = number(&result, &format!("/interfaces/v{at}/tx_packets"));
        assert!(counted >= sent, "{result:#}");
    }
    assert_eq!(all, 9000, "{result:#}");
    serve.stop();
}

#[test]
fn raw_frame_errors_are_reported_before_run() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let ip = |words: &str| {
        let done = Command::new("ip").args(words.split(' ')).status();
        assert!(done.is_ok_and(|status| status.success()), "ip {words}");
    };
    let refused = |prefix: &[&str], words: &[&str], code: i32, part: &str| {
        let mut all = prefix.to_vec();
        all.extend([BINARY, "load", "--one-way", "-n", "10"]);
        all.extend(words);
        let finished = Program::start(&mut Machines::command(&machines.here, &all)).finish();
        assert_eq!(finished.code, Some(code), "{words:?}: {finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
        assert!(finished.err.contains(part), "{words:?}: {finished:?}");
    };
    let by = |interface| {
        [
            "udp://10.78.0.2:9",
            "--via",
            "xdp",
            "--interface",
            interface,
        ]
    };
    refused(&[], &by("v0"), 1, "ethtool -K PEER gro on");
    refused(&[], &by("v7"), 1, "no such interface");
    refused(&[], &by("lo"), 1, "lo is down");
    // An IPv6 address: an IPv4 address without a route would count as a neighbour on the link.
    let other = ["udp://[fd78:0::2]:9", "--via", "xdp", "--interface", "v1"];
    refused(&[], &other, 1, "cannot be reached through --interface v1");
    refused(
        &[],
        &["udp://10.78.0.2:9", "--via", "xdp"],
        1,
        "--interface",
    );
    let own = ["udp://10.78.0.1:9", "--via", "xdp", "--interface", "v0"];
    refused(&[], &own, 1, "an address of this machine");
    let long = [
        "udp://10.78.0.2:9",
        "--via",
        "xdp",
        "--interface",
        "v0",
        "--size",
        "1473",
    ];
    refused(&[], &long, 1, "use 1472 at most");
    // This address is not assigned.
    let nobody = ["udp://10.78.0.77:9", "--via", "xdp", "--interface", "v0"];
    refused(&[], &nobody, 2, "does not answer ARP");
    if runs_as(65534) {
        let user = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        refused(
            &user,
            &by("v0"),
            1,
            "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
        );
    }
    ip(&format!("-n {} link set v0 down", machines.here));
    refused(&[], &by("v0"), 1, "v0 is down");
}
