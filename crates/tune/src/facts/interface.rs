//! Network interfaces: device, node, queues, interrupts, masks, counters, and lower devices of bonds and VLANs.

mod channel;
mod irq;
mod read;
mod vector;

use serde::Serialize;

use super::ethtool::Ethtool;
use super::interrupt::Purpose;
use super::qdisc::Qdisc;
use onrush_machine::cpus::CpuSet;

pub(crate) use self::read::{counters, read};

const NET: &str = "/sys/class/net";

/// A network interface.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Interface {
    /// Name, e.g. `eth0`.
    pub name: String,
    /// Driver; `None` for virtual interfaces.
    pub driver: Option<String>,
    /// Number in the network namespace (`ifindex`); unchanged by renaming.
    pub index: Option<u32>,
    /// Bus address of the device: `0000:81:00.0`, `virtio0`.
    pub device: Option<String>,
    /// Port of the device (`dev_port`).
    pub port: Option<u32>,
    /// Physical function, if this is a virtual function.
    pub physical_function: Option<String>,
    /// Whether it is a device, not built on other interfaces. The representor of a virtual function is not one,
    /// although it has its parent's device: its packets arrive by the parent's interrupts.
    pub is_device: bool,
    /// Link state: `up`, `down`, `unknown` …
    pub state: Option<String>,
    /// Link speed in megabits per second, if reported.
    pub speed_mbps: Option<u64>,
    /// NUMA node of the device; `None` if unknown, which firmware and clouds report as -1.
    pub node: Option<usize>,
    /// Lower interfaces: the members of a bond, the device of a VLAN.
    pub lower: Vec<String>,
    /// Receive queues by index.
    pub receive: Vec<ReceiveQueue>,
    /// Transmit queues by index.
    pub transmit: Vec<TransmitQueue>,
    /// Interrupts of the device by queue, those without a queue last.
    pub irqs: Vec<Irq>,
    /// Why some interrupts of the device cannot be assigned to an interface or queue.
    pub irqs_unclear: Option<UnassignedReason>,
    /// CPUs of packet interrupts with an unknown queue.
    pub unclear_cpus: CpuSet,
    /// Driver settings; `None` if they were not read.
    pub ethtool: Option<Ethtool>,
    /// Nanoseconds that GRO may hold packets (`gro_flush_timeout`).
    pub gro_flush_timeout: Option<u64>,
    /// Empty polls before interrupts are enabled again (`napi_defer_hard_irqs`).
    pub napi_defer_hard_irqs: Option<u64>,
    /// Queueing disciplines; `None` if unknown.
    pub qdisc: Option<Qdisc>,
    /// MTU.
    pub mtu: Option<u64>,
    /// PCIe link, if it is slower than the device supports: `x4 of x8`.
    pub slot_downgrade: Option<String>,
}

/// A receive queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReceiveQueue {
    /// Index of the queue.
    pub index: usize,
    /// RPS mask (`rps_cpus`) in the kernel's spelling; `None` if it cannot be read.
    pub steering: Option<String>,
    /// Entries of the RFS flow table (`rps_flow_cnt`).
    pub flows: Option<u64>,
}

/// A transmit queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TransmitQueue {
    /// Index of the queue.
    pub index: usize,
    /// XPS mask (`xps_cpus`) in the kernel's spelling; `None` if there is only one queue.
    pub senders: Option<String>,
}

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Irq {
    /// Current number.
    pub number: usize,
    /// Name in /proc/interrupts; empty if unknown.
    pub name: String,
    /// Purpose.
    pub purpose: Purpose,
    /// Queue it serves, the first of several; `None` for control, or if unknown.
    pub queue: Option<usize>,
    /// Number of queues it serves, from `queue` on.
    pub queues: usize,
    /// Allowed CPUs.
    pub affinity: Option<CpuSet>,
    /// CPU to which it is delivered.
    pub effective: Option<CpuSet>,
    /// File that sets its CPUs, if any.
    pub file: Option<AffinityFile>,
}

/// Why interrupts cannot be assigned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum UnassignedReason {
    /// Other interfaces have the same device, and the names do not distinguish them.
    Shared(Vec<String>),
    /// Several claim the same queue in the same direction.
    Twice,
    /// Packets arrive by portals of the processor (`dpio.N`), one per CPU, shared by all interfaces.
    Portals,
}

/// File that sets the CPUs of an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum AffinityFile {
    /// `smp_affinity_list` and its contents.
    List(String),
    /// `smp_affinity` and its contents.
    Mask(String),
    /// `channels/N/cpu` of the device and its contents: the CPU of a VMBus channel.
    Channel(String),
}

impl Interface {
    /// Whether packets can be received; an unknown state counts as up.
    pub fn is_up(&self) -> bool {
        !matches!(
            self.state.as_deref(),
            Some("down" | "notpresent" | "lowerlayerdown")
        )
    }

    /// Interrupts of a queue in either direction.
    pub fn irqs_of(&self, queue: usize) -> impl Iterator<Item = &Irq> {
        self.irqs.iter().filter(move |irq| irq.serves(queue))
    }

    /// Receive interrupt of a queue.
    pub fn receive_irq(&self, queue: usize) -> Option<&Irq> {
        self.irqs_of(queue)
            .find(|irq| matches!(irq.purpose, Purpose::Both | Purpose::Receive))
    }
}

impl Irq {
    /// Whether it serves a queue.
    pub fn serves(&self, queue: usize) -> bool {
        let first = self.queue.filter(|first| *first <= queue);
        first.is_some_and(|first| queue - first < self.queues)
    }

    /// Whether it is in /proc/irq; channels are not.
    pub fn is_numbered(&self) -> bool {
        matches!(
            self.file,
            Some(AffinityFile::List(_) | AffinityFile::Mask(_))
        )
    }

    /// CPUs of the interrupt: the effective ones, else the allowed ones.
    pub fn cpus(&self) -> CpuSet {
        let effective = self.effective.as_ref().filter(|cpus| !cpus.is_empty());
        effective
            .or(self.affinity.as_ref())
            .cloned()
            .unwrap_or_default()
    }

    /// Path of the file that sets its CPUs.
    pub fn path(&self, interface: &str) -> Option<String> {
        let number = self.number;
        Some(match self.file.as_ref()? {
            AffinityFile::List(_) => format!("/proc/irq/{number}/smp_affinity_list"),
            AffinityFile::Mask(_) => format!("/proc/irq/{number}/smp_affinity"),
            AffinityFile::Channel(_) => {
                format!("{NET}/{interface}/device/channels/{number}/cpu")
            }
        })
    }
}

/// Limit of the cloud provider that a counter of AWS ENA belongs to; `None` for other counters.
pub fn allowance(counter: &str) -> Option<&'static str> {
    Some(match counter.strip_suffix("_allowance_exceeded")? {
        "pps" => "packet-rate allowance",
        "bw_in" => "inbound bandwidth allowance",
        "bw_out" => "outbound bandwidth allowance",
        "conntrack" => "connection-tracking allowance",
        "linklocal" => "allowance for the provider's name, time and metadata services",
        _ => "allowance",
    })
}
