//! Charts of a sweep: each figure's metric by a parameter, with a line for each variant and the range of its rounds.

use std::fmt::Write;

use onrush_chart::{
    Axis, Line, LineChart, Scale, Size, Stack, escape, figure, legend_mark, linear_ticks,
    log_ticks, plain_number,
};

use onrush_measure::compare::Rounds;

use super::super::number::number;
use super::curves::capitalized;
use super::latency_by_rate;
use super::palette::Palette;
use super::sweep_axis::{SweepAxis, without};
use crate::outcome::{VariantOutcome, WorkOutcome};
use crate::scenario::{Metric, Unit};
use crate::verdict::counts;

/// Legend and charts of the points of one work; empty for a work with one point.
pub(super) fn section(points: &[WorkOutcome], palette: &Palette) -> String {
    let Some(across) = SweepAxis::of(points) else {
        return String::new();
    };
    let mut metrics: Vec<&str> = Vec::new();
    for line in points.iter().flat_map(|work| &work.figures) {
        if !metrics.contains(&line.metric.as_str()) {
            metrics.push(&line.metric);
        }
    }
    let charts: String = metrics
        .into_iter()
        .filter_map(Metric::parse)
        .filter_map(|metric| chart(points, &across, &metric, palette))
        .collect();
    let charts = charts + &latency_by_rate::charts(points, &across, palette);
    if charts.is_empty() {
        return charts;
    }
    format!(
        "{}<div class=\"grid3\">\n{charts}</div>\n",
        legend(points, &across, palette)
    )
}

fn legend(points: &[WorkOutcome], across: &SweepAxis, palette: &Palette) -> String {
    let mut text = String::from("<ul class=\"legend\">");
    let variants = points.first().map_or(&[][..], |work| &work.variants);
    let measured = variants.iter().filter(|variant| variant.left_out.is_none());
    for variant in measured {
        let class = palette.class(&variant.name);
        let _ = write!(
            text,
            "<li>{}{}</li>",
            legend_mark(class),
            escape(&variant.name)
        );
    }
    if let [first, .., last] = &across.others[..] {
        let said = format!("solid: {first}; dashed: up to {last}");
        let _ = write!(text, "<li><i class=\"dash\"></i>{}</li>", escape(&said));
    }
    text.push_str("</ul>\n");
    text
}

fn chart(
    points: &[WorkOutcome],
    across: &SweepAxis,
    metric: &Metric,
    palette: &Palette,
) -> Option<String> {
    let lines = lines(points, across, metric, palette);
    let heights = || {
        let lines = lines.iter();
        lines.flat_map(|line| line.ranges.iter().flat_map(|(_, low, high)| [*low, *high]))
    };
    let largest = heights().fold(0.0, f64::max);
    let smallest = heights().fold(f64::INFINITY, f64::min);
    if largest <= 0.0 {
        return None;
    }
    let is_wide = smallest > 0.0 && largest / smallest > 20.0;
    let ticks = match is_wide {
        true => log_ticks(smallest, largest),
        false => linear_ticks(largest * 1.02, 4),
    };
    let end = ticks.last().copied().unwrap_or(1.0);
    let scale = match is_wide {
        true => Scale::Log(ticks.first().copied().unwrap_or(1.0), end),
        false => Scale::Linear(0.0, end),
    };
    let title = capitalized(&metric.title());
    let unit = match metric.unit() {
        Unit::PerSecond | Unit::Number => "",
        Unit::Microseconds => ", µs",
        Unit::Bytes => ", bytes",
    };
    let plot = LineChart {
        title: format!(
            "{}: {} by {}",
            points[0].name,
            metric.title(),
            across.parameter
        ),
        description: described(&lines, across, metric),
        x: across.axis(),
        y: Axis {
            label: String::new(),
            scale,
            ticks: ticks
                .into_iter()
                .map(|tick| (tick, plain_number(tick)))
                .collect(),
        },
        lines,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: plain_number,
        y_text: match metric.unit() {
            Unit::PerSecond => |value| number(value, "/s"),
            Unit::Microseconds => |value| number(value, "µs"),
            Unit::Bytes => |value| number(value, "B"),
            Unit::Number => |value| number(value, ""),
        },
    };
    Some(figure(
        &format!("{title}{unit}"),
        "medians of valid rounds, with their range",
        &plot.svg(),
    ))
}

fn lines(
    points: &[WorkOutcome],
    across: &SweepAxis,
    metric: &Metric,
    palette: &Palette,
) -> Vec<Line> {
    let names = points.first().map_or(&[][..], |work| &work.variants);
    let mut lines = Vec::new();
    for VariantOutcome { name, .. } in names {
        for (index, rest) in across.others.iter().enumerate() {
            let mut ranges = Vec::new();
            let mut medians = Vec::new();
            let of_it = points
                .iter()
                .filter(|work| without(&work.point, &across.along) == *rest);
            for work in of_it {
                // Leaves out the same rounds as the results table.
                let variant = work.variant(name);
                let trials = variant.into_iter().flat_map(|variant| &variant.trials);
                let counted = trials.filter(|trial| counts(work, name, metric, trial));
                let values = counted.filter_map(|trial| trial.metrics.get(&metric.name()).copied());
                let rounds = Rounds::of(&values.collect::<Vec<f64>>());
                if let (Some(rounds), Some(place)) = (rounds, across.place(work)) {
                    medians.push((place, rounds.median));
                    ranges.push((place, rounds.min, rounds.max));
                }
            }
            if medians.is_empty() {
                continue;
            }
            medians.sort_by(|a, b| a.0.total_cmp(&b.0));
            let beside = if rest.is_empty() {
                String::new()
            } else {
                format!(", {rest}")
            };
            lines.push(Line {
                name: format!("{name}{beside}"),
                class: palette.class(name).to_owned(),
                is_dashed: index > 0,
                segments: vec![medians],
                ranges,
            });
        }
    }
    lines
}

fn described(lines: &[Line], across: &SweepAxis, metric: &Metric) -> String {
    let symbol = metric.unit().symbol();
    let line = |line: &Line| {
        let points = line.segments.iter().flatten();
        let texts: Vec<String> = points
            .map(|(place, value)| {
                let mut places = across.places.iter();
                let named = places.find(|(_, known)| known == place);
                let at = named.map_or("?", |(text, _)| text.as_str());
                format!("{} at {at}", number(*value, symbol))
            })
            .collect();
        format!("{}: {}", line.name, texts.join(", "))
    };
    lines.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::outcome;
    use crate::scenario::Point;

    fn swept(points: &[Point]) -> Vec<WorkOutcome> {
        let work = outcome().works.remove(0);
        let at = |point: &Point| WorkOutcome {
            point: point.clone(),
            ..work.clone()
        };
        points.iter().map(at).collect()
    }

    fn point(connections: &str, io: &str) -> Point {
        Point::default()
            .with("io", io)
            .with("connections", connections)
    }

    #[test]
    fn numeric_parameter_is_axis_text_is_series() {
        let points = swept(&[
            point("1k", "a"),
            point("1k", "b"),
            point("10", "a"),
            point("10", "b"),
        ]);
        let across = SweepAxis::of(&points).expect("it is swept");
        assert_eq!(across.parameter, "connections");
        assert_eq!(across.places, [("10".into(), 10.0), ("1k".into(), 1_000.0)]);
        assert_eq!(across.scale, Scale::Log(10.0, 1_000.0));
        assert_eq!(across.others.len(), 2);
        let palette = Palette::of(&outcome());
        let html = section(&points, &palette);
        assert!(html.contains("onrush epoll, io=b"), "{html}");
        assert!(html.contains("class=\"range o1\""), "{html}");
        assert!(!html.contains("NaN"), "{html}");
    }

    #[test]
    fn text_only_sweep_uses_category_axis() {
        let points = swept(&[
            Point::default().with("io", "epoll"),
            Point::default().with("io", "io_uring"),
        ]);
        let across = SweepAxis::of(&points).expect("it is swept");
        assert_eq!(across.axis().ticks.len(), 2);
        assert!(section(&points, &Palette::of(&outcome())).contains("io_uring"));
    }

    #[test]
    fn quoted_digits_are_categories() {
        let mut points = swept(&[
            Point::default().with("mask", "0").with("queues", "1"),
            Point::default().with("mask", "3").with("queues", "1"),
        ]);
        for point in &mut points {
            point.labels = vec!["mask".into()];
        }
        let across = SweepAxis::of(&points).expect("it is swept");
        assert_eq!(across.places, [("0".into(), 0.0), ("3".into(), 1.0)]);
    }

    #[test]
    fn dependent_parameters_do_not_split_series() {
        let at = |count: &str, cores: &str, io: &str| {
            Point::default()
                .with("count", count)
                .with("cores", cores)
                .with("io", io)
        };
        let points = swept(&[
            at("1", "0", "a"),
            at("2", "0,1", "a"),
            at("1", "0", "b"),
            at("2", "0,1", "b"),
        ]);
        let across = SweepAxis::of(&points).expect("it is swept");
        assert_eq!(across.parameter, "count");
        let others: Vec<String> = across.others.iter().map(Point::to_string).collect();
        assert_eq!(others, ["io=a", "io=b"]);
        let html = section(&points, &Palette::of(&outcome()));
        assert!(html.contains("4.92 µs at 1, 4.92 µs at 2"), "{html}");
    }

    #[test]
    fn single_point_has_no_curve() {
        let points = swept(&[point("10", "a")]);
        assert_eq!(section(&points, &Palette::of(&outcome())), "");
        assert_eq!(
            section(&swept(&[Point::default()]), &Palette::of(&outcome())),
            ""
        );
    }
}
