//! History as text for a terminal.

use std::fmt;

use onrush_measure::units;

use super::History;
use super::series::Series;
use crate::compare::verdict::percent;
use crate::report::number;

/// Latest values shown of each series; the JSON has all.
const VALUES_SHOWN: usize = 6;

impl fmt::Display for History {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.headline())?;
        for said in self.machines.iter().chain(&self.left_out) {
            writeln!(out, "note: {said}")?;
        }
        let (long, short): (Vec<&Series>, Vec<&Series>) = self
            .series
            .iter()
            .partition(|it| it.points.len() >= self.runs_min);
        let changed = long.iter().filter(|it| !it.changes.is_empty());
        for series in changed.clone() {
            writeln!(out, "\n{}", line(series))?;
            for change in &series.changes {
                writeln!(out, "  {}", change.words())?;
            }
        }
        writeln!(out)?;
        for series in long.iter().filter(|it| it.changes.is_empty()) {
            writeln!(out, "no change  {}", line(series))?;
        }
        writeln!(
            out,
            "series: {} with a change, {} without, {} too short; at {} confidence a change needs at least {} runs",
            changed.count(),
            long.iter().filter(|it| it.changes.is_empty()).count(),
            short.len(),
            percent(self.confidence),
            self.runs_min
        )
    }
}

impl History {
    pub(super) fn headline(&self) -> String {
        let runs = units::plural(self.runs as u64, "run");
        match &self.days {
            Some((first, last)) => format!("{runs} below {}, {first} to {last}", self.folder),
            None => format!("{runs} below {}", self.folder),
        }
    }
}

fn line(series: &Series) -> String {
    let points = &series.points;
    let shown = points.len().saturating_sub(VALUES_SHOWN);
    let values: Vec<String> = points[shown..]
        .iter()
        .map(|it| value(series, it.value))
        .collect();
    let before = if shown > 0 { "… " } else { "" };
    format!(
        "{}{}: {before}{}",
        series.name(),
        beside(series),
        values.join(" ")
    )
}

pub(super) fn beside(series: &Series) -> String {
    match &series.beside {
        Some(reference) => format!(" beside {reference}"),
        None => String::new(),
    }
}

/// Formats a value; ratios have no unit.
pub(super) fn value(series: &Series, value: f64) -> String {
    match series.beside {
        Some(_) if value >= 10.0 => format!("{value:.1}"),
        Some(_) => format!("{value:.3}"),
        None => number(value, series.unit),
    }
}
