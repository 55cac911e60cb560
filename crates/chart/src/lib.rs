//! Charts as SVG text, and the page around them. Pure: numbers in, markup out; colours and fonts come from the page's
//! style sheet.
//!
//! A chart is drawn for 380 units of width, the width of a phone: there it is shown at its own size, and a wide page
//! shows three beside each other, so its letters are never shrunk. Every chart carries a title and a description for
//! readers who cannot see it, and its values for pointer and keyboard (`data-hover`, read by `script.js`).
//!
//! `area.rs` draws stacked areas, `heat.rs` maps, `strip.rs` rounds, `hover.rs` the values for pointer and keyboard;
//! `file.rs` makes charts as files of their own.
//!
//! # Invariants
//!
//! - A line or an area has at most two points per unit of width, the lowest and the highest value: it does not grow
//!   with time, and loses no peak.
//! - A difference in colour is also one in shape, stroke or lightness.
//! - A page fetches nothing: it opens offline, and from a mail.
#![forbid(unsafe_code)]

mod area;
mod file;
mod heat;
mod hover;
mod legend;
mod mark;
mod page;
mod strip;
mod ticks;

pub use area::{Column, Stack};
pub use file::charts;
pub use heat::{Heat, HeatCell, HeatGroup, HeatRow};
pub use mark::{legend_area, legend_mark};
pub use page::{figure, page};
pub use strip::{StripRow, Target, bullet, strip};
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

/// How numbers become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// First and last number.
    Linear(f64, f64),
    /// First and last number, both above 0; each factor of ten has the same length.
    Log(f64, f64),
}

impl Scale {
    /// The last number of the axis.
    pub fn end(self) -> f64 {
        match self {
            Scale::Linear(_, to) | Scale::Log(_, to) => to,
        }
    }

    /// 0 at the beginning of the axis, 1 at its end.
    pub fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => (value.max(from) / from).ln() / (to / from).ln(),
        }
    }
}

/// An axis with what is written on it.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Name of the quantity; empty if the caption has it.
    pub label: String,
    /// Range and scale.
    pub scale: Scale,
    /// The numbers with a tick, and their labels.
    pub ticks: Vec<(f64, String)>,
}

/// One line of a chart; broken where a segment ends.
#[derive(Debug, Clone)]
pub struct Line {
    /// For the pointer.
    pub name: String,
    /// Colour class.
    pub class: String,
    /// Dashed lines are a control or a reference.
    pub is_dashed: bool,
    /// Its points, by x.
    pub segments: Vec<Vec<(f64, f64)>>,
    /// What its points stand for: an x, and the smallest and the largest value there.
    pub ranges: Vec<(f64, f64, f64)>,
}

/// A chart.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// Text alternative for screen readers.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Drawn above the stack.
    pub lines: Vec<Line>,
    /// Columns.
    pub stack: Stack,
    /// Vertical rules, such as those between rounds.
    pub rules: Vec<f64>,
    /// How large it is.
    pub size: Size,
    /// Text of an x value under the pointer.
    pub x_text: fn(f64) -> String,
    /// Text of a y value under the pointer.
    pub y_text: fn(f64) -> String,
}

/// The two sizes of charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 380 by 240 units.
    Full,
    /// Half as high.
    Small,
}

/// The rectangle the data is drawn in.
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

impl Plot {
    fn x(&self, value: f64) -> f64 {
        let frame = self.size.frame();
        frame.left + self.x.scale.place(value) * (frame.right - frame.left)
    }

    fn y(&self, value: f64) -> f64 {
        let frame = self.size.frame();
        frame.bottom - self.y.scale.place(value) * (frame.bottom - frame.top)
    }

    /// The chart as an `<svg>` element.
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
            // The last word ends where the axis does.
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
            let points: Vec<String> = thinned(places.collect())
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            let _ = write!(
                svg,
                "<polyline class=\"line {}{dashed}\" points=\"{}\"/>",
                line.class,
                points.join(" ")
            );
            // Few points are shown as what they are: measurements, not a curve.
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
        for column in area::thinned(&self.stack, |value| self.x(value)) {
            let place = (self.x(column.from) + self.x(column.to)) / 2.0;
            for (part, (name, class)) in column.parts.iter().zip(&self.stack.parts) {
                hover.add(place, column.to, (*name, *class, *part));
            }
        }
        hover.json(self.x_text, self.y_text)
    }
}

/// Two points for each unit of width at most, the highest and the lowest: no peak is lost where points are many.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
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
    fn peaks_of_a_long_line_stay() {
        let height = |at: u32| match at {
            1_000 => 99.0,
            2_000 => -99.0,
            _ => f64::from(at % 7),
        };
        let points = (0..3_600).map(|at| (f64::from(at) / 3_600.0 * 320.0, height(at)));
        let kept = thinned(points.collect());
        assert!(kept.len() <= 640, "{}", kept.len());
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
        let has = |height: f64| kept.iter().any(|point| point.1 == height);
        assert!(has(99.0) && has(-99.0));
    }
}
