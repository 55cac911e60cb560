//! Charts as SVG, and the HTML page around them. No I/O; colours and fonts come from the page's style sheet.
//!
//! A chart is 380 units wide, the width of a phone, where it is shown at its own size; a wide page shows three side by
//! side. So text is never scaled down. Every chart has a title and a description for screen readers, and its values for
//! pointer and keyboard (`data-hover`, read by `script.js`).
//!
//! `area.rs` draws stacked areas, `heat.rs` heat maps, `dot_plot.rs` dot plots of rounds, `hover.rs` the values for
//! pointer and keyboard; `standalone.rs` extracts charts as standalone files.
//!
//! # Invariants
//!
//! - A line or an area has at most two points per unit of width, the lowest and the highest value: its size does not
//!   grow with time, and no peak is lost.
//! - Elements that differ in colour also differ in shape, stroke or lightness.
//! - A page loads nothing: it works offline and as an attachment.
#![forbid(unsafe_code)]

mod area;
mod dot_plot;
mod heat;
mod hover;
mod legend;
mod mark;
mod page;
mod standalone;
mod ticks;

pub use area::{Column, Stack};
pub use dot_plot::{DotPlotRow, Target, bullet, dot_plot};
pub use heat::{Heat, HeatCell, HeatGroup, HeatRow};
pub use mark::{legend_area, legend_mark};
pub use page::{figure, page};
pub use standalone::charts;
pub use ticks::{linear_ticks, log_ticks, percentile_ticks, plain_number, tail, time_tick};

use std::fmt::Write;

use hover::Hover;

/// Escapes text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Maps numbers to positions on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Linear from the first to the last number.
    Linear(f64, f64),
    /// Logarithmic from the first to the last number, both above 0.
    Log(f64, f64),
}

impl Scale {
    /// The last number of the axis.
    pub fn end(self) -> f64 {
        match self {
            Scale::Linear(_, to) | Scale::Log(_, to) => to,
        }
    }

    /// Position of a value: 0 at the start of the axis, 1 at its end.
    pub fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => (value.max(from) / from).ln() / (to / from).ln(),
        }
    }
}

/// An axis with its labels.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Name of the quantity; empty if the caption contains it.
    pub label: String,
    /// Range and scale.
    pub scale: Scale,
    /// Ticks: value and label.
    pub ticks: Vec<(f64, String)>,
}

/// A line of a chart, with a gap between segments.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the legend and the hover text.
    pub name: String,
    /// Colour class.
    pub class: String,
    /// Whether the line is dashed, to distinguish it from others of its colour.
    pub is_dashed: bool,
    /// Segments of points in ascending order of x.
    pub segments: Vec<Vec<(f64, f64)>>,
    /// Error bars: x, minimum and maximum.
    pub ranges: Vec<(f64, f64, f64)>,
}

/// A chart.
#[derive(Debug, Clone)]
pub struct LineChart {
    /// Title.
    pub title: String,
    /// Text alternative for screen readers.
    pub description: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines, drawn above the stack.
    pub lines: Vec<Line>,
    /// Stacked areas.
    pub stack: Stack,
    /// Positions of vertical rules, such as those between rounds.
    pub rules: Vec<f64>,
    /// Size.
    pub size: Size,
    /// Formats an x value for the hover text.
    pub x_text: fn(f64) -> String,
    /// Formats a y value for the hover text.
    pub y_text: fn(f64) -> String,
}

/// Size of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 380 by 240 units.
    Full,
    /// 380 units wide, and half as high as `Full`.
    Small,
}

struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Size {
    fn frame(self) -> Frame {
        match self {
            Size::Full => Frame {
                width: 380.0,
                height: 240.0,
                left: 52.0,
                right: 372.0,
                top: 10.0,
                bottom: 200.0,
            },
            Size::Small => Frame {
                width: 380.0,
                height: 128.0,
                left: 52.0,
                right: 372.0,
                top: 8.0,
                bottom: 94.0,
            },
        }
    }
}

impl LineChart {
    fn x(&self, value: f64) -> f64 {
        let frame = self.size.frame();
        frame.left + self.x.scale.place(value) * (frame.right - frame.left)
    }

    fn y(&self, value: f64) -> f64 {
        let frame = self.size.frame();
        frame.bottom - self.y.scale.place(value) * (frame.bottom - frame.top)
    }

    /// Renders the chart as an `<svg>` element.
    pub fn svg(&self) -> String {
        let frame = self.size.frame();
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" tabindex=\"0\" {}><title>{}</title><desc>{}</desc>",
            frame.width,
            frame.height,
            hover::attribute(&self.hover()),
            escape(&self.title),
            escape(&self.description)
        );
        self.draw_grid(&mut svg, &frame);
        area::draw(
            &mut svg,
            &self.stack,
            self.y.scale.end(),
            |value| self.x(value),
            |value| self.y(value),
        );
        for line in &self.lines {
            let mut drawn = String::new();
            self.draw_line(&mut drawn, line);
            svg.push_str(&legend::series(&escape(&line.name), &drawn));
        }
        let _ = write!(
            svg,
            "<line class=\"cursor\" y1=\"{}\" y2=\"{}\" x1=\"0\" x2=\"0\"/></svg>",
            frame.top, frame.bottom
        );
        svg
    }

    fn draw_grid(&self, svg: &mut String, frame: &Frame) {
        for (value, text) in &self.y.ticks {
            let y = self.y(*value);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                frame.left,
                frame.right,
                frame.left - 6.0,
                y + 3.5,
                escape(text)
            );
        }
        for value in &self.rules {
            let x = self.x(*value);
            let _ = write!(
                svg,
                "<line class=\"rule\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>",
                frame.top, frame.bottom
            );
        }
        for (value, text) in &self.x.ticks {
            let x = self.x(*value);
            // The last label is right-aligned to stay within the chart.
            let anchor = if x > frame.right - 12.0 {
                "end"
            } else {
                "middle"
            };
            let _ = write!(
                svg,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{0}\" y2=\"{1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{2}\" text-anchor=\"{anchor}\">{3}</text>",
                frame.bottom,
                frame.bottom + 4.0,
                frame.bottom + 16.0,
                escape(text)
            );
        }
        let _ = write!(
            svg,
            "<line class=\"base\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>\
             <text class=\"axis\" x=\"{1}\" y=\"{3}\" text-anchor=\"end\">{4}</text>",
            frame.left,
            frame.right,
            frame.bottom,
            frame.bottom + 31.0,
            escape(&self.x.label)
        );
    }

    fn draw_line(&self, svg: &mut String, line: &Line) {
        for (x, low, high) in &line.ranges {
            let _ = write!(
                svg,
                "<line class=\"range {}\" x1=\"{1:.1}\" x2=\"{1:.1}\" y1=\"{2:.1}\" y2=\"{3:.1}\"/>",
                line.class,
                self.x(*x),
                self.y(*low),
                self.y(*high)
            );
        }
        let dashed = if line.is_dashed { " dashed" } else { "" };
        for segment in &line.segments {
            let places = segment.iter().map(|(x, y)| (self.x(*x), self.y(*y)));
            let points: Vec<String> = downsampled(places.collect())
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            let _ = write!(
                svg,
                "<polyline class=\"line {}{dashed}\" points=\"{}\"/>",
                line.class,
                points.join(" ")
            );
            // Few points are marked individually, as measurements rather than a curve.
            let is_measured = !line.is_dashed || !line.ranges.is_empty();
            if segment.len() <= 12 && is_measured {
                for (x, y) in segment {
                    svg.push_str(&mark::mark(&line.class, self.x(*x), self.y(*y)));
                }
            }
        }
    }

    fn hover(&self) -> String {
        let mut hover = Hover::default();
        for line in &self.lines {
            for (x, y) in line.segments.iter().flatten() {
                let row = (line.name.as_str(), line.class.as_str(), *y);
                hover.add(self.x(*x), *x, row);
            }
        }
        for column in area::downsampled(&self.stack, |value| self.x(value)) {
            let place = (self.x(column.from) + self.x(column.to)) / 2.0;
            for (part, (name, class)) in column.parts.iter().zip(&self.stack.parts) {
                hover.add(place, column.to, (*name, *class, *part));
            }
        }
        hover.json(self.x_text, self.y_text)
    }
}

/// Keeps at most two points per unit of width, the lowest and the highest, so that no peak is lost.
fn downsampled(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for group in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(low), Some(high)) = (
            group.iter().min_by(by_height),
            group.iter().max_by(by_height),
        ) else {
            continue;
        };
        match (group.len(), low.0 <= high.0) {
            (..=2, _) => kept.extend_from_slice(group),
            (_, true) => kept.extend([*low, *high]),
            (_, false) => kept.extend([*high, *low]),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_is_escaped() {
        assert_eq!(escape("<a & 'b'>"), "&lt;a &amp; &#39;b&#39;&gt;");
    }

    #[test]
    fn downsampled_line_keeps_peaks() {
        let height = |at: u32| match at {
            1_000 => 99.0,
            2_000 => -99.0,
            _ => f64::from(at % 7),
        };
        let points = (0..3_600).map(|at| (f64::from(at) / 3_600.0 * 320.0, height(at)));
        let kept = downsampled(points.collect());
        assert!(kept.len() <= 640, "{}", kept.len());
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
        let has = |height: f64| kept.iter().any(|point| point.1 == height);
        assert!(has(99.0) && has(-99.0));
    }
}
