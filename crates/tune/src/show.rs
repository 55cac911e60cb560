//! A picture of the machine: nodes, cores, siblings, and what each CPU does for the network, as text and as SVG. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::advise::Placement;
use crate::cpus::CpuSet;
use crate::diagnose::Load;
use crate::facts::{Facts, Process, Purpose};
use crate::report::printable;

/// What a CPU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Takes interrupts.
    Interrupts,
    /// Is handed packets by others.
    Steering,
    /// Runs the application.
    Application,
    /// Runs everything else.
    System,
}

/// What every CPU does: `eth0 3` for the interrupts of queue 3, `eth0` for packets that are handed to it, the name of a
/// program that runs there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    work: BTreeMap<usize, Vec<(Work, String)>>,
}

impl View {
    /// As the machine is set now, and where the threads of a process ran last.
    pub fn now(facts: &Facts, process: Option<&Process>) -> View {
        let mut view = View::default();
        if let Some(process) = process {
            for thread in process.threads.values() {
                view.add(thread.cpu, Work::Application, process.name.clone());
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
                // An interrupt that may go to many CPUs goes to the one that is in effect.
                let cpus = irq.effective.as_ref().or(irq.affinity.as_ref());
                for cpu in cpus
                    .filter(|cpus| cpus.len() == 1)
                    .into_iter()
                    .flat_map(CpuSet::iter)
                {
                    view.add(cpu, Work::Interrupts, format!("{name} {queue}"));
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
                view.add(cpu, Work::Steering, name.clone());
            }
        }
        view
    }

    /// As a plan would have it.
    pub fn planned(placement: &Placement) -> View {
        let mut view = View::default();
        for interface in &placement.interfaces {
            for queue in &interface.queues {
                if let Some(cpu) = queue.irq_cpu {
                    view.add(
                        cpu,
                        Work::Interrupts,
                        format!("{} {}", interface.name, queue.queue),
                    );
                }
            }
            for cpu in interface.steering_cpus.iter() {
                view.add(cpu, Work::Steering, interface.name.clone());
            }
        }
        for (cpus, work) in [
            (&placement.application_cpus, Work::Application),
            (&placement.system_cpus, Work::System),
        ] {
            for cpu in cpus.iter() {
                view.add(cpu, work, String::new());
            }
        }
        view
    }

    fn add(&mut self, cpu: usize, work: Work, what: String) {
        let all = self.work.entry(cpu).or_default();
        if !all.contains(&(work, what.clone())) {
            all.push((work, what));
            all.sort();
        }
    }

    fn words(&self, cpu: usize) -> Vec<String> {
        let of = |(work, what): &(Work, String)| match work {
            Work::Interrupts => format!("irq {what}"),
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
        self.work.get(&cpu)?.first().map(|(work, _)| *work)
    }
}

/// A line for each core, its CPUs beside each other, under a line for each node. Loads may be empty.
pub fn text(facts: &Facts, view: &View, loads: &BTreeMap<usize, Load>) -> String {
    let mut out = String::new();
    let mut node = None;
    for core in &facts.topology.cores {
        if node != Some(core.place.node) {
            node = Some(core.place.node);
            let name = core
                .place
                .node
                .map_or("in no node".to_owned(), |id| format!("node {id}"));
            let devices = facts
                .interfaces
                .iter()
                .filter(|interface| interface.is_device && interface.node == core.place.node);
            let devices: Vec<&str> = devices.map(|interface| interface.name.as_str()).collect();
            let beside = if devices.is_empty() {
                String::new()
            } else {
                format!("  with {}", devices.join(", "))
            };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name}{beside}");
        }
        let cpus: Vec<String> = core.cpus.iter().map(|cpu| cell(cpu, view, loads)).collect();
        let slow = if core.capacity < 1_024 { " (slow)" } else { "" };
        let _ = writeln!(
            out,
            "  core {:<3}{slow} {}",
            core.place.core,
            cpus.join(" | ").trim_end()
        );
    }
    let unknown = facts
        .interfaces
        .iter()
        .filter(|interface| interface.is_device && interface.node.is_none());
    let unknown: Vec<&str> = unknown.map(|interface| interface.name.as_str()).collect();
    if !unknown.is_empty() && facts.topology.nodes.len() > 1 {
        let _ = writeln!(out, "of unknown node: {}", unknown.join(", "));
    }
    printable(&out)
}

fn cell(cpu: usize, view: &View, loads: &BTreeMap<usize, Load>) -> String {
    let load = loads
        .get(&cpu)
        .map(|load| format!(" {:>3.0} %", load.busy * 100.0))
        .unwrap_or_default();
    format!("CPU {cpu:<3}{load} {:<24}", view.words(cpu).join(", "))
}

/// Width of a CPU's box.
const BOX: usize = 92;
/// Height of a CPU's box.
const ROW: usize = 46;
/// Cores beside each other in a node.
const COLUMNS: usize = 16;

/// The same as a drawing: a box for each CPU, filled by its load, framed by its work.
pub fn svg(facts: &Facts, view: &View, loads: &BTreeMap<usize, Load>) -> String {
    let mut body = String::new();
    let mut top = 10;
    let mut width = 0;
    let mut nodes: Vec<Option<usize>> = facts
        .topology
        .cores
        .iter()
        .map(|core| core.place.node)
        .collect();
    nodes.dedup();
    for node in nodes {
        let cores: Vec<_> = facts
            .topology
            .cores
            .iter()
            .filter(|core| core.place.node == node)
            .collect();
        let siblings = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(1);
        let name = node.map_or("in no node".to_owned(), |id| format!("node {id}"));
        let _ = writeln!(
            body,
            r#"<text x="10" y="{}" class="head">{name}</text>"#,
            top + 14
        );
        top += 22;
        for (at, core) in cores.iter().enumerate() {
            let x = 10 + at % COLUMNS * (BOX + 6);
            width = width.max(x + BOX + 10);
            for (row, cpu) in core.cpus.iter().enumerate() {
                let y = top + at / COLUMNS * (siblings * ROW + 8) + row * ROW;
                body.push_str(&drawn(cpu, x, y, view, loads));
            }
        }
        top += cores.len().div_ceil(COLUMNS) * (siblings * ROW + 8) + 12;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" font-family=\"sans-serif\">\n\
         <style>text{{font-size:10px}}.head{{font-size:13px;font-weight:bold}}rect{{stroke-width:2}}</style>\n{body}</svg>\n"
    )
}

fn drawn(cpu: usize, x: usize, y: usize, view: &View, loads: &BTreeMap<usize, Load>) -> String {
    let busy = loads.get(&cpu).map_or(0.0, |load| load.busy);
    // White when idle, red when full.
    let rest = (255.0 - busy * 155.0) as u8;
    let frame = match view.first_work(cpu) {
        Some(Work::Interrupts) => "#c0392b",
        Some(Work::Steering) => "#e67e22",
        Some(Work::Application) => "#2980b9",
        Some(Work::System) => "#7f8c8d",
        None => "#bbbbbb",
    };
    let words = view.words(cpu);
    let shown = match words.len() {
        0..=2 => words.clone(),
        more => vec![words[0].clone(), format!("and {} more", more - 1)],
    };
    let lines = shown.iter().enumerate().map(|(at, word)| {
        format!(
            r#"<text x="{}" y="{}">{}</text>"#,
            x + 5,
            y + 25 + at * 12,
            escaped(word)
        )
    });
    format!(
        "<g><title>CPU {cpu}, {:.0} % busy: {}</title>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{BOX}\" height=\"{}\" fill=\"#ff{rest:02x}{rest:02x}\" stroke=\"{frame}\"/>\
         <text x=\"{}\" y=\"{}\">CPU {cpu}</text>{}</g>\n",
        busy * 100.0,
        escaped(&words.join(", ")),
        ROW - 4,
        x + 5,
        y + 13,
        lines.collect::<String>()
    )
}

/// Names of interfaces come from outside. Most control characters may not stand in XML at all (XML 1.0, section 2.2).
fn escaped(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
