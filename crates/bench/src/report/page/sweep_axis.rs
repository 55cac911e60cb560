//! Horizontal axis of a sweep's chart: the parameter and the positions of its values.

use onrush_chart::{Axis, Scale};
use onrush_measure::amount;

use crate::outcome::WorkOutcome;
use crate::scenario::Point;

/// Ratio of the largest to the smallest value above which the axis is logarithmic.
pub(super) const LOG_FROM: f64 = 8.0;

const LETTER: f64 = 0.021;

pub(super) struct SweepAxis {
    pub(super) parameter: String,
    /// Values in the order of the axis, with their positions.
    pub(super) places: Vec<(String, f64)>,
    pub(super) scale: Scale,
    /// The parameter on the axis, and those determined by it, such as the CPUs by their number.
    pub(super) along: Vec<String>,
    /// The distinct combinations of all other parameters.
    pub(super) others: Vec<Point>,
}

impl SweepAxis {
    /// Chooses the first parameter with several values that are all numeric, or else the first with several values.
    pub(super) fn of(points: &[WorkOutcome]) -> Option<SweepAxis> {
        let first = points.first()?;
        let parameters = first.point.settings().iter();
        let candidates: Vec<(String, Vec<String>)> = parameters
            .map(|setting| {
                let parameter = setting.parameter.clone();
                let values = values(points, &parameter);
                (parameter, values)
            })
            .filter(|(_, values)| values.len() > 1)
            .collect();
        let is_number = |(parameter, values): &&(String, Vec<String>)| {
            !first.labels.contains(parameter)
                && values.iter().all(|value| quantity(value).is_some())
        };
        let chosen = candidates.iter().find(is_number);
        let (parameter, values) = chosen.or_else(|| candidates.first())?;
        let numbers: Option<Vec<f64>> = match first.labels.contains(parameter) {
            true => None,
            false => values.iter().map(|value| quantity(value)).collect(),
        };
        let (places, scale) = match numbers {
            Some(numbers) => on_a_number_line(values, &numbers),
            None => side_by_side(values),
        };
        let along: Vec<String> = first
            .point
            .settings()
            .iter()
            .map(|setting| setting.parameter.clone())
            .filter(|other| other == parameter || follows(points, other, parameter))
            .collect();
        let mut others: Vec<Point> = Vec::new();
        for work in points {
            let rest = without(&work.point, &along);
            if !others.contains(&rest) {
                others.push(rest);
            }
        }
        Some(SweepAxis {
            parameter: parameter.clone(),
            places,
            scale,
            along,
            others,
        })
    }

    pub(super) fn place(&self, work: &WorkOutcome) -> Option<f64> {
        let value = work.point.value(&self.parameter)?;
        let mut places = self.places.iter();
        places
            .find(|(known, _)| known == value)
            .map(|(_, place)| *place)
    }

    pub(super) fn axis(&self) -> Axis {
        let ends = |(place, text): &(f64, String)| {
            let width = text.chars().count() as f64 * LETTER;
            let middle = self.scale.place(*place);
            // The last label is right-aligned.
            let end = (middle + width / 2.0).min(1.0);
            (end - width, end)
        };
        let touches = |kept: &[(f64, String)], tick: &(f64, String)| {
            kept.last()
                .is_some_and(|before| ends(tick).0 < ends(before).1 + LETTER)
        };
        // Labels that would overlap are left out, except for the last one. Their points are drawn nevertheless.
        let mut ticks: Vec<(f64, String)> = Vec::new();
        let last = self.places.len().saturating_sub(1);
        for (index, (value, place)) in self.places.iter().enumerate() {
            let tick = (*place, value.clone());
            while index == last && touches(&ticks, &tick) {
                ticks.pop();
            }
            if !touches(&ticks, &tick) {
                ticks.push(tick);
            }
        }
        Axis {
            label: self.parameter.clone(),
            scale: self.scale,
            ticks,
        }
    }
}

fn values(points: &[WorkOutcome], parameter: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in points.iter().filter_map(|work| work.point.value(parameter)) {
        if !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    values
}

/// Parses a number, also with the suffixes `k` and `m`. These are powers of ten here; the difference to 1,024 is not
/// visible on an axis.
fn quantity(text: &str) -> Option<f64> {
    let number = text.parse().ok();
    let number = number.or_else(|| amount::number(text).ok());
    number.filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn on_a_number_line(values: &[String], numbers: &[f64]) -> (Vec<(String, f64)>, Scale) {
    let mut places: Vec<(String, f64)> = values.iter().cloned().zip(numbers.to_vec()).collect();
    places.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (least, most) = (places[0].1, places[places.len() - 1].1);
    let scale = if least > 0.0 && most / least >= LOG_FROM {
        Scale::Log(least, most)
    } else {
        // Equal numbers, such as 1k and 1000, still need an axis of non-zero length.
        Scale::Linear(least, most.max(least + 1e-9))
    };
    (places, scale)
}

fn side_by_side(values: &[String]) -> (Vec<(String, f64)>, Scale) {
    let places = values.iter().cloned().zip((0..).map(f64::from)).collect();
    let last = values.len().saturating_sub(1).max(1);
    (places, Scale::Linear(-0.3, last as f64 + 0.3))
}

/// Whether `other` is determined by `parameter` and not constant.
fn follows(points: &[WorkOutcome], other: &str, parameter: &str) -> bool {
    let values: Vec<[Option<&str>; 2]> = points
        .iter()
        .map(|work| [parameter, other].map(|name| work.point.value(name)))
        .collect();
    let agree = |[of, its]: &[Option<&str>; 2]| {
        values
            .iter()
            .all(|[same, value]| same != of || value == its)
    };
    values.iter().all(agree) && values.iter().any(|[_, its]| *its != values[0][1])
}

pub(super) fn without(point: &Point, along: &[String]) -> Point {
    let rest = point.settings().iter();
    rest.filter(|setting| !along.contains(&setting.parameter))
        .fold(Point::default(), |point, setting| {
            point.with(&setting.parameter, &setting.value)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[&str]) -> Vec<String> {
        let values: Vec<String> = values.iter().map(|&it| it.to_owned()).collect();
        let numbers: Vec<f64> = values.iter().filter_map(|it| quantity(it)).collect();
        let (places, scale) = on_a_number_line(&values, &numbers);
        let across = SweepAxis {
            parameter: "rate".into(),
            places,
            scale,
            along: Vec::new(),
            others: Vec::new(),
        };
        across
            .axis()
            .ticks
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn axis_labels_do_not_overlap() {
        assert_eq!(
            ticks(&["1000", "5000", "10000", "20000", "30000"]),
            ["1000", "5000", "10000", "30000"]
        );
        assert_eq!(ticks(&["1", "2", "4"]), ["1", "2", "4"]);
        assert_eq!(
            ticks(&["1", "2", "5", "10", "20", "50", "100", "200", "500", "1000"]),
            ["1", "2", "5", "10", "20", "50", "100", "200", "1000"]
        );
    }
}
