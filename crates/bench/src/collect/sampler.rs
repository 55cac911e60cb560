//! Samples a window once per second: CPUs, roles with their threads, interfaces, and other kernel counters.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use onrush_machine::cpu_time::{CpuTicks, by_cpu};
use onrush_machine::network::{Interface, interfaces};
use onrush_machine::process::on_cpu_and_queued;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::counters::{Counters, Totals};
use super::cpu::{self, ksoftirqd};
use super::interface;
use super::machine::Machine;
use super::process::TreeUse;
use super::source::{KernelFile, Root};
use super::tree::Tree;
use crate::limits::SAMPLE_EVERY;
use crate::outcome::{BySubject, CpuUse, Sample};
use crate::scenario::{Collect, Role};

const COLLECTOR: &str = "collector";

#[derive(Debug, Clone)]
struct Reading {
    at: Instant,
    cpus: Vec<(usize, CpuTicks)>,
    ksoftirqd: BTreeMap<usize, Duration>,
    interfaces: BTreeMap<String, Interface>,
    roles: BTreeMap<Role, TreeUse>,
    counters: Counters,
    collector_cpu: Duration,
}

impl Reading {
    fn cpu_uses_since(&self, before: &Reading) -> Vec<CpuUse> {
        let pairs = self.cpus.iter().filter_map(|(cpu, now)| {
            let (_, then) = before.cpus.iter().find(|(then, _)| then == cpu)?;
            let mut used = cpu::used(*cpu, *now, *then);
            if let (Some(now), Some(then)) = (
                self.ksoftirqd.get(&used.cpu),
                before.ksoftirqd.get(&used.cpu),
            ) {
                let span = (self.at - before.at).as_secs_f64().max(1e-9);
                used.ksoftirqd = now.saturating_sub(*then).as_secs_f64() / span;
            }
            Some(used)
        });
        pairs.collect()
    }

    fn sample_since(&self, before: &Reading, start: Instant) -> Sample {
        let span = self.at - before.at;
        let seconds = span.as_secs_f64().max(1e-9);
        let role = |(role, now): (&Role, &TreeUse)| {
            let before = before.roles.get(role).copied().unwrap_or_default();
            (*role, now.since(before).cpu.as_secs_f64() / seconds)
        };
        let interface = |(name, now): (&String, &Interface)| {
            let before = before.interfaces.get(name).copied().unwrap_or_default();
            Some((name.clone(), interface::used(now, &before, span)?))
        };
        let mut counters = self.counters.since(&before.counters, span);
        let ours = self
            .collector_cpu
            .saturating_sub(before.collector_cpu)
            .as_secs_f64()
            / seconds;
        counters.insert(COLLECTOR.into(), [("cpus".to_owned(), ours)].into());
        Sample {
            t: (self.at - start).as_secs_f64(),
            span_s: span.as_secs_f64(),
            cpus: self.cpu_uses_since(before),
            roles: self.roles.iter().map(role).collect(),
            interfaces: self.interfaces.iter().filter_map(interface).collect(),
            counters,
        }
    }
}

fn own_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// Result of a sampled window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Window {
    /// Length of the window.
    pub length: Duration,
    /// One row per second.
    pub samples: Vec<Sample>,
    /// Mean use of each CPU.
    pub cpus: Vec<CpuUse>,
    /// Resource use of each role.
    pub roles: BTreeMap<Role, TreeUse>,
    /// Totals of the counters over the window.
    pub totals: BySubject,
    /// CPU time of the thread that samples, starts clients and waits for them.
    pub collector: Duration,
    /// Counters that this machine lacks, with reasons.
    pub left_out: Vec<String>,
}

/// Samples one window.
#[derive(Debug)]
pub struct Sampler {
    collect: Collect,
    root: Root,
    stat: KernelFile,
    dev: KernelFile,
    ksoftirqd: Vec<(usize, KernelFile)>,
    machine: Machine,
    trees: BTreeMap<Role, Tree>,
    buffer: Vec<u8>,
    first: Reading,
    last: Reading,
    totals: Totals,
    samples: Vec<Sample>,
}

impl Sampler {
    /// Starts a window over running processes. `root` selects the machine's files and the network namespace.
    pub fn start(root: &Root, pids: &BTreeMap<Role, u32>, collect: Collect) -> Sampler {
        let nothing = Reading {
            at: Instant::now(),
            cpus: Vec::new(),
            ksoftirqd: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            roles: BTreeMap::new(),
            counters: Counters::default(),
            collector_cpu: Duration::ZERO,
        };
        let tree = |(role, pid): (&Role, &u32)| (*role, Tree::follow(root, *pid));
        let schedstat = |(cpu, pid): &(usize, u32)| (*cpu, root.proc(&format!("{pid}/schedstat")));
        let mut sampler = Sampler {
            collect,
            stat: root.proc("stat"),
            dev: root.net("dev"),
            ksoftirqd: ksoftirqd().iter().map(schedstat).collect(),
            machine: Machine::find(root),
            trees: pids.iter().map(tree).collect(),
            root: root.clone(),
            buffer: Vec::new(),
            first: nothing.clone(),
            last: nothing,
            totals: Totals::default(),
            samples: Vec::new(),
        };
        sampler.first = sampler.read();
        sampler.last = sampler.first.clone();
        sampler
    }

    /// Adds a process that started after the window; all of its use is counted.
    pub fn join(&mut self, role: Role, pid: u32) {
        self.trees.insert(role, Tree::follow(&self.root, pid));
    }

    /// Takes a sample if the interval has passed and sampling is on.
    pub fn poll(&mut self) {
        match self.collect {
            Collect::On => {}
            Collect::Off => return,
        }
        if self.last.at.elapsed() >= SAMPLE_EVERY {
            let now = self.read();
            self.take(now);
        }
    }

    /// Processes of each role that were alive at the last sample.
    pub fn processes(&self) -> BTreeMap<Role, Vec<u32>> {
        let pids = |(role, tree): (&Role, &Tree)| (*role, tree.pids().collect());
        self.trees.iter().map(pids).collect()
    }

    fn read(&mut self) -> Reading {
        let buffer = &mut self.buffer;
        let at = Instant::now();
        let stat = self.stat.read(buffer).unwrap_or_default();
        let cpus = by_cpu(&stat).collect();
        let mut counters = self.machine.read(&stat);
        let interfaces = interfaces(&self.dev.read(buffer).unwrap_or_default());
        let mut kernel_threads = BTreeMap::new();
        for (cpu, file) in &mut self.ksoftirqd {
            let text = file.read(buffer).unwrap_or_default();
            if let Some((used, _)) = on_cpu_and_queued(&text) {
                kernel_threads.insert(*cpu, Duration::from_nanos(used));
            }
        }
        let mut roles = BTreeMap::new();
        for (role, tree) in &mut self.trees {
            let used = tree.read();
            counters.add(role.name(), used.counts());
            tree.thread_counters(role.name(), &mut counters);
            roles.insert(*role, used);
        }
        Reading {
            at,
            cpus,
            ksoftirqd: kernel_threads,
            interfaces,
            roles,
            counters,
            collector_cpu: own_time(),
        }
    }

    fn take(&mut self, now: Reading) {
        self.samples
            .push(now.sample_since(&self.last, self.first.at));
        self.add(now);
    }

    fn add(&mut self, now: Reading) {
        self.totals.add(&now.counters, &self.last.counters);
        let interfaces = interface::counters(&now.interfaces);
        self.totals
            .add(&interfaces, &interface::counters(&self.last.interfaces));
        self.last = now;
    }

    /// Time since the start of the window.
    pub fn elapsed(&self) -> Duration {
        self.first.at.elapsed()
    }

    /// Ends the window. The rest after the last sample becomes a row if it is at least half an interval long and
    /// sampling is on; it is always part of the totals.
    pub fn finish(mut self) -> Window {
        let now = self.read();
        let is_row = now.at - self.last.at >= SAMPLE_EVERY / 2;
        match self.collect {
            Collect::On if is_row => self.take(now),
            Collect::On | Collect::Off => self.add(now),
        }
        let (first, last) = (&self.first, &self.last);
        let role = |(role, end): (&Role, &TreeUse)| {
            let before = first.roles.get(role).copied().unwrap_or_default();
            (*role, end.since(before))
        };
        Window {
            length: last.at - first.at,
            cpus: last.cpu_uses_since(first),
            roles: last.roles.iter().map(role).collect(),
            totals: self.totals.by_subject(),
            collector: last.collector_cpu.saturating_sub(first.collector_cpu),
            left_out: self.machine.left_out().to_vec(),
            samples: self.samples,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::process::{Child, Command, Stdio};

    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    use super::*;

    fn send(count: u32) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("an address");
        for _ in 0..count {
            socket.send_to(b"datagram", address).expect("room");
            socket.recv_from(&mut [0; 16]).expect("the datagram");
        }
    }

    #[test]
    fn window_has_counters_and_collector_cost() {
        let role = Role::Server;
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("cat starts");
        let mut sampler = Sampler::start(
            &Root::of_machine(),
            &[(role, child.id())].into(),
            Collect::On,
        );
        assert_eq!(sampler.processes()[&role], [child.id()]);
        send(500);
        // Rows depend on the clock, so wait until there is one.
        let deadline = Instant::now() + Duration::from_secs(30);
        while sampler.samples.is_empty() {
            assert!(Instant::now() < deadline, "no sample");
            sampler.poll();
            std::thread::yield_now();
        }
        send(500);
        let window = sampler.finish();
        drop(child.stdin.take());
        child.wait().expect("cat ends");

        let total = |subject: &str, measure: &str| window.totals[subject][measure];
        // At least: concurrent tests send as well.
        assert!(total("lo", "tx_packets") >= 1_000.0, "{:?}", window.totals);
        assert!(total("udp", "InDatagrams") >= 1_000.0);
        assert!(total("machine", "context_switches") > 0.0);
        let row = &window.samples[0];
        assert!(row.counters["collector"]["cpus"] > 0.0);
        assert!(row.counters["udp"]["InDatagrams_per_s"] > 0.0);
        assert!(window.collector > Duration::ZERO && window.collector <= window.length * 2);
        assert!(!window.roles[&role].ended);
    }

    #[test]
    fn disabled_collection_keeps_totals() {
        let pids = BTreeMap::new();
        let mut sampler = Sampler::start(&Root::of_machine(), &pids, Collect::Off);
        send(500);
        while sampler.elapsed() < SAMPLE_EVERY * 2 {
            sampler.poll();
            std::thread::yield_now();
        }
        let window = sampler.finish();
        assert!(window.samples.is_empty());
        assert!(window.totals["lo"]["tx_packets"] >= 500.0);
        assert!(window.length >= SAMPLE_EVERY * 2 && !window.cpus.is_empty());
    }

    /// A process in a new network namespace with loopback up; it ends with its input. `None` if namespaces are not
    /// permitted.
    fn namespace() -> Option<Child> {
        let script = "ip link set lo up && echo up && read line";
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut word = [0; 3];
        let mut stdout = child.stdout.take().expect("a pipe");
        if stdout.read_exact(&mut word).is_ok() {
            return Some(child);
        }
        child.wait().expect("it ends");
        None
    }

    #[test]
    fn network_namespace_is_counted_separately() {
        let Some(mut child) = namespace() else {
            eprintln!("skipped: no network namespace can be made here");
            return;
        };
        let root = Root::of_machine().with_network_of(child.id());
        let sampler = Sampler::start(&root, &BTreeMap::new(), Collect::On);
        let path = format!("/proc/{}/ns/net", child.id());
        let sender = std::thread::spawn(move || {
            let namespace = std::fs::File::open(path).expect("it lives");
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).expect("who may make one may enter");
            send(300);
        });
        sender.join().expect("300 datagrams");
        let window = sampler.finish();
        drop(child.stdin.take());
        child.wait().expect("it ends");
        let total = |subject: &str, measure: &str| window.totals[subject].get(measure).copied();
        assert_eq!(total("lo", "tx_packets"), Some(300.0));
        assert_eq!(total("lo", "rx_packets"), Some(300.0));
        assert_eq!(total("lo", "rx_dropped"), None);
        assert_eq!(total("udp", "OutDatagrams"), Some(300.0));
        assert_eq!(total("udp", "InDatagrams"), Some(300.0));
        assert!(!window.totals.contains_key("eth0"));
    }

    #[test]
    fn role_joined_during_window_is_counted() {
        let mut sampler = Sampler::start(&Root::of_machine(), &BTreeMap::new(), Collect::On);
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .spawn()
            .expect("sh starts");
        sampler.join(Role::Client, child.id());
        let stat = format!("/proc/{}/stat", child.id());
        let deadline = Instant::now() + Duration::from_secs(60);
        let has_ended = || {
            let stat = std::fs::read_to_string(&stat).expect("it was not waited for");
            super::super::process::has_ended(&stat)
        };
        while !has_ended() {
            assert!(Instant::now() < deadline, "it does not end");
            sampler.poll();
            std::thread::yield_now();
        }
        let window = sampler.finish();
        child.wait().expect("it has ended");
        let used = window.roles[&Role::Client];
        assert!(
            used.ended && used.cpu >= Duration::from_millis(10),
            "{used:?}"
        );
    }
}
