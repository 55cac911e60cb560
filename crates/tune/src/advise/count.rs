//! Number of receive queues of each interface whose driver can change it. Pure.
//!
//! The kernel documentation recommends the smallest number whose CPUs do not overflow. Too many queues cost some
//! interrupts, too few cost CPUs, and a change resets the interface. So queues are added if cores for interrupts would
//! have none, and removed only if far more exist than CPUs for them.

use super::budget;
use super::queue::changeable;
use super::request::{Queues, Request};
use super::usable::{UsableTopology, homes};
use super::vectors::{self, present};
use crate::facts::{Facts, Interface};

/// Maximum number of queues per core: 32 on 16 cores carried 4 million packets a second each way (HAProxy 2021).
const QUEUES_PER_CORE: usize = 2;

/// Queues are removed only if the interface's share is at least this part of the machine's cores.
const MACHINE_SHARE: usize = 16;

/// Interfaces whose nodes have fewer cores keep their queues: two such cores are as many as handle interrupts.
const CORES_MIN: usize = 8;

pub(super) fn queues(facts: &Facts, interfaces: &[&Interface], request: &Request) -> Vec<usize> {
    let beside = vectors::beside(facts, interfaces);
    let usable = beside.usable();
    let now: Vec<usize> = interfaces.iter().map(|one| present(one)).collect();
    if request.queues == Queues::Keep {
        return now;
    }
    let homes_of = |(interface, now): (&&Interface, &usize)| {
        // Assume the maximum number of queues: a single queue may be assigned to other NUMA nodes than several queues.
        let most = changeable(interface).map_or(0, |(_, most)| most);
        homes(facts, usable, interface, (*now).max(most), &mut Vec::new())
    };
    let all: Vec<Vec<usize>> = interfaces.iter().zip(&now).map(homes_of).collect();
    let cores = budget::cores(facts, usable, interfaces);
    let leaders = vectors::leaders(interfaces, &now);
    let together = |at: usize| {
        let group = leaders
            .iter()
            .zip(&cores)
            .filter(|(leader, _)| **leader == leaders[at]);
        group.map(|(_, cores)| cores).sum::<f64>()
    };
    let mut due = vec![0.0; usable.nodes.len()];
    for (homes, cores) in all.iter().zip(&cores) {
        homes
            .iter()
            .for_each(|home| due[*home] += cores / homes.len() as f64);
    }
    let pools = budget::pools(facts, usable, &due);
    // Cores of the nodes' pools for an interface.
    let share = |homes: &[usize], cores: f64| {
        let part = |home: &usize| match due[*home] > 0.0 {
            true => pools[*home].cores * cores / homes.len() as f64 / due[*home],
            false => 0.0,
        };
        (homes.iter().map(part).sum::<f64>() + 1e-9).floor() as usize
    };
    let count = |at: usize| {
        // With another number of queues it would still be unknown which interrupt belongs to which queue.
        let changeable = changeable(interfaces[at]).filter(|_| vectors::are_known(interfaces[at]));
        let Some((_, most)) = changeable else {
            return now[at];
        };
        let share = share(&all[at], together(at));
        let most = most.max(1);
        match now[at] {
            now if now < share.min(most) => share.min(most),
            now if is_too_many(usable, &all[at], now, share) => share,
            now => now,
        }
    };
    (0..interfaces.len()).map(count).collect()
}

/// Whether queues should be removed. Small machines, and machines with a CPU for each queue, keep their queues.
fn is_too_many(usable: &UsableTopology, homes: &[usize], now: usize, share: usize) -> bool {
    let near: usize = homes
        .iter()
        .map(|home| usable.nodes[*home].cores.len())
        .sum();
    let is_for_others = homes.len() < usable.nodes.len() || now > usable.cpus();
    let is_fair = share >= 2 && share * MACHINE_SHARE >= usable.cores() && near >= CORES_MIN;
    is_for_others && is_fair && now > QUEUES_PER_CORE * share
}
