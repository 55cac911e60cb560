//! How many receive queues each interface is to have, where its driver can have others. Pure.
//!
//! The kernel's advice is the smallest number whose CPUs do not overflow. A number that is too large costs interrupts
//! and little else, one that is too small costs CPUs, and changing it resets the interface: so queues are added where
//! cores that take interrupts have none, and taken away only where many were made for CPUs that they do not go to.

use super::placement::{Floor, homes};
use super::queue::{changeable, present};
use super::{Queues, Request};
use crate::facts::{Facts, Interface};

/// Queues that a core may take before they are too many: 32 on 16 cores carried 4 million packets a second each way
/// (HAProxy 2021).
const QUEUES_PER_CORE: usize = 2;

/// The cores of an interface's nodes that take interrupts are at least this part of the machine, or else queues that it
/// has are left alone: a quarter of one node of four is a sixteenth.
const MACHINE_SHARE: usize = 16;

/// For each interface.
pub(super) fn queues(facts: &Facts, interfaces: &[&Interface], request: &Request) -> Vec<usize> {
    let floor = Floor::of(&facts.topology);
    let cards: Vec<Card> = interfaces
        .iter()
        .map(|interface| Card::of(facts, &floor, interface))
        .collect();
    let mut count = Count {
        counts: cards.iter().map(|card| card.now).collect(),
        loads: vec![0; floor.nodes.len()],
        floor: &floor,
        cards: &cards,
    };
    if request.queues == Queues::Change {
        for card in &cards {
            (0..card.now).for_each(|queue| count.loads[card.home(queue)] += card.weight);
        }
        count.take_away();
        count.add();
    }
    count.counts
}

/// What matters of an interface.
struct Card {
    now: usize,
    /// The most its driver can; none when it cannot change.
    most: Option<usize>,
    /// Nodes its queues go to in turn.
    homes: Vec<usize>,
    /// 1 when its queues interrupt, 0 when they do not.
    weight: usize,
}

impl Card {
    fn of(facts: &Facts, floor: &Floor, interface: &Interface) -> Card {
        let now = present(interface);
        let most = changeable(interface).map(|(_, most)| most);
        // Where a single queue would go says nothing of several.
        let queues = now.max(most.unwrap_or(0));
        Card {
            now,
            most,
            homes: homes(facts, floor, interface, queues, &mut Vec::new()),
            weight: usize::from(interface.is_device),
        }
    }

    fn home(&self, queue: usize) -> usize {
        self.homes[queue % self.homes.len()]
    }
}

struct Count<'here> {
    counts: Vec<usize>,
    /// Queues that interrupt each node.
    loads: Vec<usize>,
    floor: &'here Floor,
    cards: &'here [Card],
}

impl Count<'_> {
    fn load(&self, at: usize) -> usize {
        let homes = self.cards[at].homes.iter();
        homes.map(|node| self.loads[*node]).sum()
    }

    fn quota(&self, at: usize) -> usize {
        let homes = self.cards[at].homes.iter();
        homes.map(|node| self.floor.nodes[*node].quota()).sum()
    }

    /// Where the queues of some nodes are too many, the interface with the most has one fewer, until each core has one or
    /// each interface what is its due.
    fn take_away(&mut self) {
        let all = 0..self.cards.len();
        let crowded: Vec<usize> = all.filter(|at| self.is_too_many(*at)).collect();
        loop {
            let over = crowded
                .iter()
                .copied()
                .filter(|at| self.load(*at) > self.quota(*at) && self.counts[*at] > self.due(*at));
            let Some(at) = over.max_by_key(|at| self.counts[*at]) else {
                return;
            };
            self.counts[at] -= 1;
            self.loads[self.cards[at].home(self.counts[at])] -= self.cards[at].weight;
        }
    }

    /// A small machine, and one in which each queue may have a CPU, keeps the queues that it has.
    fn is_too_many(&self, at: usize) -> bool {
        let (card, quota) = (&self.cards[at], self.quota(at));
        let is_for_others =
            card.homes.len() < self.floor.nodes.len() || card.now > self.floor.cpus();
        let is_fair = quota >= 2 && quota * MACHINE_SHARE >= self.floor.cores();
        card.most.is_some() && is_for_others && is_fair && self.load(at) > QUEUES_PER_CORE * quota
    }

    /// An interface's part of the cores that it shares with others.
    fn due(&self, at: usize) -> usize {
        let homes = &self.cards[at].homes;
        let meets =
            |card: &&Card| card.weight > 0 && card.homes.iter().any(|node| homes.contains(node));
        let sharers = self.cards.iter().filter(meets).count();
        (self.quota(at) / sharers.max(1)).max(QUEUES_PER_CORE)
    }

    /// Where cores would take interrupts and have none, the interface with the fewest queues has one more.
    fn add(&mut self) {
        loop {
            let has_room = |at: &usize| {
                let node = self.cards[*at].home(self.counts[*at]);
                let can = self.cards[*at]
                    .most
                    .is_some_and(|most| self.counts[*at] < most);
                can && self.loads[node] < self.floor.seats(node)
            };
            let all = 0..self.cards.len();
            let Some(at) = all.filter(has_room).min_by_key(|at| self.counts[*at]) else {
                return;
            };
            self.loads[self.cards[at].home(self.counts[at])] += self.cards[at].weight;
            self.counts[at] += 1;
        }
    }
}
