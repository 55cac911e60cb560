//! Which queues of an interface can be placed, and where the interrupts are that stay where they are. Pure.
//!
//! A queue is placed together with those that have the same interrupt. One whose interrupt is not known is not placed:
//! nothing would move there.

use super::usable::UsableTopology;
use crate::cpus::CpuSet;
use crate::facts::{Facts, Interface};

/// Receive queues there are. Drivers of mlx5 in Linux 5.3 to 6.0 show each twice.
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

/// The queues to be placed of an interface that is to have so many, by interrupt.
pub(super) fn of(interface: &Interface, queues: usize) -> Vec<Vec<usize>> {
    // Packets of a virtual interface come without interrupts, and those of queues that are to be made are not there yet.
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

/// Whether each queue that an interface has can be placed.
pub(super) fn are_known(interface: &Interface) -> bool {
    let queues = present(interface);
    let known: usize = of(interface, queues).iter().map(Vec::len).sum();
    known == queues
}

/// CPUs that interrupts of these interfaces go to and that no plan moves.
pub(super) fn unmoved(interfaces: &[&Interface]) -> CpuSet {
    let all = interfaces.iter();
    all.fold(CpuSet::new(), |all, interface| {
        all.union(&interface.unclear_cpus)
    })
}

/// What is left for a plan beside interrupts that stay where they are.
pub(super) enum Beside {
    /// These cores, and the CPUs of such interrupts are none of them.
    Apart(UsableTopology),
    /// All cores: such interrupts go to more than half of them, so that the application shares them anyway.
    Among(UsableTopology),
}

/// Sets the cores of interrupts aside that no plan moves, when these are few.
pub(super) fn beside(facts: &Facts, interfaces: &[&Interface]) -> Beside {
    let topology = &facts.topology;
    let all = UsableTopology::of(topology, &CpuSet::new());
    let taken = topology.with_siblings(&unmoved(interfaces));
    let is_left = |cpu: usize| !taken.contains(cpu);
    let is_few = |fast: fn(&UsableTopology) -> Vec<usize>| {
        let cpus = fast(&all);
        cpus.iter().filter(|cpu| is_left(**cpu)).count() * 2 >= cpus.len()
    };
    match is_few(UsableTopology::core_cpus) && is_few(UsableTopology::fast_cpus) {
        true => Beside::Apart(UsableTopology::of(topology, &taken)),
        false => Beside::Among(all),
    }
}

impl Beside {
    pub(super) fn usable(&self) -> &UsableTopology {
        match self {
            Beside::Apart(usable) | Beside::Among(usable) => usable,
        }
    }
}
