//! The charts of one work: its rounds, its latency, its rate over time, its CPUs.

use std::collections::BTreeMap;

use onrush_measure::compare::Rounds;

use super::super::chart::{
    Axis, Column, Line, Plot, Scale, Size, Stack, StripRow, escape, linear_ticks, log_ticks,
    percentile_ticks, plain_number, strip, tail, time_tick,
};
use super::super::table::number;
use super::Palette;
use crate::environment::cpu_list;
use crate::outcome::{CpuUse, Latency, Sample, Second, Trial, VariantOutcome, WorkOutcome};
use crate::scenario::{Metric, Role, Unit};

/// All charts of a work but those of its CPUs, as `<figure>` elements.
pub(super) fn of_work(work: &WorkOutcome, palette: &Palette) -> Vec<String> {
    let mut figures = rounds(work, palette);
    let has_rounds = !figures.is_empty();
    figures.extend(latency(work, palette));
    figures.extend(rate(work, palette));
    // Three fill a row; with rounds to show, packets are left to the files.
    if !has_rounds {
        figures.extend(packets(work, palette));
    }
    figures
}

fn figure(title: &str, subtitle: &str, svg: &str) -> String {
    format!(
        "<figure><figcaption><b>{}</b><span>{}</span></figcaption>{svg}</figure>\n",
        escape(title),
        escape(subtitle)
    )
}

// Rounds.

/// A strip for each metric the work's figures are about; one round needs no picture.
fn rounds(work: &WorkOutcome, palette: &Palette) -> Vec<String> {
    let mut metrics: Vec<&str> = Vec::new();
    for line in &work.figures {
        if !metrics.contains(&line.metric.as_str()) {
            metrics.push(&line.metric);
        }
    }
    metrics
        .into_iter()
        .filter_map(|name| rounds_of(work, &Metric::parse(name)?, palette))
        .collect()
}

fn rounds_of(work: &WorkOutcome, metric: &Metric, palette: &Palette) -> Option<String> {
    let name = metric.name();
    let rows: Vec<StripRow> = work
        .variants
        .iter()
        .filter_map(|variant| {
            let rounds: Vec<f64> = variant
                .trials
                .iter()
                .filter(|trial| trial.is_valid())
                .filter_map(|trial| trial.metrics.get(&name).copied())
                .collect();
            let median = Rounds::of(&rounds)?.median;
            Some(StripRow {
                name: variant.name.clone(),
                class: palette.class(&variant.name).to_owned(),
                median,
                median_text: number(median, metric.unit().symbol()),
                rounds,
            })
        })
        .collect();
    if rows.iter().all(|row| row.rounds.len() < 2) {
        return None;
    }
    let text: fn(f64) -> String = match metric.unit() {
        Unit::PerSecond => |value| number(value, "/s"),
        Unit::Microseconds => |value| number(value, "µs"),
        Unit::Bytes => |value| number(value, "B"),
    };
    let unit = match metric.unit() {
        Unit::PerSecond => "requests per second",
        Unit::Microseconds => "microseconds",
        Unit::Bytes => "bytes",
    };
    let title = capitalized(&metric.title());
    let svg = strip(&title, unit, &rows, text);
    Some(figure(
        &title,
        "a dot for each round, a bar at the median",
        &svg,
    ))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

// Latency.

/// The latency of the client, or of the control client.
type Pick = fn(&Trial) -> Option<&Latency>;

fn latency(work: &WorkOutcome, palette: &Palette) -> Option<String> {
    let mut lines = Vec::new();
    for variant in &work.variants {
        let kinds: [(bool, Pick); 2] = [
            (false, |trial| trial.latency_us.as_ref()),
            (true, |trial| trial.control_latency_us.as_ref()),
        ];
        for (is_control, pick) in kinds {
            let points = median_curve(variant, pick);
            if points.len() < 2 {
                continue;
            }
            let beside = if is_control { ", control" } else { "" };
            lines.push(Line {
                name: format!("{}{beside}", variant.name),
                class: palette.class(&variant.name).to_owned(),
                is_dashed: is_control,
                segments: vec![points],
            });
        }
    }
    let all: Vec<(f64, f64)> = lines
        .iter()
        .flat_map(|line| line.segments.iter().flatten().copied())
        .collect();
    let last = all.iter().map(|point| point.0).fold(0.0, f64::max);
    if last <= 2.0 {
        return None;
    }
    let smallest = all
        .iter()
        .map(|point| point.1)
        .fold(f64::INFINITY, f64::min);
    let largest = all.iter().map(|point| point.1).fold(0.0, f64::max);
    let y_ticks = log_ticks(smallest, largest);
    let described: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let last = line.segments.first()?.last()?;
            Some(format!(
                "{}: {} at {}",
                line.name,
                time_text(last.1),
                percentile_text(last.0)
            ))
        })
        .collect();
    let plot = Plot {
        title: format!("{}: latency by percentile", work.name),
        description: described.join("; "),
        x: Axis {
            label: "requests answered within".into(),
            scale: Scale::Log(2.0, last),
            ticks: percentile_ticks(last),
        },
        y: Axis {
            label: String::new(),
            scale: log_scale(&y_ticks),
            ticks: y_ticks
                .iter()
                .map(|tick| (*tick, time_tick(*tick)))
                .collect(),
        },
        lines,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: percentile_text,
        y_text: time_text,
    };
    Some(figure(
        "Latency",
        "by percentile, each nine the same room",
        &plot.svg(),
    ))
}

fn log_scale(ticks: &[f64]) -> Scale {
    let first = ticks.first().copied().unwrap_or(1.0);
    let last = ticks.last().copied().unwrap_or(10.0);
    Scale::Log(first, last.max(first * 1.5))
}

fn percentile_text(tail: f64) -> String {
    let percentile = 100.0 - 100.0 / tail;
    format!(
        "{} %",
        onrush_measure::units::percentile((percentile * 1e6).round() / 1e6)
    )
}

fn time_text(us: f64) -> String {
    number(us, "µs")
}

/// Percentile by percentile the median over the rounds that have it; at least half of them must.
fn median_curve(variant: &VariantOutcome, pick: Pick) -> Vec<(f64, f64)> {
    let curves: Vec<&Latency> = variant.trials.iter().filter_map(pick).collect();
    let mut values: BTreeMap<u64, (f64, Vec<f64>)> = BTreeMap::new();
    for curve in &curves {
        for value in &curve.percentiles {
            let Ok(percentile) = value.percentile.parse::<f64>() else {
                continue;
            };
            if !(50.0..100.0).contains(&percentile) {
                continue;
            }
            values
                .entry((percentile * 1e6) as u64)
                .or_insert((percentile, Vec::new()))
                .1
                .push(value.us);
        }
    }
    values
        .into_values()
        .filter(|(_, values)| values.len() * 2 >= curves.len())
        .filter_map(|(percentile, values)| Some((tail(percentile), Rounds::of(&values)?.median)))
        .filter(|(_, us)| *us > 0.0)
        .collect()
}

// Rate over time.

fn rate(work: &WorkOutcome, palette: &Palette) -> Option<String> {
    let text: Vec<String> = work
        .variants
        .iter()
        .filter_map(|variant| {
            let trial = variant.typical()?;
            Some(format!("{}: {}", variant.name, number(trial.rps, "/s")))
        })
        .collect();
    let seconds = |trial: &Trial| {
        let middle = |second: &Second| (second.t - 0.5, second.rps);
        trial.seconds.iter().map(middle).collect()
    };
    over_time(
        work,
        palette,
        "Requests per second",
        &text.join("; "),
        seconds,
    )
}

/// Packets of all interfaces in both directions: on a real network this is what runs out first.
fn packets(work: &WorkOutcome, palette: &Palette) -> Option<String> {
    let seconds = |trial: &Trial| {
        let middle = |sample: &Sample| {
            let packets = sample.interfaces.values().map(|used| used.rx_packets).sum();
            (sample.t - sample.span_s / 2.0, packets)
        };
        trial.samples.iter().map(middle).collect()
    };
    over_time(
        work,
        palette,
        "Packets received per second",
        "All interfaces together, the loopback among them",
        seconds,
    )
}

/// A line for each variant; rounds one after the other, as if the pauses between them had not been.
fn over_time(
    work: &WorkOutcome,
    palette: &Palette,
    title: &str,
    description: &str,
    seconds: impl Fn(&Trial) -> Vec<(f64, f64)>,
) -> Option<String> {
    let length = window_length(work)?;
    let rounds = work
        .variants
        .iter()
        .map(|variant| variant.trials.len())
        .max()?;
    let segment = |trial: &Trial| -> Vec<(f64, f64)> {
        let start = f64::from(trial.round - 1) * length;
        seconds(trial)
            .into_iter()
            .filter(|(t, _)| *t < length)
            .map(|(t, value)| (start + t, value))
            .collect()
    };
    let lines: Vec<Line> = work
        .variants
        .iter()
        .map(|variant| Line {
            name: variant.name.clone(),
            class: palette.class(&variant.name).to_owned(),
            is_dashed: false,
            segments: variant
                .trials
                .iter()
                .map(segment)
                .filter(|segment| !segment.is_empty())
                .collect(),
        })
        .filter(|line| !line.segments.is_empty())
        .collect();
    let largest = lines
        .iter()
        .flat_map(|line| line.segments.iter().flatten())
        .map(|point| point.1)
        .fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let y_ticks = linear_ticks(largest * 1.02, 4);
    let plot = Plot {
        title: format!("{}: {} over time", work.name, title.to_lowercase()),
        description: description.into(),
        x: time_axis(length, rounds),
        y: Axis {
            label: String::new(),
            scale: Scale::Linear(0.0, y_ticks.last().copied().unwrap_or(1.0)),
            ticks: y_ticks
                .iter()
                .map(|tick| (*tick, plain_number(*tick)))
                .collect(),
        },
        lines,
        stack: Stack::default(),
        rules: (1..rounds).map(|round| round as f64 * length).collect(),
        size: Size::Full,
        x_text: |t| format!("{t:.1} s"),
        y_text: |rate| number(rate, "/s"),
    };
    let subtitle = if rounds > 1 {
        "rounds one after the other"
    } else {
        "over time"
    };
    Some(figure(title, subtitle, &plot.svg()))
}

/// The window the trials were asked for, as far as their samples tell.
fn window_length(work: &WorkOutcome) -> Option<f64> {
    let windows: Vec<f64> = work
        .variants
        .iter()
        .flat_map(|variant| &variant.trials)
        .filter(|trial| trial.latency_us.is_some() || !trial.samples.is_empty())
        .map(|trial| trial.window_s)
        .collect();
    Some(Rounds::of(&windows)?.median.round().max(1.0))
}

fn time_axis(length: f64, rounds: usize) -> Axis {
    let end = length * rounds as f64;
    let ticks = linear_ticks(end, 5);
    Axis {
        label: if rounds > 1 {
            "seconds measured; a rule between rounds".into()
        } else {
            "seconds".into()
        },
        scale: Scale::Linear(0.0, end),
        ticks: ticks
            .into_iter()
            .filter(|tick| *tick <= end)
            .map(|tick| (tick, plain_number(tick)))
            .collect(),
    }
}

// CPUs.

/// A small chart for each set of CPUs of a variant: the mean of the set, and its fullest CPU when there are several.
pub(super) fn cpus(variant: &VariantOutcome) -> Vec<String> {
    let mut sets: Vec<&Vec<usize>> = Vec::new();
    for cpus in variant.placement.cpus.values() {
        if !sets.contains(&cpus) {
            sets.push(cpus);
        }
    }
    sets.sort();
    sets.into_iter()
        .filter_map(|cpus| cpu_chart(variant, cpus))
        .collect()
}

fn cpu_chart(variant: &VariantOutcome, cpus: &[usize]) -> Option<String> {
    let trials: Vec<&Trial> = variant
        .trials
        .iter()
        .filter(|trial| !trial.samples.is_empty())
        .collect();
    let windows: Vec<f64> = trials.iter().map(|trial| trial.window_s).collect();
    let length = Rounds::of(&windows)?.median.round().max(1.0);
    let rounds = variant.trials.iter().map(|trial| trial.round).max()? as usize;
    let mut columns = Vec::new();
    let mut fullest = Vec::new();
    for trial in &trials {
        let start = f64::from(trial.round - 1) * length;
        let mut top = Vec::new();
        for sample in &trial.samples {
            let to = sample.t.min(length);
            let from = (sample.t - sample.span_s).clamp(0.0, length);
            let Some((mean, max)) = use_of(sample, cpus) else {
                continue;
            };
            if to <= from {
                continue;
            }
            columns.push(Column {
                from: start + from,
                to: start + to,
                parts: vec![mean.user, mean.system, mean.softirq + mean.irq, mean.steal],
            });
            top.push((start + (from + to) / 2.0, max));
        }
        fullest.push(top);
    }
    if columns.is_empty() {
        return None;
    }
    let names: Vec<&str> = Role::ALL
        .into_iter()
        .filter(|role| variant.placement.of(*role) == cpus)
        .map(Role::name)
        .collect();
    let what = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let title = format!("{what} {} · {}", cpu_list(cpus), names.join(", "));
    let busy = columns
        .iter()
        .map(|column| column.parts.iter().sum::<f64>())
        .sum::<f64>()
        / columns.len() as f64;
    let lines = if cpus.len() > 1 {
        vec![Line {
            name: "fullest".into(),
            class: "fullest".into(),
            is_dashed: true,
            segments: fullest,
        }]
    } else {
        Vec::new()
    };
    let plot = Plot {
        title: format!("{}, {title}", variant.name),
        description: format!("{:.0} % busy on average", busy * 100.0),
        x: Axis {
            label: String::new(),
            ..time_axis(length, rounds)
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
            parts: vec![
                ("user", "user"),
                ("system", "system"),
                ("softirq", "softirq"),
                ("steal", "steal"),
            ],
            columns,
        },
        rules: (1..rounds).map(|round| round as f64 * length).collect(),
        size: Size::Small,
        x_text: |t| format!("{t:.1} s"),
        y_text: |share| format!("{:.0} %", share * 100.0),
    };
    Some(figure(
        &title,
        &format!("{:.0} % busy", busy * 100.0),
        &plot.svg(),
    ))
}

/// Mean use of a set of CPUs in a sample, and how full its fullest was.
fn use_of(sample: &Sample, cpus: &[usize]) -> Option<(CpuUse, f64)> {
    let chosen: Vec<&CpuUse> = sample
        .cpus
        .iter()
        .filter(|cpu| cpus.contains(&cpu.cpu))
        .collect();
    let count = chosen.len() as f64;
    let mean = |part: fn(&CpuUse) -> f64| chosen.iter().map(|cpu| part(cpu)).sum::<f64>() / count;
    let first = chosen.first()?;
    let mean = CpuUse {
        cpu: first.cpu,
        user: mean(|cpu| cpu.user),
        system: mean(|cpu| cpu.system),
        softirq: mean(|cpu| cpu.softirq),
        irq: mean(|cpu| cpu.irq),
        steal: mean(|cpu| cpu.steal),
    };
    let fullest = chosen.iter().map(|cpu| cpu.busy()).fold(0.0, f64::max);
    Some((mean, fullest))
}
