//! Explains the placement of queues.

use super::{HomeGroup, QueueCpus};
use crate::advise::budget::PACKETS_PER_CORE;
use crate::advise::pluralize::pluralize;
use onrush_machine::cpus::CpuSet;

impl HomeGroup<'_> {
    pub(super) fn reason_alone(&self, alone: &[usize], cpus: &[(usize, usize)]) -> String {
        let queues: usize = alone.iter().map(|at| self.parts[*at].vectors.len()).sum();
        let (taken, cores) = (cpus.len(), self.usable.cores());
        if self.home.cores.len() == 1 && taken == 1 {
            return format!(
                "{} a node of 1 core: that core handles the interrupts, and no other core of its node could help",
                pluralize(queues, "queue for", "queues for")
            );
        }
        let near: CpuSet = cpus
            .iter()
            .filter(|(at, _)| *at != self.home.at)
            .map(|(_, cpu)| *cpu)
            .collect();
        let takes = match taken {
            _ if taken == cores / 4 => format!("a quarter of the machine's {cores} cores handles"),
            _ if !near.is_empty() => format!("{taken} of the machine's {cores} cores handle"),
            1 => format!(
                "1 of the node's {} handles",
                pluralize(self.home.cores.len(), "core", "cores")
            ),
            _ => format!(
                "{taken} of the node's {} handle",
                pluralize(self.home.cores.len(), "core", "cores")
            ),
        };
        let help = match near.is_empty() {
            true => String::new(),
            false => format!(
                ", {} of them in other nodes of its package, since the device's own node gives half",
                near.len()
            ),
        };
        let most = if queues.is_multiple_of(taken) {
            ""
        } else {
            "up to "
        };
        format!(
            "{} {}: {takes} interrupts and nothing else{help}, {most}{} per core, for about {:.1} million packets per \
             second; with enough queues packet steering is not needed",
            pluralize(queues, "queue on", "queues on"),
            pluralize(taken, "core", "cores"),
            queues.div_ceil(taken),
            taken as f64 * PACKETS_PER_CORE / 1e6,
        )
    }

    pub(super) fn reason_to_steer(&self, groups: &[QueueCpus]) -> String {
        let queues = pluralize(groups.len(), "queue for", "queues for");
        let others = |group: &QueueCpus| group.others.len();
        let (least, most) = (
            groups.iter().map(others).min().unwrap_or(0),
            groups.iter().map(others).max().unwrap_or(0),
        );
        let hands = match (least, most) {
            (least, most) if least == most => pluralize(most, "other", "others"),
            (0, most) => format!("up to {}", pluralize(most, "other", "others")),
            (least, most) => format!("{least} or {most} others"),
        };
        format!(
            "{queues} a node of {} CPUs: each queue interrupts one core, which steers packets to {hands} of the same \
             node, one CPU per core; 7 were faster than 15 and 31, and half of the node stays free where possible",
            self.home.cpus,
        )
    }
}
