//! Charts of a result.

mod distribution;

use onrush_chart::{
    Axis, Column, Line, LineChart, Scale, Size, Stack, figure, linear_ticks, log_ticks,
    percentile_ticks, plain_number, tail, time_tick,
};
use onrush_measure::histogram::Histogram;
use onrush_measure::units;

use super::time::time;
use crate::record::figures::Kind;
use crate::record::incomplete_waits::{Bounds, Censored, IncompleteWaits};
use crate::record::times::Times;
use crate::report::Report;
use crate::report::rows::SecondRow;
use distribution::distribution;

/// Points in a chart over time: a chart is 320 units wide, and more points per line blur.
const POINTS_MAX: usize = 240;

pub(super) fn of(report: &Report, times: Option<&Times>, waits: &IncompleteWaits) -> Vec<String> {
    let joined = joined(&report.seconds);
    let charts = [
        rate(&joined),
        percentiles_over_time(&joined),
        times.and_then(|times| by_percentile(times, waits)),
        responses(&joined, report.class_names()),
        connections(&joined),
        times.and_then(distribution),
    ];
    charts.into_iter().flatten().collect()
}

/// One point of a chart: one or several seconds.
#[derive(Clone, Copy)]
struct Point {
    from: f64,
    to: f64,
    /// Sum of the counts; each percentile is the worst of any second.
    sum: SecondRow,
}

impl Point {
    fn middle(&self) -> f64 {
        (self.from + self.to) / 2.0
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.to - self.from).max(f64::EPSILON)
    }
}

/// Joins seconds into as many points as a chart can show.
fn joined(rows: &[SecondRow]) -> Vec<Point> {
    let together = rows.len().div_ceil(POINTS_MAX).max(1);
    let mut from = 0.0;
    rows.chunks(together)
        .map(|chunk| {
            let mut sum = chunk[0];
            chunk[1..].iter().for_each(|row| add(&mut sum, row));
            let point = Point {
                from,
                to: sum.t,
                sum,
            };
            from = sum.t;
            point
        })
        .collect()
}

fn add(sum: &mut SecondRow, row: &SecondRow) {
    let worst =
        |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::max);
    sum.t = row.t;
    sum.requests += row.requests;
    sum.errors += row.errors;
    sum.unexpected += row.unexpected;
    sum.p50_us = worst(sum.p50_us, row.p50_us);
    sum.p99_us = worst(sum.p99_us, row.p99_us);
    sum.p99_9_us = worst(sum.p99_9_us, row.p99_9_us);
    sum.max_us = worst(sum.max_us, row.max_us);
    sum.service_p99_us = worst(sum.service_p99_us, row.service_p99_us);
    for (sum, more) in sum.statuses.iter_mut().zip(row.statuses) {
        *sum += more;
    }
}

/// Caption of points that cover several seconds.
fn each(points: &[Point]) -> String {
    let length = points.first().map_or(1.0, |point| point.to - point.from);
    match length.round() as u64 {
        0 | 1 => "by second".to_owned(),
        seconds => format!("one point per {seconds} s, with percentiles of its worst second"),
    }
}

fn time_axis(points: &[Point]) -> Axis {
    let end = points
        .last()
        .map_or(1.0, |point| point.to)
        .max(f64::EPSILON);
    let ticks = linear_ticks(end, 5).into_iter().filter(|tick| *tick <= end);
    Axis {
        label: "seconds".into(),
        scale: Scale::Linear(0.0, end),
        ticks: ticks.map(|tick| (tick, plain_number(tick))).collect(),
    }
}

fn count_axis(largest: f64) -> Axis {
    let ticks = linear_ticks(largest * 1.02, 4);
    Axis {
        label: String::new(),
        scale: Scale::Linear(0.0, ticks.last().copied().unwrap_or(1.0)),
        ticks: ticks
            .into_iter()
            .map(|tick| (tick, plain_number(tick)))
            .collect(),
    }
}

/// Logarithmic axis of times that covers all `lines`; `None` if no value is above 0.
pub(super) fn latency_axis(lines: &[Line]) -> Option<Axis> {
    let values = || {
        lines
            .iter()
            .flat_map(|line| line.segments.iter().flatten())
            .map(|point| point.1)
    };
    let (low, high) = values().fold((f64::INFINITY, 0.0_f64), |(low, high), us| {
        (low.min(us), high.max(us))
    });
    if high <= 0.0 {
        return None;
    }
    let ticks = log_ticks(low, high);
    let (first, last) = (*ticks.first()?, *ticks.last()?);
    Some(Axis {
        label: String::new(),
        scale: Scale::Log(first, last.max(first * 1.5)),
        ticks: ticks
            .into_iter()
            .map(|tick| (tick, time_tick(tick)))
            .collect(),
    })
}

pub(super) fn line(name: &str, class: &str, is_dashed: bool, points: Vec<(f64, f64)>) -> Line {
    Line {
        name: name.to_owned(),
        class: class.to_owned(),
        is_dashed,
        ranges: Vec::new(),
        segments: vec![points],
    }
}

pub(super) fn legend(lines: &[Line]) -> String {
    let entries: String = lines
        .iter()
        .map(|line| {
            let dash = if line.is_dashed { "dash " } else { "" };
            format!(
                "<li><i class=\"{dash}{}\"></i>{}</li>",
                line.class, line.name
            )
        })
        .collect();
    format!("<ul class=\"legend\">{entries}</ul>")
}

fn second_text(t: f64) -> String {
    format!("{t:.1} s")
}

fn rate(points: &[Point]) -> Option<String> {
    let values: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.middle(), point.per_second(point.sum.requests)))
        .collect();
    let largest = values.iter().map(|point| point.1).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let plot = LineChart {
        title: "Responses per second over time".into(),
        description: format!("at most {}", units::rate(largest)),
        x: time_axis(points),
        y: count_axis(largest),
        lines: vec![line("responses", "o1", false, values)],
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: second_text,
        y_text: units::rate,
    };
    Some(figure("Responses per second", &each(points), &plot.svg()))
}

fn percentiles_over_time(points: &[Point]) -> Option<String> {
    type Pick = fn(&SecondRow) -> Option<f64>;
    let picks: [(&str, &str, bool, Pick); 5] = [
        ("largest", "t3", true, |row| row.max_us),
        ("p99.9", "t1", false, |row| row.p99_9_us),
        ("p99", "t2", false, |row| row.p99_us),
        ("p99 of service", "o2", true, |row| row.service_p99_us),
        ("p50", "o1", false, |row| row.p50_us),
    ];
    let lines: Vec<Line> = picks
        .into_iter()
        .map(|(name, class, is_dashed, pick)| {
            let value =
                |point: &Point| Some((point.middle(), pick(&point.sum).filter(|us| *us > 0.0)?));
            line(
                name,
                class,
                is_dashed,
                points.iter().filter_map(value).collect(),
            )
        })
        .filter(|line| !line.segments[0].is_empty())
        .collect();
    let plot = LineChart {
        title: "Response times over time".into(),
        description: format!("{} percentiles of each second", lines.len()),
        x: time_axis(points),
        y: latency_axis(&lines)?,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: second_text,
        y_text: time,
        lines,
    };
    let drawn = format!("{}{}", legend(&plot.lines), plot.svg());
    Some(figure("Response times", &each(points), &drawn))
}

/// Response time, service time and send lag by percentile; the first is the sum of the other two. From the percentile
/// on that requests without a response could change, a curve is a lower bound and dashed.
fn by_percentile(times: &Times, waits: &IncompleteWaits) -> Option<String> {
    let none = Histogram::new();
    let kinds = [
        (Kind::Response, "o1", false),
        (Kind::Service, "o2", false),
        (Kind::SendLag, "t1", true),
    ];
    let lines: Vec<Line> = kinds
        .into_iter()
        .flat_map(|(kind, class, is_dashed)| {
            let all = Censored::new(times.of(kind), waits.of(kind).unwrap_or(&none)).curve();
            let known = all.iter().take_while(|(_, bounds)| bounds.is_known());
            let known = known.count();
            // The dashed part starts where the curve ends.
            let bounded = match known < all.len() {
                true => &all[known.saturating_sub(1)..],
                false => &[],
            };
            let points = |part: &[(f64, Bounds)]| -> Vec<(f64, f64)> {
                part.iter()
                    .map(|(percentile, bounds)| (tail(*percentile), bounds.low / 1000.0))
                    .filter(|point| point.1 > 0.0)
                    .collect()
            };
            let title = kind.title();
            [
                line(title, class, is_dashed, points(&all[..known])),
                line(&format!("{title}, at least"), class, true, points(bounded)),
            ]
        })
        .filter(|line| line.segments[0].len() > 1)
        .collect();
    let last = lines
        .iter()
        .filter_map(|line| line.segments[0].last())
        .map(|point| point.0)
        .fold(0.0, f64::max);
    let ends = lines.iter().filter_map(|line| {
        let (_, us) = line.segments[0].last()?;
        Some(format!("{}: {}", line.name, time(*us)))
    });
    let plot = LineChart {
        title: "Times by percentile".into(),
        description: ends.collect::<Vec<_>>().join("; "),
        x: Axis {
            label: "responses within".into(),
            scale: Scale::Log(2.0, last),
            ticks: percentile_ticks(last),
        },
        y: latency_axis(&lines).filter(|_| last > 2.0)?,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: percentile_text,
        y_text: time,
        lines,
    };
    let drawn = format!("{}{}", legend(&plot.lines), plot.svg());
    Some(figure(
        "By percentile",
        "each further nine takes the same width",
        &drawn,
    ))
}

pub(super) fn percentile_text(tail: f64) -> String {
    let percentile = 100.0 - 100.0 / tail;
    format!("{} %", units::percentile((percentile * 1e6).round() / 1e6))
}

/// Responses by status class, with requests without a response on top.
fn responses(points: &[Point], classes: [&'static str; 5]) -> Option<String> {
    let [informed, fine, elsewhere, refused, failed] = classes;
    let parts = [
        (fine, "o2"),
        (elsewhere, "o4"),
        (informed, "t3"),
        (refused, "t1"),
        (failed, "t4"),
        ("no response", "t6"),
    ];
    let columns: Vec<Column> = points
        .iter()
        .map(|point| {
            let [informed, fine, elsewhere, refused, failed] = point.sum.statuses;
            // Unexpected responses are counted by status.
            let unanswered = point.sum.errors - point.sum.unexpected;
            let counts = [fine, elsewhere, informed, refused, failed, unanswered];
            Column {
                from: point.from,
                to: point.to,
                parts: counts.map(|count| point.per_second(count)).into(),
            }
        })
        .collect();
    let largest = columns
        .iter()
        .map(|column| column.parts.iter().sum())
        .fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let is_there = |part: usize| columns.iter().any(|column| column.parts[part] > 0.0);
    let entries: String = parts
        .iter()
        .enumerate()
        .filter(|(part, _)| is_there(*part))
        .map(|(_, (name, class))| format!("<li><i class=\"{class}\"></i>{name}</li>"))
        .collect();
    let plot = LineChart {
        title: "Responses by status, and requests without one, over time".into(),
        description: "responses per second by class of status, requests without one and failures to connect on top".into(),
        x: time_axis(points),
        y: count_axis(largest),
        lines: Vec::new(),
        stack: Stack {
            parts: parts.into(),
            columns,
        },
        rules: Vec::new(),
        size: Size::Full,
        x_text: second_text,
        y_text: units::rate,
    };
    let drawn = format!("<ul class=\"legend\">{entries}</ul>{}", plot.svg());
    Some(figure("Statuses and errors", "per second", &drawn))
}

fn connections(points: &[Point]) -> Option<String> {
    let values: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.middle(), point.sum.connections as f64))
        .collect();
    let largest = values.iter().map(|point| point.1).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let plot = LineChart {
        title: "Open connections over time".into(),
        description: format!("at most {largest}"),
        x: time_axis(points),
        y: count_axis(largest),
        lines: vec![line("open", "o4", false, values)],
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: second_text,
        y_text: |count| units::count(count as u64),
    };
    let svg = plot.svg();
    Some(figure(
        "Open connections",
        "at the end of each second",
        &svg,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_points_are_merged_without_loss() {
        let rows: Vec<SecondRow> = (1..=1_001)
            .map(|second| SecondRow {
                t: f64::from(second),
                requests: 10,
                errors: 1,
                p99_us: (second % 7 == 0).then_some(f64::from(second)),
                ..SecondRow::default()
            })
            .collect();
        let points = joined(&rows);
        assert!(points.len() <= POINTS_MAX, "{}", points.len());
        assert_eq!(
            points.iter().map(|point| point.sum.requests).sum::<u64>(),
            10_010
        );
        assert_eq!(points.last().map(|point| point.to), Some(1_001.0));
        assert!(points.windows(2).all(|pair| pair[0].to == pair[1].from));
        let worst = points
            .iter()
            .filter_map(|point| point.sum.p99_us)
            .fold(0.0, f64::max);
        assert_eq!(worst, 1_001.0);
        assert!(each(&points).contains("one point per 5 s"));
    }
}
