//! Summaries of repeated rounds, and ratios of paired rounds.
//!
//! No formula here assumes a distribution. Rounds are few and their errors are not normal (a noisy neighbour only ever
//! makes a round worse), so the median represents the rounds. The interval comes from the sign test, which is exact and
//! deterministic.

use serde::{Deserialize, Serialize};

use crate::percentile;

/// Summary of the rounds of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// Number of rounds.
    pub count: usize,
    /// The middle round, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest round.
    pub min: f64,
    /// The largest round.
    pub max: f64,
    /// `(max - min) / median`: 0.02 is 2 % from worst to best; 0 if the median is 0. The full range rather than the
    /// interquartile range, which would hide two outliers among five rounds.
    pub spread: f64,
}

impl Rounds {
    /// Summarizes `values`, one per round in any order. `None` if there are none or one is not finite.
    pub fn of(values: &[f64]) -> Option<Rounds> {
        let sorted = sorted(values)?;
        let (min, max) = (sorted[0], sorted[sorted.len() - 1]);
        let median = median(&sorted);
        let spread = if median == 0.0 {
            0.0
        } else {
            (max - min) / median.abs()
        };
        Some(Rounds {
            count: sorted.len(),
            median,
            min,
            max,
            spread,
        })
    }
}

/// Ratios of ours to theirs, round by round. The two runs of a pair were concurrent or adjacent, so common disturbances
/// cancel out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// The ratio of each round, in order.
    pub each: Vec<f64>,
    /// Their median, range and spread.
    pub rounds: Rounds,
    /// Lower bound of the median ratio; the interval contains the true median with probability `confidence`.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Confidence of the interval by the sign test: at least the requested one, unless there are too few rounds. The
    /// interval is then the whole range: 0.9375 for five rounds, 0 for one.
    pub confidence: f64,
}

impl Ratios {
    /// Ratios of paired rounds `(ours, theirs)`, with the narrowest symmetric sign-test interval that has at least
    /// `confidence` (between 0 and 1; usually 0.95). `None` without rounds, or if a figure is not finite or
    /// one of theirs is 0.
    pub fn of(pairs: &[(f64, f64)], confidence: f64) -> Option<Ratios> {
        let each: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
        let rounds = Rounds::of(&each)?;
        let sorted = sorted(&each)?;
        let count = sorted.len() as u64;
        let (low, high) = percentile::interval_ranks(count, 50.0, confidence).unwrap_or((1, count));
        Some(Ratios {
            low: sorted[low as usize - 1],
            high: sorted[high as usize - 1],
            confidence: percentile::median_coverage(count, low, high),
            each,
            rounds,
        })
    }
}

/// Sorts the values. `None` if there are none or one is not finite.
pub(crate) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_rounds() {
        let odd = Rounds::of(&[3.0, 1.0, 2.0]).expect("three rounds");
        assert_eq!(
            (odd.count, odd.median, odd.min, odd.max, odd.spread),
            (3, 2.0, 1.0, 3.0, 1.0)
        );
        assert_eq!(
            Rounds::of(&[4.0, 1.0, 2.0, 3.0])
                .expect("four rounds")
                .median,
            2.5
        );
        let one = Rounds::of(&[7.0]).expect("one round");
        assert_eq!((one.median, one.spread), (7.0, 0.0));
    }

    #[test]
    fn missing_or_undefined_values_have_no_summary() {
        assert_eq!(Rounds::of(&[]), None);
        assert_eq!(Rounds::of(&[1.0, f64::NAN]), None);
        assert_eq!(Ratios::of(&[(1.0, 0.0)], 0.95), None);
        assert_eq!(Ratios::of(&[], 0.95), None);
    }

    #[test]
    fn spread_with_zero_median_is_zero() {
        assert_eq!(
            Rounds::of(&[-1.0, 0.0, 1.0]).expect("three rounds").spread,
            0.0
        );
    }

    #[test]
    fn common_noise_cancels_out() {
        let pairs = [(80.0, 100.0), (160.0, 200.0), (40.0, 50.0)];
        let ratios = Ratios::of(&pairs, 0.95).expect("three rounds");
        assert_eq!((ratios.rounds.median, ratios.rounds.spread), (0.8, 0.0));
    }

    #[test]
    fn five_rounds_have_lower_confidence() {
        let pairs: Vec<(f64, f64)> = [1.0, 5.0, 3.0, 2.0, 4.0].map(|ours| (ours, 2.0)).to_vec();
        let ratios = Ratios::of(&pairs, 0.95).expect("five rounds");
        assert_eq!(
            (ratios.low, ratios.rounds.median, ratios.high),
            (0.5, 1.5, 2.5)
        );
        assert!((ratios.confidence - 0.9375).abs() < 1e-12);
        assert_eq!(
            ratios.each,
            [0.5, 2.5, 1.5, 1.0, 2.0],
            "in the order they ran"
        );
    }

    #[test]
    fn interval_of_many_rounds_excludes_extremes() {
        let pairs: Vec<(f64, f64)> = (1..=10).map(|ours| (f64::from(ours), 1.0)).collect();
        let ratios = Ratios::of(&pairs, 0.95).expect("ten rounds");
        assert_eq!((ratios.low, ratios.high), (2.0, 9.0));
        assert!(ratios.confidence >= 0.95 && ratios.confidence < 0.98);
    }

    #[test]
    fn single_round_has_no_confidence() {
        let ratios = Ratios::of(&[(1.0, 2.0)], 0.95).expect("one round");
        assert_eq!(
            (ratios.low, ratios.high, ratios.confidence),
            (0.5, 0.5, 0.0)
        );
    }
}
