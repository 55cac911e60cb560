//! Heat map: one row per item, one column per interval, darker for higher values.
//!
//! It uses one hue, so that it can be read without colour. Each row is labelled with its maximum. A cell shows the
//! maximum of its interval, so that no peak is lost.

use std::fmt::Write;

use super::hover::attribute;
use super::{Axis, escape};

/// Rows with the same unit, under one heading.
#[derive(Debug, Clone)]
pub struct HeatGroup {
    /// Name of the quantity.
    pub name: String,
    /// Value of the darkest cells.
    pub end: f64,
    /// Rows from top to bottom.
    pub rows: Vec<HeatRow>,
    /// Formats a value.
    pub text: fn(f64) -> String,
}

/// One row of the map.
#[derive(Debug, Clone)]
pub struct HeatRow {
    /// Name of the item.
    pub name: String,
    /// Cells in ascending order of x.
    pub cells: Vec<HeatCell>,
}

/// A value over a range of x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeatCell {
    /// Start of the range.
    pub from: f64,
    /// End of the range.
    pub to: f64,
    /// The value, 0 or more.
    pub value: f64,
}

/// A heat map.
#[derive(Debug, Clone)]
pub struct Heat {
    /// Title.
    pub title: String,
    /// Text alternative for screen readers.
    pub description: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Groups from top to bottom.
    pub groups: Vec<HeatGroup>,
    /// Formats an x value.
    pub x_text: fn(f64) -> String,
}

const LEFT: f64 = 104.0;
const RIGHT: f64 = 324.0;
const ROW: f64 = 13.0;
const HEADING: f64 = 20.0;
/// Number of levels above zero; more cannot be distinguished by eye.
const LEVELS: usize = 8;
/// Number of rows shown per group in the hover text: those with the highest values.
const HOVER_ROWS: usize = 6;
/// Maximum length of a row's name in characters, limited by the left margin.
const NAME_MAX: usize = 16;

impl Heat {
    /// Renders the map as an `<svg>` element.
    pub fn svg(&self) -> String {
        let count = self.columns();
        let maps: Vec<Vec<Vec<f64>>> = self
            .groups
            .iter()
            .map(|group| group.rows.iter().map(|row| self.row(row, count)).collect())
            .collect();
        let rows: usize = maps.iter().map(Vec::len).sum();
        let bottom = 2.0 + rows as f64 * ROW + maps.len() as f64 * HEADING;
        let mut svg = format!(
            "<svg class=\"chart heat\" viewBox=\"0 0 380 {:.0}\" role=\"img\" tabindex=\"0\" {}><title>{}</title><desc>{}</desc>",
            bottom + 36.0,
            attribute(&self.hover(&maps, count)),
            escape(&self.title),
            escape(&self.description)
        );
        let mut top = 2.0;
        for (group, map) in self.groups.iter().zip(&maps) {
            draw_group(&mut svg, group, map, top);
            top += HEADING + ROW * map.len() as f64;
        }
        self.draw_axis(&mut svg, bottom);
        let _ = write!(
            svg,
            "<line class=\"cursor\" y1=\"2\" y2=\"{bottom}\" x1=\"0\" x2=\"0\"/></svg>"
        );
        svg
    }

    /// One column per interval, but at most one per unit of width.
    fn columns(&self) -> usize {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        let most = rows.map(|row| row.cells.len()).max().unwrap_or(0);
        most.clamp(1, (RIGHT - LEFT) as usize)
    }

    fn row(&self, row: &HeatRow, count: usize) -> Vec<f64> {
        let mut columns = vec![0.0_f64; count];
        let at = |x: f64| (self.x.scale.place(x).clamp(0.0, 1.0) * count as f64).round() as usize;
        for cell in &row.cells {
            let from = at(cell.from).min(count - 1);
            let to = at(cell.to).clamp(from + 1, count);
            for column in &mut columns[from..to] {
                *column = column.max(cell.value);
            }
        }
        columns
    }

    fn draw_axis(&self, svg: &mut String, bottom: f64) {
        for (value, text) in &self.x.ticks {
            let x = LEFT + self.x.scale.place(*value) * (RIGHT - LEFT);
            let _ = write!(
                svg,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{0}\" y2=\"{1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{2}\" text-anchor=\"middle\">{3}</text>",
                bottom,
                bottom + 4.0,
                bottom + 16.0,
                escape(text)
            );
        }
        let _ = write!(
            svg,
            "<text class=\"axis\" x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            bottom + 31.0,
            escape(&self.x.label)
        );
    }

    /// Hover values as in other charts: `[[place, "9 s", [["name", "class", "value"], …]], …]`.
    fn hover(&self, maps: &[Vec<Vec<f64>>], count: usize) -> String {
        let entry = |column: usize| {
            let mut rows: Vec<(String, &str, String)> = Vec::new();
            for (group, map) in self.groups.iter().zip(maps) {
                let values = map.iter().map(|row| row[column]);
                let mut named: Vec<(&HeatRow, f64)> = group.rows.iter().zip(values).collect();
                named.sort_by(|a, b| b.1.total_cmp(&a.1));
                named.truncate(HOVER_ROWS);
                rows.extend(named.into_iter().map(|(row, value)| {
                    let name = format!("{}, {}", row.name, group.name);
                    (name, "", (group.text)(value))
                }));
            }
            let share = (column as f64 + 0.5) / count as f64;
            let place = ((LEFT + share * (RIGHT - LEFT)) * 10.0).round() / 10.0;
            let end = (column + 1) as f64 / count as f64 * self.x.scale.end();
            (place, (self.x_text)(end), rows)
        };
        let entries: Vec<_> = (0..count).map(entry).collect();
        serde_json::to_string(&entries).unwrap_or_default()
    }
}

fn draw_group(svg: &mut String, group: &HeatGroup, map: &[Vec<f64>], top: f64) {
    let line = top + 13.0;
    let _ = write!(
        svg,
        "<text class=\"name\" x=\"0\" y=\"{line}\">{}</text>\
         <text class=\"tick\" x=\"372\" y=\"{line}\" text-anchor=\"end\">{}</text>",
        escape(&group.name),
        escape(&(group.text)(group.end))
    );
    for level in 1..=LEVELS {
        let x = RIGHT - (LEVELS - level) as f64 * 8.0 - 8.0;
        let _ = write!(
            svg,
            "<path class=\"heat{level}\" d=\"M{x} {:.1}h8v9h-8z\"/>",
            line - 8.5
        );
    }
    let top = top + HEADING;
    let bottom = top + ROW * map.len() as f64;
    let _ = write!(
        svg,
        "<path class=\"cold\" d=\"M{LEFT} {top:.1}H{RIGHT}V{bottom:.1}H{LEFT}z\"/>"
    );
    let mut paths = vec![String::new(); LEVELS];
    for (index, values) in map.iter().enumerate() {
        draw_row(&mut paths, values, group.end, top + ROW * index as f64);
    }
    for (path, level) in paths.iter().zip(1..) {
        if !path.is_empty() {
            let _ = write!(svg, "<path class=\"heat{level}\" d=\"{path}\"/>");
        }
    }
    for (index, (row, values)) in group.rows.iter().zip(map).enumerate() {
        let y = top + ROW * index as f64 + 10.0;
        let most = values.iter().copied().fold(0.0, f64::max);
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"tick\" x=\"372\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 5.0,
            escape(&short(&row.name)),
            escape(&(group.text)(most))
        );
    }
}

/// Adds a row's cells to the path of each level; adjacent cells of the same level are merged.
fn draw_row(paths: &mut [String], values: &[f64], end: f64, top: f64) {
    let level = |value: f64| {
        (value / end * LEVELS as f64)
            .ceil()
            .clamp(0.0, LEVELS as f64) as usize
    };
    let width = (RIGHT - LEFT) / values.len() as f64;
    let mut from = 0;
    for run in values.chunk_by(|a, b| level(*a) == level(*b)) {
        let (left, wide) = (LEFT + from as f64 * width, run.len() as f64 * width);
        from += run.len();
        if let Some(path) = level(run[0])
            .checked_sub(1)
            .and_then(|at| paths.get_mut(at))
        {
            let tall = ROW - 1.0;
            let _ = write!(path, "M{left:.1} {top:.1}h{wide:.1}v{tall:.0}h-{wide:.1}z");
        }
    }
}

fn short(name: &str) -> String {
    match name.chars().count() {
        ..=NAME_MAX => name.to_owned(),
        _ => name.chars().take(NAME_MAX - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    fn heat(seconds: u32, value: fn(u32) -> f64) -> Heat {
        let cell = |second: u32| HeatCell {
            from: f64::from(second),
            to: f64::from(second) + 1.0,
            value: value(second),
        };
        let row = HeatRow {
            name: "CPU <1>".into(),
            cells: (0..seconds).map(cell).collect(),
        };
        Heat {
            title: "t".into(),
            description: "d".into(),
            x: Axis {
                label: String::new(),
                scale: Scale::Linear(0.0, f64::from(seconds)),
                ticks: Vec::new(),
            },
            groups: vec![HeatGroup {
                name: "busy".into(),
                end: 1.0,
                rows: vec![row],
                text: |share| format!("{:.0} %", share * 100.0),
            }],
            x_text: |t| format!("{t:.0} s"),
        }
    }

    #[test]
    fn downsampling_keeps_single_peak() {
        let heat = heat(3_600, |second| if second == 1_801 { 1.0 } else { 0.1 });
        let columns = heat.row(&heat.groups[0].rows[0], heat.columns());
        assert!(columns.len() <= 222);
        assert_eq!(columns.iter().filter(|value| **value == 1.0).count(), 1);
        let svg = heat.svg();
        assert_eq!(svg.matches("class=\"heat8\"").count(), 2);
        assert!(
            svg.contains("CPU &lt;1&gt;") && svg.contains(">100 %<"),
            "{svg}"
        );
    }

    #[test]
    fn each_time_has_column_with_value() {
        let heat = heat(4, |second| f64::from(second) / 4.0);
        let columns = heat.row(&heat.groups[0].rows[0], heat.columns());
        assert_eq!(columns, [0.0, 0.25, 0.5, 0.75]);
        let svg = heat.svg();
        assert!(svg.contains("\"75 %\"") && svg.contains("\"4 s\""), "{svg}");
    }
}
