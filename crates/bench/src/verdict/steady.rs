//! Checks whether the rate of a trial was steady. If it rises or falls through the window, its mean describes no state
//! of the system.

use crate::outcome::Second;

/// Minimum number of rows; with fewer, only a perfect trend would be significant.
const ROWS_MIN: usize = 8;
/// Significance of a trend: two-sided 1 %.
const Z_MIN: f64 = 2.576;
/// Smallest relevant change; a smaller one is ignored even if significant.
const CHANGE_MIN: f64 = 0.05;

/// Relative change of the rate over the window if there is a trend by the Mann-Kendall test (Mann, Nonparametric Tests
/// Against Trend, Econometrica 13, 1945). `None` for a steady rate or too few rows.
pub(super) fn trend(seconds: &[Second]) -> Option<f64> {
    let rates: Vec<f64> = seconds.iter().map(|second| second.rps).collect();
    if rates.len() < ROWS_MIN || z(&rates).abs() < Z_MIN {
        return None;
    }
    let slope = slope(&rates);
    let middle = median(&mut rates.clone());
    let change = slope * (rates.len() - 1) as f64 / middle;
    (change.is_finite() && change.abs() > CHANGE_MIN).then_some(change)
}

/// Kendall's S in standard deviations, corrected for ties and continuity.
fn z(rates: &[f64]) -> f64 {
    let mut s = 0.0;
    for (index, earlier) in rates.iter().enumerate() {
        for later in &rates[index + 1..] {
            s += sign(later - earlier);
        }
    }
    let count = rates.len() as f64;
    let of_all = count * (count - 1.0) * (2.0 * count + 5.0);
    let variance = (of_all - ties(rates)) / 18.0;
    if variance <= 0.0 {
        return 0.0;
    }
    (s - sign(s)) / variance.sqrt()
}

fn sign(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

/// Reduction of the variance by ties.
fn ties(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let groups = sorted.chunk_by(|a, b| a == b);
    groups
        .map(|group| group.len() as f64)
        .map(|count| count * (count - 1.0) * (2.0 * count + 5.0))
        .sum()
}

/// Median of the slopes between all pairs of rows (Sen, Estimates of the Regression Coefficient, JASA 63, 1968).
fn slope(rates: &[f64]) -> f64 {
    let mut slopes = Vec::new();
    for (index, earlier) in rates.iter().enumerate() {
        for (distance, later) in rates[index + 1..].iter().enumerate() {
            slopes.push((later - earlier) / (distance + 1) as f64);
        }
    }
    median(&mut slopes)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rates: &[f64]) -> Option<f64> {
        let seconds: Vec<Second> = rates
            .iter()
            .enumerate()
            .map(|(index, rps)| Second {
                t: index as f64 + 1.0,
                rps: *rps,
                errors: 0,
            })
            .collect();
        trend(&seconds)
    }

    #[test]
    fn rising_or_falling_rate_is_unsteady() {
        let rising: Vec<f64> = (0..10).map(|second| 100.0 + f64::from(second)).collect();
        let change = of(&rising).expect("a trend");
        assert!((change - 9.0 / 104.5).abs() < 1e-9, "{change}");
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert!(of(&falling).is_some_and(|change| change < -0.08));
    }

    #[test]
    fn noise_and_small_trends_are_steady() {
        assert_eq!(
            of(&[100.0, 104.0, 97.0, 101.0, 99.0, 103.0, 98.0, 102.0]),
            None
        );
        let small: Vec<f64> = (0..20).map(|second| 1_000.0 + f64::from(second)).collect();
        assert_eq!(of(&small), None);
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
        assert_eq!(of(&[7.0; 12]), None);
        assert_eq!(of(&[0.0; 12]), None);
    }

    #[test]
    fn single_outlier_is_not_a_trend() {
        let mut rates = [100.0; 12];
        rates[11] = 10.0;
        assert_eq!(of(&rates), None);
    }
}
