//! Share of each interface in the cores for packets, and the nodes of these cores. Pure.
//!
//! ```text
//! weight    w = t + s/16 if traffic was measured, else s; rounded to a power of two
//!           s: link speed relative to the fastest (1 if unknown); 0 if the link is down, for a virtual function whose
//!              parent is included, and for a device whose packets arrive by its own virtual function
//!           t: packets relative to the busiest
//! share     D = w / (sum of w) * (a quarter of the machine's cores, at least 2), but at most the cores that the smallest
//!           packets at link speed need, at 260,000 a second per core
//! ```
//! An interface with a share below half a core gets none of its own, and is not included in the sum of the others. A
//! node gives at most half of its cores (if they differ in speed, half of the fast ones); the rest comes from other
//! nodes of its package, the nearest first.

use super::usable::{UsableNode, UsableTopology};
use crate::facts::{Facts, Interface};

/// Share of a machine's cores that handles interrupts if there are enough queues: 16 of 64 carried 4 million packets a
/// second each way (HAProxy 2021 on a Graviton2, 32 queues).
const INTERRUPT_SHARE: usize = 4;

/// Minimum number of cores for interrupts, but at most half of the machine: one core makes several queues useless.
const INTERRUPT_CORES_MIN: f64 = 2.0;

/// Packets per second and core, each way: 4.15 million on 16 cores (HAProxy 2021).
pub(super) const PACKETS_PER_CORE: f64 = 260_000.0;

/// Maximum packets per second and Mbit/s: 64 bytes each plus 20 bytes between them.
const PACKETS_PER_MEGABIT: f64 = 1e6 / (84.0 * 8.0);

/// Average packets per second since boot below which a machine is idle.
pub(super) const TRAFFIC_MIN: f64 = 100.0;

/// Interfaces with a smaller share get no cores of their own if others do.
pub(super) const OWN_CORES_MIN: f64 = 0.5;

/// Divisor of an idle link's weight relative to the busiest of the same speed. It is not zero, because a failover may
/// make the link busy.
const IDLE_PART: f64 = 16.0;

/// Share of each interface in cores, in the order of `interfaces`.
pub(super) fn cores(facts: &Facts, usable: &UsableTopology, interfaces: &[&Interface]) -> Vec<f64> {
    let weights = weights(facts, interfaces);
    let all = usable.cores() as f64;
    let budget = match usable.is_tiny() {
        true => all,
        false => quarter(usable),
    };
    let sum: f64 = weights.iter().sum();
    // Interfaces with less than half a core use the cores of the others and do not reduce their share.
    let is_host = |weight: f64| budget * weight / sum >= OWN_CORES_MIN;
    let hosts: f64 = weights
        .iter()
        .copied()
        .filter(|weight| is_host(*weight))
        .sum();
    let due = |(weight, interface): (&f64, &&Interface)| {
        let part = match (hosts > 0.0, is_host(*weight)) {
            (true, true) => budget * weight / hosts,
            (true, false) => 0.0,
            (false, _) => budget * weight / sum,
        };
        let line = interface.speed_mbps.map_or(f64::INFINITY, |megabits| {
            (megabits as f64 * PACKETS_PER_MEGABIT / PACKETS_PER_CORE)
                .ceil()
                .max(1.0)
        });
        part.min(line)
    };
    weights.iter().zip(interfaces).map(due).collect()
}

fn quarter(usable: &UsableTopology) -> f64 {
    let all = usable.cores() as f64;
    (all / INTERRUPT_SHARE as f64).max(INTERRUPT_CORES_MIN.min(all / 2.0))
}

/// Cores that take interrupts if there are enough queues.
pub(super) fn interrupt_cores(usable: &UsableTopology) -> usize {
    quarter(usable) as usize
}

/// Weight of each interface. Rounded to powers of two, so that a plan does not change with every packet.
fn weights(facts: &Facts, interfaces: &[&Interface]) -> Vec<f64> {
    let packets = |interface: &Interface| {
        let counters = facts.counts.interfaces.get(&interface.name);
        let count = |name: &str| counters.and_then(|counters| counters.get(name)).copied();
        count("rx_packets").unwrap_or(0) as f64 + count("tx_packets").unwrap_or(0) as f64
    };
    let fastest = interfaces
        .iter()
        .filter_map(|interface| interface.speed_mbps)
        .max();
    let speed = |interface: &Interface| match (interface.speed_mbps, fastest) {
        _ if !interface.is_up() || is_function_of_one(interface, interfaces) => 0.0,
        (Some(speed), Some(fastest)) => speed as f64 / fastest.max(1) as f64,
        _ => 1.0,
    };
    // Packets of a device's own virtual function are also counted by the device.
    let own = |interface: &Interface| match has_function(interface, interfaces) {
        true => 0.0,
        false => packets(interface),
    };
    let busiest = interfaces.iter().map(|one| own(one)).fold(0.0, f64::max);
    let is_measured = facts.counts.uptime > 0.0 && busiest / facts.counts.uptime >= TRAFFIC_MIN;
    let weight = |interface: &&Interface| {
        let weight = match (has_function(interface, interfaces), is_measured) {
            (true, _) => 0.0,
            (false, true) => own(interface) / busiest + speed(interface) / IDLE_PART,
            (false, false) => speed(interface),
        };
        if weight > 0.0 {
            weight.log2().round().exp2()
        } else {
            0.0
        }
    };
    let weights: Vec<f64> = interfaces.iter().map(weight).collect();
    match weights.iter().any(|weight| *weight > 0.0) {
        true => weights,
        false => vec![1.0; interfaces.len()],
    }
}

/// Whether an interface is a virtual function of another interface and so shares that link.
fn is_function_of_one(interface: &Interface, interfaces: &[&Interface]) -> bool {
    let parent = interface.physical_function.as_ref();
    parent.is_some()
        && interfaces
            .iter()
            .any(|other| other.device.as_ref() == parent)
}

/// Whether a device has one of these as lower device: netvsc receives most packets by its virtual function.
fn has_function(interface: &Interface, interfaces: &[&Interface]) -> bool {
    let is_below = |other: &&&Interface| {
        other.is_device && other.is_up() && interface.lower.contains(&other.name)
    };
    interface.is_device && interfaces.iter().any(|other| is_below(&other))
}

/// Cores of some nodes for the packets of the interfaces assigned to one NUMA node.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    /// Indexes of the usable nodes, the home first, with the cores that each gives if there are enough queues.
    pub(super) nodes: Vec<(usize, f64)>,
    pub(super) cores: f64,
}

/// Pool of each usable node, given the sum of the shares of its interfaces.
pub(super) fn pools(facts: &Facts, usable: &UsableTopology, due: &[f64]) -> Vec<Pool> {
    let half = |node: &UsableNode| match node.is_mixed() {
        true => node.for_network.len() as f64,
        false => (node.cores.len() as f64 / 2.0).max(1.0),
    };
    let given = |node: &UsableNode| match usable.is_tiny() {
        true => node.cores.len() as f64,
        false => due[node.at].min(half(node)),
    };
    let mut left: Vec<f64> = usable
        .nodes
        .iter()
        .map(|node| half(node) - given(node))
        .collect();
    let pool = |home: &UsableNode| {
        let mut nodes = vec![(home.at, given(home))];
        let mut wanted = due[home.at] - given(home);
        for near in neighbours(facts, usable, home) {
            let gives = wanted.min(left[near]).floor();
            if gives >= 1.0 && !usable.is_tiny() {
                nodes.push((near, gives));
                (wanted, left[near]) = (wanted - gives, left[near] - gives);
            }
        }
        Pool {
            cores: nodes.iter().map(|(_, cores)| cores).sum(),
            nodes,
        }
    };
    usable.nodes.iter().map(pool).collect()
}

/// Other nodes of the same package, the nearest first.
fn neighbours(facts: &Facts, usable: &UsableTopology, home: &UsableNode) -> Vec<usize> {
    let known = facts
        .topology
        .nodes
        .iter()
        .find(|node| Some(node.id) == home.id);
    let distance = |node: &UsableNode| {
        let distances = known.map(|known| &known.distances);
        let distance = distances.zip(node.id).and_then(|(all, id)| all.get(&id));
        distance.copied().unwrap_or(usize::MAX)
    };
    let mut near: Vec<&UsableNode> = usable
        .nodes
        .iter()
        .filter(|node| node.at != home.at && node.package == home.package)
        .collect();
    near.sort_by_key(|node| (distance(node), node.at));
    near.into_iter().map(|node| node.at).collect()
}
