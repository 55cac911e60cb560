//! Facts about a machine that matter to network servers; read-only.
//!
//! Unreadable facts are absent, and [`Facts::troubles`] contains the reason. A machine without any CPU is an error.

pub mod arrival;
pub mod cgroup;
pub mod connection;
pub mod daemon;
pub mod datagram;
pub mod disk;
pub mod ethtool;
pub mod interface;
pub mod interrupt;
pub mod link;
pub mod listening;
mod namespace;
pub mod neighbour;
mod netlink;
pub mod packet_filter;
pub mod packet_rules;
pub mod process;
pub mod program;
pub mod qdisc;
pub mod route;
pub mod sample;
mod socket;
pub mod system;
pub mod topology;
mod unread;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Error;
use crate::tree::Tree;
use onrush_machine::cpu_time::{self, CpuTicks};
use onrush_machine::{network, per_cpu};

pub use cgroup::Group;
pub use disk::Disk;
pub use interface::Interface;
pub use interrupt::{Interrupt, Purpose};
pub use listening::Listening;
pub use process::Process;
pub use program::{Program, read as programs};
pub use qdisc::Qdisc;
pub use sample::{Sample, read as sample};
pub use system::System;
pub use topology::Topology;
pub use unread::{Unread, read as unread};

/// Facts about a machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Facts {
    /// CPUs.
    pub topology: Topology,
    /// Network interfaces by name, without the loopback.
    pub interfaces: Vec<Interface>,
    /// Numbered interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Everything else.
    pub system: System,
    /// Threads of the given process by TID.
    pub application: BTreeMap<u32, process::Thread>,
    /// Kernel counters.
    pub counts: Counts,
    /// Files that exist but could not be read or parsed, with the reason.
    pub troubles: BTreeMap<String, String>,
}

/// Kernel counters since boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// CPU time in ticks of 10 ms, by CPU.
    pub cpus: BTreeMap<usize, CpuTime>,
    /// Packet processing statistics by CPU.
    pub softnet: BTreeMap<usize, Softnet>,
    /// NET_RX and NET_TX softirqs by CPU.
    pub softirqs: BTreeMap<usize, (u64, u64)>,
    /// TCP and IP counters by name in /proc/net/snmp and /proc/net/netstat: `TcpExtListenOverflows`.
    pub network: BTreeMap<String, u64>,
    /// Counters of each interface by name, the kernel's and the driver's.
    pub interfaces: BTreeMap<String, BTreeMap<String, u64>>,
    /// Control groups of the given process, or of this one, that limit CPU time; nearest first.
    pub groups: Vec<cgroup::Group>,
    /// Listening sockets of the current network namespace; empty if the kernel cannot be asked.
    pub listening: Vec<Listening>,
    /// The given process.
    pub process: Option<Process>,
    /// Unread data; only [`unread`] reads it.
    pub unread: Option<Unread>,
    /// Whether the process is in a CPU control group whose files are not visible.
    pub has_hidden_group: bool,
    /// Disks by name.
    pub disks: BTreeMap<String, Disk>,
    /// Microseconds with at least one task stalled on I/O (`/proc/pressure/io`); `None` without PSI.
    pub disk_stall: Option<u64>,
    /// CPU time of all processes; only [`programs`] reads it.
    pub programs: Option<BTreeMap<u32, Program>>,
    /// Samples of queues and tables in order of time; only [`sample()`] takes them.
    pub samples: Vec<Sample>,
    /// Seconds since boot, for rates.
    pub uptime: f64,
}

/// Time of a CPU by mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CpuTime {
    /// User mode.
    pub user: u64,
    /// Kernel mode.
    pub system: u64,
    /// Interrupts and softirqs.
    pub interrupts: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a task of this CPU waits for I/O.
    pub iowait: u64,
    /// Stolen by the hypervisor.
    pub steal: u64,
}

impl CpuTime {
    /// Sum of all modes.
    pub fn total(&self) -> u64 {
        let parts = [
            self.user,
            self.system,
            self.interrupts,
            self.idle,
            self.iowait,
            self.steal,
        ];
        // Saturating, because a file may contain any number.
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Packet processing statistics of a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Softnet {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Times that the budget ran out with packets left.
    pub squeezed: u64,
    /// Packets received from other CPUs by packet steering.
    pub steered: u64,
}

/// Reads the facts of a machine or snapshot, and the limits and threads of a process if given.
pub fn read(tree: &Tree, process: Option<u32>) -> Result<Facts, Error> {
    let topology = topology::read(tree, process);
    let Some(first) = topology.online.first() else {
        return Err(Error::Facts(
            "no CPUs found: neither sys/devices/system/cpu nor proc/stat names one; pass the root directory of a \
             machine"
                .to_owned(),
        ));
    };
    namespace::check(tree);
    let interrupts = interrupt::read(tree);
    let interfaces = interface::read(tree, &interrupts);
    let system = system::read(tree, first, process);
    let mut counts = counts(tree, None);
    counts.groups = cgroup::of_process(tree, process);
    Ok(Facts {
        interfaces,
        system,
        application: process
            .map(|process| process::threads(tree, process))
            .unwrap_or_default(),
        counts,
        troubles: tree.read_errors(),
        topology,
        interrupts,
    })
}

impl Facts {
    /// Returns an error if the interfaces and the settings are from different network namespaces.
    pub fn check_namespace(&self) -> Result<(), Error> {
        match self.troubles.contains_key(namespace::ABOUT) {
            true => Err(Error::Request(format!(
                "{} {}",
                namespace::ABOUT,
                namespace::WHY
            ))),
            false => Ok(()),
        }
    }

    /// Interface with this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }

    /// Devices below an interface, e.g. a bond or VLAN. A device includes itself and the devices below it.
    pub fn devices_of(&self, name: &str) -> Vec<&Interface> {
        let mut devices = Vec::new();
        let mut names = vec![name.to_owned()];
        let mut seen: Vec<String> = Vec::new();
        while let Some(name) = names.pop() {
            // A recording may contain a cycle.
            if seen.contains(&name) {
                continue;
            }
            let Some(interface) = self.interface(&name) else {
                continue;
            };
            if interface.lower.is_empty() || interface.is_device {
                devices.push(interface);
            }
            // A device may have a lower device: netvsc has its virtual function, which receives most packets.
            names.extend(interface.lower.iter().cloned());
            seen.push(name);
        }
        devices.sort_by(|one, two| one.name.cmp(&two.name));
        devices
    }
}

/// Reads the counters only, cheap enough for once a second; TCP counters come from the process's namespace.
pub fn counts(tree: &Tree, process: Option<u32>) -> Counts {
    let stat = tree.text("/proc/stat").unwrap_or_default();
    let uptime = tree.text("/proc/uptime").unwrap_or_default();
    let mut counters = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        let its = process.and_then(|process| tree.text(&format!("/proc/{process}/net/{file}")));
        let text = its.or_else(|| tree.text(&format!("/proc/net/{file}")));
        // Skip settings among the counters that may be -1.
        for (table, name, value) in network::counters(&text.unwrap_or_default()) {
            if let Ok(value) = value.parse() {
                counters.insert(format!("{table}{name}"), value);
            }
        }
    }
    let path = process.map_or_else(|| "/proc".to_owned(), |process| format!("/proc/{process}"));
    let six = tree.text(&format!("{path}/net/snmp6")).unwrap_or_default();
    let six = network::counters6(&six).filter(|(name, _)| name.starts_with("Udp6"));
    counters.extend(six.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))));
    let cpus = cpu_times(&stat);
    let listening = tree.listening(listening::ask);
    Counts {
        softnet: softnet(
            &tree.text("/proc/net/softnet_stat").unwrap_or_default(),
            &cpus,
        ),
        cpus,
        softirqs: softirqs(&tree.text("/proc/softirqs").unwrap_or_default()),
        network: counters,
        interfaces: interface::counters(tree),
        groups: cgroup::of_process(tree, process),
        process: process.and_then(|process| process::read(tree, process, listening.as_deref())),
        listening: listening.unwrap_or_default(),
        unread: None,
        has_hidden_group: cgroup::is_hidden(tree, process),
        disks: disk::read(tree),
        disk_stall: disk::stall(tree),
        programs: None,
        samples: Vec::new(),
        uptime: uptime
            .split_whitespace()
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0),
    }
}

fn cpu_times(stat: &str) -> BTreeMap<usize, CpuTime> {
    let time = |ticks: CpuTicks| CpuTime {
        user: ticks.user,
        system: ticks.system,
        idle: ticks.idle,
        iowait: ticks.iowait,
        interrupts: ticks.irq.saturating_add(ticks.softirq),
        steal: ticks.steal,
    };
    cpu_time::by_cpu(stat)
        .map(|(cpu, ticks)| (cpu, time(ticks)))
        .collect()
}

fn softnet(text: &str, cpus: &BTreeMap<usize, CpuTime>) -> BTreeMap<usize, Softnet> {
    let online: Vec<usize> = cpus.keys().copied().collect();
    let row = |(at, row): (usize, network::Softnet)| {
        let cpu = row.cpu.or_else(|| online.get(at).copied())?;
        let softnet = Softnet {
            processed: row.processed,
            dropped: row.dropped,
            squeezed: row.squeezed?,
            steered: row.received_rps.unwrap_or(0),
        };
        Some((cpu, softnet))
    };
    network::softnet(text).enumerate().filter_map(row).collect()
}

fn softirqs(text: &str) -> BTreeMap<usize, (u64, u64)> {
    let mut all: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for row in per_cpu::rows(text) {
        for (cpu, count) in row.counts {
            let (received, sent) = all.entry(cpu).or_default();
            match row.label {
                "NET_RX" => *received = count,
                "NET_TX" => *sent = count,
                _ => {}
            }
        }
    }
    all
}
