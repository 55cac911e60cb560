//! Usable cores by node, and the NUMA nodes of an interface's queues. Pure.

use std::cmp::Reverse;
use std::ops::Range;

use crate::facts::topology::Core;
use crate::facts::{Facts, Interface, Topology};
use onrush_machine::cpus::CpuSet;

/// With fewer cores, none are set aside.
pub(super) const CORES_MIN: usize = 4;

/// Cores below this percentage of the fastest are slow. Firmware and schedulers distinguish cores of the same kind by a
/// few percent (favoured cores), which must be ignored.
const FAST_PERCENT: usize = 90;

/// Usable cores by node, each with the CPU to use.
pub(super) struct UsableTopology {
    pub(super) nodes: Vec<UsableNode>,
    /// Whether the application also has CPUs that were isolated at boot.
    pub(super) has_isolated: bool,
}

pub(super) struct UsableNode {
    pub(super) at: usize,
    /// Kernel's number; `None` for CPUs in no node.
    pub(super) id: Option<usize>,
    pub(super) package: i64,
    /// Ordered by speed, then position.
    pub(super) cores: Vec<UsableCore>,
    /// The part of `cores` for the network: all, or half of the fast ones if they differ in speed.
    pub(super) for_network: Range<usize>,
    /// Number of usable CPUs, including SMT siblings.
    pub(super) cpus: usize,
}

pub(super) struct UsableCore {
    pub(super) cpu: usize,
    pub(super) cache: CpuSet,
    /// Relative speed; equal for all cores nearly as fast as the fastest.
    pub(super) capacity: usize,
}

impl UsableTopology {
    /// Usable cores of a machine, except the cores of the CPUs in `without`.
    pub(super) fn of(topology: &Topology, without: &CpuSet) -> UsableTopology {
        let shared = topology.allowed.minus(&topology.isolated);
        let usable = if shared.is_empty() {
            &topology.allowed
        } else {
            &shared
        };
        let (usable, gone) = (&usable.minus(without), &usable.intersection(without));
        let fastest = topology.cores.iter().map(|core| core.capacity).max();
        let capacity = |core: &Core| match fastest {
            Some(fastest) if core.capacity * 100 >= fastest * FAST_PERCENT => fastest,
            _ => core.capacity,
        };
        let mut cores: Vec<_> = topology
            .cores
            .iter()
            .filter(|core| core.cpus.intersects(usable))
            .collect();
        // A queue needs one fast CPU rather than two slow ones. The sort is stable: equal cores stay ordered by
        // position.
        cores.sort_by_key(|core| (core.place.node, Reverse(capacity(core))));
        let mut nodes: Vec<UsableNode> = Vec::new();
        for core in cores {
            let cpus = core.cpus.intersection(usable);
            // Not empty: the core has usable CPUs.
            let cpu = cpus.first().unwrap_or(core.place.cpu);
            if nodes.last().is_none_or(|node| node.id != core.place.node) {
                nodes.push(UsableNode {
                    at: nodes.len(),
                    id: core.place.node,
                    package: core.place.package,
                    cores: Vec::new(),
                    for_network: 0..0,
                    cpus: 0,
                });
            }
            let last = nodes.len() - 1;
            nodes[last].cpus += cpus.len();
            nodes[last].cores.push(UsableCore {
                cpu,
                cache: core.cache.clone(),
                capacity: capacity(core),
            });
        }
        for node in &mut nodes {
            let is_gone = |core: &&Core| core.place.node == node.id && core.cpus.intersects(gone);
            let gone = topology.cores.iter().filter(is_gone).map(capacity);
            node.for_network = for_network(&node.cores, &gone.collect::<Vec<_>>());
        }
        UsableTopology {
            nodes,
            has_isolated: !shared.is_empty() && topology.allowed.intersects(&topology.isolated),
        }
    }

    pub(super) fn cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores.len()).sum()
    }

    /// One CPU per core.
    pub(super) fn core_cpus(&self) -> Vec<usize> {
        let cores = self.nodes.iter().flat_map(|node| &node.cores);
        cores.map(|core| core.cpu).collect()
    }

    pub(super) fn fast_cpus(&self) -> Vec<usize> {
        let cores = || self.nodes.iter().flat_map(|node| &node.cores);
        let fastest = cores().map(|core| core.capacity).max();
        let fast = cores().filter(|core| Some(core.capacity) == fastest);
        fast.map(|core| core.cpu).collect()
    }

    pub(super) fn cpus(&self) -> usize {
        self.nodes.iter().map(|node| node.cpus).sum()
    }

    /// Whether the machine is too small to set any core aside.
    pub(super) fn is_tiny(&self) -> bool {
        !self.has_isolated && self.cores() < CORES_MIN
    }
}

impl UsableNode {
    pub(super) fn is_mixed(&self) -> bool {
        self.for_network.len() < self.cores.len()
    }
}

/// The part of a node's `cores` (fast ones first) for the network: all if they are of one kind, otherwise half of the
/// fastest kind that has two or more. A single faster core stays with the application. `gone` contains the speeds of
/// cores of the node that already handle interrupts.
fn for_network(cores: &[UsableCore], gone: &[usize]) -> Range<usize> {
    let mut first = 0;
    for kind in cores.chunk_by(|one, two| one.capacity == two.capacity) {
        if kind.len() == cores.len() {
            break;
        }
        let is_of_kind = |speed: &&usize| kind.first().map(|core| core.capacity) == Some(**speed);
        let gone = gone.iter().filter(is_of_kind).count();
        let end = first + kind.len();
        match ((kind.len() + gone) / 2).saturating_sub(gone) {
            0 => first = end,
            takes => return end - takes..end,
        }
    }
    // No kind has two cores: the fastest core stays with the application.
    let is_mixed = first > 0 && cores.len() > 1;
    usize::from(is_mixed)..cores.len()
}

/// Returns the NUMA nodes to which an interface's queues are assigned round-robin, as indexes of the usable nodes; at
/// least one.
pub(super) fn homes(
    facts: &Facts,
    usable: &UsableTopology,
    interface: &Interface,
    queues: usize,
    reasons: &mut Vec<String>,
) -> Vec<usize> {
    let index_of = |id: usize| {
        usable
            .nodes
            .iter()
            .find(|node| node.id == Some(id))
            .map(|node| node.at)
    };
    if let Some(id) = interface.node {
        if let Some(home) = index_of(id) {
            if usable.nodes.len() > 1 {
                reasons.push(format!(
                    "the device is attached to node {id}: its packets stay in that node's memory"
                ));
            }
            return vec![home];
        }
        reasons.push(format!(
            "the device is attached to node {id}, which has no usable CPUs"
        ));
        if let Some(nearest) = nearest(facts, usable, id) {
            return vec![nearest];
        }
    }
    let nodes: Vec<usize> = usable
        .nodes
        .iter()
        .filter(|node| node.id.is_some())
        .map(|node| node.at)
        .collect();
    if nodes.len() <= 1 {
        return vec![nodes.first().copied().unwrap_or(0)];
    }
    if queues == 1 {
        let now = interface
            .irqs_of(0)
            .find_map(|irq| irq.effective.as_ref().or(irq.affinity.as_ref()));
        let now = now.filter(|cpus| cpus.len() == 1).and_then(CpuSet::first);
        if let Some(home) = now
            .and_then(|cpu| facts.topology.node_of(cpu))
            .and_then(index_of)
        {
            reasons.push("the machine does not report the device's node: its interrupt stays in its current node".to_owned());
            return vec![home];
        }
    }
    reasons.push(match queues {
        1 => "the machine reports neither the device's node nor the CPU of its interrupt: the first node is a guess".to_owned(),
        _ => "the machine does not report the device's node: its queues are spread over all nodes".to_owned(),
    });
    if queues == 1 { vec![nodes[0]] } else { nodes }
}

/// Nearest node with usable CPUs to a node without.
fn nearest(facts: &Facts, usable: &UsableTopology, id: usize) -> Option<usize> {
    let distance = |node: &&UsableNode| {
        let known = facts
            .topology
            .nodes
            .iter()
            .find(|known| Some(known.id) == node.id)?;
        known.distances.get(&id).copied()
    };
    usable
        .nodes
        .iter()
        .filter(|node| distance(node).is_some())
        .min_by_key(distance)
        .map(|node| node.at)
}

/// With fewer cores, the system gets no CPUs of its own.
pub(super) const CORES_MIN_FOR_SYSTEM: usize = 8;
