//! The machine for a prediction: from a short file, or from the facts that `tune` reads of a machine or a snapshot.

use std::path::Path;

use anyhow::Context;
use onrush_bench::predict::machine::{Driver, Interface, Queue};
use onrush_bench::predict::wire::{LinkRate, MTU_MAX, MTU_MIN};
use onrush_bench::predict::{Machine, read_machine};
use onrush_machine::cpus::CpuSet;
use onrush_tune::facts::{self, Facts};
use onrush_tune::tree::Tree;

/// Xen's drivers, which pass each packet through a hypervisor that copies it.
const PARAVIRTUAL: [&str; 2] = ["vif", "xen_netfront"];
/// MTU of an interface that reports none: Ethernet's.
const MTU_DEFAULT: u64 = 1_500;

/// Reads a machine from a hand-written file, a snapshot of `onrush tune`, or a root directory such as `/`.
pub(super) fn read(path: &Path) -> anyhow::Result<Machine> {
    if !path.is_dir() && !is_snapshot(path)? {
        return Ok(read_machine(path)?);
    }
    let facts = facts::read(&Tree::open(path)?, None)?;
    from_facts(&facts)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("{} has no machine to predict", path.display()))
}

/// Whether the file is a snapshot: JSON starts with a brace, which TOML never does.
fn is_snapshot(path: &Path) -> anyhow::Result<bool> {
    let text = onrush_file::read_text(path, onrush_tune::limits::SNAPSHOT_BYTES_MAX)
        .map_err(|error| anyhow::anyhow!("{} cannot be read: {error}", path.display()))?;
    Ok(text.trim_start().starts_with('{'))
}

fn from_facts(facts: &Facts) -> Result<Machine, String> {
    let nodes = facts
        .topology
        .nodes
        .iter()
        .map(|node| node.cpus.clone())
        .collect();
    let mut machine = Machine::of_nodes(nodes)?.with_application(facts.topology.allowed.clone())?;
    let in_use = facts
        .interfaces
        .iter()
        .filter(|interface| interface.is_device && interface.is_up());
    for interface in in_use {
        machine = machine.with_interface(interface_of(facts, interface))?;
    }
    Ok(machine)
}

fn interface_of(facts: &Facts, interface: &facts::Interface) -> Interface {
    let speed = interface.speed_mbps.filter(|mbps| *mbps > 0);
    let driver = interface.driver.as_deref();
    let receive = interface.receive.iter();
    Interface {
        name: interface.name.clone(),
        link: speed.and_then(|mbps| LinkRate::parse(&format!("{mbps}M")).ok()),
        mtu: interface
            .mtu
            .filter(|mtu| (MTU_MIN..=MTU_MAX).contains(mtu))
            .unwrap_or(MTU_DEFAULT),
        packets_max_each_way: None,
        driver: match driver.is_some_and(|driver| PARAVIRTUAL.contains(&driver)) {
            true => Driver::Paravirtual,
            false => Driver::Native,
        },
        queues: receive
            .filter_map(|queue| {
                let mask = CpuSet::parse_mask(queue.steering.as_deref().unwrap_or("0"));
                let online = |mask: CpuSet| mask.intersection(&facts.topology.online);
                Some(Queue {
                    irq_cpu: irq_cpu(facts, interface, queue.index)?,
                    steering: mask.map(online).unwrap_or_default(),
                })
            })
            .collect(),
    }
}

/// The CPU that receives the packets of a queue: the effective affinity of its interrupt, else the first allowed CPU.
fn irq_cpu(facts: &Facts, interface: &facts::Interface, queue: usize) -> Option<usize> {
    let first = |cpus: &CpuSet| cpus.intersection(&facts.topology.online).first();
    let goes = |irq: &facts::interface::Irq| {
        let effective = irq.effective.as_ref().and_then(first);
        effective.or_else(|| irq.affinity.as_ref().and_then(first))
    };
    interface
        .irqs_of(queue)
        .filter(|irq| irq.purpose != facts::Purpose::Transmit)
        .find_map(goes)
}
