//! Dot plot of rounds, and bullet graph of a value with its target.

use std::fmt::Write;

use super::hover::{Hover, attribute};
use super::{escape, linear_ticks, plain_number};

/// One row of a dot plot: a variant and its rounds.
#[derive(Debug, Clone)]
pub struct DotPlotRow {
    /// Name of the variant.
    pub name: String,
    /// Colour class.
    pub class: String,
    /// Number and value of each round.
    pub rounds: Vec<(u32, f64)>,
    /// Median of the values.
    pub median: f64,
    /// The median as text.
    pub median_text: String,
}

/// Height of a row: the name, and the line of dots below it.
const ROW: f64 = 38.0;
const LEFT: f64 = 4.0;
const RIGHT: f64 = 372.0;
const TOP: f64 = 6.0;

/// Draws every round as a dot and the median as a bar. The axis starts at zero, so that lengths are proportional.
pub fn dot_plot(title: &str, unit: &str, rows: &[DotPlotRow], text: fn(f64) -> String) -> String {
    let bottom = TOP + ROW * rows.len() as f64;
    let largest = rows
        .iter()
        .flat_map(|row| row.rounds.iter().map(|(_, value)| *value))
        .fold(0.0, f64::max);
    let ticks = linear_ticks(largest, 5);
    let end = ticks.last().copied().unwrap_or(1.0).max(largest);
    let x = |value: f64| LEFT + 6.0 + value / end * (RIGHT - LEFT - 12.0);
    let described: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {}", row.name, row.median_text))
        .collect();
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 380 {:.0}\" role=\"img\" tabindex=\"0\" {}><title>{}</title><desc>{}</desc>",
        bottom + 34.0,
        attribute(&hover(rows, x, text)),
        escape(title),
        escape(&format!("Median of each variant. {}", described.join("; ")))
    );
    for tick in &ticks {
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{0:.1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>",
            x(*tick),
            bottom + 14.0,
            escape(&plain_number(*tick))
        );
    }
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, row, TOP + ROW * index as f64, x);
    }
    let _ = write!(
        svg,
        "<text class=\"axis\" x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\">{}</text>\
         <line class=\"cursor\" y1=\"{TOP}\" y2=\"{bottom}\" x1=\"0\" x2=\"0\"/></svg>",
        bottom + 29.0,
        escape(unit)
    );
    svg
}

fn hover(rows: &[DotPlotRow], x: impl Fn(f64) -> f64, text: fn(f64) -> String) -> String {
    let names: Vec<(String, &DotPlotRow, f64)> = rows
        .iter()
        .flat_map(|row| row.rounds.iter().map(move |round| (row, round)))
        .map(|(row, (round, value))| (format!("{}, round {round}", row.name), row, *value))
        .collect();
    let mut hover = Hover::default();
    for (name, row, value) in &names {
        hover.add(x(*value), *value, (name, &row.class, *value));
    }
    hover.json(text, text)
}

fn draw_row(svg: &mut String, row: &DotPlotRow, top: f64, x: impl Fn(f64) -> f64) {
    let line = top + 26.0;
    let _ = write!(
        svg,
        "<text class=\"name\" x=\"{LEFT}\" y=\"{0}\">{1}</text>\
         <text class=\"name value\" x=\"{RIGHT}\" y=\"{0}\" text-anchor=\"end\">{2}</text>\
         <line class=\"base\" x1=\"{3:.1}\" x2=\"{RIGHT}\" y1=\"{line}\" y2=\"{line}\"/>\
         <line class=\"reach {4}\" x1=\"{3:.1}\" x2=\"{5:.1}\" y1=\"{line}\" y2=\"{line}\"/>",
        top + 13.0,
        escape(&row.name),
        escape(&row.median_text),
        x(0.0),
        row.class,
        x(row.median)
    );
    for (_, value) in &row.rounds {
        let _ = write!(
            svg,
            "<circle class=\"round {}\" cx=\"{:.1}\" cy=\"{line}\" r=\"4\"/>",
            row.class,
            x(*value)
        );
    }
    let _ = write!(
        svg,
        "<line class=\"median {}\" x1=\"{1:.1}\" x2=\"{1:.1}\" y1=\"{2}\" y2=\"{3}\"/>",
        row.class,
        x(row.median),
        line - 7.0,
        line + 7.0
    );
}

/// Target of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// This value or less.
    AtMost(f64),
    /// This value or more.
    AtLeast(f64),
}

/// Bullet graph of a median with its range and target, sized for a table cell. `class` selects the colour.
pub fn bullet(median: f64, min: f64, max: f64, target: Target, class: &str) -> String {
    let (Target::AtMost(goal) | Target::AtLeast(goal)) = target;
    let end = (goal * 1.35).max(max * 1.06);
    let x = |value: f64| 2.0 + value / end * 116.0;
    let (good_from, good_to) = match target {
        Target::AtMost(_) => (0.0, goal),
        Target::AtLeast(_) => (goal, end),
    };
    format!(
        "<svg class=\"bullet {class}\" viewBox=\"0 0 120 18\" aria-hidden=\"true\">\
         <rect class=\"zone\" x=\"{zone:.1}\" y=\"5\" width=\"{width:.1}\" height=\"8\" rx=\"1\"/>\
         <line class=\"range\" x1=\"{min:.1}\" x2=\"{max:.1}\" y1=\"9\" y2=\"9\"/>\
         <line class=\"goal\" x1=\"{goal:.1}\" x2=\"{goal:.1}\" y1=\"2\" y2=\"16\"/>\
         <circle class=\"point\" cx=\"{median:.1}\" cy=\"9\" r=\"3.6\"/></svg>",
        zone = x(good_from),
        width = x(good_to) - x(good_from),
        min = x(min),
        max = x(max),
        goal = x(goal),
        median = x(median),
    )
}
