//! The results table as text, and its layout for a terminal.

use onrush_measure::compare::Rounds;
use onrush_measure::table::Table;
use onrush_measure::units;

use super::cumulative::cumulative_steps;
use super::number::number;
use crate::outcome::{FigureLine, Outcome, VariantOutcome, WorkOutcome};
use crate::scenario::{Bound, CollectedMetric, Role, RoleMetric};
use crate::verdict::Verdict;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) work: String,
    pub(super) figure: String,
    pub(super) ours: String,
    pub(super) theirs: String,
    pub(super) ours_value: String,
    pub(super) theirs_value: String,
    pub(super) value: String,
    pub(super) spread: String,
    pub(super) target: String,
    pub(super) verdict: &'static str,
    pub(super) notes: Vec<String>,
}

pub(super) fn row(work: &WorkOutcome, line: &FigureLine) -> Row {
    let is_ratio = line.theirs.is_some();
    let goal = |limit| match is_ratio {
        true => ratio(limit),
        false => target(limit, &line.unit),
    };
    let median = |rounds: Option<Rounds>| {
        rounds.map_or("–".into(), |rounds| number(rounds.median, &line.unit))
    };
    let judged = |value: f64| {
        if is_ratio {
            ratio(value)
        } else {
            number(value, &line.unit)
        }
    };
    Row {
        work: work.title(),
        figure: line.title.clone(),
        ours: line.ours.clone(),
        theirs: line.theirs.clone().unwrap_or_default(),
        ours_value: median(line.ours_value),
        theirs_value: if is_ratio {
            median(line.theirs_value)
        } else {
            String::new()
        },
        value: match line.value {
            Some(value) if is_ratio => ratio(value.median),
            _ => String::new(),
        },
        spread: match line.value {
            Some(value) if value.count > 1 => spread(judged(value.min), judged(value.max)),
            _ => String::new(),
        },
        target: match line.target {
            None => String::new(),
            Some(Bound::AtMost(limit)) => format!("≤ {}", goal(limit)),
            Some(Bound::AtLeast(limit)) => format!("≥ {}", goal(limit)),
        },
        verdict: verdict(line.verdict),
        notes: line.notes.clone(),
    }
}

fn spread(min: String, max: String) -> String {
    if min == max {
        return min;
    }
    format!("{min} … {max}")
}

fn target(limit: f64, unit: &str) -> String {
    match unit {
        // Exact, so that a limit of 1,024 bytes does not read as 1.02 kB.
        "B" => format!("{} B", units::count(limit as u64)),
        _ => number(limit, unit),
    }
}

pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reached => "reached",
        Verdict::Missed => "missed",
        Verdict::Measured => "",
        Verdict::NotMeasured => "not measured",
        Verdict::Invalid => "invalid",
    }
}

fn ratio(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

/// `7 of 9 targets reached`; empty without targets.
pub(super) fn headline(outcome: &Outcome) -> String {
    let targets: Vec<_> = outcome
        .lines()
        .filter(|(_, line)| line.target.is_some())
        .collect();
    if targets.is_empty() {
        return String::new();
    }
    let reached = targets
        .iter()
        .filter(|(_, line)| line.verdict == Verdict::Reached)
        .count();
    let unknown = targets
        .iter()
        .filter(|(_, line)| matches!(line.verdict, Verdict::Invalid | Verdict::NotMeasured))
        .count();
    let mut text = format!("{reached} of {} targets reached", targets.len());
    if unknown > 0 {
        text.push_str(&format!(", {unknown} could not be judged"));
    }
    text
}

const HEAD: [&str; 7] = ["", "measured", "peer", "ratio", "spread", "target", ""];

const VERDICT: usize = 6;

/// The table for a terminal, with the bottleneck of every variant below each work.
pub(crate) fn terminal(outcome: &Outcome) -> String {
    let mut lines: Vec<Line> = Vec::new();
    for work in &outcome.works {
        let title = match work.point.value("connections") {
            Some(_) => work.title(),
            None => {
                let connections = units::count(u64::from(work.connections));
                format!("{} · {connections} connections", work.title())
            }
        };
        lines.push(Line::Work(title));
        let mut figure = String::new();
        for line in &work.figures {
            let row = row(work, line);
            if row.figure != figure {
                figure = row.figure.clone();
                lines.push(Line::Figure(figure.clone()));
            }
            let notes = row.notes.clone();
            lines.push(Line::Cells(cells(row)));
            lines.extend(notes.into_iter().map(Line::Note));
        }
        lines.extend(costs(work).into_iter().map(Line::Cost));
        lines.extend(limits(work).into_iter().map(Line::Limit));
    }
    let mut text = String::from("\n");
    text.push_str(&laid_out(&lines));
    text.push('\n');
    for points in outcome.works.chunk_by(|a, b| a.name == b.name) {
        text.push_str(&cumulative_lines(points));
    }
    for note in &outcome.notes {
        text.push_str(&format!("{note}\n"));
    }
    let headline = headline(outcome);
    if !headline.is_empty() {
        text.push_str(&format!("{headline}\n"));
    }
    text
}

fn cumulative_lines(points: &[WorkOutcome]) -> String {
    let mut text = String::new();
    let Some((title, roads)) = cumulative_steps(points) else {
        return text;
    };
    for road in roads {
        let name = &points[0].name;
        text.push_str(&format!("steps of {name} · {}: {title}\n", road.variant));
        let width = road
            .steps
            .iter()
            .map(|step| step.change.chars().count())
            .max();
        let width = width.unwrap_or(0);
        for step in road.steps {
            let (change, value, ratio) = (step.change, step.value, step.ratio);
            text.push_str(format!("  {change:<width$}  {value:<34}  {ratio}").trim_end());
            text.push_str(&format!("\n      {}\n", step.limit));
        }
        text.push('\n');
    }
    text
}

enum Line {
    Work(String),
    Figure(String),
    Cells([String; 7]),
    Note(String),
    Cost(String),
    Limit(String),
}

fn cells(row: Row) -> [String; 7] {
    let who = if row.theirs.is_empty() {
        row.ours
    } else {
        format!("{} / {}", row.ours, row.theirs)
    };
    [
        who,
        row.ours_value,
        row.theirs_value,
        row.value,
        row.spread,
        row.target,
        row.verdict.into(),
    ]
}

/// Bottlenecks by variant, from the trial with the median rate.
pub(super) fn limits(work: &WorkOutcome) -> Vec<String> {
    let limit = |variant: &crate::outcome::VariantOutcome| {
        let trial = variant.median_trial()?;
        let sentence = &trial.limiter.sentence;
        let advice = trial.limiter.advice.as_ref();
        let advice = advice.map_or(String::new(), |advice| format!(" To try: {advice}."));
        (!sentence.is_empty()).then(|| format!("{}: {sentence}{advice}", variant.name))
    };
    work.variants.iter().filter_map(limit).collect()
}

/// Median CPU time per request of each variant in the role under test, divided into its parts if they were collected.
pub(super) fn costs(work: &WorkOutcome) -> Vec<String> {
    let cost = |variant: &VariantOutcome| {
        let role = variant.under_test;
        let parts = cost_parts(variant, role)?;
        let name = role.name();
        Some(format!("{}: {name} CPU per request: {parts}", variant.name))
    };
    work.variants.iter().filter_map(cost).collect()
}

/// `user 0.52 / system 3.18 / softirq 0.61 µs` of a role; `None` if not collected.
pub(super) fn cost_parts(variant: &VariantOutcome, role: Role) -> Option<String> {
    let parts = [
        ("user", RoleMetric::User),
        ("system", RoleMetric::System),
        ("softirq", RoleMetric::Softirq),
    ];
    let part = |(word, of): (&str, RoleMetric)| {
        let rounds = variant
            .metrics
            .get(&CollectedMetric::OfRole(role, of).name())?;
        Some(format!("{word} {:.2}", rounds.median))
    };
    let parts: Option<Vec<String>> = parts.into_iter().map(part).collect();
    Some(format!("{} µs", parts?.join(" / ")))
}

/// Aligns cells in columns, with other lines between them.
fn laid_out(lines: &[Line]) -> String {
    let mut table = Table::new(&HEAD, 1..VERDICT);
    for line in lines {
        if let Line::Cells(cells) = line {
            table.push(cells.to_vec());
        }
    }
    let mut rows = table.lines();
    let mut row = || format!("    {}", rows.next().unwrap_or_default());
    let mut text = row() + "\n";
    for line in lines {
        let line = match line {
            Line::Work(name) => format!("\n{name}"),
            Line::Figure(title) => format!("  {title}"),
            Line::Cells(_) => row(),
            Line::Note(note) => format!("      {note}"),
            Line::Cost(cost) => format!("  cost · {cost}"),
            Line::Limit(limit) => format!("  limit · {limit}"),
        };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::outcome;

    #[test]
    fn columns_are_aligned_and_targets_judged() {
        let text = terminal(&outcome());
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" / nginx"))
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
        let end_of_target = |line: &str| line.find("0.85").map(|at| line[..at].chars().count());
        assert_eq!(end_of_target(lines[0]), end_of_target(lines[1]));
        assert!(
            lines[0].ends_with("reached") && lines[1].ends_with("missed"),
            "{text}"
        );
        assert!(text.contains("1 of 2 targets reached"));
        assert!(
            text.contains(
                "cost · nginx: server CPU per request: user 0.98 / system 3.94 / softirq 0.25 µs"
            ),
            "{text}"
        );
        assert!(
            text.contains("limit · onrush epoll: CPU 1 was full"),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_rounded_and_targets_exact() {
        assert_eq!(number(3.708, "µs"), "3.71 µs");
        assert_eq!(number(37.08, "µs"), "37.1 µs");
        assert_eq!(number(370.8, "µs"), "371 µs");
        assert_eq!(number(1_370.8, "µs"), "1.37 ms");
        assert_eq!(number(512.0, "B"), "512 B");
        assert_eq!(target(1_024.0, "B"), "1,024 B");
        assert_eq!(ratio(3.0), "3.00");
    }
}
