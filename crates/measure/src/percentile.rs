//! Percentiles that a number of samples supports, and their confidence intervals as ranks.

/// The percentiles in reports, each with `1 / (1 - p)`: one sample in that many is above it.
const LISTED: [(f64, u64); 9] = [
    (50.0, 2),
    (75.0, 4),
    (90.0, 10),
    (95.0, 20),
    (99.0, 100),
    (99.9, 1_000),
    (99.99, 10_000),
    (99.999, 100_000),
    (99.9999, 1_000_000),
];

/// Samples that must be above a percentile to report it. With ten, their number has a relative standard error of about
/// a third; with fewer the figure is mostly chance.
const SAMPLES_ABOVE_MIN: u64 = 10;

/// The percentiles out of 50, 75, 90, 95, 99, 99.9, 99.99, 99.999 and 99.9999 that `count` samples support: those with
/// at least ten samples above them, `count * (1 - p) >= 10`.
pub fn supported(count: u64) -> impl Iterator<Item = f64> {
    LISTED
        .into_iter()
        .take_while(move |(_, one_in)| count / one_in >= SAMPLES_ABOVE_MIN)
        .map(|(percentile, _)| percentile)
}

/// Number of samples that `percentile` (above 0, below 100) needs by the rule of [`supported`]: ten on its smaller
/// side.
pub fn count_for(percentile: f64) -> u64 {
    let rarer = (1.0 - percentile / 100.0).min(percentile / 100.0);
    // Tolerates rounding: 1 - 0.999 is slightly more than 0.001.
    (SAMPLES_ABOVE_MIN as f64 / rarer * (1.0 - 1e-9)).ceil() as u64
}

/// Percentiles of a curve over a logarithmic axis of `1 / (1 - p)`: 50, then ten steps per decade, as far as `count`
/// samples support them by the rule of [`supported`].
pub fn curve(count: u64) -> impl Iterator<Item = f64> {
    let one_in_max = count as f64 / SAMPLES_ABOVE_MIN as f64;
    let steps = (0..)
        .map(|step| 10_f64.powf(f64::from(step) / 10.0))
        .skip_while(|one_in| *one_in < 2.0);
    std::iter::once(2.0)
        .chain(steps)
        // Tolerates rounding, so that a count of 10,000 includes 99.9.
        .take_while(move |one_in| *one_in <= one_in_max * (1.0 + 1e-9))
        .map(|one_in| 100.0 * (1.0 - 1.0 / one_in))
}

/// Rank, from 1, of `percentile` among `count` sorted samples (nearest-rank method): the smallest sample that at least
/// that share does not exceed. 0 if there are none; a percentile outside 0 to 100 is clamped.
pub fn rank(count: u64, percentile: f64) -> u64 {
    let wanted = count as f64 * percentile.clamp(0.0, 100.0) / 100.0;
    // 99.9 has no exact binary form: 99.9 % of 1000 must be 999, not the next integer above 999.0000000000001.
    let rounded = (wanted * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64;
    rounded.clamp(count.min(1), count)
}

/// Ranks, from 1, of the two samples between which the true percentile is with at least `confidence` (between 0 and 1),
/// for `count` independent samples of any distribution; `None` if the count is too small to bound it on both sides.
///
/// The number of samples below the true percentile is binomial, B ~ Bin(count, p), and the percentile is between the
/// samples of ranks `low` and `high` exactly if `low <= B < high`; so the ranks leave at most half of `1 - confidence`
/// on either side (order statistics; David & Nagaraja, Order Statistics, section 7.1).
pub fn interval_ranks(count: u64, percentile: f64, confidence: f64) -> Option<(u64, u64)> {
    let share = percentile / 100.0;
    if count == 0 || !(share > 0.0 && share < 1.0) || !(0.0..1.0).contains(&confidence) {
        return None;
    }
    // The sums below are exact except for rounding; the tolerance lets 93.75 % accept five samples, which reach exactly
    // that.
    let side = (1.0 - confidence) / 2.0 * (1.0 + 1e-9);
    let binomial = Binomial::new(count, share);
    let low = binomial.low_tail_end(side)?;
    let high = binomial.high_tail_start(side)?;
    Some((low, high))
}

/// Exact probability that the median is between the samples of ranks `low` and `high` (from 1, `low < high <= count`),
/// for independent samples of any distribution.
pub fn median_coverage(count: u64, low: u64, high: u64) -> f64 {
    let binomial = Binomial::new(count, 0.5);
    let outcomes = (low..high).map(|below| binomial.probability(below));
    // The sum of no outcomes, as for a single sample, is -0.0.
    outcomes.sum::<f64>() + 0.0
}

/// Probabilities of a binomial distribution, exact except for rounding: computed relative to the mode and divided by
/// their sum, which needs no factorials. Only outcomes that matter are visited: a few standard deviations, 300,000
/// steps for a billion samples.
struct Binomial {
    count: u64,
    odds: f64,
    mode: u64,
    /// Sum of all probabilities relative to the mode's.
    sum: f64,
}

impl Binomial {
    /// Relative probability that is too small to change a sum.
    const NEGLIGIBLE: f64 = 1e-20;

    fn new(count: u64, share: f64) -> Binomial {
        let mode = ((count as f64 + 1.0) * share).floor().min(count as f64) as u64;
        let mut binomial = Binomial {
            count,
            odds: share / (1.0 - share),
            mode,
            sum: 1.0,
        };
        let below: f64 = binomial.downwards().map(|(_, weight)| weight).sum();
        let above: f64 = binomial.upwards().map(|(_, weight)| weight).sum();
        binomial.sum = 1.0 + below + above;
        binomial
    }

    /// Outcomes below the mode in descending order, with their relative probabilities.
    fn downwards(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let mut weight = 1.0;
        (0..self.mode).rev().map_while(move |outcome| {
            weight *= (outcome + 1) as f64 / ((self.count - outcome) as f64 * self.odds);
            (weight > Binomial::NEGLIGIBLE).then_some((outcome, weight))
        })
    }

    /// Outcomes above the mode in ascending order, with their relative probabilities.
    fn upwards(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let mut weight = 1.0;
        (self.mode + 1..=self.count).map_while(move |outcome| {
            weight *= (self.count - outcome + 1) as f64 * self.odds / outcome as f64;
            (weight > Binomial::NEGLIGIBLE).then_some((outcome, weight))
        })
    }

    fn probability(&self, outcome: u64) -> f64 {
        if outcome == self.mode {
            return 1.0 / self.sum;
        }
        let found = if outcome < self.mode {
            self.downwards().find(|(at, _)| *at == outcome)
        } else {
            self.upwards().find(|(at, _)| *at == outcome)
        };
        found.map_or(0.0, |(_, weight)| weight / self.sum)
    }

    /// The largest `low >= 1` with `P(B < low) <= side`.
    fn low_tail_end(&self, side: f64) -> Option<u64> {
        let mut tail: f64 = self.downwards().map(|(_, weight)| weight).sum();
        if self.mode >= 1 && tail / self.sum <= side {
            return Some(self.mode);
        }
        for (outcome, weight) in self.downwards() {
            tail -= weight;
            if outcome >= 1 && tail / self.sum <= side {
                return Some(outcome);
            }
        }
        None
    }

    /// The smallest `high <= count` with `P(B >= high) <= side`.
    fn high_tail_start(&self, side: f64) -> Option<u64> {
        let mut tail: f64 = self.upwards().map(|(_, weight)| weight).sum();
        if self.mode < self.count && tail / self.sum <= side {
            return Some(self.mode + 1);
        }
        for (outcome, weight) in self.upwards() {
            tail -= weight;
            if outcome < self.count && tail / self.sum <= side {
                return Some(outcome + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_percentile_needs_ten_samples_above() {
        let highest = |count| supported(count).last();
        assert_eq!(highest(19), None);
        assert_eq!(highest(20), Some(50.0));
        assert_eq!(highest(999), Some(95.0));
        assert_eq!(highest(1_000), Some(99.0));
        assert_eq!(highest(9_999), Some(99.0));
        assert_eq!(highest(10_000), Some(99.9));
        assert_eq!(highest(9_999_999), Some(99.999));
        assert_eq!(highest(10_000_000), Some(99.9999));
        assert_eq!(supported(u64::MAX).count(), 9);
    }

    #[test]
    fn count_for_returns_smallest_sufficient_count() {
        for (percentile, one_in) in LISTED {
            let needed = count_for(percentile);
            assert_eq!(needed, one_in * SAMPLES_ABOVE_MIN, "{percentile}");
            assert!(supported(needed).any(|listed| listed == percentile));
            assert!(!supported(needed - 1).any(|listed| listed == percentile));
        }
        assert_eq!(count_for(1.0), 1_000);
    }

    #[test]
    fn curve_ends_at_highest_supported_percentile() {
        assert_eq!(curve(19).count(), 0);
        let points: Vec<f64> = curve(10_000).collect();
        assert_eq!(points[0], 50.0);
        assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((points[points.len() - 1] - 99.9).abs() < 1e-9, "{points:?}");
    }

    #[test]
    fn percentile_ranks_have_no_rounding_error() {
        for (count, percentile, expected) in [
            (1_000, 99.9, 999),
            (10_000, 99.99, 9_999),
            (1_000_000, 99.9999, 999_999),
            (10, 50.0, 5),
            (11, 50.0, 6),
            (3, 0.0, 1),
            (3, 100.0, 3),
            (3, 200.0, 3),
            (0, 50.0, 0),
        ] {
            assert_eq!(rank(count, percentile), expected, "{percentile} of {count}");
        }
    }

    #[test]
    fn interval_ranks_agree_with_published_tables() {
        // Ranks for the median at 95 %: Conover, Practical Nonparametric Statistics; sign-test
        // tables.
        for (count, expected) in [
            (6, (1, 6)),
            (9, (2, 8)),
            (10, (2, 9)),
            (20, (6, 15)),
            (25, (8, 18)),
            (100, (40, 61)),
        ] {
            assert_eq!(
                interval_ranks(count, 50.0, 0.95),
                Some(expected),
                "of {count}"
            );
        }
        assert_eq!(
            interval_ranks(5, 50.0, 0.95),
            None,
            "five samples reach only 93.75 %"
        );
        assert_eq!(interval_ranks(5, 50.0, 0.9375), Some((1, 5)));
    }

    #[test]
    fn large_interval_ranks_match_normal_approximation() {
        let count = 1_000_000_000;
        let (low, high) = interval_ranks(count, 99.0, 0.95).expect("a billion samples");
        let (centre, deviation) = (count as f64 * 0.99, (count as f64 * 0.99 * 0.01).sqrt());
        assert!(
            (low as f64 - (centre - 1.96 * deviation)).abs() < 3.0,
            "{low}"
        );
        assert!(
            (high as f64 - (centre + 1.96 * deviation)).abs() < 3.0,
            "{high}"
        );
    }

    #[test]
    fn interval_needs_samples_above_percentile() {
        // P(all n samples are below p) = p^n must not exceed 2.5 %: n >= ln 0.025 / ln 0.999 =
        // 3687.04.
        assert_eq!(
            interval_ranks(3_688, 99.9, 0.95).map(|(_, high)| high),
            Some(3_688)
        );
        assert_eq!(interval_ranks(3_687, 99.9, 0.95), None);
        assert_eq!(interval_ranks(0, 50.0, 0.95), None);
        assert_eq!(interval_ranks(1_000, 100.0, 0.95), None);
    }

    #[test]
    fn median_coverage_of_five_rounds_is_exact() {
        assert!((median_coverage(5, 1, 5) - 0.9375).abs() < 1e-12);
        assert!(median_coverage(1, 1, 1).is_sign_positive());
        assert!((median_coverage(8, 2, 7) - (1.0 - 18.0 / 256.0)).abs() < 1e-12);
    }
}
