//! Assigns CPUs to queues: one for the interrupts of one or several queues, and others for packet steering. Pure.
//!
//! ```text
//! CPUs for q queues with a share of Q cores, at most H (half of the node's CPUs, one per core):
//!
//!   q = 1          H, 8 at most
//!   q <= H/8       8 q                                        a group of 8 for each
//!   H/8 < q < Q    H - (H - Q) (q - H/8) / (Q - H/8)          groups of fewer and fewer
//!   Q <= q         Q                                          interrupts only, several queues on a core
//! ```
//! So one more queue adds at most a group, and takes only a few CPUs from the others.

use std::cmp::Ordering;

mod reason;

use super::budget::{self, OWN_CORES_MIN, Pool};
use super::usable::{CORES_MIN, UsableNode, UsableTopology};
use crate::facts::Facts;
use onrush_machine::cpus::CpuSet;

/// CPUs for the packets of one queue, including the one with its interrupts. Of 31, 15 and 7 additional CPUs, 7 were
/// best on a machine with two nodes of 16 CPUs (Datacratic 2015, nginx on EC2: 515k, 590k and 670k requests a second):
/// each additional CPU costs inter-processor interrupts and cold caches.
const GROUP_MAX: usize = 8;

/// Divisor of the minimum weight of a queue relative to the heaviest, so that idle queues are distributed too.
const LIGHT_PART: f64 = 64.0;

/// Queues of an interface assigned to the same NUMA node.
pub(super) struct QueueGroup {
    pub(super) interface: usize,
    /// Home node, as an index of the usable nodes.
    pub(super) home: usize,
    /// Indexes of the queues, grouped by interrupt.
    pub(super) vectors: Vec<Vec<usize>>,
    /// Share of the queues in cores.
    pub(super) cores: f64,
}

#[derive(Clone)]
pub(super) struct QueueCpus {
    pub(super) cpu: usize,
    pub(super) others: CpuSet,
}

impl QueueCpus {
    fn alone(cpu: usize) -> QueueCpus {
        QueueCpus {
            cpu,
            others: CpuSet::new(),
        }
    }
}

/// CPUs of a part's queues in order, and the reason.
pub(super) struct PartPlacement {
    pub(super) queues: Vec<QueueCpus>,
    pub(super) reason: String,
}

impl PartPlacement {
    pub(super) fn all(&self) -> CpuSet {
        let others = self.queues.iter().map(|queue| &queue.others);
        let others = others.fold(CpuSet::new(), |all, cpus| all.union(cpus));
        others.union(&self.queues.iter().map(|queue| queue.cpu).collect())
    }
}

/// Places queues without setting CPUs aside: interrupts are distributed over `cores` cores, and nothing is steered.
pub(super) fn everywhere(
    usable: &UsableTopology,
    parts: &[QueueGroup],
    cores: usize,
) -> Vec<PartPlacement> {
    let all = usable.cores();
    let reason = match (usable.is_tiny(), cores < all) {
        (true, _) => format!(
            "a machine with fewer than {CORES_MIN} cores has none to set aside: interrupts and application share the \
             cores"
        ),
        (false, false) => format!(
            "all {all} cores have a queue, so none can be set aside: interrupts and application share the cores"
        ),
        (false, true) => format!(
            "nearly all {all} cores have a queue, so none can be set aside: interrupts and application share the \
             cores, and {cores} handle interrupts"
        ),
    };
    let mut taken = vec![0; usable.nodes.len()];
    let placed = |part: &QueueGroup| {
        let node = &usable.nodes[part.home];
        let some = (node.cores.len() * cores / all).max(1);
        let chosen = &node.cores[node.cores.len() - some..];
        let first = taken[part.home];
        taken[part.home] += part.vectors.len();
        let queues = (first..taken[part.home]).map(|at| QueueCpus::alone(chosen[at % some].cpu));
        PartPlacement {
            queues: queues.collect(),
            reason: reason.clone(),
        }
    };
    parts.iter().map(placed).collect()
}

pub(super) fn place(
    facts: &Facts,
    usable: &UsableTopology,
    parts: &[QueueGroup],
) -> Vec<PartPlacement> {
    let mut due = vec![0.0; usable.nodes.len()];
    for part in parts {
        due[part.home] += part.cores;
    }
    let in_use = due.iter().filter(|cores| **cores > 0.0).count();
    let pools = budget::pools(facts, usable, &due);
    let mut rooms: Vec<FreeCores> = usable
        .nodes
        .iter()
        .map(|node| FreeCores {
            first: node.for_network.start,
            end: node.for_network.end,
        })
        .collect();
    let mut placed: Vec<Option<PartPlacement>> = parts.iter().map(|_| None).collect();
    for home in &usable.nodes {
        let here: Vec<usize> = (0..parts.len())
            .filter(|at| parts[*at].home == home.at)
            .collect();
        if here.is_empty() {
            continue;
        }
        let circle = HomeGroup {
            usable,
            home,
            pool: &pools[home.at],
            most: most(usable, home, here.len(), in_use),
            due: due[home.at],
            parts,
        };
        for (at, found) in here.iter().zip(circle.place(&here, &mut rooms)) {
            placed[*at] = Some(found);
        }
    }
    // Complete: every part has a home, and every home was visited.
    placed.into_iter().flatten().collect()
}

/// CPUs of a node for few queues: half, one per core; if cores differ in speed, half of the fast ones. With several
/// nodes in use, two groups of 8 were the best measured layout, although a node of 16 then has no CPU for the
/// application alone.
fn most(usable: &UsableTopology, node: &UsableNode, parts: usize, nodes_in_use: usize) -> f64 {
    if node.is_mixed() {
        return node.for_network.len() as f64;
    }
    let (cpus, cores) = (node.cpus as f64, node.cores.len() as f64);
    let two_groups = 2.0 * GROUP_MAX as f64;
    let measured = match nodes_in_use {
        0 | 1 => 0.0,
        _ => (2.0 * cpus - two_groups).min(two_groups),
    };
    // At least one CPU besides the interrupts, even in a small node, unless isolated CPUs leave the system no other.
    let pair = match (parts, usable.has_isolated) {
        (1, false) => 2.0,
        _ => 1.0,
    };
    (cpus / 2.0).max(measured).max(pair).min(cores)
}

/// Free cores of a node for the network: groups use the first, interrupts without steering the last.
struct FreeCores {
    first: usize,
    end: usize,
}

impl FreeCores {
    fn left(&self) -> usize {
        self.end.saturating_sub(self.first)
    }
}

/// Parts assigned to the same NUMA node, and their pool.
struct HomeGroup<'here> {
    usable: &'here UsableTopology,
    home: &'here UsableNode,
    pool: &'here Pool,
    /// CPUs of the home for few queues.
    most: f64,
    due: f64,
    parts: &'here [QueueGroup],
}

impl HomeGroup<'_> {
    fn place(&self, here: &[usize], rooms: &mut [FreeCores]) -> Vec<PartPlacement> {
        let (steered, alone): (Vec<usize>, Vec<usize>) =
            here.iter().partition(|at| self.group_sizes(**at).is_some());
        let mut found: Vec<(usize, PartPlacement)> = Vec::new();
        let interrupts = self.interrupt_cpus(&alone, &steered, rooms);
        for at in steered {
            found.push((at, self.steered(at, rooms)));
        }
        let mut heads: Vec<QueueCpus> = found
            .iter()
            .flat_map(|(_, placed)| placed.queues.iter().cloned())
            .collect();
        if heads.is_empty() {
            // Its only core was assigned to a nearby node with more traffic.
            let last = rooms[self.home.at].end.min(self.home.cores.len() - 1);
            heads.push(QueueCpus::alone(self.home.cores[last].cpu));
        }
        found.extend(match interrupts.is_empty() {
            true => self.idle_queues(&alone, &heads),
            false => self.alone(&alone, &interrupts),
        });
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, placed)| placed).collect()
    }

    fn share(&self, at: usize) -> f64 {
        match self.due > 0.0 {
            true => self.parts[at].cores / self.due,
            false => 0.0,
        }
    }

    /// Cores for the interrupts of a part with enough queues.
    fn quarter(&self, at: usize) -> f64 {
        self.pool.cores * self.share(at)
    }

    /// CPUs for each queue of a part, including its interrupt CPU; `None` if there are enough queues for its cores.
    fn group_sizes(&self, at: usize) -> Option<Vec<usize>> {
        let queues = self.parts[at].vectors.len();
        let quarter = self.quarter(at);
        let near: f64 = self.pool.nodes[1..].iter().map(|(_, cores)| cores).sum();
        let most = (self.most + near) * self.share(at);
        let is_single = queues == 1 && most >= 2.0;
        if !is_single && queues as f64 >= quarter {
            return None;
        }
        let cpus = match is_single {
            true => most as usize,
            false => group_cpus(queues as f64, most, quarter) as usize,
        };
        let cpus = cpus.max(queues);
        let size = |queue: usize| cpus / queues + usize::from(queue < cpus % queues);
        Some(
            (0..queues)
                .map(|queue| size(queue).min(GROUP_MAX))
                .collect(),
        )
    }

    /// Cores for interrupts only, for all parts with enough queues: the last ones of the home, since the first ones are
    /// the default for everything else, then CPUs of nearby nodes. Empty if the sum of their shares is below half a
    /// core and others have groups.
    fn interrupt_cpus(
        &self,
        alone: &[usize],
        steered: &[usize],
        rooms: &mut [FreeCores],
    ) -> Vec<(usize, usize)> {
        let due: f64 = alone.iter().map(|at| self.quarter(*at)).sum();
        if alone.is_empty() || !steered.is_empty() && due < OWN_CORES_MIN {
            return Vec::new();
        }
        let queues: usize = alone.iter().map(|at| self.parts[*at].vectors.len()).sum();
        let mut wanted = (due + 1e-9).floor().max(1.0) as usize;
        wanted = wanted.min(queues);
        let mut cpus = Vec::new();
        for (at, gives) in &self.pool.nodes {
            let room = &mut rooms[*at];
            let node = &self.usable.nodes[*at];
            let gives = (gives + 1e-9).floor().max(1.0) as usize;
            let takes = wanted.min(gives).min(room.left());
            let last = &node.cores[room.end - takes..room.end];
            cpus.extend(last.iter().map(|core| (*at, core.cpu)));
            room.end -= takes;
            wanted -= takes;
        }
        cpus
    }

    /// Places queues without steering, each on the core with the least load.
    fn alone(&self, alone: &[usize], cpus: &[(usize, usize)]) -> Vec<(usize, PartPlacement)> {
        let weight = |at: usize| self.share(at) / self.parts[at].vectors.len() as f64;
        let heaviest = alone
            .iter()
            .map(|at| weight(*at))
            .fold(0.0, f64::max)
            .max(f64::MIN_POSITIVE);
        let mut order = alone.to_vec();
        order.sort_by(|one, two| {
            weight(*two)
                .partial_cmp(&weight(*one))
                .unwrap_or(Ordering::Equal)
        });
        let mut loads = vec![0.0; cpus.len()];
        let mut found = Vec::new();
        for at in order {
            let queues = self.parts[at].vectors.iter().map(|_| {
                // `cpus` is not empty; on a tie the first is used.
                let least =
                    (0..cpus.len()).fold(
                        0,
                        |best, at| if loads[at] < loads[best] { at } else { best },
                    );
                loads[least] += weight(at).max(heaviest / LIGHT_PART);
                QueueCpus::alone(cpus[least].1)
            });
            let queues: Vec<QueueCpus> = queues.collect();
            found.push((
                at,
                PartPlacement {
                    reason: self.reason_alone(alone, cpus),
                    queues,
                },
            ));
        }
        found
    }

    /// Places queues with negligible traffic on the CPUs of the others.
    fn idle_queues(&self, alone: &[usize], heads: &[QueueCpus]) -> Vec<(usize, PartPlacement)> {
        let mut turn = 0..;
        let placed = |at: &usize| {
            let queues = self.parts[*at].vectors.iter().map(|_| {
                let at = turn.next().unwrap_or(0);
                heads[at % heads.len()].clone()
            });
            let placed = PartPlacement {
                queues: queues.collect(),
                reason: "compared with the other interfaces it has next to no traffic, or a slow link: its queues \
                    share their CPUs".to_owned(),
            };
            (*at, placed)
        };
        alone.iter().map(placed).collect()
    }

    /// Assigns a group to each queue, in the home while there is room, then in nearby nodes.
    fn steered(&self, at: usize, rooms: &mut [FreeCores]) -> PartPlacement {
        let sizes = self.group_sizes(at).unwrap_or_default();
        let mut queues: Vec<QueueCpus> = Vec::new();
        for (nth, size) in sizes.iter().enumerate() {
            let rest: usize = sizes[nth..].iter().sum();
            let nodes = self.pool.nodes.iter().map(|(node, _)| *node);
            let fits = nodes.clone().find(|node| rooms[*node].left() >= *size);
            let found =
                fits.or_else(|| nodes.max_by_key(|node| (rooms[*node].left(), usize::MAX - node)));
            let cpus = found
                .and_then(|node| group(&self.usable.nodes[node], &mut rooms[node], *size, rest));
            match cpus {
                Some(cpus) => queues.push(cpus),
                // No core is left: shares the CPUs of an earlier queue.
                None if !queues.is_empty() => queues.push(queues[nth % queues.len()].clone()),
                None => queues.push(QueueCpus::alone(
                    self.home.cores[self.home.for_network.start].cpu,
                )),
            }
        }
        let reason = self.reason_to_steer(&queues);
        PartPlacement { queues, reason }
    }
}

/// CPUs for queues with at most `most` CPUs and a share of `quarter`, by the formula above.
fn group_cpus(queues: f64, most: f64, quarter: f64) -> f64 {
    let whole = GROUP_MAX as f64;
    let full = most / whole;
    if queues <= full || quarter <= full {
        return (queues * whole).min(most);
    }
    let down = (most - quarter) * (queues - full) / (quarter - full);
    (most - down).max(quarter.min(most)) + 1e-9
}

/// Adjacent cores; the first handles the interrupts. A group spans two caches only if cores would run short.
fn group(node: &UsableNode, room: &mut FreeCores, size: usize, rest: usize) -> Option<QueueCpus> {
    let cores = &node.cores[..room.end];
    let next = cores.get(room.first)?;
    let same = cores[room.first..].iter();
    let edge = room.first
        + same
            .take_while(|core| next.cache.contains(core.cpu))
            .count();
    if room.first + size > edge && edge - room.first < size && cores.len() - edge >= rest {
        room.first = edge;
    }
    let end = (room.first + size).min(cores.len());
    let group = &cores[room.first..end];
    room.first = end;
    let (head, others) = group.split_first()?;
    Some(QueueCpus {
        cpu: head.cpu,
        others: others.iter().map(|core| core.cpu).collect(),
    })
}
