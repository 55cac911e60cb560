//! Which CPUs take interrupts, which handle packets for them, which run the application and which the rest. Pure.
//!
//! Cores are taken in the order of their place in the machine, never by their CPU numbers, so that a machine whose
//! firmware numbers CPUs differently gets the same plan.
//!
//! ```text
//! few queues: the queue's interrupts go to one core, and its packets to up to 7 beside it
//!   node  | I s s s s s s s | a a a a a a a a |        1 queue, 16 cores
//!   node  | I s s s s s s s | I s s s s s s s |        2 queues, every node serving some: the application shares them
//! many queues: a quarter of the node's cores takes interrupts and nothing else, no steering
//!   node  | o o a a a a a a a a a a a a I I I I |      8 queues, 2 on each
//! a small machine with a queue for each core, as most virtual machines are delivered: all share all
//!   node  | I I I I |                                  4 queues
//! ```

use serde::Serialize;

use super::Goal;
use crate::cpus::CpuSet;
use crate::facts::{Facts, Interface, Topology};

/// CPUs that one queue's packets are spread over, the one with its interrupts included. Of 31, 15 and 7 CPUs beside that
/// one, 7 were best on a machine of two nodes with 16 CPUs each (Datacratic 2015, nginx on EC2: 515k, 590k and 670k
/// requests a second): every CPU more costs interrupts between processors and cold caches.
const GROUP_MAX: usize = 8;

/// The share of a node's cores that takes interrupts when there are queues enough: 16 of 64 carried 4 million packets
/// a second each way (HAProxy 2021 on a Graviton2, 32 queues).
const INTERRUPT_SHARE: usize = 4;

/// Cores for the interrupts of several queues where a quarter is less than that, but no more than half of the node: one
/// core for several queues would undo what they are for.
const INTERRUPT_CORES_MIN: usize = 2;

/// With fewer cores nothing can be set aside.
const CORES_MIN: usize = 4;

/// With fewer cores the rest of the system has no CPU of its own, and a machine with a queue for each shares them all.
const CORES_MIN_FOR_SYSTEM: usize = 8;

/// Where everything goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// By interface, in the order they were asked for.
    pub interfaces: Vec<InterfacePlacement>,
    /// CPUs for the server, proxy or client.
    pub application_cpus: CpuSet,
    /// CPUs for everything else: daemons, shells, the siblings of CPUs that take interrupts.
    pub system_cpus: CpuSet,
    /// What the application has to share, and why.
    pub sharing: Sharing,
}

/// Which CPUs the application has in common with the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// None: interrupts, steering, application and system are apart.
    #[default]
    Nothing,
    /// Those that packets are steered to, since these are all but the ones with interrupts.
    Steering,
    /// All: the machine is too small to set any aside.
    Everything,
}

/// An interface's CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InterfacePlacement {
    /// `eth0`.
    pub name: String,
    /// The node its device is attached to; -1 is unknown.
    pub numa_node: i64,
    /// CPUs that take its interrupts.
    pub irq_cpus: CpuSet,
    /// CPUs its packets are handed to.
    pub steering_cpus: CpuSet,
    /// The same, queue by queue.
    pub queues: Vec<QueuePlacement>,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

/// A receive queue's CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct QueuePlacement {
    /// Its index.
    pub queue: usize,
    /// The CPU that takes its interrupts; none for a virtual interface, which has none.
    pub irq_cpu: Option<usize>,
    /// CPUs its packets are handed to.
    pub steering_cpus: CpuSet,
}

/// Places the queues of some interfaces, the application and the rest on the CPUs that may be used.
///
/// `counts` are the receive queues that each interface is to have.
pub fn place(facts: &Facts, interfaces: &[&Interface], counts: &[usize], goal: Goal) -> Placement {
    let floor = Floor::of(&facts.topology);
    let mut placed: Vec<InterfacePlacement> = interfaces
        .iter()
        .map(|interface| blank(interface))
        .collect();
    let mut demands = Vec::new();
    for (at, (interface, queues)) in interfaces.iter().zip(counts.iter().copied()).enumerate() {
        let homes = homes(facts, &floor, interface, queues, &mut placed[at].reasons);
        demands.extend((0..queues).map(|queue| Demand {
            interface: at,
            queue,
            node: homes[queue % homes.len()],
        }));
    }
    let at_node = |node: &FloorNode| {
        let here = demands.iter().filter(|demand| demand.node == node.at);
        here.collect::<Vec<&Demand>>()
    };
    let in_use: Vec<(&FloorNode, Vec<&Demand>)> = floor
        .nodes
        .iter()
        .map(|node| (node, at_node(node)))
        .filter(|(_, here)| !here.is_empty())
        .collect();
    let has_all = |(node, here): &(&FloorNode, Vec<&Demand>)| here.len() >= node.cores.len().max(2);
    let is_small = floor.is_tiny()
        || floor.cores() < CORES_MIN_FOR_SYSTEM && !in_use.is_empty() && in_use.iter().all(has_all);
    for (node, here) in &in_use {
        let seats = match is_small {
            true => Seats::everywhere(&floor, node),
            false => Seats::of(node, here.len(), in_use.len() > 1),
        };
        for (at, demand) in here.iter().enumerate() {
            let interface = &mut placed[demand.interface];
            interface.queues.push(seats.queue(
                at,
                demand.queue,
                !has_interrupts(interfaces[demand.interface]),
            ));
            if !interface.reasons.contains(&seats.reason) {
                interface.reasons.push(seats.reason.clone());
            }
        }
    }
    for interface in &mut placed {
        interface.queues.sort_by_key(|queue| queue.queue);
        interface.irq_cpus = interface
            .queues
            .iter()
            .filter_map(|queue| queue.irq_cpu)
            .collect();
        let steering = interface.queues.iter().map(|queue| &queue.steering_cpus);
        interface.steering_cpus = steering.fold(CpuSet::new(), |all, cpus| all.union(cpus));
    }
    share_out(facts, &floor, placed, goal, is_small)
}

fn blank(interface: &Interface) -> InterfacePlacement {
    InterfacePlacement {
        name: interface.name.clone(),
        numa_node: interface.node.map_or(-1, |node| node as i64),
        ..InterfacePlacement::default()
    }
}

/// Whether packets of an interface come with interrupts of their own.
fn has_interrupts(interface: &Interface) -> bool {
    interface.is_device
}

/// A queue that needs CPUs of a node.
struct Demand {
    interface: usize,
    queue: usize,
    /// Index into [`Floor::nodes`].
    node: usize,
}

/// The cores that may be used, by node, each with the one CPU of it that is.
pub(super) struct Floor {
    pub(super) nodes: Vec<FloorNode>,
}

pub(super) struct FloorNode {
    /// Its index.
    at: usize,
    /// As the kernel numbers it; `None` for CPUs that are in no node.
    id: Option<usize>,
    /// In the order of places, the fast ones first.
    cores: Vec<FloorCore>,
    /// CPUs that may be used, siblings counted.
    cpus: usize,
}

struct FloorCore {
    cpu: usize,
    cache: CpuSet,
    capacity: usize,
}

impl Floor {
    pub(super) fn of(topology: &Topology) -> Floor {
        let shared = topology.allowed.minus(&topology.isolated);
        let usable = if shared.is_empty() {
            &topology.allowed
        } else {
            &shared
        };
        let mut cores: Vec<_> = topology
            .cores
            .iter()
            .filter(|core| core.cpus.intersects(usable))
            .collect();
        // A queue needs one fast CPU rather than two slow ones. Sorting is stable: places stay in order.
        cores.sort_by_key(|core| (core.place.node, std::cmp::Reverse(core.capacity)));
        let mut nodes: Vec<FloorNode> = Vec::new();
        for core in cores {
            let cpus = core.cpus.intersection(usable);
            // Not empty: the core intersects what is usable.
            let cpu = cpus.first().unwrap_or(core.place.cpu);
            if nodes.last().is_none_or(|node| node.id != core.place.node) {
                nodes.push(FloorNode {
                    at: nodes.len(),
                    id: core.place.node,
                    cores: Vec::new(),
                    cpus: 0,
                });
            }
            let last = nodes.len() - 1;
            nodes[last].cpus += cpus.len();
            nodes[last].cores.push(FloorCore {
                cpu,
                cache: core.cache.clone(),
                capacity: core.capacity,
            });
        }
        Floor { nodes }
    }

    pub(super) fn cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores.len()).sum()
    }

    pub(super) fn cpus(&self) -> usize {
        self.nodes.iter().map(|node| node.cpus).sum()
    }

    /// Whether everything is shared, whatever queues there are.
    fn is_tiny(&self) -> bool {
        self.cores() < CORES_MIN
    }

    /// Cores of a node that several queues are given for their interrupts.
    pub(super) fn seats(&self, node: usize) -> usize {
        let node = &self.nodes[node];
        if self.is_tiny() {
            return node.cores.len();
        }
        node.seats()
    }
}

impl FloorNode {
    /// A quarter of the cores; fewer queues than that have others to hand their packets to.
    pub(super) fn quota(&self) -> usize {
        self.cores.len() / INTERRUPT_SHARE
    }

    /// Cores that take interrupts and nothing else when there are queues enough.
    fn seats(&self) -> usize {
        let small = INTERRUPT_CORES_MIN.min(self.cores.len() / 2);
        self.quota().max(small).max(1)
    }
}

/// The nodes (indexes of the floor) that an interface's queues go to in turn; at least one.
pub(super) fn homes(
    facts: &Facts,
    floor: &Floor,
    interface: &Interface,
    queues: usize,
    reasons: &mut Vec<String>,
) -> Vec<usize> {
    let index_of = |id: usize| {
        floor
            .nodes
            .iter()
            .find(|node| node.id == Some(id))
            .map(|node| node.at)
    };
    if let Some(id) = interface.node {
        if let Some(home) = index_of(id) {
            if floor.nodes.len() > 1 {
                reasons.push(format!(
                    "the device is attached to node {id}: its packets stay in that node's memory"
                ));
            }
            return vec![home];
        }
        reasons.push(format!(
            "the device is attached to node {id}, none of whose CPUs may be used"
        ));
        if let Some(nearest) = nearest(facts, floor, id) {
            return vec![nearest];
        }
    }
    let nodes: Vec<usize> = floor
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
            reasons.push("the machine does not say which node the device is attached to: its interrupt stays in the node it is in".to_owned());
            return vec![home];
        }
    }
    reasons.push(match queues {
        1 => "the machine does not say which node the device is attached to, nor where its interrupt is: the first node is a guess".to_owned(),
        _ => "the machine does not say which node the device is attached to: its queues are spread over all nodes".to_owned(),
    });
    if queues == 1 { vec![nodes[0]] } else { nodes }
}

/// The node with usable CPUs that is nearest to one that has none.
fn nearest(facts: &Facts, floor: &Floor, id: usize) -> Option<usize> {
    let distance = |node: &&FloorNode| {
        let known = facts
            .topology
            .nodes
            .iter()
            .find(|known| Some(known.id) == node.id)?;
        known.distances.get(id).copied()
    };
    floor
        .nodes
        .iter()
        .filter(|node| distance(node).is_some())
        .min_by_key(distance)
        .map(|node| node.at)
}

/// The CPUs of one node's queues, to be taken in turn.
struct Seats {
    groups: Vec<(usize, CpuSet)>,
    reason: String,
}

impl Seats {
    /// A machine too small to set CPUs aside: interrupts one per core of the node, and nothing steered.
    fn everywhere(floor: &Floor, node: &FloorNode) -> Seats {
        let cores = node.cores.iter();
        let groups = cores.map(|core| (core.cpu, CpuSet::new())).collect();
        let reason = match floor.is_tiny() {
            true => format!(
                "with fewer than {CORES_MIN} cores there is none to set aside: everything shares them"
            ),
            false => format!(
                "with fewer than {CORES_MIN_FOR_SYSTEM} cores and a queue for each there is none to set aside: everything \
                 shares them"
            ),
        };
        Seats { groups, reason }
    }

    fn of(node: &FloorNode, queues: usize, is_whole_machine: bool) -> Seats {
        if queues >= 2 && queues >= node.quota() {
            return Seats::for_interrupts_alone(node, queues);
        }
        // One CPU beside that with the interrupts, even where that is more than half of a small node.
        let half = (node.cpus / 2 / queues).max(2);
        // Two queues in each of several nodes, 8 CPUs for each, is a layout that was measured: it was the best, although
        // it leaves the application no CPU of its own.
        let is_as_measured = is_whole_machine && queues == 2 && node.cpus / queues == GROUP_MAX;
        let wished = if is_as_measured {
            GROUP_MAX
        } else {
            half.min(GROUP_MAX)
        };
        let size = wished.min(node.cores.len() / queues).max(1);
        Seats {
            groups: groups(node, queues, size),
            reason: Seats::reason_to_steer(node, queues, size - 1),
        }
    }

    fn reason_to_steer(node: &FloorNode, queues: usize, others: usize) -> String {
        let queues = counted(queues, "queue for", "queues for");
        if others == 0 {
            return format!(
                "{queues} a node of 1 core: that takes the interrupts, and none of its node could help it"
            );
        }
        format!(
            "{queues} a node of {} CPUs: each queue interrupts one core, which hands packets to {} of the same node, \
             one CPU per core; 7 were best where 7, 15 and 31 were compared, and half of the node stays free where it can",
            node.cpus,
            counted(others, "other", "others")
        )
    }

    /// The last cores of the node, since the first are where everything else goes by default. Slow cores stand last and
    /// are passed over.
    fn for_interrupts_alone(node: &FloorNode, queues: usize) -> Seats {
        let seats = node.seats();
        let is_fast = |core: &&FloorCore| core.capacity == node.cores[0].capacity;
        let fast = node.cores.iter().take_while(is_fast).count().max(seats);
        let last = &node.cores[fast - seats..fast];
        let groups = last.iter().map(|core| (core.cpu, CpuSet::new())).collect();
        let takes = match (seats == node.quota(), seats) {
            (true, _) => format!("a quarter of the node's {} cores takes", node.cores.len()),
            (false, 1) => format!(
                "1 of the node's {} takes",
                counted(node.cores.len(), "core", "cores")
            ),
            (false, _) => format!("{seats} of the node's {} cores take", node.cores.len()),
        };
        let most = if queues.is_multiple_of(seats) {
            ""
        } else {
            "up to "
        };
        let reason = format!(
            "{} {}: {takes} interrupts and nothing else, {most}{} on each; queues enough make packet steering needless",
            counted(queues, "queue on", "queues on"),
            counted(seats, "core", "cores"),
            queues.div_ceil(seats)
        );
        Seats { groups, reason }
    }

    fn queue(&self, at: usize, queue: usize, is_without_interrupts: bool) -> QueuePlacement {
        let (cpu, steering) = &self.groups[at % self.groups.len()];
        match is_without_interrupts {
            false => QueuePlacement {
                queue,
                irq_cpu: Some(*cpu),
                steering_cpus: steering.clone(),
            },
            true => {
                // Packets of a virtual interface are handled where they were sent; they are handed to all seats.
                let all = self.groups.iter().map(|(cpu, _)| *cpu);
                QueuePlacement {
                    queue,
                    irq_cpu: None,
                    steering_cpus: steering.union(&all.collect()),
                }
            }
        }
    }
}

/// Groups of neighbouring cores: the first takes the interrupts. A group does not reach over the edge of a shared cache
/// when there are cores enough to skip to it.
fn groups(node: &FloorNode, queues: usize, size: usize) -> Vec<(usize, CpuSet)> {
    let mut groups = Vec::new();
    let mut next = 0;
    while groups.len() < queues {
        let left = queues - groups.len();
        let cache = &node.cores[next].cache;
        let edge = next
            + node.cores[next..]
                .iter()
                .take_while(|core| cache.contains(core.cpu))
                .count();
        let crosses = next + size > edge;
        if crosses && edge - next < size && node.cores.len().saturating_sub(edge) >= left * size {
            next = edge;
            continue;
        }
        let group = &node.cores[next..next + size];
        groups.push((
            group[0].cpu,
            group[1..].iter().map(|core| core.cpu).collect(),
        ));
        next += size;
    }
    groups
}

/// Shares out what the interfaces left: the system first, then the application.
fn share_out(
    facts: &Facts,
    floor: &Floor,
    interfaces: Vec<InterfacePlacement>,
    goal: Goal,
    is_small: bool,
) -> Placement {
    let topology = &facts.topology;
    let all = |part: fn(&InterfacePlacement) -> &CpuSet| {
        interfaces
            .iter()
            .fold(CpuSet::new(), |all, interface| all.union(part(interface)))
    };
    let irq_cpus = all(|interface| &interface.irq_cpus);
    let steering_cpus = all(|interface| &interface.steering_cpus);
    if is_small {
        return Placement {
            interfaces,
            application_cpus: topology.allowed.clone(),
            system_cpus: CpuSet::new(),
            sharing: Sharing::Everything,
        };
    }
    // A sibling of a CPU that takes interrupts would slow it down: it is for what rarely runs.
    let beside = topology
        .with_siblings(&irq_cpus)
        .intersection(&topology.allowed)
        .minus(&irq_cpus)
        .minus(&steering_cpus);
    let free = topology
        .allowed
        .minus(&topology.with_siblings(&irq_cpus))
        .minus(&steering_cpus);
    let mut system_cpus = system(floor, &free, beside);
    let mut application_cpus = free.minus(&system_cpus);
    let mut sharing = Sharing::Nothing;
    if application_cpus.is_empty() {
        sharing = Sharing::Steering;
        application_cpus = steering_cpus.union(&free);
    }
    if application_cpus.is_empty() {
        // Interrupts take every core: what would be the system's is needed like the rest.
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

fn system(floor: &Floor, free: &CpuSet, beside: CpuSet) -> CpuSet {
    if floor.cores() < CORES_MIN_FOR_SYSTEM || !beside.is_empty() {
        return beside;
    }
    let wanted = (floor.cpus() / 32).clamp(1, 4);
    let cores = floor
        .nodes
        .iter()
        .flat_map(|node| &node.cores)
        .map(|core| core.cpu);
    let candidates: Vec<usize> = cores.filter(|cpu| free.contains(*cpu)).collect();
    if candidates.len() <= wanted {
        return CpuSet::new();
    }
    candidates.into_iter().take(wanted).collect()
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
