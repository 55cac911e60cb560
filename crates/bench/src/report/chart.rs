//! Charts as SVG text. Pure: numbers in, markup out; colours and fonts come from the page's style sheet.
//!
//! A chart is drawn for 380 units of width, the width of a phone: there it is shown at its own size, and a wide page
//! shows three beside each other, so its letters are never shrunk. Every chart carries a title and a description for
//! those who cannot see it, and its values for the pointer (`data-hover`, read by `page/script.js`).

use std::fmt::Write;

/// Escapes text for HTML and SVG.
pub(super) fn escape(text: &str) -> String {
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
pub(super) enum Scale {
    Linear(f64, f64),
    Log(f64, f64),
}

impl Scale {
    /// 0 at the beginning of the axis, 1 at its end.
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => (value.max(from) / from).ln() / (to / from).ln(),
        }
    }
}

/// An axis with what is written on it.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    pub(super) ticks: Vec<(f64, String)>,
}

/// One line of a chart; broken where a segment ends.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) name: String,
    /// Colour class.
    pub(super) class: String,
    pub(super) is_dashed: bool,
    pub(super) segments: Vec<Vec<(f64, f64)>>,
}

/// One column of a stack, from bottom to top.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) parts: Vec<f64>,
}

/// Columns and what their parts are.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    /// Name and colour class of each part.
    pub(super) parts: Vec<(&'static str, &'static str)>,
    pub(super) columns: Vec<Column>,
}

/// A chart.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    pub(super) title: String,
    /// In words, for those who cannot see it.
    pub(super) description: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    pub(super) stack: Stack,
    /// Vertical rules between rounds.
    pub(super) rules: Vec<f64>,
    pub(super) size: Size,
    /// Text of an x and of a y value under the pointer.
    pub(super) x_text: fn(f64) -> String,
    pub(super) y_text: fn(f64) -> String,
}

/// The two sizes of charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Full,
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
    pub(super) fn svg(&self) -> String {
        let frame = self.size.frame();
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" data-hover=\"{}\"><title>{}</title><desc>{}</desc>",
            frame.width,
            frame.height,
            escape(&self.hover()),
            escape(&self.title),
            escape(&self.description)
        );
        self.draw_grid(&mut svg, &frame);
        self.draw_stack(&mut svg);
        for line in &self.lines {
            self.draw_line(&mut svg, line);
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

    fn draw_stack(&self, svg: &mut String) {
        for column in &self.stack.columns {
            // A hair of background between columns, as long as they are wide enough to spare it.
            let (left, right) = (self.x(column.from), self.x(column.to));
            let gap = if right - left > 5.0 { 1.0 } else { 0.0 };
            let mut bottom = 0.0;
            for (part, (_, class)) in column.parts.iter().zip(&self.stack.parts) {
                let (y_bottom, y_top) = (self.y(bottom), self.y((bottom + part).min(1.0)));
                bottom += part;
                if y_bottom - y_top < 0.05 {
                    continue;
                }
                let _ = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y_top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    left,
                    (right - left - gap).max(0.5),
                    y_bottom - y_top
                );
            }
        }
    }

    fn draw_line(&self, svg: &mut String, line: &Line) {
        let dashed = if line.is_dashed { " dashed" } else { "" };
        for segment in &line.segments {
            let points: Vec<String> = segment
                .iter()
                .map(|(x, y)| format!("{:.1},{:.1}", self.x(*x), self.y(*y)))
                .collect();
            let _ = write!(
                svg,
                "<polyline class=\"line {}{dashed}\" points=\"{}\"/>",
                line.class,
                points.join(" ")
            );
            // Few points are shown as what they are: measurements, not a curve.
            if segment.len() <= 12 && !line.is_dashed {
                for (x, y) in segment {
                    let _ = write!(
                        svg,
                        "<circle class=\"dot {}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\"/>",
                        line.class,
                        self.x(*x),
                        self.y(*y)
                    );
                }
            }
        }
    }

    /// `[[place, "99 %", [["name", "class", "value"], …]], …]`, by place.
    fn hover(&self) -> String {
        type Entry = (f64, String, Vec<(String, String, String)>);
        let mut entries: Vec<Entry> = Vec::new();
        let mut add = |place: f64, head: String, row: (String, String, String)| {
            let known = entries
                .iter_mut()
                .find(|(at, ..)| (*at - place).abs() < 0.75);
            match known {
                Some((_, _, rows)) => rows.push(row),
                None => entries.push((place, head, vec![row])),
            }
        };
        for line in &self.lines {
            for (x, y) in line.segments.iter().flatten() {
                let row = (line.name.clone(), line.class.clone(), (self.y_text)(*y));
                add(self.x(*x), (self.x_text)(*x), row);
            }
        }
        for column in &self.stack.columns {
            let place = (self.x(column.from) + self.x(column.to)) / 2.0;
            for (part, (name, class)) in column.parts.iter().zip(&self.stack.parts) {
                let row = ((*name).into(), (*class).into(), (self.y_text)(*part));
                add(place, (self.x_text)(column.to), row);
            }
        }
        entries.sort_by(|a, b| a.0.total_cmp(&b.0));
        let places: Vec<_> = entries
            .into_iter()
            .map(|(place, head, rows)| (tenths(place), head, rows))
            .collect();
        serde_json::to_string(&places).unwrap_or_default()
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// One row of a strip: a variant and its rounds.
#[derive(Debug, Clone)]
pub(super) struct StripRow {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) rounds: Vec<f64>,
    pub(super) median: f64,
    pub(super) median_text: String,
}

/// Every round as a dot, the median as a bar; the axis begins at zero, so that lengths compare.
pub(super) fn strip(title: &str, unit: &str, rows: &[StripRow], text: fn(f64) -> String) -> String {
    const ROW: f64 = 38.0;
    let (left, right) = (4.0, 372.0);
    let bottom = 6.0 + ROW * rows.len() as f64;
    let largest = rows
        .iter()
        .flat_map(|row| row.rounds.iter().copied())
        .fold(0.0, f64::max);
    let ticks = linear_ticks(largest, 5);
    let end = ticks.last().copied().unwrap_or(1.0).max(largest);
    let x = |value: f64| left + 6.0 + value / end * (right - left - 12.0);
    let described: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {}", row.name, row.median_text))
        .collect();
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 380 {:.0}\" role=\"img\"><title>{}</title><desc>{}</desc>",
        bottom + 34.0,
        escape(title),
        escape(&format!("Median of each variant. {}", described.join("; ")))
    );
    for tick in &ticks {
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"6\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{0:.1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>",
            x(*tick),
            bottom + 14.0,
            escape(&plain_number(*tick))
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let top = 6.0 + ROW * index as f64;
        let line = top + 26.0;
        let _ = write!(
            svg,
            "<text class=\"name\" x=\"{left}\" y=\"{0}\">{1}</text>\
             <text class=\"name value\" x=\"{right}\" y=\"{0}\" text-anchor=\"end\">{2}</text>\
             <line class=\"base\" x1=\"{3:.1}\" x2=\"{right}\" y1=\"{line}\" y2=\"{line}\"/>\
             <line class=\"reach {4}\" x1=\"{3:.1}\" x2=\"{5:.1}\" y1=\"{line}\" y2=\"{line}\"/>",
            top + 13.0,
            escape(&row.name),
            escape(&row.median_text),
            x(0.0),
            row.class,
            x(row.median)
        );
        for (round, value) in row.rounds.iter().enumerate() {
            let _ = write!(
                svg,
                "<circle class=\"round {}\" cx=\"{:.1}\" cy=\"{line}\" r=\"4\"><title>round {}: {}</title></circle>",
                row.class,
                x(*value),
                round + 1,
                escape(&text(*value))
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
    let _ = write!(
        svg,
        "<text class=\"axis\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>",
        bottom + 29.0,
        escape(unit)
    );
    svg
}

/// A value with its range beside a target, small enough for a table cell. `class` colours it by its verdict.
pub(super) fn bullet(
    median: f64,
    min: f64,
    max: f64,
    target: f64,
    at_most: bool,
    class: &str,
) -> String {
    let end = (target * 1.35).max(max * 1.06);
    let x = |value: f64| 2.0 + value / end * 116.0;
    let (good_from, good_to) = if at_most {
        (0.0, target)
    } else {
        (target, end)
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
        goal = x(target),
        median = x(median),
    )
}

// Ticks.

/// Round numbers from 0 to at least `largest`, about `count` of them.
pub(super) fn linear_ticks(largest: f64, count: usize) -> Vec<f64> {
    if largest <= 0.0 || !largest.is_finite() {
        return vec![0.0, 1.0];
    }
    let rough = largest / count as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let steps = (largest / step - 1e-9).ceil() as usize;
    (0..=steps).map(|index| index as f64 * step).collect()
}

/// 1, 2, 5, 10 … from below `min` to above `max`; only powers of ten when the range is wide.
pub(super) fn log_ticks(min: f64, max: f64) -> Vec<f64> {
    let min = min.max(1e-3);
    let max = max.max(min * 1.5);
    let factors: &[f64] = if (max / min).log10() > 3.2 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let first = min.log10().floor() as i32;
    let last = max.log10().ceil() as i32;
    let all: Vec<f64> = (first..=last)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .collect();
    let from = all
        .iter()
        .rposition(|tick| *tick <= min * 1.0001)
        .unwrap_or(0);
    let to = all
        .iter()
        .position(|tick| *tick >= max * 0.9999)
        .unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

/// The percentiles an axis of `1 / (1 - p)` is marked with, as far as the data goes.
pub(super) fn percentile_ticks(last: f64) -> Vec<(f64, String)> {
    [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999]
        .into_iter()
        .filter(|percentile| tail(*percentile) <= last * 1.001)
        .map(|percentile| {
            (
                tail(percentile),
                format!("{} %", onrush_measure::units::percentile(percentile)),
            )
        })
        .collect()
}

/// `1 / (1 - p)`: one in how many requests is slower.
pub(super) fn tail(percentile: f64) -> f64 {
    100.0 / (100.0 - percentile)
}

/// A tick without needless zeros: `2.5`, `50k`, `1.2M`.
pub(super) fn plain_number(value: f64) -> String {
    let (scaled, suffix) = if value.abs() >= 1e6 {
        (value / 1e6, "M")
    } else if value.abs() >= 1e4 {
        (value / 1e3, "k")
    } else {
        (value, "")
    };
    let text = format!("{scaled:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

/// Microseconds on an axis: `50 µs`, `2 ms`, `1 s`.
pub(super) fn time_tick(us: f64) -> String {
    if us >= 1e6 {
        return format!("{} s", plain_number(us / 1e6));
    }
    if us >= 1e3 {
        return format!("{} ms", plain_number(us / 1e3));
    }
    format!("{} µs", plain_number(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        assert_eq!(linear_ticks(4.9, 5), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(
            linear_ticks(190_000.0, 4),
            [0.0, 50_000.0, 100_000.0, 150_000.0, 200_000.0]
        );
        assert_eq!(linear_ticks(0.0, 4), [0.0, 1.0]);
        assert_eq!(
            log_ticks(80.0, 3_000.0),
            [50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0]
        );
        assert_eq!(log_ticks(100.0, 100.0), [100.0, 200.0]);
        assert_eq!(
            log_ticks(3.0, 50_000.0),
            [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]
        );
    }

    #[test]
    fn percentile_axis_gives_each_nine_the_same_room() {
        let scale = Scale::Log(2.0, 20_000.0);
        let nines = [90.0, 99.0, 99.9].map(|percentile| scale.place(tail(percentile)));
        assert!(((nines[1] - nines[0]) - (nines[2] - nines[1])).abs() < 1e-9);
        let labels: Vec<_> = percentile_ticks(1_000.0)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(labels, ["50 %", "90 %", "99 %", "99.9 %"]);
    }

    #[test]
    fn numbers_on_axes_are_short() {
        assert_eq!(plain_number(2.5), "2.5");
        assert_eq!(plain_number(150_000.0), "150k");
        assert_eq!(time_tick(2_000.0), "2 ms");
        assert_eq!(time_tick(50.0), "50 µs");
    }

    #[test]
    fn markup_in_names_is_escaped() {
        assert_eq!(escape("<a & 'b'>"), "&lt;a &amp; &#39;b&#39;&gt;");
    }
}
