//! CPU use over time: a small chart for each set of CPUs that roles share.

use onrush_chart::{Axis, Column, Line, LineChart, Scale, Size, Stack, figure, legend_area};
use onrush_measure::compare::Rounds;

use super::curves::time_axis;
use crate::environment::cpu_list;
use crate::outcome::{CpuUse, Sample, Trial, VariantOutcome};
use crate::scenario::Role;
use crate::verdict::mean_use;

/// Kinds of CPU time: name and colour class, from bottom to top.
pub(super) const PARTS: [(&str, &str); 5] = [
    ("user", "user"),
    ("system", "system"),
    ("softirq", "softirq"),
    ("irq", "irq"),
    ("steal", "steal"),
];

/// Shares of a CPU in the order of [`PARTS`].
pub(super) fn parts(cpu: &CpuUse) -> Vec<f64> {
    vec![cpu.user, cpu.system, cpu.softirq, cpu.irq, cpu.steal]
}

pub(super) fn legend() -> String {
    let entry = |(name, class): &(&str, &str)| format!("<li>{}{name}</li>", legend_area(class));
    PARTS.iter().map(entry).collect()
}

pub(super) fn charts(variant: &VariantOutcome) -> Vec<String> {
    let mut sets: Vec<&Vec<usize>> = Vec::new();
    for cpus in variant.placement.cpus.values() {
        if !sets.contains(&cpus) {
            sets.push(cpus);
        }
    }
    sets.sort();
    sets.into_iter()
        .filter_map(|cpus| chart(variant, cpus))
        .collect()
}

/// Use of a set of CPUs, rounds in sequence.
struct History {
    /// Length of a round in seconds.
    length: f64,
    rounds: usize,
    columns: Vec<Column>,
    /// Use of the busiest CPU, one line per round.
    fullest: Vec<Vec<(f64, f64)>>,
}

fn history(variant: &VariantOutcome, cpus: &[usize]) -> Option<History> {
    let sampled = |trial: &&Trial| !trial.samples.is_empty();
    let trials: Vec<&Trial> = variant.trials.iter().filter(sampled).collect();
    let windows: Vec<f64> = trials.iter().map(|trial| trial.window_s).collect();
    let length = Rounds::of(&windows)?.median.round().max(1.0);
    let mut columns = Vec::new();
    let mut fullest = Vec::new();
    for trial in &trials {
        let start = f64::from(trial.round - 1) * length;
        let mut top = Vec::new();
        for sample in &trial.samples {
            let to = sample.t.min(length);
            let from = (sample.t - sample.span_s).clamp(0.0, length);
            let Some(mean) = mean_use(&sample.cpus, cpus).filter(|_| from < to) else {
                continue;
            };
            columns.push(Column {
                from: start + from,
                to: start + to,
                parts: parts(&mean),
            });
            top.push((start + (from + to) / 2.0, fullest_of(sample, cpus)));
        }
        fullest.push(top);
    }
    (!columns.is_empty()).then_some(History {
        length,
        rounds: variant.trials.iter().map(|trial| trial.round).max()? as usize,
        columns,
        fullest,
    })
}

fn fullest_of(sample: &Sample, cpus: &[usize]) -> f64 {
    sample
        .cpus
        .iter()
        .filter(|cpu| cpus.contains(&cpu.cpu))
        .map(CpuUse::busy)
        .fold(0.0, f64::max)
}

/// Chart of the mean use of a set of CPUs, and of its busiest CPU if there are several.
fn chart(variant: &VariantOutcome, cpus: &[usize]) -> Option<String> {
    let history = history(variant, cpus)?;
    let names: Vec<&str> = Role::ALL
        .into_iter()
        .filter(|role| variant.placement.of(*role) == cpus)
        .map(Role::name)
        .collect();
    let what = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let title = format!("{what} {} · {}", cpu_list(cpus), names.join(", "));
    let all: f64 = history
        .columns
        .iter()
        .flat_map(|column| &column.parts)
        .sum();
    let busy = format!("{:.0} % busy", all / history.columns.len() as f64 * 100.0);
    let lines = if cpus.len() > 1 {
        vec![Line {
            name: "fullest".into(),
            class: "fullest".into(),
            is_dashed: true,
            ranges: Vec::new(),
            segments: history.fullest,
        }]
    } else {
        Vec::new()
    };
    let plot = LineChart {
        title: format!("{}, {title}", variant.name),
        description: format!("{busy} on average"),
        x: Axis {
            label: String::new(),
            ..time_axis(history.length, history.rounds)
        },
        y: Axis {
            label: String::new(),
            scale: Scale::Linear(0.0, 1.0),
            ticks: [0.0, 0.5, 1.0]
                .map(|tick| (tick, format!("{:.0} %", tick * 100.0)))
                .into(),
        },
        lines,
        stack: Stack {
            parts: PARTS.into(),
            columns: history.columns,
        },
        rules: (1..history.rounds)
            .map(|round| round as f64 * history.length)
            .collect(),
        size: Size::Small,
        x_text: |t| format!("{t:.1} s"),
        y_text: |share| format!("{:.0} %", share * 100.0),
    };
    Some(figure(&title, &busy, &plot.svg()))
}
