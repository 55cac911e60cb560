//! Output of `--list` and `--dry-run`: the content of an experiment, and the trials of a run.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use crate::environment::{cpu_list, usable_cpus};
use crate::run::{Planned, is_program_installed};
use crate::scenario::{Experiment, Launch, Order, Work};
use crate::schedule::Cell;

const TRIALS_SHOWN: usize = 100;

/// Lists works with points and variants, and programs and whether they are installed.
pub fn list(experiment: &Experiment, onrush: &Path) -> String {
    let mut text = format!("{}\n", experiment.name);
    let groups = experiment.works.chunk_by(|a, b| a.name == b.name);
    for group in groups {
        let _ = writeln!(text, "\n{}", group[0].name);
        for work in group.iter().filter(|work| !work.point.is_empty()) {
            let _ = writeln!(text, "  at {}", work.point);
        }
        for variant in &group[0].variants {
            let roles = variant.roles.iter();
            let roles: Vec<String> = roles
                .map(|(role, program)| format!("{} {program}", role.name()))
                .collect();
            let _ = writeln!(text, "  {:<24} {}", variant.name, roles.join(", "));
        }
    }
    text.push_str("\nprograms\n");
    for (name, program) in &experiment.programs {
        let what = match &program.launch {
            Launch::Onrush(_) => "this program".to_owned(),
            Launch::Idle(count) => format!("{count} idle connections"),
            Launch::Command(command) if is_program_installed(experiment, program, onrush) => {
                command[0].clone()
            }
            Launch::Command(command) => format!("{}, which is not installed", command[0]),
        };
        let _ = writeln!(text, "  {name:<24} {what}");
    }
    text
}

/// Lists the trials of the first round in order, the omitted ones, and the total duration.
pub fn schedule(experiment: &Experiment, planned: &Planned) -> String {
    let round = planned.schedule.round(1);
    let mut text = format!(
        "{}: {} trials a round, {}\n",
        experiment.name,
        round.len(),
        end(experiment)
    );
    let each = planned.trial_length.as_secs_f64();
    let _ = writeln!(
        text,
        "a trial takes about {each:.1} s, a round {}{}",
        length(planned.trial_length, round.len()),
        total(experiment, planned, round.len())
    );
    if let Some(warning) = experiment.too_few_cpus(usable_cpus().len()) {
        let _ = writeln!(text, "warning: {warning}");
    }
    for what in &planned.left_out {
        let _ = writeln!(text, "left out: {what}");
    }
    let order = match experiment.order {
        Order::File => "the order of the file".to_owned(),
        Order::Shuffled => format!(
            "another order in each round (--seed {})",
            planned.schedule.seed().0
        ),
    };
    let _ = writeln!(text, "\nround 1, {order}:");
    for (index, cell) in round.iter().take(TRIALS_SHOWN).enumerate() {
        let _ = writeln!(
            text,
            "{:>4}  {}",
            index + 1,
            trial(experiment, planned, *cell)
        );
    }
    if round.len() > TRIALS_SHOWN {
        let _ = writeln!(text, "      and {} more", round.len() - TRIALS_SHOWN);
    }
    text
}

fn trial(experiment: &Experiment, planned: &Planned, cell: Cell) -> String {
    let work: &Work = &experiment.works[cell.work];
    let variant = &planned.works[cell.work].variants[cell.variant];
    let programs = variant.programs.iter();
    let roles: Vec<String> = programs
        .map(|(role, program)| {
            let place = match variant.hosts.get(role) {
                Some(host) => format!("`{host}`"),
                None => format!("CPU {}", cpu_list(variant.placement.of(*role))),
            };
            format!("{} {program} on {place}", role.name())
        })
        .collect();
    format!("{} · {}: {}", work.title(), variant.name, roles.join(", "))
}

fn end(experiment: &Experiment) -> String {
    let rounds = match experiment.rounds {
        1 => "one round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    match (experiment.budget, experiment.precision) {
        (None, None) => rounds,
        (Some(budget), None) => format!(
            "at most {rounds}, as many as fit into {}",
            length(budget, 1)
        ),
        (None, Some(share)) => format!(
            "at most {rounds}, until figures are known to ±{} %",
            share * 100.0
        ),
        (Some(budget), Some(share)) => format!(
            "at most {rounds}, until figures are known to ±{} %, as many as fit into {}",
            share * 100.0,
            length(budget, 1)
        ),
    }
}

fn total(experiment: &Experiment, planned: &Planned, trials: usize) -> String {
    match (experiment.budget, experiment.precision) {
        (None, None) => {
            let trials = trials.saturating_mul(experiment.rounds as usize);
            format!(", all of it {}", length(planned.trial_length, trials))
        }
        (Some(_), _) | (_, Some(_)) => String::new(),
    }
}

fn length(each: Duration, count: usize) -> String {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let seconds = each.saturating_mul(count).as_secs_f64().ceil() as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
