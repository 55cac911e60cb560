//! Everything about a machine that matters to network servers, read and never changed.
//!
//! What cannot be read is absent rather than wrong, and [`Facts::troubles`] says why. Only without any CPU there are no
//! facts.

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
use crate::cpus::CpuSet;
use crate::tree::Tree;

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

/// Everything that was read of a machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Facts {
    /// CPUs.
    pub topology: Topology,
    /// Network interfaces but the loopback, by name.
    pub interfaces: Vec<Interface>,
    /// Interrupts with a number.
    pub interrupts: Vec<Interrupt>,
    /// Everything else.
    pub system: System,
    /// The threads of the program that was asked for, by number.
    pub application: BTreeMap<u32, process::Thread>,
    /// What the kernel counted until now.
    pub counts: Counts,
    /// Files that exist and could not be read or understood, with the reason.
    pub troubles: BTreeMap<String, String>,
}

/// What the kernel counted since the start of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Time of each CPU in ticks of a hundredth of a second, by CPU.
    pub cpus: BTreeMap<usize, CpuTime>,
    /// Packets handled by each CPU, by CPU.
    pub softnet: BTreeMap<usize, Softnet>,
    /// Softirqs of received and sent packets of each CPU, by CPU.
    pub softirqs: BTreeMap<usize, (u64, u64)>,
    /// Counters of TCP and IP by their names in /proc/net/snmp and /proc/net/netstat: `TcpRetransSegs`,
    /// `TcpExtListenOverflows`.
    pub network: BTreeMap<String, u64>,
    /// Packets, errors and drops of each interface, by its name and that of the counter: the kernel's, and the driver's own.
    pub interfaces: BTreeMap<String, BTreeMap<String, u64>>,
    /// The control groups of the process that was asked for, or else of this program, that limit CPU time: the nearest
    /// first.
    pub groups: Vec<cgroup::Group>,
    /// Sockets of the network namespace we are in that wait for connections; none where the kernel cannot be asked.
    pub listening: Vec<Listening>,
    /// The process that was asked for.
    pub process: Option<Process>,
    /// What had arrived and was not read; none where nobody looked, which only [`unread`] does.
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
    /// Seconds since the start of the machine: what rates are made with.
    pub uptime: f64,
}

/// Where the time of a CPU went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CpuTime {
    /// In programs.
    pub user: u64,
    /// In the kernel, for programs.
    pub system: u64,
    /// In the kernel, for interrupts and for packets.
    pub interrupts: u64,
    /// Nothing to do.
    pub idle: u64,
    /// Idle while a task of this CPU waits for I/O.
    pub iowait: u64,
    /// Taken by others on the same hardware.
    pub steal: u64,
}

impl CpuTime {
    /// All of it.
    pub fn total(&self) -> u64 {
        let parts = [
            self.user,
            self.system,
            self.interrupts,
            self.idle,
            self.iowait,
            self.steal,
        ];
        // What was read from a file may be any number.
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// What one CPU did with packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Softnet {
    /// Packets handled.
    pub processed: u64,
    /// Packets dropped because its queue was full.
    pub dropped: u64,
    /// Times it had to stop with packets left.
    pub squeezed: u64,
    /// Times another CPU handed it packets.
    pub steered: u64,
}

/// Reads the facts of the machine below a root directory, or of a snapshot. With a process, its limits and threads too.
pub fn read(tree: &Tree, process: Option<u32>) -> Result<Facts, Error> {
    let topology = topology::read(tree, process);
    let Some(first) = topology.online.first() else {
        return Err(Error::Facts(
            "there are no CPUs here: neither sys/devices/system/cpu nor proc/stat names one; is it the root directory \
             of a machine?"
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
        troubles: tree.troubles(),
        topology,
        interrupts,
    })
}

impl Facts {
    /// Refuses to change what would be two machines: the interfaces of one network namespace and the settings of another.
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

    /// An interface, by its name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }

    /// The devices an interface stands on, down through bonds and VLANs; itself when it is one, with those below it.
    pub fn devices_of(&self, name: &str) -> Vec<&Interface> {
        let mut devices = Vec::new();
        let mut names = vec![name.to_owned()];
        let mut seen: Vec<String> = Vec::new();
        while let Some(name) = names.pop() {
            // Nothing stands on itself, but a recording may say so.
            if seen.contains(&name) {
                continue;
            }
            let Some(interface) = self.interface(&name) else {
                continue;
            };
            if interface.lower.is_empty() || interface.is_device {
                devices.push(interface);
            }
            // A device may stand on another one: netvsc on its virtual function, which most packets come by.
            names.extend(interface.lower.iter().cloned());
            seen.push(name);
        }
        devices.sort_by(|one, two| one.name.cmp(&two.name));
        devices
    }
}

/// Reads what was counted, and nothing else: cheap enough for once a second. With a process, TCP's counters are those of
/// the network it is in.
pub fn counts(tree: &Tree, process: Option<u32>) -> Counts {
    let stat = tree.text("/proc/stat").unwrap_or_default();
    let uptime = tree.text("/proc/uptime").unwrap_or_default();
    let mut network = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        let its = process.and_then(|process| tree.text(&format!("/proc/{process}/net/{file}")));
        let text = its.or_else(|| tree.text(&format!("/proc/net/{file}")));
        pairs(&text.unwrap_or_default(), &mut network);
    }
    let path = process.map_or_else(|| "/proc".to_owned(), |process| format!("/proc/{process}"));
    ipv6(
        &tree.text(&format!("{path}/net/snmp6")).unwrap_or_default(),
        &mut network,
    );
    let listening = tree.listening(listening::ask);
    Counts {
        cpus: stat.lines().filter_map(cpu_time).collect(),
        softnet: softnet(
            &tree.text("/proc/net/softnet_stat").unwrap_or_default(),
            &stat,
        ),
        softirqs: softirqs(&tree.text("/proc/softirqs").unwrap_or_default()),
        network,
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

/// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`
fn cpu_time(line: &str) -> Option<(usize, CpuTime)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    let cpu = words.next()?.parse().ok()?;
    let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let tick = |at: usize| ticks.get(at).copied().unwrap_or(0);
    let time = CpuTime {
        user: tick(0).saturating_add(tick(1)),
        system: tick(2),
        idle: tick(3),
        iowait: tick(4),
        interrupts: tick(5).saturating_add(tick(6)),
        steal: tick(7),
    };
    (!line.starts_with("cpu ")).then_some((cpu, time))
}

/// One row for each CPU that is online, in hexadecimal. The CPU stands in the thirteenth column since Linux 5.10; before,
/// rows are those of /proc/stat in order.
fn softnet(text: &str, stat: &str) -> BTreeMap<usize, Softnet> {
    let online: Vec<usize> = stat
        .lines()
        .filter_map(cpu_time)
        .map(|(cpu, _)| cpu)
        .collect();
    let row = |(at, line): (usize, &str)| {
        let columns: Vec<u64> = line
            .split_whitespace()
            .map_while(|word| u64::from_str_radix(word, 16).ok())
            .collect();
        let column = |at: usize| columns.get(at).copied();
        let cpu = column(12)
            .map(|cpu| cpu as usize)
            .or_else(|| online.get(at).copied())?;
        Some((
            cpu,
            Softnet {
                processed: column(0)?,
                dropped: column(1)?,
                squeezed: column(2)?,
                steered: column(9).unwrap_or(0),
            },
        ))
    };
    text.lines().enumerate().filter_map(row).collect()
}

fn softirqs(text: &str) -> BTreeMap<usize, (u64, u64)> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let cpus: Vec<usize> = header
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut rows: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for line in lines {
        if let Some((name, counts)) = line.split_once(':') {
            rows.insert(
                name.trim(),
                counts
                    .split_whitespace()
                    .filter_map(|word| word.parse().ok())
                    .collect(),
            );
        }
    }
    let count = |name: &str, at: usize| {
        rows.get(name)
            .and_then(|row| row.get(at))
            .copied()
            .unwrap_or(0)
    };
    let both = |(at, cpu): (usize, &usize)| (*cpu, (count("NET_RX", at), count("NET_TX", at)));
    cpus.iter().enumerate().map(both).collect()
}

/// Lines come in pairs: `Tcp: RtoMin RetransSegs` and `Tcp: 200 17`.
fn pairs(text: &str, into: &mut BTreeMap<String, u64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            // Some values are signed; those that are -1 count nothing.
            if let Ok(value) = value.parse() {
                into.insert(format!("{group}{name}"), value);
            }
        }
    }
}

/// Parses the UDP counters of /proc/net/snmp6, one per line: `Udp6RcvbufErrors   17`.
fn ipv6(text: &str, into: &mut BTreeMap<String, u64>) {
    for line in text.lines().filter(|line| line.starts_with("Udp6")) {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
            into.insert(name.to_owned(), value);
        }
    }
}

/// CPUs that took interrupts of a device, with how many, from the most to the least.
pub fn taken_by(interface: &Interface, interrupts: &[Interrupt]) -> CpuSet {
    // Channels have numbers of their own.
    let has_row =
        |irq: &&interface::Irq| !matches!(irq.file, Some(interface::AffinityFile::Channel(_)));
    let irqs = interface.irqs.iter().filter(has_row);
    let numbers: Vec<usize> = irqs.map(|irq| irq.number).collect();
    let rows = interrupts
        .iter()
        .filter(|row| numbers.contains(&row.number));
    rows.flat_map(|row| row.counts.iter().map(|(cpu, _)| *cpu))
        .collect()
}
