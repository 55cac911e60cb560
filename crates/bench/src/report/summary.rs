//! `summary.md`: the results table and the machine as Markdown.

use onrush_measure::units;

use super::cumulative::cumulative_steps;
use super::notes::notes;
use super::table::{Row, costs, headline, limits, row};
use crate::environment::Environment;
use crate::outcome::{Outcome, WorkOutcome};

pub(super) fn markdown(outcome: &Outcome, environment: &Environment) -> String {
    let mut text = format!("# {}\n\n{}\n\n", outcome.experiment, outcome.about);
    text.push_str(&format!(
        "{} · {} of {} s, interleaved · {}\n\n",
        outcome.started,
        units::plural(u64::from(outcome.rounds), "round"),
        outcome.measure_s,
        machine(environment)
    ));
    for note in &outcome.notes {
        text.push_str(&format!("**{note}**\n\n"));
    }
    let headline = headline(outcome);
    if !headline.is_empty() {
        text.push_str(&format!("{headline}.\n\n"));
    }
    text.push_str("| work | figure | measured | peer | ratio | spread | target | |\n|---|---|--:|--:|--:|--:|--:|---|\n");
    for (work, line) in outcome.lines() {
        text.push_str(&table_line(&row(work, line)));
    }
    text.push('\n');
    for points in outcome.works.chunk_by(|a, b| a.name == b.name) {
        text.push_str(&cumulative_tables(points));
    }
    for work in &outcome.works {
        for line in costs(work).into_iter().chain(limits(work)) {
            text.push_str(&format!("- {}, {line}\n", work.title()));
        }
    }
    text.push_str(&invalid_rounds(outcome));
    text.push_str(&format!("\n{}\n\n", outcome.placement_rule));
    for (name, program) in &environment.programs {
        if let Some(version) = &program.version {
            text.push_str(&format!("- `{name}`: {version}\n"));
        }
    }
    // Names and output of programs must not become HTML.
    text.replace('<', "&lt;")
}

/// Invalid rounds and reasons; empty if all are valid. The HTML report has the other notes.
fn invalid_rounds(outcome: &Outcome) -> String {
    let mut text = String::new();
    for work in &outcome.works {
        for note in notes(work).into_iter().filter(|note| note.is_invalid) {
            let rounds = note.rounds.map_or(String::new(), |it| format!(" ({it})"));
            text.push_str(&format!("- {}, {}{rounds}\n", work.title(), note.text));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\nInvalid rounds:\n\n{text}"),
    }
}

fn cumulative_tables(points: &[WorkOutcome]) -> String {
    let Some((title, roads)) = cumulative_steps(points) else {
        return String::new();
    };
    let mut text = String::new();
    for road in roads {
        let name = &points[0].name;
        text.push_str(&format!("Steps of {name}, {}:\n\n", road.variant));
        text.push_str(&format!(
            "| change | {title} | relative to the previous step | limit |\n|---|--:|--:|---|\n"
        ));
        for step in road.steps {
            let cells = [step.change, step.value, step.ratio, step.limit];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text.push('\n');
    }
    text
}

fn table_line(row: &Row) -> String {
    let who = |name: &str, value: &str| {
        if name.is_empty() {
            String::new()
        } else {
            format!("{name} {value}")
        }
    };
    let cells = [
        row.work.clone(),
        row.figure.clone(),
        who(&row.ours, &row.ours_value),
        who(&row.theirs, &row.theirs_value),
        row.value.clone(),
        row.spread.clone(),
        row.target.clone(),
        [row.verdict]
            .into_iter()
            .map(String::from)
            .chain(row.notes.clone())
            .collect::<Vec<_>>()
            .join("; "),
    ];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

pub(super) fn machine(environment: &Environment) -> String {
    let machine = &environment.machine;
    let mut words = vec![format!(
        "{} × {}",
        machine.cpus.len(),
        machine.cpu_model.as_deref().unwrap_or("unknown CPU")
    )];
    if machine.virtual_machine {
        words.push("virtual machine".into());
    }
    if let Some(kernel) = &machine.kernel {
        words.push(format!("Linux {kernel}"));
    }
    if let Some(system) = &machine.system {
        words.push(system.clone());
    }
    words.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::outcome;

    #[test]
    fn markdown_rows_have_equal_columns() {
        let text = markdown(&outcome(), &Environment::default());
        let bars: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches('|').count())
            .collect();
        assert_eq!(bars, [9, 9, 9, 9], "{text}");
        assert!(text.contains("| 0.85 |") || text.contains("≤ 0.85"));
    }

    #[test]
    fn summary_lists_limits_and_invalid_rounds() {
        let mut outcome = outcome();
        let trial = &mut outcome.works[0].variants[2].trials[1];
        trial.invalid.push("7 of 100 requests failed".into());
        let text = markdown(&outcome, &Environment::default());
        for said in [
            "- fixed response, onrush epoll: CPU 1 was full",
            "- fixed response, nginx: invalid, 7 of 100 requests failed (round 2)\n",
        ] {
            assert!(text.contains(said), "{said} in {text}");
        }
    }
}
