//! Programs that would undo a plan, and limits that a plan cannot change.
//!
//! irqbalance is stopped until `revert`. It could ban interrupts instead, but only by number, which changes when a
//! device is reset, and it forgets the ban at its next start. A stopped service that is not disabled starts again at
//! boot. The drawback: a device that is reset meanwhile may get all its interrupts on one CPU, which the plan reports.

use super::action::{Action, Note, Revert};
use super::placement::Placement;
use super::target::Target;
use crate::facts::daemon::Daemon;
use crate::facts::{Facts, Interface};

/// Open files needed by a server with thirty thousand connections, or a proxy with half as many.
const FILES_MIN: u64 = 32_768;

pub(super) fn advise(
    facts: &Facts,
    interfaces: &[&Interface],
    placement: &Placement,
    actions: &mut Vec<Action>,
    notes: &mut Vec<Note>,
) {
    let placed = placed_interrupts(interfaces, placement);
    for (name, why) in &facts.system.daemons {
        match why {
            Daemon::Manages(_) if name == "irqbalance" && !placed.is_empty() => {
                irqbalance(facts, &placed, actions, notes);
            }
            Daemon::Manages(what) => {
                notes.push(Note::new(name, &format!("is running: it changes {what} and may undo this plan")));
            }
            Daemon::Wakes => notes.push(Note::new(
                name,
                "is running: each wake-up appears in the slowest responses; stop it during measurements",
            )),
        }
    }
    if !facts.system.timers.is_empty() {
        let text = format!(
            "start programs ({}): each appears in the slowest responses; stop them during measurements",
            facts.system.timers.join(", ")
        );
        notes.push(Note::new("systemd timers", &text));
    }
    if facts
        .interfaces
        .iter()
        .all(|interface| !interface.is_device)
    {
        notes.push(Note::new(
            "interfaces",
            "none has a hardware device; name one to plan for it",
        ));
    }
    for interface in interfaces {
        if let Some(slot) = &interface.slot_downgrade {
            let text =
                format!("its slot runs at {slot}: another slot or cable may double its speed");
            notes.push(Note::new(&interface.name, &text));
        }
    }
    notes.extend(quota(facts));
    // A connection is an open file, in a proxy two. `unlimited` does not parse.
    if let Some((soft, hard)) = facts.system.process_limits.get("Max open files")
        && soft.parse::<u64>().is_ok_and(|soft| soft < FILES_MIN)
    {
        let text = format!(
            "has a limit of {soft} open files (hard limit {hard}): set LimitNOFILE in its unit, or ulimit -n before it \
             starts"
        );
        notes.push(Note::new("the process", &text));
    }
    filters(facts, notes);
    for (path, why) in &facts.troubles {
        notes.push(Note::new(path, why));
    }
}

/// Stops irqbalance unless it bans all interrupts that the plan places, and notes the options that ban them.
fn irqbalance(facts: &Facts, placed: &[usize], actions: &mut Vec<Action>, notes: &mut Vec<Note>) {
    let is_banned = |number: &usize| facts.system.banned_interrupts.contains(number);
    if placed.iter().all(is_banned) {
        notes.push(Note::new(
            "irqbalance",
            "keeps running: its options ban the interrupts of this plan (--banirq)",
        ));
        return;
    }
    let options: Vec<String> = placed
        .iter()
        .map(|number| format!("--banirq={number}"))
        .collect();
    notes.push(Note::new(
        "irqbalance",
        &format!(
            "is stopped: to keep it running for other devices, set IRQBALANCE_ARGS=\"{}\" in /etc/default/irqbalance \
                (/etc/sysconfig/irqbalance) and restart it before the plan is applied; IRQBALANCE_BANNED_CPULIST keeps \
                other interrupts off their CPUs; interrupt numbers may change at a boot",
            options.join(" ")
        ),
    ));
    actions.push(stop("irqbalance"));
}

/// Interrupts that have a CPU in the plan, whether moved or already there. Channels have no number, and irqbalance does
/// not move them.
fn placed_interrupts(interfaces: &[&Interface], placement: &Placement) -> Vec<usize> {
    let mut numbers = Vec::new();
    for (interface, placed) in interfaces.iter().zip(&placement.interfaces) {
        let placed = placed.queues.iter().filter(|queue| queue.irq_cpu.is_some());
        let irqs = placed.flat_map(|queue| interface.irqs_of(queue.queue));
        let numbered = irqs.filter(|irq| irq.is_numbered());
        numbers.extend(numbered.map(|irq| irq.number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Note about the changes of a plan in a network namespace that affect the whole machine.
pub(super) fn beyond_namespace(actions: &[Action]) -> Option<Note> {
    let is_beyond = |target: &&Target| match target {
        Target::Setting { file } => !file.starts_with("net/"),
        Target::Interrupt { .. } | Target::File { .. } | Target::Service { .. } => true,
        Target::Driver { .. }
        | Target::Steering { .. }
        | Target::Flows { .. }
        | Target::Senders { .. }
        | Target::Thread { .. } => false,
    };
    let mut names: Vec<String> = Vec::new();
    for target in actions
        .iter()
        .map(|action| &action.target)
        .filter(is_beyond)
    {
        let name = match target {
            Target::Interrupt { interface, .. } => format!("interrupts of {interface}"),
            other => other.to_string(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let text = format!(
        "is affected by settings of this plan outside of its network namespace: {}",
        names.join(", ")
    );
    (!names.is_empty()).then(|| Note::new(THE_MACHINE, &text))
}

/// Subject of the note about changes beyond a network namespace.
pub const THE_MACHINE: &str = "the whole machine";

/// Note about the smallest quota from the process up to the root, the only effective one.
fn quota(facts: &Facts) -> Option<Note> {
    let limited = facts.counts.groups.iter();
    let (cpus, group) = limited
        .filter_map(|group| Some((group.cpus()?, group)))
        .min_by(|one, two| one.0.total_cmp(&two.0))?;
    let text = format!(
        "may use {cpus:.2} CPUs ({}): when that is used up, all its processes stop until the next period",
        group.quota_files()
    );
    Some(Note::new(&format!("control group {}", group.path), &text))
}

/// Notes about packet filters and sockets that process each packet before the program.
fn filters(facts: &Facts, notes: &mut Vec<Note>) {
    if !facts.system.packet_tables.is_empty() {
        let text = format!(
            "has tables of rules ({}): each packet passes the rules of its chains, so accept the most frequent traffic \
             first, and do not track what needs no state",
            facts.system.packet_tables.join(", ")
        );
        notes.push(Note::new("netfilter", &text));
    }
    if let Some(rules) = facts
        .system
        .packet_rules
        .as_ref()
        .filter(|rules| !rules.is_empty())
    {
        let tables = rules
            .iter()
            .map(|(table, rules)| format!("{table} {rules}"));
        let text = format!(
            "has {} rules ({}): each packet passes the rules of its chains, so accept the most frequent traffic first, \
             and do not track what needs no state",
            rules.values().sum::<u64>(),
            tables.collect::<Vec<_>>().join(", ")
        );
        notes.push(Note::new("nftables", &text));
    }
    if facts.system.taps > 0 {
        notes.push(Note::new(
            "packet sockets",
            &format!(
                "{} are open (tcpdump, DHCP clients …): each receives every packet first",
                facts.system.taps
            ),
        ));
    }
}

fn stop(unit: &str) -> Action {
    Action {
        target: Target::Service {
            unit: unit.to_owned(),
        },
        path: format!("service:{unit}"),
        current: "active".to_owned(),
        proposed: "inactive".to_owned(),
        reason: "it moves interrupts every ten seconds and would undo their placement".to_owned(),
        source: "irqbalance(1); Intel set_irq_affinity refuses to run beside it".to_owned(),
        risk: "a device that is reset while it is stopped may get all its interrupts on one CPU"
            .to_owned(),
        revert: Revert::StartService,
        effect: "interrupts stay on their assigned CPUs".to_owned(),
    }
}
