//! Reads interfaces from /sys/class/net.

use std::collections::BTreeMap;

use super::irq::assign;
use super::{Interface, NET, ReceiveQueue, TransmitQueue};
use crate::facts::ethtool;
use crate::facts::interrupt::Interrupt;
use crate::facts::qdisc;
use crate::limits::{INTERFACES_MAX, QUEUES_MAX};
use crate::tree::Tree;
use onrush_machine::cpus::CpuSet;

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

/// `None` for a dangling name, as in a recording without virtual interfaces.
fn interface(tree: &Tree, name: String) -> Option<Interface> {
    let path = format!("{NET}/{name}");
    let entries = tree.names(&path);
    if entries.is_empty() {
        return None;
    }
    let is_device = entries.iter().any(|entry| entry == "device") && !is_representor(tree, &path);
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
        unclear_cpus: CpuSet::new(),
        ethtool: tree.ethtool(&name, ethtool::ask),
        gro_flush_timeout: number("gro_flush_timeout"),
        napi_defer_hard_irqs: number("napi_defer_hard_irqs"),
        qdisc: None,
        mtu: number("mtu"),
        slot_downgrade: slot_downgrade(tree, &format!("{path}/device")),
        name,
    })
}

/// Whether an interface represents a function connected to the device's switch, by its port name `pf0vf3` or
/// `c1pf0sf88` (devlink_port_phys_port_name_get in net/devlink/port.c). The physical port is `p0`.
fn is_representor(tree: &Tree, path: &str) -> bool {
    let name = tree.text(&format!("{path}/phys_port_name"));
    name.is_some_and(|name| {
        let controller = name.strip_prefix('c');
        let name = controller.map_or(&name[..], |rest| {
            rest.trim_start_matches(|letter: char| letter.is_ascii_digit())
        });
        let function = name.strip_prefix("pf");
        function.is_some_and(|number| number.starts_with(|letter: char| letter.is_ascii_digit()))
    })
}

/// Counters of every interface except the loopback: the kernel's and the driver's.
pub(crate) fn counters(tree: &Tree) -> BTreeMap<String, BTreeMap<String, u64>> {
    let names = tree.names(NET).into_iter().filter(|name| name != "lo");
    let of = |name: String| {
        let path = format!("{NET}/{name}/statistics");
        let files = tree.names(&path).into_iter();
        let counters = files.filter_map(|file| {
            let count = tree.text(&format!("{path}/{file}"))?.trim().parse().ok()?;
            Some((file, count))
        });
        let mut all = tree.driver_counters(&name);
        // The kernel's counters take precedence: they have the same meaning for all drivers.
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

fn slot_downgrade(tree: &Tree, device: &str) -> Option<String> {
    let pair = |what: &str| {
        let now = tree.text(&format!("{device}/current_link_{what}"))?;
        let most = tree.text(&format!("{device}/max_link_{what}"))?;
        (now != most && now != "Unknown" && now != "0").then(|| format!("{now} of {most}"))
    };
    let found: Vec<String> = ["width", "speed"].into_iter().filter_map(pair).collect();
    (!found.is_empty()).then(|| found.join(", "))
}
