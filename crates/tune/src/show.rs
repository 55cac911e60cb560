//! Diagram of the machine: nodes, cores, SMT siblings, and each CPU's network work. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::advise::Placement;
use crate::diagnose::Load;
use crate::facts::topology::Core;
use crate::facts::{Facts, Interface, Process, Purpose};
use crate::limits::QUEUES_MAX;
use crate::report::{one_line, printable, wrapped};
use onrush_machine::cpus::CpuSet;

mod drawing;

pub use drawing::svg;

/// Kind of work of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Handles interrupts.
    Interrupts,
    /// Receives packets by packet steering (RPS).
    Steering,
    /// Runs the application.
    Application,
    /// Reserved for everything else.
    System,
}

/// Work of each CPU: interrupts by queue, steered packets by interface, and programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// By CPU, kind and name: the queues of an interface, empty for other work.
    work: BTreeMap<usize, BTreeMap<(Work, String), CpuSet>>,
}

impl View {
    /// Current settings, and the CPUs on which a process's threads ran last.
    pub fn now(facts: &Facts, process: Option<&Process>) -> View {
        let mut view = View::default();
        if let Some(process) = process {
            for thread in process.threads.values() {
                view.add(thread.cpu, Work::Application, &process.name, None);
            }
        }
        for interface in &facts.interfaces {
            let name = &interface.name;
            for irq in interface
                .irqs
                .iter()
                .filter(|irq| irq.purpose != Purpose::Control)
            {
                let Some(queue) = irq.queue else {
                    continue;
                };
                // An interrupt that is allowed on several CPUs is delivered to the effective one.
                let cpus = irq.effective.as_ref().or(irq.affinity.as_ref());
                for cpu in cpus
                    .filter(|cpus| cpus.len() == 1)
                    .into_iter()
                    .flat_map(CpuSet::iter)
                {
                    view.add(cpu, Work::Interrupts, name, Some(queue));
                }
            }
            let masks = interface
                .receive
                .iter()
                .filter_map(|queue| queue.steering.as_deref());
            for cpu in masks
                .filter_map(CpuSet::parse_mask)
                .fold(CpuSet::new(), |all, mask| all.union(&mask))
                .iter()
            {
                view.add(cpu, Work::Steering, name, None);
            }
        }
        view
    }

    /// Settings of a plan.
    pub fn planned(placement: &Placement) -> View {
        let mut view = View::default();
        for interface in &placement.interfaces {
            for queue in &interface.queues {
                if let Some(cpu) = queue.irq_cpu {
                    view.add(cpu, Work::Interrupts, &interface.name, Some(queue.queue));
                }
            }
            let queues = interface.queues.iter();
            let moved: CpuSet = queues.filter_map(|queue| queue.irq_cpu).collect();
            for cpu in interface.irq_cpus.minus(&moved).iter() {
                view.add(cpu, Work::Interrupts, &interface.name, None);
            }
            for cpu in interface.steering_cpus.iter() {
                view.add(cpu, Work::Steering, &interface.name, None);
            }
        }
        for (cpus, work) in [
            (&placement.application_cpus, Work::Application),
            (&placement.system_cpus, Work::System),
        ] {
            for cpu in cpus.iter() {
                view.add(cpu, work, "", None);
            }
        }
        view
    }

    fn add(&mut self, cpu: usize, work: Work, name: &str, queue: Option<usize>) {
        let all = self.work.entry(cpu).or_default();
        let queues = all.entry((work, name.to_owned())).or_default();
        queues.extend(queue.filter(|queue| *queue < QUEUES_MAX));
    }

    fn words(&self, cpu: usize) -> Vec<String> {
        let of = |((work, what), queues): (&(Work, String), &CpuSet)| match work {
            Work::Interrupts => format!("irq {what} {queues}"),
            Work::Steering => format!("steers {what}"),
            Work::Application if what.is_empty() => "application".to_owned(),
            Work::Application => format!("runs {what}"),
            Work::System => "system".to_owned(),
        };
        self.work
            .get(&cpu)
            .map(|all| all.iter().map(of).collect())
            .unwrap_or_default()
    }

    fn first_work(&self, cpu: usize) -> Option<Work> {
        self.work.get(&cpu)?.keys().next().map(|(work, _)| *work)
    }
}

/// Formats a line per node and core, with the CPUs of a core side by side if the width allows. `loads` may be empty.
pub fn text(facts: &Facts, view: &View, loads: &BTreeMap<usize, Load>, columns: usize) -> String {
    let mut out = String::new();
    let mut node = None;
    for core in &facts.topology.cores {
        if node != Some(core.place.node) {
            node = Some(core.place.node);
            let devices = devices_at(facts, core.place.node);
            let beside = if devices.is_empty() {
                String::new()
            } else {
                format!("  with {}", devices.join(", "))
            };
            let _ = writeln!(out, "{}{beside}", node_name(core.place.node));
        }
        let slow = if is_slow(core, facts) { " (slow)" } else { "" };
        let head = format!("  core {:<3}{slow} ", core.place.core);
        let cells = core.cpus.iter().map(|cpu| {
            let (head, words) = cell(cpu, view, loads);
            format!("{head}{words:<24}")
        });
        let beside = format!("{head}{}", cells.collect::<Vec<_>>().join(" | "));
        if beside.trim_end().chars().count() <= columns {
            let _ = writeln!(out, "{}", beside.trim_end());
            continue;
        }
        for (at, cpu) in core.cpus.iter().enumerate() {
            let (cpu, words) = cell(cpu, view, loads);
            let front = if at == 0 {
                head.clone()
            } else {
                " ".repeat(head.len())
            };
            let _ = writeln!(
                out,
                "{}",
                wrapped(&format!("{front}{cpu}"), &words, columns)
            );
        }
    }
    let unknown = unknown(facts);
    if !unknown.is_empty() {
        let _ = writeln!(out, "node unknown: {}", unknown.join(", "));
    }
    printable(&out)
}

fn node_name(node: Option<usize>) -> String {
    node.map_or("without a node".to_owned(), |id| format!("node {id}"))
}

fn devices_at(facts: &Facts, node: Option<usize>) -> Vec<String> {
    let is_here = |interface: &&Interface| {
        interface.is_device && interface.node.is_some() && interface.node == node
    };
    let devices = facts.interfaces.iter().filter(is_here);
    devices.map(|interface| one_line(&interface.name)).collect()
}

/// Devices of unknown node, on a machine with several nodes.
fn unknown(facts: &Facts) -> Vec<String> {
    let is_lost = |interface: &&Interface| interface.is_device && interface.node.is_none();
    let lost = facts.interfaces.iter().filter(is_lost);
    match facts.topology.nodes.len() {
        0 | 1 => Vec::new(),
        _ => lost.map(|interface| one_line(&interface.name)).collect(),
    }
}

/// Whether a core is more than a tenth slower than the fastest.
fn is_slow(core: &Core, facts: &Facts) -> bool {
    let fastest = facts.topology.cores.iter().map(|core| core.capacity).max();
    core.capacity * 10 < fastest.unwrap_or(0) * 9
}

/// `CPU 8    97 % ` and its work.
fn cell(cpu: usize, view: &View, loads: &BTreeMap<usize, Load>) -> (String, String) {
    let load = loads
        .get(&cpu)
        .map(|load| format!(" {:>3.0} %", load.busy * 100.0))
        .unwrap_or_default();
    let words = one_line(&view.words(cpu).join(", "));
    (format!("CPU {cpu:<3}{load} "), words)
}
