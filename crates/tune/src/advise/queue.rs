//! What to change of an interface's queues so that packets go where the placement says; and files elsewhere in /sys.

use super::placement::{InterfacePlacement, Placement, QueuePlacement, Sharing, counted};
use super::{Action, Goal, Note, Request, Revert, Target};
use crate::cpus::CpuSet;
use crate::facts::ethtool::Knob;
use crate::facts::interface::{AffinityFile, Irq, Unclear, allowance};
use crate::facts::{Facts, Interface};

const SCALING: &str = "kernel: Documentation/networking/scaling.rst";

/// Receive queues there are. Drivers of mlx5 in Linux 5.3 to 6.0 show each twice.
pub(super) fn present(interface: &Interface) -> usize {
    let shown = interface.receive.len();
    let channels = interface.ethtool.as_ref().and_then(|said| said.channels);
    let combined = channels.and_then(|channels| channels.combined).unwrap_or(0) as usize;
    if interface.driver.as_deref() == Some("mlx5_core") && combined > 0 && shown == 2 * combined {
        return combined;
    }
    let named = interface
        .irqs
        .iter()
        .filter_map(|irq| irq.queue)
        .max()
        .map_or(0, |last| last + 1);
    if shown == 0 { named.max(1) } else { shown }
}

/// The knob that sets the number of queues and the most it takes; none when the driver did not say, or the device is
/// a virtual one, whose queues nobody interrupts for.
pub(super) fn changeable(interface: &Interface) -> Option<(Knob, usize)> {
    let channels = interface.ethtool.as_ref()?.channels?;
    let most = channels.combined_max.filter(|most| *most > 0)?;
    interface
        .is_device
        .then_some((Knob::ChannelsCombined, most as usize))
}

/// Changes of one interface.
pub(super) fn advise(
    facts: &Facts,
    interface: &Interface,
    placed: &InterfacePlacement,
    placement: &Placement,
    request: &Request,
    actions: &mut Vec<Action>,
    notes: &mut Vec<Note>,
) {
    let advice = Advice {
        facts,
        interface,
        placed,
        placement,
    };
    advice.channels(actions);
    advice.driver(request, actions);
    advice.interrupts(actions, notes);
    advice.steering(actions);
    advice.flows(actions);
    advice.senders(actions);
    allowances(facts, interface, notes);
}

struct Advice<'here> {
    facts: &'here Facts,
    interface: &'here Interface,
    placed: &'here InterfacePlacement,
    placement: &'here Placement,
}

impl Advice<'_> {
    fn name(&self) -> String {
        self.interface.name.clone()
    }

    fn action(
        &self,
        target: Target,
        path: String,
        current: &str,
        proposed: String,
        why: Why,
    ) -> Action {
        Action {
            target,
            path,
            current: current.to_owned(),
            proposed,
            reason: why.reason,
            source: why.source.to_owned(),
            risk: why.risk.to_owned(),
            revert: why.revert,
            effect: why.effect.to_owned(),
        }
    }

    fn knob(&self, knob: Knob, proposed: u32, why: Why) -> Option<Action> {
        let current = knob.value(self.interface.ethtool.as_ref()?)?;
        let target = Target::Driver {
            interface: self.name(),
            knob,
        };
        let path = format!("ethtool:{}/{}", self.interface.name, knob.name());
        (current != proposed).then(|| {
            self.action(
                target,
                path,
                &current.to_string(),
                proposed.to_string(),
                why,
            )
        })
    }

    fn channels(&self, actions: &mut Vec<Action>) {
        let Some((knob, _)) = changeable(self.interface) else {
            return;
        };
        let (now, wished) = (present(self.interface), self.placed.queues.len());
        if now == wished {
            return;
        }
        let cores = self.placed.irq_cpus.len();
        let is_alone = self
            .placed
            .irq_cpus
            .iter()
            .all(|cpu| self.queues_on(cpu) == 1);
        let reason = match wished < now {
            true => format!(
                "{} its interrupts: more than two queues for each only interrupt more often",
                counted(cores, "core takes", "cores take")
            ),
            false if is_alone => format!(
                "the driver can have {wished} queues, each with a core of its own, instead of {now}"
            ),
            false => format!(
                "the driver can have {wished} queues on {} instead of {now}",
                counted(cores, "core", "cores")
            ),
        };
        actions.extend(self.knob(
            knob,
            wished as u32,
            Why {
                reason,
                source: SCALING,
                risk: "the interface is reset: packets are lost for a moment, and its interrupts get other numbers",
                revert: Revert::WriteBackWithReset,
                effect: "softirq time on as many CPUs as there are queues",
            },
        ));
    }

    /// Rings after drops, and how long interrupts wait.
    fn driver(&self, request: &Request, actions: &mut Vec<Action>) {
        let Some(said) = &self.interface.ethtool else {
            return;
        };
        let lost = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];
        let counters = self.facts.counts.interfaces.get(&self.interface.name);
        let lost = lost
            .iter()
            .filter_map(|name| counters?.get(*name))
            .fold(0, |sum: u64, count| sum.saturating_add(*count));
        if let (Some(rings), true) = (said.rings, lost > 0) {
            let (now, most) = (rings.receive.unwrap_or(0), rings.receive_max.unwrap_or(0));
            let wished = most.min(now.saturating_mul(2).max(2_048));
            actions.extend((wished > now && lost_lately(&self.facts.counts.uptime, lost)).then_some(()).and_then(|()| {
                self.knob(
                    Knob::RingReceive,
                    wished,
                    Why {
                        reason: format!("the device had no room for {lost} packets since it came up"),
                        source: "AWS ENA best practices; kernel: Documentation/networking/scaling.rst",
                        risk: "the interface may be reset for a moment; a larger ring leaves the cache more often",
                        revert: Revert::WriteBackWithReset,
                        effect: "rx_missed_errors stands still",
                    },
                )
            }));
        }
        let coalescing = said.coalescing.unwrap_or_default();
        let why = |reason: &str| Why {
            reason: reason.to_owned(),
            source: "AWS ENA best practices; Netflix 2016",
            risk: "a driver that cannot do it refuses",
            revert: Revert::WriteBack,
            effect: "interrupts a second of the device",
        };
        match request.goal {
            Goal::Throughput if coalescing.receive_microseconds.is_some_and(|now| now < 20) => {
                let reason = "under load one interrupt should announce many packets; the driver finds out how many";
                actions.extend(self.knob(Knob::AdaptiveReceive, 1, why(reason)));
            }
            Goal::Latency => {
                let reason = "a driver that waits for company makes single packets wait";
                actions.extend(self.knob(Knob::AdaptiveReceive, 0, why(reason)));
                if coalescing.receive_microseconds.is_some_and(|now| now > 10) {
                    let reason = "every packet waits this long before it is announced";
                    actions.extend(self.knob(Knob::MicrosecondsReceive, 8, why(reason)));
                }
            }
            Goal::Throughput => {}
        }
    }

    fn interrupts(&self, actions: &mut Vec<Action>, notes: &mut Vec<Note>) {
        let mut has_unknown = false;
        for queue in &self.placed.queues {
            let Some(cpu) = queue.irq_cpu else {
                continue;
            };
            let irqs: Vec<&Irq> = self.interface.irqs_of(queue.queue).collect();
            has_unknown |= irqs.is_empty() && queue.queue < self.interface.receive.len();
            for irq in irqs {
                actions.extend(self.interrupt(irq, queue.queue, cpu));
            }
        }
        if let Some(text) = self.unclear(has_unknown) {
            notes.push(Note::new(&self.interface.name, &text));
        }
    }

    /// Why some interrupts stay where they are.
    fn unclear(&self, has_unknown: bool) -> Option<String> {
        let text = match &self.interface.irqs_unclear {
            Some(Unclear::Shared(others)) => {
                return Some(format!(
                    "shares its device with {}, and interrupts whose names do not say whose they are: those are not moved",
                    others.join(", ")
                ));
            }
            Some(Unclear::Twice) => {
                "has several interrupts for one queue, and nothing says which of them it is: those are not moved"
            }
            None if !has_unknown => return None,
            None if self.facts.interrupts.is_empty() => {
                "its interrupts are not moved: /proc/interrupts is not here, which says whose they are"
            }
            None => {
                "has queues whose interrupts have no name in /proc/interrupts: those are not moved"
            }
        };
        Some(text.to_owned())
    }

    fn interrupt(&self, irq: &Irq, queue: usize, cpu: usize) -> Option<Action> {
        let wished: CpuSet = [cpu].into_iter().collect();
        if irq.affinity.as_ref() == Some(&wished) {
            return None;
        }
        let (file, current, proposed) = match irq.file.as_ref()? {
            AffinityFile::List(now) => ("smp_affinity_list", now, wished.to_string()),
            AffinityFile::Mask(now) => ("smp_affinity", now, wished.mask_like(now)),
        };
        let target = Target::Interrupt {
            interface: self.name(),
            queue,
            purpose: irq.purpose,
        };
        let reason = match self.placement.sharing {
            Sharing::Everything => {
                "each queue has one CPU, so that its packets stay in one cache".to_owned()
            }
            Sharing::Nothing | Sharing::Steering => self.reason_to_interrupt(cpu),
        };
        Some(self.action(
            target,
            format!("/proc/irq/{}/{file}", irq.number),
            current,
            proposed,
            Why {
                reason,
                source: "kernel: Documentation/networking/scaling.rst; dpbench set-irq.sh",
                risk: "interrupts the kernel manages itself cannot be moved (EIO)",
                revert: Revert::WriteBack,
                effect: "/proc/interrupts grows on that CPU only",
            },
        ))
    }

    fn reason_to_interrupt(&self, cpu: usize) -> String {
        let queues = self.queues_on(cpu);
        let node = self.facts.topology.node_of(cpu);
        let is_near = node.is_some() && node == self.interface.node;
        match (self.interface.node, queues) {
            (Some(near), 1) if is_near => {
                format!("the CPU is in the device's node, {near}, and takes nothing else")
            }
            (Some(near), _) if is_near => format!(
                "the CPU is in the device's node, {near}, and takes the packets of {queues} queues and nothing else"
            ),
            (_, 1) => "the CPU takes the packets of one queue and nothing else".to_owned(),
            (_, _) => format!("the CPU takes the packets of {queues} queues and nothing else"),
        }
    }

    /// Receive queues of all interfaces that interrupt a CPU.
    fn queues_on(&self, cpu: usize) -> usize {
        let interfaces = self.placement.interfaces.iter();
        let queues = interfaces.flat_map(|interface| &interface.queues);
        queues.filter(|queue| queue.irq_cpu == Some(cpu)).count()
    }

    fn steering(&self, actions: &mut Vec<Action>) {
        for queue in &self.placed.queues {
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
                Why {
                    reason,
                    source: "Datacratic 2015: 250k requests a second without, 670k with 7 of 15; kernel: \
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
                (true, Sharing::Everything) => "with so few cores handing packets on would only cost",
                (true, Sharing::Nothing | Sharing::Steering) => {
                    "what takes the interrupts has nothing else to do: handing packets on would only cost"
                }
            }
            .to_owned();
        };
        let take = match others.len() {
            1 => format!("CPU {others} of its node takes the packets from it, and is no"),
            _ => format!("CPUs {others} of its node take the packets from it, none of them a"),
        };
        format!("CPU {cpu} alone would be full of softirq: {take} sibling of a CPU with interrupts")
    }

    /// Flow tables send packets after the application, past the CPUs that are set aside for them.
    fn flows(&self, actions: &mut Vec<Action>) {
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
                Why {
                    reason: "a flow table sends packets to the application's CPU, past those set aside for them".to_owned(),
                    source: SCALING,
                    risk: "worth measuring both ways when the application is pinned and its CPUs are not full",
                    revert: Revert::WriteBack,
                    effect: "softirq time on the steering CPUs instead of the application's",
                },
            ));
        }
    }

    fn senders(&self, actions: &mut Vec<Action>) {
        let queues = &self.interface.transmit;
        if queues.len() < 2 {
            return;
        }
        let shares = sender_shares(self.facts, self.placed, queues.len());
        let senders = shares
            .iter()
            .fold(CpuSet::new(), |all, share| all.union(share));
        let is_one_each = shares.iter().map(CpuSet::len).sum::<usize>() == senders.len();
        let reason = match is_one_each {
            true => {
                "each CPU sends through one queue, beside the one it receives by: no lock is fought over"
            }
            false => {
                "few CPUs send through each queue, those among them that receive by it: its lock is rarely fought over"
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
                Why {
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

struct Why {
    reason: String,
    source: &'static str,
    risk: &'static str,
    revert: Revert,
    effect: &'static str,
}

/// A ring that overflowed once while the machine started is no reason: more than one packet in a minute is.
fn lost_lately(uptime: &f64, lost: u64) -> bool {
    lost as f64 * 60.0 > *uptime
}

/// The CPUs of each transmit queue. A queue has the CPUs that its receive twin uses; all others are dealt out, to queues
/// of their own node first. With more queues than CPUs a CPU has several.
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
            // `queues` is at least two, so there is one.
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

/// Limits of clouds, which no setting moves.
fn allowances(facts: &Facts, interface: &Interface, notes: &mut Vec<Note>) {
    for (counter, count) in facts
        .counts
        .interfaces
        .get(&interface.name)
        .into_iter()
        .flatten()
    {
        if let Some(what) = allowance(counter).filter(|_| *count > 0) {
            let text = format!(
                "{what} exceeded ({counter} is {count}): no setting moves it, only a larger machine or a further interface"
            );
            notes.push(Note::new(&interface.name, &text));
        }
    }
}

/// Files outside of queues: clock, governor, huge pages.
pub(super) fn files(
    facts: &Facts,
    request: &Request,
    actions: &mut Vec<Action>,
    notes: &mut Vec<Note>,
) {
    let file = |path: String,
                current: &str,
                proposed: &str,
                reason: &str,
                source: &str,
                risk: &str,
                effect: &str| Action {
        target: Target::File { path: path.clone() },
        path,
        current: current.to_owned(),
        proposed: proposed.to_owned(),
        reason: reason.to_owned(),
        source: source.to_owned(),
        risk: risk.to_owned(),
        revert: Revert::WriteBack,
        effect: effect.to_owned(),
    };
    if let Some(clock) = facts
        .system
        .clocksource
        .as_deref()
        .filter(|clock| SLOW_CLOCKS.contains(clock))
    {
        match facts.system.clocksources.iter().find(|other| *other == "tsc" || *other == "kvm-clock") {
            Some(better) => actions.push(file(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource".to_owned(),
                clock,
                better,
                "programs read this clock without a system call",
                "Datacratic 2015; Seastar perftune.py",
                "on machines whose counters drift apart, time jumps: look for \"tsc: Marking TSC unstable\" in the log",
                "no clock_gettime in system call counts",
            )),
            None => notes.push(Note::new("clocksource", &format!("is {clock}, which takes a system call to read"))),
        }
    }
    for (policy, governor) in facts
        .system
        .governors
        .iter()
        .filter(|(_, governor)| *governor != "performance")
    {
        actions.push(file(
            format!("/sys/devices/system/cpu/cpufreq/{policy}/scaling_governor"),
            governor,
            "performance",
            "a CPU that first has to speed up makes the first requests after a pause wait",
            "TuneD, profile throughput-performance",
            "power and heat",
            "frequency does not fall between requests",
        ));
    }
    if let (Goal::Latency, Some("always")) = (request.goal, facts.system.huge_pages.as_deref()) {
        actions.push(file(
            "/sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
            "always",
            "madvise",
            "finding a huge page takes long when memory is in pieces, and a request waits for it",
            "kernel: Documentation/admin-guide/mm/transhuge.rst",
            "programs that profit without asking lose that",
            "fewer rare delays of milliseconds",
        ));
    }
    let slowest = facts
        .system
        .idle_states
        .iter()
        .max_by_key(|(_, latency)| **latency);
    if let (Goal::Latency, Some(_), Some((state, latency))) =
        (request.goal, facts.system.quickest_idle_state(), slowest)
    {
        let text = format!(
            "takes {latency} microseconds to leave; apply --for keeps CPUs out of it while the program runs \
             (/dev/cpu_dma_latency)"
        );
        notes.push(Note::new(&format!("idle state {state}"), &text));
    }
}

/// Clocks that are read by a system call.
const SLOW_CLOCKS: [&str; 5] = ["xen", "hpet", "acpi_pm", "pit", "refined-jiffies"];
