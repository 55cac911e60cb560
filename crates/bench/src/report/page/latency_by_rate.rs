//! Charts of latency by rate in a sweep.

use std::fmt::Write;

use onrush_chart::{
    Axis, Line, LineChart, Scale, Size, Stack, escape, figure, legend_mark, linear_ticks,
    log_ticks, plain_number,
};

use super::super::number::number;
use super::curves::{latency_axis, log_scale, time_text};
use super::palette::Palette;
use super::sweep_axis::{LOG_FROM, SweepAxis, without};
use crate::limits::RATE_CHARTS_MAX;
use crate::outcome::{Trial, VariantOutcome, WorkOutcome};
use crate::scenario::{Metric, Point};

/// Minimum ratio between the highest and the lowest rate that makes a curve.
const DIFFERS_FROM: f64 = 1.05;
const PERCENTILES: [&str; 2] = ["50", "99"];

/// One chart for each combination of the other parameters; empty if there is only one rate.
pub(super) fn charts(points: &[WorkOutcome], across: &SweepAxis, palette: &Palette) -> String {
    across
        .others
        .iter()
        .filter_map(|rest| chart(points, across, rest, palette))
        .take(RATE_CHARTS_MAX)
        .collect()
}

fn chart(
    points: &[WorkOutcome],
    across: &SweepAxis,
    rest: &Point,
    palette: &Palette,
) -> Option<String> {
    let lines = lines(points, across, rest, palette);
    let rates = || lines.iter().flat_map(|line| line.segments.iter().flatten());
    let least = rates().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = rates().map(|point| point.0).fold(0.0, f64::max);
    if most < least * DIFFERS_FROM {
        return None;
    }
    let ranges = || lines.iter().flat_map(|line| &line.ranges);
    let low = ranges().map(|range| range.1).fold(f64::INFINITY, f64::min);
    let high = ranges().map(|range| range.2).fold(0.0, f64::max);
    let y_ticks = log_ticks(low, high);
    let beside = match rest.is_empty() {
        true => String::new(),
        false => format!(", {rest}"),
    };
    let legend = legend(&lines);
    let plot = LineChart {
        title: format!("{}: latency by rate{beside}", points[0].name),
        description: described(&lines),
        x: rate_axis(least, most),
        y: latency_axis(&y_ticks),
        lines,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: |rate| number(rate, "/s"),
        y_text: time_text,
    };
    let subtitle = format!("medians of valid rounds, with their range{beside}");
    let drawn = format!("{legend}{}", plot.svg());
    Some(figure("Latency by rate", &subtitle, &drawn))
}

fn rate_axis(least: f64, most: f64) -> Axis {
    let is_wide = most / least >= LOG_FROM;
    let ticks = match is_wide {
        true => log_ticks(least, most),
        false => linear_ticks(most * 1.02, 4),
    };
    let end = ticks.last().copied().unwrap_or(most);
    Axis {
        label: "requests per second".into(),
        scale: match is_wide {
            true => log_scale(&ticks),
            false => Scale::Linear(0.0, end),
        },
        ticks: ticks
            .iter()
            .map(|tick| (*tick, plain_number(*tick)))
            .collect(),
    }
}

/// A line for each variant and percentile, with points in the order of the parameter. Where more load does not increase
/// the rate, the line turns upwards or back.
fn lines(points: &[WorkOutcome], across: &SweepAxis, rest: &Point, palette: &Palette) -> Vec<Line> {
    let mut of_it: Vec<(f64, &WorkOutcome)> = points
        .iter()
        .filter(|work| without(&work.point, &across.along) == *rest)
        .filter_map(|work| Some((across.place(work)?, work)))
        .collect();
    of_it.sort_by(|a, b| a.0.total_cmp(&b.0));
    let names = points.first().map_or(&[][..], |work| &work.variants);
    let mut lines = Vec::new();
    for VariantOutcome { name, .. } in names {
        for (index, percentile) in PERCENTILES.iter().enumerate() {
            let mut medians = Vec::new();
            let mut ranges = Vec::new();
            for (_, work) in &of_it {
                if let Some((rate, latency)) = at(work, name, percentile) {
                    medians.push((rate, latency.median));
                    ranges.push((rate, latency.min, latency.max));
                }
            }
            if medians.len() > 1 {
                lines.push(Line {
                    name: format!("{name}, p{percentile}"),
                    class: palette.class(name).to_owned(),
                    is_dashed: index > 0,
                    segments: vec![medians],
                    ranges,
                });
            }
        }
    }
    lines
}

/// Rate and latency of a variant at one point; `None` if it has no valid round.
fn at(
    work: &WorkOutcome,
    variant: &str,
    percentile: &str,
) -> Option<(f64, onrush_measure::compare::Rounds)> {
    let variant = work.variant(variant)?;
    if !variant.trials.iter().any(Trial::is_valid) {
        return None;
    }
    let rate = variant.metrics.get(&Metric::Rate.name())?.median;
    let latency = variant.metrics.get(&format!("latency.p{percentile}"))?;
    (rate > 0.0 && latency.min > 0.0).then_some((rate, *latency))
}

fn legend(lines: &[Line]) -> String {
    let mut text = String::from("<ul class=\"legend\">");
    for line in lines {
        let mark = match line.is_dashed {
            true => format!("<i class=\"dash {}\"></i>", line.class),
            false => legend_mark(&line.class),
        };
        let _ = write!(text, "<li>{mark}{}</li>", escape(&line.name));
    }
    text.push_str("</ul>");
    text
}

fn described(lines: &[Line]) -> String {
    let line = |line: &Line| {
        let points = line.segments.iter().flatten();
        let texts: Vec<String> = points
            .map(|(rate, us)| format!("{} at {}", time_text(*us), number(*rate, "/s")))
            .collect();
        format!("{}: {}", line.name, texts.join(", "))
    };
    lines.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::metrics_of_rounds;
    use crate::report::sample::outcome;

    /// The sample work at these rates, with a latency that grows with the square of the rate.
    fn swept(rates: &[f64]) -> Vec<WorkOutcome> {
        let work = outcome().works.remove(0);
        let at = |rate: &f64| {
            let mut work = work.clone();
            work.point = Point::default().with("rate", &rate.to_string());
            for variant in &mut work.variants {
                for trial in &mut variant.trials {
                    let spread = 1.0 + f64::from(trial.round) * 0.1;
                    let us = rate * rate / 1e4 * spread;
                    trial.metrics.insert("rps".into(), *rate);
                    trial.metrics.insert("latency.p50".into(), us);
                    trial.metrics.insert("latency.p99".into(), us * 9.0);
                }
                variant.metrics = metrics_of_rounds(&variant.trials);
            }
            work
        };
        rates.iter().map(at).collect()
    }

    fn drawn(points: &[WorkOutcome]) -> String {
        let across = SweepAxis::of(points).expect("it is swept");
        charts(points, &across, &Palette::of(&outcome()))
    }

    #[test]
    fn latency_by_rate_has_error_bars() {
        let html = drawn(&swept(&[1_000.0, 2_000.0, 4_000.0]));
        for said in [
            "Latency by rate",
            "onrush epoll, p50: 120 µs at 1 k/s, 480 µs at 2 k/s, 1.92 ms at 4 k/s",
            "nginx, p99",
            "class=\"range o1\"",
            ">4000</text>",
        ] {
            assert!(html.contains(said), "{said} in {html}");
        }
        assert!(!html.contains("NaN"), "{html}");
    }

    #[test]
    fn single_rate_has_no_curve() {
        assert_eq!(drawn(&swept(&[1_000.0, 1_020.0])), "");
    }

    #[test]
    fn invalid_rounds_are_not_plotted() {
        let mut points = swept(&[1_000.0, 2_000.0]);
        for trial in &mut points[1].variants[0].trials {
            trial.invalid.push("it failed".into());
        }
        let html = drawn(&points);
        assert!(
            !html.contains("onrush epoll, p50") && html.contains("nginx, p50"),
            "{html}"
        );
    }
}
