//! Files that do not belong to queues: clock source, frequency governor, huge pages.

use super::action::{Action, Note, Revert};
use super::request::{Goal, Request};
use super::target::Target;
use crate::facts::Facts;

/// Changes of files, and notes about settings that only a running program can change.
pub(super) fn advise(
    facts: &Facts,
    request: &Request,
    actions: &mut Vec<Action>,
    notes: &mut Vec<Note>,
) {
    clock(facts, actions, notes);
    governors(facts, actions);
    if request.goal == Goal::Latency {
        huge_pages(facts, actions);
        idle_states(facts, notes);
    }
}

fn clock(facts: &Facts, actions: &mut Vec<Action>, notes: &mut Vec<Note>) {
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
                "on machines whose time stamp counters drift apart, time jumps: look for \"tsc: Marking TSC unstable\" \
                    in the kernel log",
                "no clock_gettime in system call counts",
            )),
            None => notes.push(Note::new("clocksource", &format!("is {clock}, which needs a system call per reading"))),
        }
    }
}

fn governors(facts: &Facts, actions: &mut Vec<Action>) {
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
            "a CPU that has to raise its frequency first delays the first requests after a pause",
            "TuneD, profile throughput-performance",
            "higher power use and heat",
            "the frequency stays high between requests",
        ));
    }
}

fn huge_pages(facts: &Facts, actions: &mut Vec<Action>) {
    if facts.system.huge_pages.as_deref() == Some("always") {
        actions.push(file(
            "/sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
            "always",
            "madvise",
            "when memory is fragmented, finding a huge page takes long, and a request waits for it",
            "kernel: Documentation/admin-guide/mm/transhuge.rst",
            "programs that benefit from huge pages without requesting them (madvise) no longer get them",
            "fewer rare delays of milliseconds",
        ));
    }
}

fn idle_states(facts: &Facts, notes: &mut Vec<Note>) {
    let slowest = facts
        .system
        .idle_states
        .iter()
        .max_by_key(|(_, latency)| **latency);
    if let (Some(_), Some((state, latency))) = (facts.system.quickest_idle_state(), slowest) {
        let text = format!(
            "takes {latency} microseconds to leave; apply --for keeps CPUs out of it while the program runs \
             (/dev/cpu_dma_latency)"
        );
        notes.push(Note::new(&format!("idle state {state}"), &text));
    }
}

fn file(
    path: String,
    current: &str,
    proposed: &str,
    reason: &str,
    source: &str,
    risk: &str,
    effect: &str,
) -> Action {
    Action {
        target: Target::File { path: path.clone() },
        path,
        current: current.to_owned(),
        proposed: proposed.to_owned(),
        reason: reason.to_owned(),
        source: source.to_owned(),
        risk: risk.to_owned(),
        revert: Revert::WriteBack,
        effect: effect.to_owned(),
    }
}

/// Clock sources that need a system call to be read.
const SLOW_CLOCKS: [&str; 5] = ["xen", "hpet", "acpi_pm", "pit", "refined-jiffies"];
