//! Non-negative least squares of relative errors, to estimate costs from measured rows.

/// Figures have two or three digits. A smaller improvement of the fit than this only explains rounding.
const ROUNDING: f64 = 0.01;

/// One measured row: how often each cost occurs, and the total.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Equation {
    pub(super) counts: Vec<f64>,
    pub(super) total: f64,
}

/// The non-negative costs that fit all equations best, one per element of `counts`. A cost that the equations cannot
/// distinguish from others is 0, so that the fewest costs explain the rows. All are 0 without equations.
///
/// Tries every subset of costs, which is exact; there are at most five costs.
pub(super) fn costs(equations: &[Equation]) -> Vec<f64> {
    let count = equations.first().map_or(0, |first| first.counts.len());
    let mut best = vec![0.0; count];
    let mut best_error = error(equations, &best);
    let explained_min = ROUNDING.powi(2) * equations.len() as f64;
    let mut subsets: Vec<usize> = (1..1 << count).collect();
    subsets.sort_by_key(|subset: &usize| subset.count_ones());
    for subset in subsets {
        let chosen: Vec<usize> = (0..count).filter(|at| subset >> at & 1 == 1).collect();
        let Some(values) = least_squares(equations, &chosen) else {
            continue;
        };
        let mut costs = vec![0.0; count];
        for (at, value) in chosen.iter().zip(values) {
            costs[*at] = value;
        }
        let error = error(equations, &costs);
        let is_possible = costs.iter().all(|cost| *cost >= 0.0);
        if is_possible && error + explained_min < best_error {
            (best, best_error) = (costs, error);
        }
    }
    best
}

fn error(equations: &[Equation], costs: &[f64]) -> f64 {
    let of = |equation: &Equation| {
        let sum: f64 = equation
            .counts
            .iter()
            .zip(costs)
            .map(|(n, cost)| n * cost)
            .sum();
        (sum / equation.total - 1.0).powi(2)
    };
    equations.iter().map(of).sum()
}

/// Solves the normal equations of the chosen costs by elimination; `None` if they are singular.
fn least_squares(equations: &[Equation], chosen: &[usize]) -> Option<Vec<f64>> {
    let scaled = |equation: &Equation, at: usize| equation.counts[at] / equation.total;
    let sum = |of: &dyn Fn(&Equation) -> f64| -> f64 { equations.iter().map(of).sum() };
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for &a in chosen {
        let mut row: Vec<f64> = Vec::new();
        for &b in chosen {
            row.push(sum(&|equation| scaled(equation, a) * scaled(equation, b)));
        }
        row.push(sum(&|equation| scaled(equation, a)));
        rows.push(row);
    }
    let size = chosen.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        let head = rows[column].clone();
        if head[column].abs() < 1e-9 {
            return None;
        }
        for (at, row) in rows.iter_mut().enumerate() {
            if at != column {
                let factor = row[column] / head[column];
                for (value, of_head) in row.iter_mut().zip(&head) {
                    *value -= factor * of_head;
                }
            }
        }
    }
    Some((0..size).map(|at| rows[at][size] / rows[at][at]).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equation(counts: &[f64], costs: &[f64]) -> Equation {
        Equation {
            counts: counts.to_vec(),
            total: counts.iter().zip(costs).map(|(n, cost)| n * cost).sum(),
        }
    }

    #[test]
    fn ambiguous_cost_is_assigned_to_first() {
        let equations = [equation(&[1.0, 1.0], &[3.0, 2.0])];
        let found = costs(&equations);
        assert!(
            (found[0] - 5.0).abs() < 1e-6 && found[1] == 0.0,
            "{found:?}"
        );
        assert!(costs(&[]).is_empty());
    }

    #[test]
    fn costs_are_never_negative() {
        let falling = [(1.0, 5.0), (2.0, 3.0)].map(|(n, total)| Equation {
            counts: vec![1.0, n],
            total,
        });
        assert!(costs(&falling).iter().all(|cost| *cost >= 0.0));
    }

    proptest! {
        #[test]
        fn solved_costs_reproduce_rows(a in 0.1..10.0_f64, b in 0.1..10.0_f64, c in 0.1..10.0_f64) {
            let rows = [[1.0, 0.0, 0.5], [1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [1.0, 0.5, 2.0]];
            let equations = rows.map(|counts| equation(&counts, &[a, b, c]));
            let found = costs(&equations);
            for row in &equations {
                let sum: f64 = row.counts.iter().zip(&found).map(|(n, cost)| n * cost).sum();
                prop_assert!((sum / row.total - 1.0).abs() < 0.06, "{found:?} of {a}, {b}, {c}");
            }
        }
    }
}
