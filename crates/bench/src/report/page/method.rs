//! How the run was measured: machine, programs, command lines, settings, files, and the experiment.

use std::fmt::Write;

use onrush_chart::escape;

use crate::environment::{Environment, cpu_list};
use crate::limits::CPUS_OF_HOST_MAX;
use crate::outcome::Outcome;

pub(super) fn section(page: &mut String, outcome: &Outcome, environment: &Environment) {
    page.push_str("<section class=\"how\">\n<h2>How it was measured</h2>\n");
    let _ = writeln!(
        page,
        "<p>{} CPU time is user and system of all processes of a role, from the kernel's scheduler statistics, divided by \
         the requests its client counted; on loopback the sender's CPU also pays for the receiver's packets. Ratios are \
         taken round by round, each pair side by side; the median stands for them, the spread is from the smallest \
         round to the largest.</p>",
        escape(&outcome.placement_rule)
    );
    let machine = &environment.machine;
    let mut facts: Vec<(&str, String)> = Vec::new();
    let mut add = |name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            facts.push((name, value));
        }
    };
    add("CPU", machine.cpu_model.clone());
    add("CPUs used", Some(cpu_list(&sorted(&machine.cpus))));
    add("Hosts", hosts(environment));
    add(
        "Memory",
        machine
            .memory_bytes
            .map(|bytes| onrush_measure::units::bytes(bytes as f64)),
    );
    add("Kernel", machine.kernel.clone());
    add("System", machine.system.clone());
    add("Governor", machine.governor.clone());
    add("Clock source", machine.clocksource.clone());
    add("Load at start", machine.load_average.clone());
    add("Open files", machine.open_files_max.clone());
    page.push_str("<dl class=\"machine\">");
    for (name, value) in facts {
        let _ = write!(
            page,
            "<div><dt>{name}</dt><dd>{}</dd></div>",
            escape(&value)
        );
    }
    page.push_str("</dl>\n");
    details(page, "Programs", &programs(environment));
    details(page, "Command lines", &commands(environment));
    let settings: String = environment
        .settings
        .iter()
        .filter_map(|(name, value)| Some(format!("{name} = {}\n", value.as_ref()?)))
        .collect();
    details(
        page,
        "Kernel settings",
        &format!("<pre>{}</pre>", escape(&settings)),
    );
    let files: String = environment
        .files
        .iter()
        .map(|(name, text)| format!("<h3>{}</h3><pre>{}</pre>", escape(name), escape(text)))
        .collect();
    if !files.is_empty() {
        details(page, "Files the programs were given", &files);
    }
    details(
        page,
        "The experiment",
        &format!("<pre>{}</pre>", escape(&environment.experiment)),
    );
    page.push_str("</section>\n");
}

/// The host numbers used in CPU names; `None` if everything ran on this machine.
fn hosts(environment: &Environment) -> Option<String> {
    let hosts = environment.hosts.iter();
    let mut hosts: Vec<(usize, &String)> = hosts
        .map(|(name, facts)| (facts.first_cpu / CPUS_OF_HOST_MAX, name))
        .collect();
    hosts.sort();
    let words = hosts
        .iter()
        .map(|(number, name)| format!("host {number}: {name}"));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn sorted(cpus: &[usize]) -> Vec<usize> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

fn details(page: &mut String, title: &str, body: &str) {
    let _ = writeln!(page, "<details><summary>{title}</summary>{body}</details>");
}

fn programs(environment: &Environment) -> String {
    let items: String = environment
        .programs
        .iter()
        .filter(|(_, facts)| facts.file.is_some())
        .map(|(name, facts)| {
            format!(
                "<div><dt>{}</dt><dd>{}</dd></div>",
                escape(name),
                escape(facts.version.as_deref().unwrap_or("version unknown"))
            )
        })
        .collect();
    format!("<dl class=\"programs\">{items}</dl>")
}

fn commands(environment: &Environment) -> String {
    environment
        .commands
        .iter()
        .map(|(name, line)| {
            format!(
                "<h3>{}</h3><pre>{}</pre>",
                escape(name),
                escape(&line.join(" "))
            )
        })
        .collect()
}
