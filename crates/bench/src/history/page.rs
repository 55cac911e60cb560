//! History as a single HTML page: the changes as text, and a small chart of each series.

use std::fmt::Write;

use onrush_chart::{Axis, Line, LineChart, Scale, Size, Stack, escape, figure, plain_number};

use super::History;
use super::series::{Point, Series};
use super::text::{beside, value};
use crate::limits::HISTORY_CHARTS_MAX;

impl History {
    /// Renders the page.
    pub fn to_html(&self) -> String {
        let mut body = format!(
            "<header>\n<p class=\"eyebrow\">onrush bench history</p>\n<h1>{}</h1>\n",
            escape(&self.headline())
        );
        for said in self.machines.iter().chain(&self.left_out) {
            let _ = writeln!(body, "<p class=\"note\">{}</p>", escape(said));
        }
        body.push_str("</header>\n");
        body.push_str(&self.changes_section());
        body.push_str(&self.charts_section());
        onrush_chart::page("history · onrush bench", &body)
    }

    fn changes_section(&self) -> String {
        let mut text = String::from("<section>\n<h2>Changes</h2>\n<ul class=\"reasons\">\n");
        let mut any = false;
        for series in &self.series {
            for change in &series.changes {
                any = true;
                let _ = writeln!(
                    text,
                    "<li><b>{}{}</b><br>{} → {}: {}</li>",
                    escape(&series.name()),
                    escape(&beside(series)),
                    escape(&value(series, change.before)),
                    escape(&value(series, change.after)),
                    escape(&change.words())
                );
            }
        }
        if !any {
            text.push_str("<li>No series changed.</li>\n");
        }
        text.push_str("</ul>\n</section>\n");
        text
    }

    fn charts_section(&self) -> String {
        let mut drawn: Vec<&Series> = self
            .series
            .iter()
            .filter(|it| it.points.len() > 1)
            .collect();
        drawn.sort_by_key(|it| (it.changes.is_empty(), std::cmp::Reverse(it.points.len())));
        let more = drawn.len().saturating_sub(HISTORY_CHARTS_MAX);
        drawn.truncate(HISTORY_CHARTS_MAX);
        let mut text = String::from(
            "<section>\n<h2>Series</h2>\n<p class=\"about\">Each point is the median of a run. Dashed lines are the medians \
             between two changes; a dotted vertical line precedes the first run after a change.</p>\n<div class=\"grid3\">\n",
        );
        for series in drawn {
            text.push_str(&chart(series));
        }
        text.push_str("</div>\n");
        if more > 0 {
            let _ = writeln!(
                text,
                "<p class=\"about\">{more} shorter series are not drawn.</p>"
            );
        }
        text.push_str("</section>\n");
        text
    }
}

/// Chart of one series. Levels are dashed lines, changes are vertical lines; the description has both as text.
fn chart(series: &Series) -> String {
    let points = &series.points;
    let words: Vec<String> = series.changes.iter().map(|it| it.words()).collect();
    let described = match words.is_empty() {
        true => "no change".to_owned(),
        false => words.join("; "),
    };
    let at = |index: usize| index as f64 + 1.0;
    let values = points
        .iter()
        .enumerate()
        .map(|(index, it)| (at(index), it.value));
    let measured = Line {
        name: series.metric.clone(),
        class: "o1".into(),
        is_dashed: false,
        segments: vec![values.collect()],
        ranges: Vec::new(),
    };
    let last = at(points.len() - 1);
    let plot = LineChart {
        title: series.name(),
        description: format!("{} runs; {described}", points.len()),
        x: Axis {
            label: String::new(),
            scale: Scale::Linear(0.5, last + 0.5),
            ticks: vec![
                (1.0, day(&points[0])),
                (last, day(&points[points.len() - 1])),
            ],
        },
        y: vertical(series),
        lines: vec![measured, levels(series)],
        stack: Stack::default(),
        rules: series.changes.iter().map(|it| at(it.at) - 0.5).collect(),
        size: Size::Small,
        x_text: |x| format!("run {x}"),
        y_text: plain_number,
    };
    let title = format!("{} / {}", series.subject, series.metric);
    let caption = format!("{}{}", series.experiment, beside(series));
    let note = format!("<p class=\"about\">{}</p>\n", escape(&described));
    let drawn = figure(&title, &caption, &plot.svg());
    match words.is_empty() {
        true => drawn,
        false => drawn.replacen("</figure>", &format!("{note}</figure>"), 1),
    }
}

fn day(point: &Point) -> String {
    point.date.chars().take(10).collect()
}

fn levels(series: &Series) -> Line {
    let ends = || series.changes.iter().map(|it| it.at);
    let starts = std::iter::once(0).chain(ends());
    let spans = starts.zip(ends().chain([series.points.len()]));
    let segments = spans.filter_map(|(start, end)| {
        let values: Vec<f64> = series.points[start..end]
            .iter()
            .map(|it| it.value)
            .collect();
        let level = onrush_measure::compare::Rounds::of(&values)?.median;
        Some(vec![(start as f64 + 0.5, level), (end as f64 + 0.5, level)])
    });
    Line {
        name: "median".into(),
        class: "fullest".into(),
        is_dashed: true,
        segments: segments.collect(),
        ranges: Vec::new(),
    }
}

/// Vertical axis around the range of values instead of from zero, so that a change of 2 % is visible.
fn vertical(series: &Series) -> Axis {
    let values = || series.points.iter().map(|it| it.value);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(f64::NEG_INFINITY, f64::max),
    );
    let room = ((high - low) * 0.15)
        .max(high.abs() * 0.005)
        .max(f64::MIN_POSITIVE);
    let (from, to) = (low - room, high + room);
    let ticks = [low, (low + high) / 2.0, high];
    let ticks = match high > low {
        true => &ticks[..],
        false => &ticks[..1],
    };
    Axis {
        label: String::new(),
        scale: Scale::Linear(from, to),
        ticks: ticks.iter().map(|it| (*it, value(series, *it))).collect(),
    }
}
