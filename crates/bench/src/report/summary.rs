//! `summary.md`: the table and the machine, ready to be put into a README.

use super::table::{Row, headline, limits, row};
use crate::environment::Environment;
use crate::outcome::Outcome;

/// The whole file.
pub(super) fn markdown(outcome: &Outcome, environment: &Environment) -> String {
    let mut text = format!("# {}\n\n{}\n\n", outcome.experiment, outcome.about);
    text.push_str(&format!(
        "{} · {} rounds of {} s, interleaved · {}\n\n",
        outcome.started,
        outcome.rounds,
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
    for work in &outcome.works {
        for limit in limits(work) {
            text.push_str(&format!("- {}, {limit}\n", work.title()));
        }
    }
    text.push_str(&format!("\n{}\n\n", outcome.placement_rule));
    for (name, program) in &environment.programs {
        if let Some(version) = &program.version {
            text.push_str(&format!("- `{name}`: {version}\n"));
        }
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

/// The machine in one line.
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
    fn every_line_of_the_table_has_the_same_cells() {
        let text = markdown(&outcome(), &Environment::default());
        let bars: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches('|').count())
            .collect();
        assert_eq!(bars, [9, 9, 9, 9], "{text}");
        assert!(text.contains("| 0.85 |") || text.contains("≤ 0.85"));
    }
}
