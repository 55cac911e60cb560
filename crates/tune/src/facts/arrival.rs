//! CPUs that process received packets: the targets of receive interrupts, or of packet steering.

use super::interface::{self, Interface, ReceiveQueue};
use super::interrupt::{self, Purpose};
use super::topology;
use crate::tree::Tree;
use onrush_machine::cpus::CpuSet;

/// CPUs that process received packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Online CPUs. On the loopback interface the sender's CPU processes the packet.
    pub online: CpuSet,
    /// CPUs for packets from the network, or why they are unknown.
    pub network: Result<CpuSet, String>,
}

/// Reads only the necessary files.
pub fn read(tree: &Tree) -> Arrival {
    let interfaces = interface::read(tree, &interrupt::read(tree));
    Arrival {
        online: topology::read(tree, None).online,
        network: of(&interfaces),
    }
}

/// CPUs that process packets of these interfaces, if up. The loopback must not be included.
pub fn of(interfaces: &[Interface]) -> Result<CpuSet, String> {
    let mut all = CpuSet::new();
    for interface in interfaces.iter().filter(|interface| interface.is_up()) {
        all = all.union(&of_one(interface)?);
    }
    match all.is_empty() {
        true => Err("no interface that is up receives packets".to_owned()),
        false => Ok(all),
    }
}

fn of_one(interface: &Interface) -> Result<CpuSet, String> {
    let mut all = CpuSet::new();
    // Packets of a bond or VLAN arrive at its lower devices, and packets of a representor at its parent.
    let stands_on_others = !interface.lower.is_empty() || interface.device.is_some();
    if !interface.is_device && stands_on_others {
        return Ok(all);
    }
    if interface.irqs_unclear.is_some() || interface.receive.is_empty() {
        return Err(unknown(interface));
    }
    for queue in &interface.receive {
        match of_queue(interface, queue) {
            Some(cpus) => all = all.union(&cpus),
            None => return Err(unknown(interface)),
        }
    }
    Ok(all)
}

pub(crate) fn unknown(interface: &Interface) -> String {
    format!(
        "the CPUs that receive packets of {} are not known",
        interface.name
    )
}

fn of_queue(interface: &Interface, queue: &ReceiveQueue) -> Option<CpuSet> {
    let steering = queue.steering.as_deref().and_then(CpuSet::parse_mask);
    if let Some(steering) = steering.filter(|cpus| !cpus.is_empty()) {
        return Some(steering);
    }
    let mut all = CpuSet::new();
    for irq in interface.irqs_of(queue.index) {
        if matches!(irq.purpose, Purpose::Both | Purpose::Receive) {
            let effective = irq.effective.as_ref().filter(|cpus| !cpus.is_empty());
            all = all.union(effective.or(irq.affinity.as_ref())?);
        }
    }
    (!all.is_empty()).then_some(all)
}
