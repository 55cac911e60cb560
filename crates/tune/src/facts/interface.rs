//! Network interfaces: device, node, queues, interrupts, masks, counters, and what bonds and VLANs stand on.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ethtool::{self, Ethtool};
use super::interrupt::{Interrupt, Purpose, is_block, is_vector, meaning};
use super::qdisc::{self, Qdisc};
use crate::cpus::CpuSet;
use crate::limits::{INTERFACES_MAX, QUEUES_MAX};
use crate::tree::Tree;

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
    /// Whether it is a device of its own rather than something built on others.
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
    /// The queue it serves; none for control, or when its name does not say.
    pub queue: Option<usize>,
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
}

/// How an interrupt is moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum AffinityFile {
    /// `smp_affinity_list`, and what it says.
    List(String),
    /// `smp_affinity`, and what it says.
    Mask(String),
}

impl Interface {
    /// Whether packets can come in: a link that is down has none. What does not say is taken to be up.
    pub fn is_up(&self) -> bool {
        !matches!(
            self.state.as_deref(),
            Some("down" | "notpresent" | "lowerlayerdown")
        )
    }

    /// The interrupts that bring packets of a receive queue.
    pub fn irqs_of(&self, queue: usize) -> impl Iterator<Item = &Irq> {
        self.irqs.iter().filter(move |irq| irq.queue == Some(queue))
    }
}

/// Reads all interfaces, by name.
pub(crate) fn read(tree: &Tree, interrupts: &[Interrupt]) -> Vec<Interface> {
    let by_number: BTreeMap<usize, &Interrupt> =
        interrupts.iter().map(|row| (row.number, row)).collect();
    let names = tree
        .names(NET)
        .into_iter()
        .filter(|name| name != "lo" && name != "bonding_masters");
    let qdiscs = tree.qdiscs(qdisc::ask).unwrap_or_default();
    let interface = |name: String| {
        let qdisc = qdiscs.get(&name).cloned();
        Some(Interface {
            qdisc,
            ..interface(tree, name)?
        })
    };
    let mut interfaces: Vec<Interface> = names.take(INTERFACES_MAX).filter_map(interface).collect();
    assign(tree, &mut interfaces, &by_number);
    interfaces
}

/// Gives interfaces the interrupts of their devices. The ports of one device (Chelsio, MANA), and the interfaces that
/// stand for those of virtual machines (mlx5), have one table of interrupts between them; of that each gets those that
/// have its name, and none when there are no names.
fn assign(tree: &Tree, interfaces: &mut [Interface], interrupts: &BTreeMap<usize, &Interrupt>) {
    let numbers: Vec<BTreeSet<usize>> = interfaces
        .iter()
        .map(|interface| match interface.is_device {
            true => numbers(tree, &interface.name, interrupts),
            false => BTreeSet::new(),
        })
        .collect();
    let mut claims: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (interface, numbers) in interfaces.iter().zip(&numbers) {
        for number in numbers {
            claims
                .entry(*number)
                .or_default()
                .push(interface.name.clone());
        }
    }
    for (interface, numbers) in interfaces.iter_mut().zip(&numbers) {
        let mut irqs = Vec::new();
        for number in numbers {
            let found = irq(tree, *number, &interface.name, interrupts);
            match owner(&found.name, &claims[number]) {
                Some(owner) if owner == interface.name => irqs.push(found),
                Some(_) => {}
                None => unshared(interface, &claims[number]),
            }
        }
        if let ([only], 1) = (&mut irqs[..], numbers.len()) {
            // A device with one interrupt receives by it, whatever it is called.
            (only.purpose, only.queue) = (Purpose::Both, Some(0));
        }
        halve_blocks(&mut irqs);
        count_vectors(&mut irqs);
        if drop_twins(&mut irqs) {
            interface.irqs_unclear.get_or_insert(Unclear::Twice);
        }
        irqs.sort_by_key(|irq| (irq.queue.unwrap_or(usize::MAX), irq.purpose, irq.number));
        interface.irqs = irqs;
    }
}

fn unshared(interface: &mut Interface, claimants: &[String]) {
    let others = claimants.iter().filter(|name| **name != interface.name);
    interface.irqs_unclear = Some(Unclear::Shared(others.cloned().collect()));
}

/// Whose an interrupt is, of those in whose tables it stands: the only one, or the one whose name it has.
fn owner<'name>(irq: &str, claimants: &'name [String]) -> Option<&'name str> {
    if let [only] = claimants {
        // Of a renamed interface it may have the old name, which may be another's now.
        return Some(only);
    }
    let mut named = claimants.iter().filter(|name| has_word(irq, name));
    named
        .next()
        .filter(|_| named.next().is_none())
        .map(String::as_str)
}

/// gVNIC calls its interrupts blocks: transmit queues have the first half of them, receive queues the second
/// (gve.h: `gve_tx_idx_to_ntfy`, `gve_rx_idx_to_ntfy`).
fn halve_blocks(irqs: &mut [Irq]) {
    let is_block = |irq: &&mut Irq| is_block(&irq.name);
    let half = irqs.iter_mut().filter(is_block).count() / 2;
    for irq in irqs.iter_mut().filter(is_block) {
        (irq.purpose, irq.queue) = match irq.queue {
            Some(block) if block >= half => (Purpose::Receive, Some(block - half)),
            transmit => (Purpose::Transmit, transmit),
        };
    }
}

/// mlx4 numbers its vectors from 1, after the one for events, and older drivers from 0: the first is that of queue 0.
fn count_vectors(irqs: &mut [Irq]) {
    let is_vector = |irq: &&mut Irq| is_vector(&irq.name);
    let first = irqs
        .iter_mut()
        .filter(is_vector)
        .filter_map(|irq| irq.queue)
        .min();
    for irq in irqs.iter_mut().filter(is_vector) {
        irq.queue = irq.queue.zip(first).map(|(vector, first)| vector - first);
    }
}

/// Interrupts that say the same of themselves are of no queue: nothing tells which of them is. Whether there were any.
fn drop_twins(irqs: &mut [Irq]) -> bool {
    let mut seen: BTreeMap<(usize, Purpose), usize> = BTreeMap::new();
    let place = |irq: &Irq| irq.queue.map(|queue| (queue, irq.purpose));
    for place in irqs.iter().filter_map(place) {
        *seen.entry(place).or_default() += 1;
    }
    let mut has_twins = false;
    for irq in irqs {
        if place(irq).is_some_and(|place| seen[&place] > 1) {
            (irq.queue, has_twins) = (None, true);
        }
    }
    has_twins
}

/// `None` for a name that leads to nothing, as in a recording that left virtual interfaces out.
fn interface(tree: &Tree, name: String) -> Option<Interface> {
    let path = format!("{NET}/{name}");
    let entries = tree.names(&path);
    if entries.is_empty() {
        return None;
    }
    let is_device = entries.iter().any(|entry| entry == "device");
    let node: Option<i64> = tree
        .value(&format!("{path}/device/numa_node"))
        .or_else(|| tree.value(&format!("{path}/device/../numa_node")));
    let lower = entries
        .iter()
        .filter_map(|entry| entry.strip_prefix("lower_"))
        .map(str::to_owned)
        .collect();
    let number = |file: &str| {
        tree.text(&format!("{path}/{file}"))
            .and_then(|text| text.trim().parse().ok())
    };
    Some(Interface {
        driver: tree.link(&format!("{path}/device/driver")),
        index: tree.value(&format!("{path}/ifindex")),
        device: tree.link(&format!("{path}/device")),
        port: tree.value(&format!("{path}/dev_port")),
        physical_function: tree.link(&format!("{path}/device/physfn")),
        is_device,
        state: tree.text(&format!("{path}/operstate")),
        speed_mbps: number("speed"),
        node: node.and_then(|node| usize::try_from(node).ok()),
        lower,
        receive: receive_queues(tree, &path),
        transmit: transmit_queues(tree, &path),
        irqs: Vec::new(),
        irqs_unclear: None,
        ethtool: tree.ethtool(&name, ethtool::ask),
        gro_flush_timeout: number("gro_flush_timeout"),
        napi_defer_hard_irqs: number("napi_defer_hard_irqs"),
        qdisc: None,
        mtu: number("mtu"),
        slot_downgrade: slot_downgrade(tree, &format!("{path}/device")),
        name,
    })
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

/// The counters of every interface but the loopback: the kernel's, and those its driver has besides.
pub(super) fn counters(tree: &Tree) -> BTreeMap<String, BTreeMap<String, u64>> {
    let names = tree.names(NET).into_iter().filter(|name| name != "lo");
    let of = |name: String| {
        let path = format!("{NET}/{name}/statistics");
        let files = tree.names(&path).into_iter();
        let counters = files.filter_map(|file| {
            let count = tree.text(&format!("{path}/{file}"))?.trim().parse().ok()?;
            Some((file, count))
        });
        let mut all = tree.driver_counters(&name);
        // A name that both have is the kernel's: it means the same for all drivers.
        all.extend(counters);
        (name, all)
    };
    names.take(INTERFACES_MAX).map(of).collect()
}

fn receive_queues(tree: &Tree, path: &str) -> Vec<ReceiveQueue> {
    let indexes = tree
        .numbers(&format!("{path}/queues"), "rx-")
        .into_iter()
        .take(QUEUES_MAX);
    let queue = |index| ReceiveQueue {
        index,
        steering: tree.text(&format!("{path}/queues/rx-{index}/rps_cpus")),
        flows: tree.value(&format!("{path}/queues/rx-{index}/rps_flow_cnt")),
    };
    indexes.map(queue).collect()
}

fn transmit_queues(tree: &Tree, path: &str) -> Vec<TransmitQueue> {
    let indexes = tree
        .numbers(&format!("{path}/queues"), "tx-")
        .into_iter()
        .take(QUEUES_MAX);
    let queue = |index| TransmitQueue {
        index,
        senders: tree.text(&format!("{path}/queues/tx-{index}/xps_cpus")),
    };
    indexes.map(queue).collect()
}

/// The interrupts of a device: those of its message-signalled table, of its single line, or with its name.
fn numbers(tree: &Tree, name: &str, interrupts: &BTreeMap<usize, &Interrupt>) -> BTreeSet<usize> {
    let path = format!("{NET}/{name}");
    let device = format!("{path}/device");
    let table = tree.numbers(&format!("{device}/msi_irqs"), "");
    if !table.is_empty() {
        return table.into_iter().collect();
    }
    let named = named_after(tree, &path, name, interrupts);
    if !named.is_empty() {
        return named;
    }
    let line = tree.value::<usize>(&format!("{device}/irq"));
    line.into_iter().filter(|number| *number > 0).collect()
}

/// Interrupts whose name has the interface's or the device's: `virtio2-input.0`, `mlx5_comp0@pci:0000:81:00.0`.
fn named_after(
    tree: &Tree,
    path: &str,
    name: &str,
    interrupts: &BTreeMap<usize, &Interrupt>,
) -> BTreeSet<usize> {
    let device = tree.link(&format!("{path}/device"));
    let names = [
        Some(name),
        device
            .as_deref()
            .filter(|device| device.starts_with("virtio") || device.contains(':')),
    ];
    let named = interrupts
        .values()
        .filter(|row| names.iter().flatten().any(|name| has_word(&row.name, name)));
    named.map(|row| row.number).collect()
}

/// Whether a name has another in it, not as a piece of a longer one.
fn has_word(text: &str, part: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    text.match_indices(part).any(|(at, _)| {
        !text[..at].ends_with(is_word) && !text[at + part.len()..].starts_with(is_word)
    })
}

fn irq(
    tree: &Tree,
    number: usize,
    interface: &str,
    interrupts: &BTreeMap<usize, &Interrupt>,
) -> Irq {
    let path = format!("/proc/irq/{number}");
    let name = match interrupts.get(&number) {
        Some(row) => row.name.clone(),
        // Each handler has a directory of its name here.
        None => tree
            .names(&path)
            .into_iter()
            .find(|entry| is_handler(entry))
            .unwrap_or_default(),
    };
    let (purpose, queue) = meaning(&name, interface);
    let list = tree.text(&format!("{path}/smp_affinity_list"));
    let file = match list {
        Some(text) => Some(AffinityFile::List(text)),
        None => tree
            .text(&format!("{path}/smp_affinity"))
            .map(AffinityFile::Mask),
    };
    Irq {
        number,
        purpose,
        queue,
        affinity: file.as_ref().and_then(|file| match file {
            AffinityFile::List(text) => CpuSet::parse_list(text),
            AffinityFile::Mask(text) => CpuSet::parse_mask(text),
        }),
        effective: tree
            .text(&format!("{path}/effective_affinity_list"))
            .and_then(|text| CpuSet::parse_list(&text)),
        file,
        name,
    }
}

fn is_handler(entry: &str) -> bool {
    const FILES: [&str; 8] = [
        "smp_affinity",
        "smp_affinity_list",
        "effective_affinity",
        "effective_affinity_list",
        "affinity_hint",
        "node",
        "spurious",
        "actions",
    ];
    !FILES.contains(&entry)
}

fn slot_downgrade(tree: &Tree, device: &str) -> Option<String> {
    let pair = |what: &str| {
        let now = tree.text(&format!("{device}/current_link_{what}"))?;
        let most = tree.text(&format!("{device}/max_link_{what}"))?;
        (now != most && now != "Unknown" && now != "0").then(|| format!("{now} of {most}"))
    };
    let found: Vec<String> = ["width", "speed"].into_iter().filter_map(pair).collect();
    (!found.is_empty()).then(|| found.join(", "))
}
