//! Stacked areas over the width of a chart.
//!
//! Each part is one path, plus a second path for its upper edge. Edges differ in stroke, so that parts can be
//! distinguished without colour.

use std::fmt::Write;

use super::legend;

/// One column of a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Start on the x axis.
    pub from: f64,
    /// End on the x axis.
    pub to: f64,
    /// Heights of its parts, from bottom to top.
    pub parts: Vec<f64>,
}

/// Columns and the parts they consist of.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    /// Name and colour class of each part.
    pub parts: Vec<(&'static str, &'static str)>,
    /// Columns in ascending order of x.
    pub columns: Vec<Column>,
}

/// Edges are left out above this number of columns: they would merge into a black band.
const EDGES_MAX: usize = 60;
/// Columns closer than this touch, in units of the drawing.
const TOUCHES: f64 = 0.05;

/// Keeps at most two columns per unit of width: the one with the highest total and the one with the lowest.
pub(crate) fn downsampled(stack: &Stack, x: impl Fn(f64) -> f64) -> Vec<Column> {
    let total = |column: &Column| column.parts.iter().sum::<f64>();
    let unit = |column: &Column| x((column.from + column.to) / 2.0).floor();
    let mut columns = Vec::new();
    for group in stack.columns.chunk_by(|a, b| unit(a) == unit(b)) {
        let [first, .., last] = group else {
            columns.extend_from_slice(group);
            continue;
        };
        if group.len() == 2 {
            columns.extend_from_slice(group);
            continue;
        }
        let by_total =
            |a: &(usize, &Column), b: &(usize, &Column)| total(a.1).total_cmp(&total(b.1));
        let columns_of = || group.iter().enumerate();
        let (Some((most_at, most)), Some((least_at, least))) =
            (columns_of().max_by(by_total), columns_of().min_by(by_total))
        else {
            continue;
        };
        let (from, middle, to) = (first.from, (first.from + last.to) / 2.0, last.to);
        let (earlier, later) = match most_at <= least_at {
            true => (most, least),
            false => (least, most),
        };
        let part = |from, to, column: &Column| Column {
            from,
            to,
            parts: column.parts.clone(),
        };
        columns.push(part(from, middle, earlier));
        columns.push(part(middle, to, later));
    }
    columns
}

/// Draws the parts from bottom to top, clipped at `top`; `x` and `y` map values to coordinates.
pub(crate) fn draw(
    svg: &mut String,
    stack: &Stack,
    top: f64,
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
) {
    let columns = downsampled(stack, &x);
    let mut bottoms = vec![0.0; columns.len()];
    for (index, (name, class)) in stack.parts.iter().enumerate() {
        let mut area = String::new();
        let mut edge = String::new();
        let mut run: Vec<Step> = Vec::new();
        for (column, bottom) in columns.iter().zip(&mut bottoms) {
            let part = column.parts.get(index).copied().unwrap_or(0.0);
            let step = Step {
                left: x(column.from),
                right: x(column.to),
                low: y(*bottom),
                high: y((*bottom + part).min(top)),
            };
            *bottom = (*bottom + part).min(top);
            let touches = |last: &Step| (step.left - last.right).abs() < TOUCHES;
            if step.low - step.high < 0.05 || !run.last().is_none_or(touches) {
                finish(&mut run, &mut area, &mut edge);
            }
            if step.low - step.high >= 0.05 {
                run.push(step);
            }
        }
        finish(&mut run, &mut area, &mut edge);
        if !area.is_empty() {
            let path = format!("<path class=\"area {class}\" d=\"{area}\"/>");
            svg.push_str(&legend::series(name, &path));
        }
        if !edge.is_empty() && columns.len() <= EDGES_MAX {
            let _ = write!(svg, "<path class=\"edge {class}\" d=\"{edge}\"/>");
        }
    }
}

struct Step {
    left: f64,
    right: f64,
    low: f64,
    high: f64,
}

/// Writes adjacent steps as one closed area and its upper edge.
fn finish(run: &mut Vec<Step>, area: &mut String, edge: &mut String) {
    let Some(first) = run.first() else {
        return;
    };
    let mut upper = format!("M{:.1} {:.1}", first.left, first.high);
    for step in run.iter() {
        let _ = write!(upper, "V{:.1}H{:.1}", step.high, step.right);
    }
    edge.push_str(&upper);
    area.push_str(&upper);
    for step in run.iter().rev() {
        let _ = write!(area, "V{:.1}H{:.1}", step.low, step.left);
    }
    area.push('Z');
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(from: f64, parts: &[f64]) -> Column {
        Column {
            from,
            to: from + 1.0,
            parts: parts.into(),
        }
    }

    #[test]
    fn downsampling_keeps_peaks_and_gaps() {
        let at = |second: u32| match second {
            1_234 => column(f64::from(second), &[0.9, 0.1]),
            2_345 => column(f64::from(second), &[0.0, 0.0]),
            _ => column(f64::from(second), &[0.3, 0.1]),
        };
        let stack = Stack {
            parts: vec![("a", "a"), ("b", "b")],
            columns: (0..3_600).map(at).collect(),
        };
        let columns = downsampled(&stack, |t| t / 3_600.0 * 320.0);
        assert!(columns.len() <= 640, "{}", columns.len());
        let total = |column: &Column| column.parts.iter().sum::<f64>();
        assert!(columns.iter().any(|column| total(column) == 1.0));
        assert!(columns.iter().any(|column| total(column) == 0.0));
        for pair in columns.windows(2) {
            assert_eq!(pair[0].to, pair[1].from);
        }
    }

    #[test]
    fn few_columns_are_not_downsampled() {
        let columns = vec![
            column(0.0, &[1.0]),
            column(1.0, &[2.0]),
            column(2.0, &[3.0]),
        ];
        let stack = Stack {
            parts: vec![("a", "a")],
            columns: columns.clone(),
        };
        assert_eq!(downsampled(&stack, |t| t * 100.0), columns);
    }
}
