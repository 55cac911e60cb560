//! Point marks: one shape per colour class, so that lines can be distinguished without colour.

use std::fmt::Write;

/// Renders a mark as SVG. The shape depends on the class: `o1` … `o6` and `t1` … `t6` of the style sheet; other classes
/// get a dot.
pub(crate) fn mark(class: &str, x: f64, y: f64) -> String {
    let shape: &[(f64, f64)] = match class {
        "o2" | "o5" => &[(0.0, -3.4), (3.4, 0.0), (0.0, 3.4), (-3.4, 0.0)],
        "o3" | "o6" => &[(0.0, -3.2), (3.2, 2.6), (-3.2, 2.6)],
        "t1" | "t4" => &[(-2.5, -2.5), (2.5, -2.5), (2.5, 2.5), (-2.5, 2.5)],
        "t2" | "t5" => &[(0.0, 3.2), (3.2, -2.6), (-3.2, -2.6)],
        "t3" | "t6" => &[(-3.2, -1.2), (3.2, -1.2), (3.2, 1.2), (-3.2, 1.2)],
        _ => &[],
    };
    if shape.is_empty() {
        return format!("<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"/>");
    }
    let mut points = String::new();
    for (dx, dy) in shape {
        let _ = write!(points, "{:.1},{:.1} ", x + dx, y + dy);
    }
    format!(
        "<polygon class=\"dot {class}\" points=\"{}\"/>",
        points.trim_end()
    )
}

/// Mark of a class for a legend.
pub fn legend_mark(class: &str) -> String {
    format!(
        "<svg class=\"mark\" width=\"12\" height=\"12\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">{}</svg>",
        mark(class, 6.0, 6.0)
    )
}

/// Area with upper edge for a legend.
pub fn legend_area(class: &str) -> String {
    format!(
        "<svg class=\"mark\" width=\"20\" height=\"12\" viewBox=\"0 0 20 12\" aria-hidden=\"true\">\
         <path class=\"area {class}\" d=\"M0 3H20V12H0Z\"/><path class=\"edge {class}\" d=\"M0 3H20\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn first_three_series_of_each_side_have_distinct_marks() {
        let classes = ["o1", "o2", "o3", "t1", "t2", "t3"];
        let shapes: BTreeSet<String> = classes
            .iter()
            .map(|class| mark(class, 0.0, 0.0).replace(class, ""))
            .collect();
        assert_eq!(shapes.len(), classes.len());
    }
}
