//! Charts of one work: rounds, latency, and rate over time.

use std::collections::BTreeMap;

use onrush_chart::{
    Axis, DotPlotRow, Line, LineChart, Scale, Size, Stack, dot_plot, figure, linear_ticks,
    log_ticks, percentile_ticks, plain_number, tail, time_tick,
};
use onrush_measure::compare::Rounds;

use super::super::number::number;
use super::palette::Palette;
use crate::outcome::{Latency, Sample, Second, Trial, VariantOutcome, WorkOutcome};
use crate::scenario::{Metric, Unit};
use crate::verdict::counts;

/// All charts of a work except the charts of its CPUs, as `<figure>` elements.
pub(super) fn of_work(work: &WorkOutcome, palette: &Palette) -> Vec<String> {
    let mut figures = rounds(work, palette);
    let has_rounds = !figures.is_empty();
    figures.extend(latency(work, palette));
    figures.extend(rate(work, palette));
    // Three charts fill a row. If there are rounds to show, packets are left out.
    if !has_rounds {
        figures.extend(packets(work, palette));
    }
    figures
}

/// A dot plot for each metric in the work's figures, if there are several rounds.
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
    let rows: Vec<DotPlotRow> = work
        .variants
        .iter()
        .filter_map(|variant| {
            let rounds: Vec<(u32, f64)> = variant
                .trials
                .iter()
                .filter(|trial| counts(work, &variant.name, metric, trial))
                .filter_map(|trial| Some((trial.round, trial.metrics.get(&name).copied()?)))
                .collect();
            let values: Vec<f64> = rounds.iter().map(|(_, value)| *value).collect();
            let median = Rounds::of(&values)?.median;
            Some(DotPlotRow {
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
        Unit::Number => |value| number(value, ""),
    };
    let unit = match metric.unit() {
        Unit::PerSecond => "requests per second",
        Unit::Microseconds => "microseconds",
        Unit::Bytes => "bytes",
        Unit::Number => "number",
    };
    let title = capitalized(&metric.title());
    let svg = dot_plot(&title, unit, &rows, text);
    Some(figure(
        &title,
        "a dot for each valid round, a bar at the median",
        &svg,
    ))
}

pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Selects the latency of the client or of the control client.
type Pick = fn(&Trial) -> Option<&Latency>;

fn latency(work: &WorkOutcome, palette: &Palette) -> Option<String> {
    let lines = latency_lines(work, palette);
    let points = || lines.iter().flat_map(|line| line.segments.iter().flatten());
    let last = points().map(|point| point.0).fold(0.0, f64::max);
    if last <= 2.0 {
        return None;
    }
    let smallest = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let largest = points().map(|point| point.1).fold(0.0, f64::max);
    let y_ticks = log_ticks(smallest, largest);
    let end = |line: &Line| {
        let (tail, us) = *line.segments.first()?.last()?;
        let at = percentile_text(tail);
        Some(format!("{}: {} at {at}", line.name, time_text(us)))
    };
    let described: Vec<String> = lines.iter().filter_map(end).collect();
    let plot = LineChart {
        title: format!("{}: latency by percentile", work.title()),
        description: described.join("; "),
        x: Axis {
            label: "responses within".into(),
            scale: Scale::Log(2.0, last),
            ticks: percentile_ticks(last),
        },
        y: latency_axis(&y_ticks),
        lines,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: percentile_text,
        y_text: time_text,
    };
    Some(figure(
        "Latency",
        "by percentile; each further nine takes the same width",
        &plot.svg(),
    ))
}

/// A line for each variant, and a dashed one for its control client.
fn latency_lines(work: &WorkOutcome, palette: &Palette) -> Vec<Line> {
    let kinds: [(bool, Pick); 2] = [
        (false, |trial| trial.latency_us.as_ref()),
        (true, |trial| trial.control_latency_us.as_ref()),
    ];
    let mut lines = Vec::new();
    for variant in &work.variants {
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
                ranges: Vec::new(),
                segments: vec![points],
            });
        }
    }
    lines
}

pub(super) fn latency_axis(ticks: &[f64]) -> Axis {
    Axis {
        label: String::new(),
        scale: log_scale(ticks),
        ticks: ticks.iter().map(|tick| (*tick, time_tick(*tick))).collect(),
    }
}

pub(super) fn log_scale(ticks: &[f64]) -> Scale {
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

pub(super) fn time_text(us: f64) -> String {
    number(us, "µs")
}

/// Median of each percentile over the rounds that have it; at least half of the rounds must.
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

fn rate(work: &WorkOutcome, palette: &Palette) -> Option<String> {
    let text: Vec<String> = work
        .variants
        .iter()
        .filter_map(|variant| {
            let trial = variant.median_trial()?;
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

/// Packets received on all interfaces: on a real network these are usually the first bottleneck.
fn packets(work: &WorkOutcome, palette: &Palette) -> Option<String> {
    let has_rate = |trial: &Trial| trial.metrics.contains_key(&Metric::Rate.name());
    let mut trials = work.variants.iter().flat_map(|variant| &variant.trials);
    if !trials.any(has_rate) {
        return None;
    }
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
        "All interfaces together, including the loopback",
        seconds,
    )
}

/// A line for each variant; rounds follow each other without the pauses between them.
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
    let lines = lines_over_time(work, palette, length, seconds);
    let largest = lines
        .iter()
        .flat_map(|line| line.segments.iter().flatten())
        .map(|point| point.1)
        .fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let y_ticks = linear_ticks(largest * 1.02, 4);
    let plot = LineChart {
        title: format!("{}: {} over time", work.title(), title.to_lowercase()),
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
        "rounds in sequence"
    } else {
        "over time"
    };
    Some(figure(title, subtitle, &plot.svg()))
}

fn lines_over_time(
    work: &WorkOutcome,
    palette: &Palette,
    length: f64,
    seconds: impl Fn(&Trial) -> Vec<(f64, f64)>,
) -> Vec<Line> {
    let segment = |trial: &Trial| -> Vec<(f64, f64)> {
        let start = f64::from(trial.round - 1) * length;
        seconds(trial)
            .into_iter()
            .filter(|(t, _)| *t < length)
            .map(|(t, value)| (start + t, value))
            .collect()
    };
    let line = |variant: &VariantOutcome| Line {
        name: variant.name.clone(),
        class: palette.class(&variant.name).to_owned(),
        is_dashed: false,
        ranges: Vec::new(),
        segments: variant
            .trials
            .iter()
            .map(segment)
            .filter(|segment| !segment.is_empty())
            .collect(),
    };
    work.variants
        .iter()
        .map(line)
        .filter(|line| !line.segments.is_empty())
        .collect()
}

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

pub(super) fn time_axis(length: f64, rounds: usize) -> Axis {
    let end = length * rounds as f64;
    let ticks = linear_ticks(end, 5);
    Axis {
        label: if rounds > 1 {
            "seconds measured; a line between rounds".into()
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
