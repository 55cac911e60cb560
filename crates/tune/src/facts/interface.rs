//! Network interfaces: device, node, queues, interrupts, masks, counters, and what bonds and VLANs stand on.

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
    /// `eth0`.
    pub name: String,
    /// The driver of its device; none for virtual ones.
    pub driver: Option<String>,
    /// Its number in its network namespace (`ifindex`), which it keeps when it is renamed.
    pub index: Option<u32>,
    /// Where its device is: `0000:81:00.0`, `virtio0`.
    pub device: Option<String>,
    /// Which port of its device it is (`dev_port`).
    pub port: Option<u32>,
    /// The device that it is a virtual function of; none when it is none.
    pub physical_function: Option<String>,
    /// Whether it is a device of its own, not built on others. The representor of a virtual function is not, although it has the
    /// device of its parent: its packets come by the parent's interrupts.
    pub is_device: bool,
    /// What the kernel says of its link: `up`, `down`, `unknown` …
    pub state: Option<String>,
    /// Megabits per second; none when it does not say.
    pub speed_mbps: Option<u64>,
    /// The node its device is attached to; `None` is unknown, which firmware and clouds spell -1.
    pub node: Option<usize>,
    /// Interfaces it stands on: the members of a bond, the device of a VLAN.
    pub lower: Vec<String>,
    /// Queues for received packets, by index.
    pub receive: Vec<ReceiveQueue>,
    /// Queues for packets to be sent, by index.
    pub transmit: Vec<TransmitQueue>,
    /// Interrupts of its device, by queue, those that serve none last.
    pub irqs: Vec<Irq>,
    /// Why some interrupts of its device are nobody's, or of no queue.
    pub irqs_unclear: Option<Unclear>,
    /// CPUs of interrupts that may bring its packets, but whose queue is unknown.
    pub unclear_cpus: CpuSet,
    /// What the driver says; none when it was not asked.
    pub ethtool: Option<Ethtool>,
    /// Nanoseconds that packets may wait for company after an interrupt.
    pub gro_flush_timeout: Option<u64>,
    /// How many empty polls come before interrupts are on again.
    pub napi_defer_hard_irqs: Option<u64>,
    /// In what order packets wait to be sent; none when it cannot be asked.
    pub qdisc: Option<Qdisc>,
    /// The largest packet.
    pub mtu: Option<u64>,
    /// Width and rate of the slot, where it has less than the device can use: `x4 of x8`.
    pub slot_downgrade: Option<String>,
}

/// A queue for received packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReceiveQueue {
    /// Its index.
    pub index: usize,
    /// CPUs that packets are handed to (`rps_cpus`), as the kernel spells it; none when it cannot be read.
    pub steering: Option<String>,
    /// Entries of its flow table (`rps_flow_cnt`).
    pub flows: Option<u64>,
}

/// A queue for packets to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TransmitQueue {
    /// Its index.
    pub index: usize,
    /// CPUs that send through it (`xps_cpus`), as the kernel spells it; none when there is only one queue.
    pub senders: Option<String>,
}

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Irq {
    /// The number it has now.
    pub number: usize,
    /// Its name in /proc/interrupts; empty when there is none.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// The queue it serves, the first one of several; `None` for control, or if its name does not show it.
    pub queue: Option<usize>,
    /// Number of queues it serves, from `queue` on.
    pub queues: usize,
    /// CPUs it may go to.
    pub affinity: Option<CpuSet>,
    /// The CPU it does go to.
    pub effective: Option<CpuSet>,
    /// The file that takes its CPUs, and whether that is spelt as a list or a mask; none when there is no such file.
    pub file: Option<AffinityFile>,
}

/// Why it is not clear whose an interrupt is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Unclear {
    /// The device is that of other interfaces, too, and names do not tell.
    Shared(Vec<String>),
    /// Several say that they serve one queue in one direction.
    Twice,
    /// Packets come by the portals of the processor (`dpio.N`), one per CPU, which all interfaces share.
    Portals,
}

/// How an interrupt is moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum AffinityFile {
    /// `smp_affinity_list`, and what it says.
    List(String),
    /// `smp_affinity`, and what it says.
    Mask(String),
    /// `channels/N/cpu` of the device, and its content: a channel of the Hyper-V bus takes the number of one CPU.
    Channel(String),
}

impl Interface {
    /// Whether packets can come in: a link that is down has none. What does not say is taken to be up.
    pub fn is_up(&self) -> bool {
        !matches!(
            self.state.as_deref(),
            Some("down" | "notpresent" | "lowerlayerdown")
        )
    }

    /// The interrupts of a queue, in either direction.
    pub fn irqs_of(&self, queue: usize) -> impl Iterator<Item = &Irq> {
        self.irqs.iter().filter(move |irq| irq.serves(queue))
    }

    /// The interrupt that announces received packets of a queue.
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

    /// Whether it has a number in /proc/irq; channels do not.
    pub fn is_numbered(&self) -> bool {
        matches!(
            self.file,
            Some(AffinityFile::List(_) | AffinityFile::Mask(_))
        )
    }

    /// The CPUs it goes to: the effective ones, or else the allowed ones.
    pub fn cpus(&self) -> CpuSet {
        let effective = self.effective.as_ref().filter(|cpus| !cpus.is_empty());
        effective
            .or(self.affinity.as_ref())
            .cloned()
            .unwrap_or_default()
    }

    /// Path of the file with its CPUs.
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

/// What a provider limits, by the counter of packets it held back for that (AWS ENA); none for any other counter.
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
