//! Assigns CPUs to interrupts, packet steering, the application, and the rest. Pure.
//!
//! Cores are taken in the order of their position, never by CPU number, so that the plan does not depend on how the
//! firmware numbers CPUs.
//!
//! ```text
//! few queues: the queue's interrupts go to one core, and its packets to up to 7 beside it
//!   node  | I s s s s s s s | a a a a a a a a |        1 queue, 16 cores
//!   node  | I s s s s s s s | I s s s s s s s |        2 queues, every node serving some: the application shares them
//! many queues: a quarter of the node's cores takes interrupts and nothing else, no steering
//!   node  | o o a a a a a a a a a a a a I I I I |      8 queues, 2 on each
//! a small machine with a queue for each core, as most virtual machines are delivered: all share all
//!   node  | I I I I |                                  4 queues
//!   node  | a a I I I I I I |                          8 queues
//! ```

use serde::Serialize;

use super::budget;
use super::queue_cpus::{self, PartPlacement, QueueGroup};
use super::request::Goal;
use super::usable::{CORES_MIN_FOR_SYSTEM, UsableCore, UsableNode, UsableTopology, homes};
use super::vectors::{self, AvailableCores};
use crate::facts::{Facts, Interface};
use onrush_machine::cpus::CpuSet;

/// CPUs by purpose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// By interface, in the order of the request.
    pub interfaces: Vec<InterfacePlacement>,
    /// CPUs for the application.
    pub application_cpus: CpuSet,
    /// CPUs for everything else: daemons, shells, SMT siblings of CPUs that handle interrupts.
    pub system_cpus: CpuSet,
    /// CPUs that the application shares with the network.
    pub sharing: Sharing,
}

/// CPUs that the application shares with the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// None: interrupts, steering, application and system are separate.
    #[default]
    Nothing,
    /// CPUs for packet steering, which are all CPUs without interrupts.
    Steering,
    /// All: the machine is too small to set any aside.
    Everything,
}

/// CPUs of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InterfacePlacement {
    /// Name, e.g. `eth0`.
    pub name: String,
    /// NUMA node of the device; -1 is unknown.
    pub numa_node: i64,
    /// CPUs that handle its interrupts, including interrupts that are not moved.
    pub irq_cpus: CpuSet,
    /// CPUs to which its packets are steered.
    pub steering_cpus: CpuSet,
    /// CPUs by queue.
    pub queues: Vec<QueuePlacement>,
    /// Reasons, as sentences.
    pub reasons: Vec<String>,
}

/// CPUs of a receive queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct QueuePlacement {
    /// Index of the queue.
    pub queue: usize,
    /// CPU that handles its interrupts; `None` for a virtual interface, and if its interrupt is unknown.
    pub irq_cpu: Option<usize>,
    /// CPUs to which its packets are steered.
    pub steering_cpus: CpuSet,
}

/// Assigns the usable CPUs to the queues of some interfaces, the application and the rest.
///
/// `counts` contains the planned number of receive queues of each interface.
pub fn place(facts: &Facts, interfaces: &[&Interface], counts: &[usize], goal: Goal) -> Placement {
    let beside = vectors::beside(facts, interfaces);
    let usable = beside.usable();
    let mut placed: Vec<InterfacePlacement> = interfaces
        .iter()
        .zip(counts)
        .map(|(interface, queues)| blank(interface, *queues))
        .collect();
    let mut cores = budget::cores(facts, usable, interfaces);
    let leaders = vectors::leaders(interfaces, counts);
    for (at, leader) in leaders.iter().enumerate() {
        let own = std::mem::take(&mut cores[at]);
        cores[*leader] += own;
    }
    let mut parts = Vec::new();
    for (at, (interface, queues)) in interfaces.iter().zip(counts.iter().copied()).enumerate() {
        let vectors = vectors::of(interface, queues);
        if vectors.is_empty() || leaders[at] != at {
            continue;
        }
        let homes = homes(facts, usable, interface, queues, &mut placed[at].reasons);
        parts.extend(homes.iter().enumerate().map(|(turn, home)| {
            QueueGroup {
                interface: at,
                home: *home,
                vectors: vectors
                    .iter()
                    .skip(turn)
                    .step_by(homes.len())
                    .cloned()
                    .collect(),
                cores: cores[at] / homes.len() as f64,
            }
        }));
    }
    parts.retain(|part| !part.vectors.is_empty());
    let shared = match &beside {
        AvailableCores::Among(_) => Some(usable.cores()),
        AvailableCores::Apart(_) => shared_cores(usable, &parts),
    };
    let placements = match shared {
        Some(cores) => queue_cpus::everywhere(usable, &parts, cores),
        None => queue_cpus::place(facts, usable, &parts),
    };
    for (part, placement) in parts.iter().zip(placements) {
        put(
            &mut placed[part.interface],
            interfaces[part.interface],
            part,
            placement,
        );
    }
    for (at, leader) in leaders
        .iter()
        .enumerate()
        .filter(|(at, leader)| at != *leader)
    {
        let found = placed[*leader].clone();
        follow(&mut placed[at], &found);
    }
    for (interface, facts) in placed.iter_mut().zip(interfaces) {
        sum_up(interface, facts, &beside);
    }
    match shared {
        Some(_) => shared_by_all(facts, placed),
        None => share_out(facts, usable, placed, goal),
    }
}

/// Assigns the CPUs of a part to its queues.
fn put(
    placed: &mut InterfacePlacement,
    interface: &Interface,
    part: &QueueGroup,
    placement: PartPlacement,
) {
    let has_interrupts = has_interrupts(interface);
    for (queues, cpus) in part.vectors.iter().zip(&placement.queues) {
        for queue in queues {
            placed.queues[*queue] = QueuePlacement {
                queue: *queue,
                irq_cpu: has_interrupts.then_some(cpus.cpu),
                steering_cpus: match has_interrupts {
                    true => cpus.others.clone(),
                    // Packets of a virtual interface are processed where they were sent, so steer them to the CPUs of
                    // all queues.
                    false => placement.all(),
                },
            };
        }
    }
    if !placed.reasons.contains(&placement.reason) {
        placed.reasons.push(placement.reason);
    }
}

/// Copies the CPUs of the queues of an interface with the same interrupts.
fn follow(placed: &mut InterfacePlacement, leader: &InterfacePlacement) {
    let queues = placed.queues.len();
    placed.queues = leader.queues.iter().take(queues).cloned().collect();
    placed.reasons.push(format!(
        "its queues share the interrupts of {}, and use the same CPUs",
        leader.name
    ));
}

/// Collects the CPUs of all queues of an interface and of its interrupts that are not moved.
fn sum_up(placed: &mut InterfacePlacement, interface: &Interface, beside: &AvailableCores) {
    let unmoved = &interface.unclear_cpus;
    let irq_cpus: CpuSet = placed
        .queues
        .iter()
        .filter_map(|queue| queue.irq_cpu)
        .collect();
    placed.irq_cpus = irq_cpus.union(unmoved);
    let steering = placed.queues.iter().map(|queue| &queue.steering_cpus);
    placed.steering_cpus = steering.fold(CpuSet::new(), |all, cpus| all.union(cpus));
    let is_placed = |queue: &QueuePlacement| queue.irq_cpu.is_some();
    if !interface.is_device || unmoved.is_empty() && placed.queues.iter().all(is_placed) {
        return;
    }
    placed.reasons.push(match (unmoved.is_empty(), beside) {
        (true, _) => "the CPUs of its interrupts are not known, and they are not moved: no CPU is set aside for them".to_owned(),
        (false, AvailableCores::Apart(_)) => {
            format!("interrupts that are not moved run on {}: these CPUs are set aside", unmoved.label())
        }
        (false, AvailableCores::Among(_)) => format!(
            "interrupts that are not moved run on {}, more than half of the cores: interrupts and application share \
             the cores",
            unmoved.label()
        ),
    });
}

/// Number of cores that handle interrupts if nothing is set aside, on a machine with few cores and queues for nearly
/// all of them; `None` if CPUs are set aside. One core more, or one queue fewer, lowers the number by a few, down to
/// the number of cores that would be set aside, so that the plan changes gradually with the size of the machine.
///
/// ```text
/// n cores with a queue for each:  3 4 5 6 7 8 9 10 11 | 12 ...
/// cores with interrupts:          3 4 5 6 7 6 5  4  3 |  3 set aside
/// ```
fn shared_cores(usable: &UsableTopology, parts: &[QueueGroup]) -> Option<usize> {
    let cores = usable.cores();
    if usable.is_tiny() {
        return Some(cores);
    }
    // Isolated CPUs are already set aside, and with several kinds of cores the application keeps half of the fast ones.
    let is_mixed = usable.nodes.iter().any(UsableNode::is_mixed);
    if parts.is_empty() || usable.has_isolated || is_mixed {
        return None;
    }
    let queues = |node: &UsableNode| {
        let here = parts.iter().filter(|part| part.home == node.at);
        here.map(|part| part.vectors.len()).sum::<usize>()
    };
    let beyond = cores.saturating_sub(ALL_SHARED_MAX);
    let without: usize = usable
        .nodes
        .iter()
        // Up to `ALL_SHARED_MAX` cores, nodes without queues do not count.
        .filter(|node| beyond > 0 || queues(node) > 0)
        .map(|node| node.cores.len().max(2).saturating_sub(queues(node)))
        .sum();
    let shared = cores.checked_sub(SHARED_STEP * (beyond + without))?;
    (shared > budget::interrupt_cores(usable)).then_some(shared)
}

/// Maximum number of cores that all take interrupts if there is a queue for each.
const ALL_SHARED_MAX: usize = 7;

/// Decrease of the number of cores with interrupts for each core beyond that, and for each core without a queue.
const SHARED_STEP: usize = 2;

fn blank(interface: &Interface, queues: usize) -> InterfacePlacement {
    let queue = |queue| QueuePlacement {
        queue,
        ..QueuePlacement::default()
    };
    InterfacePlacement {
        name: interface.name.clone(),
        queues: (0..queues).map(queue).collect(),
        numa_node: interface.node.map_or(-1, |node| node as i64),
        ..InterfacePlacement::default()
    }
}

/// Whether an interface has packet interrupts of its own.
fn has_interrupts(interface: &Interface) -> bool {
    interface.is_device
}

fn shared_by_all(facts: &Facts, interfaces: Vec<InterfacePlacement>) -> Placement {
    Placement {
        interfaces,
        application_cpus: facts.topology.allowed.clone(),
        system_cpus: CpuSet::new(),
        sharing: Sharing::Everything,
    }
}

/// Assigns the remaining CPUs: first to the system, then to the application.
fn share_out(
    facts: &Facts,
    usable: &UsableTopology,
    interfaces: Vec<InterfacePlacement>,
    goal: Goal,
) -> Placement {
    let topology = &facts.topology;
    let all = |part: fn(&InterfacePlacement) -> &CpuSet| {
        interfaces
            .iter()
            .fold(CpuSet::new(), |all, interface| all.union(part(interface)))
    };
    let irq_cpus = all(|interface| &interface.irq_cpus);
    let steering_cpus = all(|interface| &interface.steering_cpus);
    // Work on a sibling slows an interrupt CPU down, so siblings are for the system, which is mostly idle.
    let beside = topology
        .with_siblings(&irq_cpus)
        .intersection(&topology.allowed)
        // Isolated CPUs are reserved for the application; those that are siblings of interrupt CPUs stay unused.
        .minus(&topology.isolated)
        .minus(&irq_cpus)
        .minus(&steering_cpus);
    let free = topology
        .allowed
        .minus(&topology.with_siblings(&irq_cpus))
        .minus(&steering_cpus);
    let mut system_cpus = system(usable, &free, beside);
    let mut application_cpus = free.minus(&system_cpus);
    let mut sharing = Sharing::Nothing;
    if application_cpus.is_empty() {
        sharing = Sharing::Steering;
        application_cpus = steering_cpus.union(&free);
    }
    if application_cpus.is_empty() {
        // Interrupts need every core, so the system's CPUs are needed too.
        sharing = Sharing::Everything;
        application_cpus = topology.allowed.clone();
        system_cpus = CpuSet::new();
    }
    if goal == Goal::Latency {
        let nodes = topology
            .nodes
            .iter()
            .filter(|node| node.cpus.intersects(&irq_cpus.union(&steering_cpus)));
        let local = nodes
            .fold(CpuSet::new(), |all, node| all.union(&node.cpus))
            .intersection(&application_cpus);
        if !local.is_empty() {
            application_cpus = local;
        }
    }
    Placement {
        interfaces,
        application_cpus,
        system_cpus,
        sharing,
    }
}

fn system(usable: &UsableTopology, free: &CpuSet, beside: CpuSet) -> CpuSet {
    let is_small = !usable.has_isolated && usable.cores() < CORES_MIN_FOR_SYSTEM;
    if is_small || !beside.is_empty() {
        return beside;
    }
    let wanted = (usable.cpus() / 32).clamp(1, 4);
    let mut cores: Vec<&UsableCore> = usable.nodes.iter().flat_map(|node| &node.cores).collect();
    // The system gets no fast core if there are slow ones.
    let fastest = cores.iter().map(|core| core.capacity).max();
    if usable.nodes.iter().any(UsableNode::is_mixed) {
        cores.retain(|core| Some(core.capacity) != fastest);
    }
    let cpus = cores.iter().map(|core| core.cpu);
    let candidates: Vec<usize> = cpus.filter(|cpu| free.contains(*cpu)).collect();
    // Leave the application at least one CPU, unless it has isolated ones.
    if candidates.len() < wanted + usize::from(!usable.has_isolated) {
        return CpuSet::new();
    }
    candidates.into_iter().take(wanted).collect()
}
