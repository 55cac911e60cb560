//! CPUs to which packets are steered (RPS), and CPUs that send through each queue (XPS).

use super::action::{Action, Note, Revert};
use super::advice::{ActionDetails, InterfaceAdvice};
use super::placement::{InterfacePlacement, QueuePlacement, Sharing};
use super::queue::SCALING;
use super::target::Target;
use crate::facts::Facts;
use onrush_machine::cpus::CpuSet;

/// CPUs of each transmit queue: the CPUs of the receive queue with the same index, and a share of all others,
/// preferably of its node. With more queues than CPUs, a CPU has several queues.
fn sender_shares(facts: &Facts, placed: &InterfacePlacement, queues: usize) -> Vec<CpuSet> {
    let topology = &facts.topology;
    let mut shares = vec![CpuSet::new(); queues];
    for queue in placed.queues.iter().filter(|queue| queue.queue < queues) {
        shares[queue.queue].extend(queue.irq_cpu);
        if placed.irq_cpus.is_empty() {
            continue; // all queues of a virtual interface are steered to the same CPUs
        }
        shares[queue.queue] = shares[queue.queue].union(&queue.steering_cpus);
    }
    let taken = shares
        .iter()
        .fold(CpuSet::new(), |all, share| all.union(share));
    let node_of = |share: &CpuSet| share.first().and_then(|cpu| topology.node_of(cpu));
    let homes: Vec<Option<usize>> = shares.iter().map(node_of).collect();
    let mut dealt = vec![0; queues];
    for core in &topology.cores {
        for cpu in core
            .cpus
            .intersection(&topology.allowed)
            .minus(&taken)
            .iter()
        {
            let near = (0..queues)
                .filter(|queue| homes[*queue] == core.place.node && homes[*queue].is_some());
            let near: Vec<usize> = near.collect();
            let among = if near.is_empty() {
                (0..queues).collect()
            } else {
                near
            };
            // `queues` is at least two, so `among` is not empty.
            let queue = among
                .into_iter()
                .min_by_key(|queue| (dealt[*queue], *queue))
                .unwrap_or(0);
            shares[queue].insert(cpu);
            dealt[queue] += 1;
        }
    }
    let order: Vec<usize> = topology
        .cores
        .iter()
        .map(|core| core.cpu())
        .filter(|cpu| topology.allowed.contains(*cpu))
        .collect();
    for (at, share) in shares.iter_mut().enumerate() {
        if share.is_empty() && !order.is_empty() {
            share.insert(order[at % order.len()]);
        }
    }
    shares
}

/// Size of the global flow table, as in perftune.
const FLOWS: usize = 32_768;

impl InterfaceAdvice<'_> {
    pub(super) fn steering(&self, actions: &mut Vec<Action>) {
        // Queues whose interrupts are not moved keep their masks.
        let is_placed =
            |queue: &&QueuePlacement| queue.irq_cpu.is_some() || !self.interface.is_device;
        for queue in self.placed.queues.iter().filter(is_placed) {
            let found = self
                .interface
                .receive
                .iter()
                .find(|known| known.index == queue.queue);
            let Some(now) = found.and_then(|known| known.steering.as_ref()) else {
                continue;
            };
            if CpuSet::parse_mask(now).as_ref() == Some(&queue.steering_cpus) {
                continue;
            }
            let reason = self.reason_to_steer(queue);
            actions.push(self.action(
                Target::Steering { interface: self.name(), queue: queue.queue },
                format!("/sys/class/net/{}/queues/rx-{}/rps_cpus", self.interface.name, queue.queue),
                now,
                queue.steering_cpus.mask_like(now),
                ActionDetails {
                    reason,
                    source: "Datacratic 2015: 250k requests a second without, 670k with 7 CPUs; kernel: \
                             Documentation/networking/scaling.rst",
                    risk: "none",
                    revert: Revert::WriteBack,
                    effect: "NET_RX in /proc/softirqs on these CPUs; received_rps in /proc/net/softnet_stat",
                },
            ));
        }
    }

    fn reason_to_steer(&self, queue: &QueuePlacement) -> String {
        let others = &queue.steering_cpus;
        let Some(cpu) = queue.irq_cpu.filter(|_| !others.is_empty()) else {
            return match (others.is_empty(), self.placement.sharing) {
                (false, _) => "packets of a virtual interface are handled on the CPU that sent them; these share it",
                (true, Sharing::Everything) => "on so few cores steering packets would only add cost",
                (true, Sharing::Nothing | Sharing::Steering) => {
                    "the CPU with the interrupt has no other work: steering packets would only add cost"
                }
            }
            .to_owned();
        };
        let take = match others.len() {
            1 => format!("CPU {others} of its node processes its packets, and is not a"),
            _ => format!("CPUs {others} of its node process its packets, and none is a"),
        };
        format!(
            "CPU {cpu} alone would spend all its time in softirq: {take} sibling of a CPU with interrupts"
        )
    }

    /// Turns flow tables (RFS) off, because they steer packets to the application's CPUs instead of those set aside.
    pub(super) fn flows(&self, actions: &mut Vec<Action>) {
        let entries = self
            .facts
            .system
            .setting("net/core/rps_sock_flow_entries")
            .unwrap_or("0");
        if entries == "0" || self.placement.sharing != Sharing::Nothing {
            return;
        }
        let is_steered = |queue: usize| {
            self.placed
                .queues
                .iter()
                .any(|known| known.queue == queue && !known.steering_cpus.is_empty())
        };
        for queue in self
            .interface
            .receive
            .iter()
            .filter(|queue| is_steered(queue.index))
        {
            let Some(flows) = queue.flows.filter(|flows| *flows > 0) else {
                continue;
            };
            actions.push(self.action(
                Target::Flows { interface: self.name(), queue: queue.index },
                format!("/sys/class/net/{}/queues/rx-{}/rps_flow_cnt", self.interface.name, queue.index),
                &flows.to_string(),
                "0".to_owned(),
                ActionDetails {
                    reason: "a flow table (RFS) sends packets to the application's CPU instead of the CPUs set aside \
                        for them".to_owned(),
                    source: SCALING,
                    risk: "measure both ways if the application is pinned and its CPUs are not fully loaded",
                    revert: Revert::WriteBack,
                    effect: "softirq time on the steering CPUs instead of the application's",
                },
            ));
        }
    }

    /// Note about disabled flow tables, if packets are steered to all CPUs of the application: flow tables would steer
    /// them to the CPU of the thread that reads them.
    pub(super) fn flow_tables(&self) -> Option<Note> {
        let entries = self
            .facts
            .system
            .setting("net/core/rps_sock_flow_entries")?;
        let queues = self.placed.queues.iter();
        let steered = queues.filter(|queue| !queue.steering_cpus.is_empty());
        let steered: Vec<usize> = steered.map(|queue| queue.queue).collect();
        let mut queues = self.interface.receive.iter();
        let is_off = entries == "0"
            || queues.any(|queue| queue.flows == Some(0) && steered.contains(&queue.index));
        if !is_off || self.placement.sharing != Sharing::Steering || steered.is_empty() {
            return None;
        }
        let text = format!(
            "steers packets to all CPUs of the application by their hash: where its threads do not accept by CPU, flow \
             tables (RFS) steer them to the thread's own CPU (net.core.rps_sock_flow_entries = {FLOWS}, \
             rps_flow_cnt = {} of each queue; Seastar perftune.py, {SCALING}); measure both ways",
            FLOWS / steered.len()
        );
        Some(Note::new(&self.interface.name, &text))
    }

    pub(super) fn senders(&self, actions: &mut Vec<Action>) {
        let queues = &self.interface.transmit;
        let is_placed = |queue: &QueuePlacement| queue.irq_cpu.is_some();
        let are_placed = !self.interface.is_device || self.placed.queues.iter().all(is_placed);
        if queues.len() < 2 || !are_placed {
            return;
        }
        let shares = sender_shares(self.facts, self.placed, queues.len());
        let senders = shares
            .iter()
            .fold(CpuSet::new(), |all, share| all.union(share));
        let is_one_each = shares.iter().map(CpuSet::len).sum::<usize>() == senders.len();
        let reason = match is_one_each {
            true => {
                "each CPU sends through one queue, the one it receives from: no contention for the queue's lock"
            }
            false => {
                "few CPUs send through each queue, among them those that receive from it: little contention for its \
                 lock"
            }
        };
        for (queue, wished) in queues.iter().zip(shares) {
            let Some(now) = &queue.senders else {
                continue;
            };
            if CpuSet::parse_mask(now).as_ref() == Some(&wished) {
                continue;
            }
            actions.push(self.action(
                Target::Senders { interface: self.name(), queue: queue.index },
                format!("/sys/class/net/{}/queues/tx-{}/xps_cpus", self.interface.name, queue.index),
                now,
                wished.mask_like(now),
                ActionDetails {
                    reason: reason.to_owned(),
                    source: SCALING,
                    risk: "none",
                    revert: Revert::WriteBack,
                    effect: "bytes spread evenly over transmit queues; less spinning in the kernel's profile",
                },
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::Placement;
    use crate::facts::Interface;
    use crate::facts::interface::ReceiveQueue;

    /// Checks the note, and the number of flow tables cleared, for two queues with a steering mask.
    #[track_caller]
    fn check(
        (entries, flows): (&str, u64),
        steering: &str,
        sharing: Sharing,
        note: Option<&str>,
        emptied: usize,
    ) {
        let mut facts = Facts::default();
        let setting = ("net/core/rps_sock_flow_entries", entries);
        let settings = [(setting.0.to_owned(), Some(setting.1.to_owned()))];
        facts.system.settings = settings.into();
        let receive = |index| ReceiveQueue {
            index,
            flows: Some(flows),
            ..ReceiveQueue::default()
        };
        let interface = Interface {
            name: "eth0".to_owned(),
            is_device: true,
            receive: (0..2).map(receive).collect(),
            ..Interface::default()
        };
        let queue = |queue| QueuePlacement {
            queue,
            irq_cpu: Some(queue),
            steering_cpus: CpuSet::parse_list(steering).expect("a list"),
        };
        let placed = InterfacePlacement {
            queues: (0..2).map(queue).collect(),
            ..InterfacePlacement::default()
        };
        let advice = InterfaceAdvice {
            facts: &facts,
            interface: &interface,
            placed: &placed,
            placement: &Placement {
                sharing,
                ..Placement::default()
            },
        };
        let found = advice.flow_tables();
        assert_eq!(found.is_some(), note.is_some(), "{found:#?}");
        for (found, words) in found.iter().zip(note) {
            assert!(found.text.contains(words), "{found:#?}");
        }
        let mut actions = Vec::new();
        advice.flows(&mut actions);
        assert_eq!(actions.len(), emptied, "{actions:#?}");
        for action in actions {
            assert_eq!((&action.current[..], &action.proposed[..]), ("4096", "0"));
            assert!(action.reason.contains("instead of the CPUs set aside"));
        }
    }

    #[test]
    fn rfs_is_noted_if_application_cpus_receive_packets() {
        let note = Some("rps_sock_flow_entries = 32768, rps_flow_cnt = 16384 of each queue");
        let (off, half, on) = (("0", 0), ("32768", 0), ("32768", 4_096));
        check(off, "2-7", Sharing::Steering, note, 0);
        check(half, "2-7", Sharing::Steering, note, 0);
        check(on, "2-7", Sharing::Steering, None, 0);
        check(off, "", Sharing::Steering, None, 0);
        check(off, "2-7", Sharing::Nothing, None, 0);
        check(off, "", Sharing::Everything, None, 0);
        // If CPUs are set aside, flow tables bypass them.
        check(on, "2-7", Sharing::Nothing, None, 2);
        check(on, "", Sharing::Nothing, None, 0);
        check(("0", 4_096), "2-7", Sharing::Nothing, None, 0);
    }
}
