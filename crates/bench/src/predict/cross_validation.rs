//! Cross-validation of the model: predicts each published row from the others.

use super::cost::Cost;
use super::fit::fit;
use super::model::{Limiter, Prediction, predict};
use super::rows::{Load, Row, Subject};

/// A row and its prediction from the other rows.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossValidated<R> {
    /// The measured row.
    pub row: R,
    /// Its figure: requests per second, or the unit in its name.
    pub figure: f64,
    /// Rate and bottleneck predicted from the other rows; `None` if they are not sufficient.
    pub predicted: Option<(f64, Limiter)>,
}

impl<R> CrossValidated<R> {
    /// Relative error of the prediction: 0.1 is 10 % too high.
    pub fn error(&self) -> Option<f64> {
        self.predicted.map(|(rps, _)| rps / self.figure - 1.0)
    }
}

/// Median of the absolute errors; `None` without rows. A row without a prediction counts as an infinite error, so that
/// leaving rows out never improves the median.
pub fn median_error<R>(checked: &[CrossValidated<R>]) -> Option<f64> {
    let of = |checked: &CrossValidated<R>| checked.error().map_or(f64::INFINITY, f64::abs);
    let mut errors: Vec<f64> = checked.iter().map(of).collect();
    errors.sort_by(f64::total_cmp);
    let middle = errors.len() / 2;
    let median = match errors.len() {
        0 => return None,
        count if count % 2 == 1 => errors[middle],
        _ => (errors[middle - 1] + errors[middle]) / 2.0,
    };
    median.is_finite().then_some(median)
}

/// Predicts each row from the others. Rows of the same load are left out together, because one would reveal the other.
pub fn leave_one_out(rows: &[Row]) -> Vec<CrossValidated<Row>> {
    let predicted = |row: &Row| match &row.subject {
        Subject::Frames(link, size) => Some((link.frames(*size), Limiter::Link)),
        Subject::Load(load) => {
            let others: Vec<&Row> = rows.iter().filter(|other| !is_same(other, load)).collect();
            let (machine, cost) = fit(&others, load);
            let prediction = predict(&machine, &cost);
            prediction.map(|prediction: Prediction| (prediction.rps, prediction.limiter))
        }
    };
    let check = |row: &Row| CrossValidated {
        row: row.clone(),
        figure: row.figure,
        predicted: predicted(row),
    };
    rows.iter().map(check).collect()
}

/// Packet costs from all published rows, for machines without measured costs. Contains no costs of programs.
pub fn published_cost(rows: &[Row]) -> Cost {
    let all: Vec<&Row> = rows.iter().collect();
    let is_packets = |row: &&Row| row.full == Some(Limiter::InterruptCpu);
    let load = rows
        .iter()
        .filter(is_packets)
        .find_map(|row| match &row.subject {
            Subject::Load(load) => Some(load),
            Subject::Frames(_, _) => None,
        });
    let fitted = load.map(|load| fit(&all, load).1);
    Cost {
        packet: fitted.as_ref().and_then(|cost| cost.packet),
        paravirtual_us: fitted.as_ref().and_then(|cost| cost.paravirtual_us),
        ..Cost::default()
    }
}

fn is_same(row: &Row, load: &Load) -> bool {
    match &row.subject {
        Subject::Frames(_, _) => false,
        Subject::Load(other) => {
            let facts = |load: &Load| (load.connections, load.transport, load.exchange);
            other.machine == load.machine
                && other.software == load.software
                && facts(other) == facts(load)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::rows::published;

    fn row(name: &str, checked: &[CrossValidated<Row>]) -> CrossValidated<Row> {
        let mut all = checked.iter();
        let found = all.find(|checked| checked.row.name == name);
        found.unwrap_or_else(|| panic!("no row {name}")).clone()
    }

    #[test]
    fn published_rows_have_median_error_below_15_percent() {
        let checked = leave_one_out(&published());
        let median = median_error(&checked).expect("rows");
        assert!(median < 0.15, "{median}");
        for table in ["B", "C", "D"] {
            let of_table: Vec<CrossValidated<Row>> = checked
                .iter()
                .filter(|checked| checked.row.table == table)
                .cloned()
                .collect();
            let median = median_error(&of_table).expect("rows");
            assert!(median < 0.15, "{table}: {median}");
        }
    }

    #[test]
    fn prediction_does_not_use_predicted_row() {
        let rows = published();
        let before = leave_one_out(&rows);
        for at in 0..rows.len() {
            let mut changed = rows.clone();
            let Subject::Load(load) = &rows[at].subject else {
                continue;
            };
            for row in changed.iter_mut().filter(|row| is_same(row, load)) {
                row.figure *= 3.0;
            }
            let after = leave_one_out(&changed);
            assert_eq!(
                after[at].predicted, before[at].predicted,
                "{}",
                rows[at].name
            );
        }
    }

    #[test]
    fn model_ranks_rps_cpu_counts_as_published() {
        let checked = leave_one_out(&published());
        let rps = |name| row(name, &checked).predicted.map_or(0.0, |(rps, _)| rps);
        let seven = rps("to 7 of that node");
        let fifteen = rps("to that node but the interrupt's, 15");
        let all_but_one = rps("to all but the interrupt's, 31");
        let all = rps("packet steering to all 32");
        assert!(seven > fifteen && fifteen > all_but_one && all_but_one > 1.8 * all);
    }
}
