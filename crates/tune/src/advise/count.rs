//! How many receive queues each interface is to have, where its driver can have others. Pure.
//!
//! The kernel's advice is the smallest number whose CPUs do not overflow. A number that is too large costs interrupts
//! and little else, one that is too small costs CPUs, and changing it resets the interface: so queues are added where
//! cores that take interrupts would have none, and taken away only where many were made for CPUs that they do not go to.

use super::budget;
use super::queue::changeable;
use super::request::{Queues, Request};
use super::usable::{UsableTopology, homes};
use super::vectors::{self, present};
use crate::facts::{Facts, Interface};

/// Queues that a core may take before they are too many: 32 on 16 cores carried 4 million packets a second each way
/// (HAProxy 2021).
const QUEUES_PER_CORE: usize = 2;

/// The cores that an interface is due are at least this part of the machine, or else queues that it has are left alone.
const MACHINE_SHARE: usize = 16;

/// Nodes with fewer cores keep the queues that they have: two of them are as many as take interrupts.
const CORES_MIN: usize = 8;

/// For each interface.
pub(super) fn queues(facts: &Facts, interfaces: &[&Interface], request: &Request) -> Vec<usize> {
    let beside = vectors::beside(facts, interfaces);
    let usable = beside.usable();
    let now: Vec<usize> = interfaces.iter().map(|one| present(one)).collect();
    if request.queues == Queues::Keep {
        return now;
    }
    let homes_of = |(interface, now): (&&Interface, &usize)| {
        // Where a single queue would go says nothing of several.
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
    // What an interface gets of the cores of its nodes' pools.
    let share = |homes: &[usize], cores: f64| {
        let part = |home: &usize| match due[*home] > 0.0 {
            true => pools[*home].cores * cores / homes.len() as f64 / due[*home],
            false => 0.0,
        };
        (homes.iter().map(part).sum::<f64>() + 1e-9).floor() as usize
    };
    let count = |at: usize| {
        // With another number of queues it would still be unknown which interrupt serves which queue.
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

/// A small machine, and one in which each queue may have a CPU, keeps the queues that it has.
fn is_too_many(usable: &UsableTopology, homes: &[usize], now: usize, share: usize) -> bool {
    let near: usize = homes
        .iter()
        .map(|home| usable.nodes[*home].cores.len())
        .sum();
    let is_for_others = homes.len() < usable.nodes.len() || now > usable.cpus();
    let is_fair = share >= 2 && share * MACHINE_SHARE >= usable.cores() && near >= CORES_MIN;
    is_for_others && is_fair && now > QUEUES_PER_CORE * share
}
