//! Queues of an interface that can be placed, and CPUs of interrupts that are not moved. Pure.
//!
//! Queues that share an interrupt are placed together; queues with an unknown interrupt are not placed.

use std::cmp::Reverse;

use super::usable::UsableTopology;
use crate::facts::interface::Irq;
use crate::facts::{Facts, Interface};
use onrush_machine::cpus::CpuSet;

/// Number of receive queues. Drivers of mlx5 in Linux 5.3 to 6.0 list each queue twice.
pub(super) fn present(interface: &Interface) -> usize {
    let shown = interface.receive.len();
    let channels = interface.ethtool.as_ref().and_then(|said| said.channels);
    let combined = channels.and_then(|channels| channels.combined).unwrap_or(0) as usize;
    if interface.driver.as_deref() == Some("mlx5_core") && combined > 0 && shown == 2 * combined {
        return combined;
    }
    let named = interface
        .irqs
        .iter()
        .filter_map(|irq| irq.queue)
        .max()
        .map_or(0, |last| last + 1);
    if shown == 0 { named.max(1) } else { shown }
}

/// Queues to place of an interface that will have `queues` of them, grouped by interrupt.
pub(super) fn of(interface: &Interface, queues: usize) -> Vec<Vec<usize>> {
    // A virtual interface has no interrupts, and new queues have none yet.
    if !interface.is_device || queues != present(interface) {
        return (0..queues).map(|queue| vec![queue]).collect();
    }
    let mut vectors: Vec<(usize, Vec<usize>)> = Vec::new();
    for queue in 0..queues {
        let Some(irq) = interface
            .receive_irq(queue)
            .filter(|irq| irq.file.is_some())
        else {
            continue;
        };
        match vectors.iter_mut().find(|(number, _)| *number == irq.number) {
            Some((_, shared)) => shared.push(queue),
            None => vectors.push((irq.number, vec![queue])),
        }
    }
    vectors.into_iter().map(|(_, queues)| queues).collect()
}

/// Index of the interface that each one follows: its queues use the same CPUs. Ports of MANA share an interrupt for
/// queues of the same index, and follow the port with the most queues. Other interfaces follow themselves.
pub(super) fn leaders(interfaces: &[&Interface], counts: &[usize]) -> Vec<usize> {
    let shares = |one: &Interface, other: &Interface| {
        let mut of_queues = one.irqs.iter().filter(|irq| irq.queue.is_some());
        let is_shared = |irq: &Irq| other.irqs.iter().any(|known| known.number == irq.number);
        one.device.is_some() && one.device == other.device && of_queues.any(is_shared)
    };
    let leader = |at: usize| {
        let group =
            (0..interfaces.len()).filter(|other| shares(interfaces[at], interfaces[*other]));
        let first = group.max_by_key(|other| (counts[*other], Reverse(*other)));
        first.unwrap_or(at)
    };
    (0..interfaces.len()).map(leader).collect()
}

/// Whether all current queues of an interface can be placed.
pub(super) fn are_known(interface: &Interface) -> bool {
    let queues = present(interface);
    let known: usize = of(interface, queues).iter().map(Vec::len).sum();
    known == queues
}

/// CPUs of the interrupts of these interfaces that no plan moves.
pub(super) fn unmoved(interfaces: &[&Interface]) -> CpuSet {
    let all = interfaces.iter();
    all.fold(CpuSet::new(), |all, interface| {
        all.union(&interface.unclear_cpus)
    })
}

/// Cores available to a plan besides unmoved interrupts.
pub(super) enum AvailableCores {
    /// These cores, without the cores of unmoved interrupts.
    Apart(UsableTopology),
    /// All cores: unmoved interrupts go to more than half of them, so that the application shares them anyway.
    Among(UsableTopology),
}

/// Sets the cores of unmoved interrupts aside if they are few.
pub(super) fn beside(facts: &Facts, interfaces: &[&Interface]) -> AvailableCores {
    let topology = &facts.topology;
    let all = UsableTopology::of(topology, &CpuSet::new());
    let taken = topology.with_siblings(&unmoved(interfaces));
    let is_left = |cpu: usize| !taken.contains(cpu);
    let is_few = |fast: fn(&UsableTopology) -> Vec<usize>| {
        let cpus = fast(&all);
        cpus.iter().filter(|cpu| is_left(**cpu)).count() * 2 >= cpus.len()
    };
    match is_few(UsableTopology::core_cpus) && is_few(UsableTopology::fast_cpus) {
        true => AvailableCores::Apart(UsableTopology::of(topology, &taken)),
        false => AvailableCores::Among(all),
    }
}

impl AvailableCores {
    pub(super) fn usable(&self) -> &UsableTopology {
        match self {
            AvailableCores::Apart(usable) | AvailableCores::Among(usable) => usable,
        }
    }
}
