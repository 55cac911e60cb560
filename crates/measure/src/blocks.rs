//! Confidence interval of a percentile of one run, whose requests are not independent.
//!
//! Concurrent requests wait in the same queues and for the same CPUs, so they carry less information than the same
//! number of independent ones. The run is divided into blocks of time that are long enough to be nearly independent
//! (batch means: Law, Simulation Modeling and Analysis, section 9.5.3). The statistic is the share of each block's
//! requests at or below the percentile's value. The interval is widened by as much as these shares vary more than those
//! of independent requests would. The interval of the share becomes one of the value by reading the distribution at
//! both ends (Woodruff, Confidence Intervals for Medians and Other Position Measures, JASA 47, 1952); the requests of a
//! block are a cluster of a ratio estimator (Cochran, Sampling Techniques, section 9A.2).

use crate::percentile;

/// Maximum number of blocks: more hardly change the t-distribution, and shorter blocks are more correlated.
pub const BLOCKS_MAX: usize = 30;

/// Minimum number of blocks for an estimate of their variance.
pub const BLOCKS_MIN: usize = 6;

/// Requests of a block of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Number of requests at or below the value.
    pub below: u64,
    /// All requests.
    pub count: u64,
}

/// Joins adjacent parts into at most [`BLOCKS_MAX`] blocks of equal length. A shorter rest is added to the last block.
pub fn join<T>(parts: &[T]) -> impl Iterator<Item = &[T]> {
    let length = parts.len().div_ceil(BLOCKS_MAX).max(1);
    let whole = parts.len() / length;
    (0..whole).map(move |index| {
        let end = match index + 1 == whole {
            true => parts.len(),
            false => (index + 1) * length,
        };
        &parts[index * length..end]
    })
}

/// Effective sample size: the number of independent requests that would give the same confidence in the share at or
/// below a value, and the degrees of freedom of that estimate. It never exceeds the number of requests. `None` with
/// fewer than [`BLOCKS_MIN`] non-empty blocks, or if all requests are on one side of the value.
pub fn effective_count(blocks: &[Block]) -> Option<EffectiveSampleSize> {
    let used = blocks.iter().filter(|block| block.count > 0);
    let blocks: Vec<Block> = used.copied().collect();
    if blocks.len() < BLOCKS_MIN {
        return None;
    }
    let number = blocks.len() as f64;
    let count: u64 = blocks.iter().map(|block| block.count).sum();
    let below: u64 = blocks.iter().map(|block| block.below).sum();
    let share = below as f64 / count as f64;
    let chance = share * (1.0 - share);
    if chance <= 0.0 {
        return None;
    }
    let squares: f64 = blocks
        .iter()
        .map(|block| (block.below as f64 - share * block.count as f64).powi(2))
        .sum();
    let variance = number / (number - 1.0) * squares / (count as f64).powi(2);
    Some(EffectiveSampleSize {
        count: (chance / variance).min(count as f64),
        degrees: blocks.len() as u32 - 1,
    })
}

/// Effective sample size; see [`effective_count`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EffectiveSampleSize {
    /// Number of independent requests with the same confidence.
    pub count: f64,
    /// Degrees of freedom of the estimate.
    pub degrees: u32,
}

impl EffectiveSampleSize {
    /// Interval that contains, with `confidence` (between 0 and 1), the share of requests at or below the true
    /// percentile. `percentile` is above 0 and below 100.
    pub fn shares(self, percentile: f64, confidence: f64) -> (f64, f64) {
        let share = percentile / 100.0;
        let error = (share * (1.0 - share) / self.count).sqrt();
        let reach = student_quantile(0.5 + confidence / 2.0, self.degrees) * error;
        ((share - reach).max(0.0), (share + reach).min(1.0))
    }

    /// The same interval as ranks, from 1, among `count` requests; never narrower than for independent requests. `None`
    /// if the requests do not bound the percentile on both sides.
    pub fn ranks(self, count: u64, percentile: f64, confidence: f64) -> Option<(u64, u64)> {
        let (independent_low, independent_high) =
            percentile::interval_ranks(count, percentile, confidence)?;
        let (low, high) = self.shares(percentile, confidence);
        let low = (low * count as f64).floor() as u64;
        let high = (high * count as f64).ceil() as u64 + 1;
        // Rank 0 and ranks above `count` do not exist: the percentile is not bounded on that side.
        let is_bounded = low > 0 && high <= count;
        is_bounded.then(|| (low.min(independent_low), high.max(independent_high)))
    }
}

/// Quantile of Student's t-distribution at `share` (above 0.5, below 1). Accurate to 0.01 for six degrees of freedom or
/// more: the Cornish-Fisher expansion (Abramowitz & Stegun 26.7.5).
pub fn student_quantile(share: f64, degrees: u32) -> f64 {
    let z = normal_quantile(share);
    let v = f64::from(degrees);
    let z2 = z * z;
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let third = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    let fourth = z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
    z + first / v + second / v.powi(2) + third / v.powi(3) + fourth / v.powi(4)
}

/// Quantile of the normal distribution at `share` (above 0.5, below 1), accurate to 0.00045: Abramowitz & Stegun
/// 26.2.23.
pub fn normal_quantile(share: f64) -> f64 {
    let t = (-2.0 * (1.0 - share).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_published_tables() {
        // Student's t, two-sided 95 % and 99.9 %.
        for (degrees, at_95, at_999) in [(6, 2.447, 5.959), (9, 2.262, 4.781), (29, 2.045, 3.659)] {
            let found = [0.975, 0.9995].map(|share| student_quantile(share, degrees));
            assert!((found[0] - at_95).abs() < 0.01, "{degrees}: {found:?}");
            assert!(
                (found[1] / at_999 - 1.0).abs() < 0.02,
                "{degrees}: {found:?}"
            );
        }
        assert!((normal_quantile(0.975) - 1.96).abs() < 0.001);
    }

    #[test]
    fn blocks_are_balanced_and_complete() {
        for parts in [1, 5, 6, 29, 30, 31, 59, 60, 61, 600, 7201] {
            let all: Vec<usize> = (0..parts).collect();
            let blocks: Vec<&[usize]> = join(&all).collect();
            assert!(blocks.len() <= BLOCKS_MAX);
            assert!(parts < 6 || blocks.len() >= BLOCKS_MIN, "{parts}");
            assert_eq!(blocks.concat(), all);
            let shortest = blocks.iter().map(|block| block.len()).min();
            assert_eq!(shortest, Some(parts.div_ceil(BLOCKS_MAX)), "{parts}");
        }
        assert_eq!(join::<u8>(&[]).count(), 0);
    }

    #[test]
    fn uniform_blocks_match_independent_requests() {
        let block = Block {
            below: 50,
            count: 100,
        };
        let effective = effective_count(&[block; 10]).unwrap();
        assert_eq!((effective.count, effective.degrees), (1000.0, 9));
        let (low, high) = effective.shares(50.0, 0.95);
        assert!((low - 0.4642).abs() < 0.001 && (high - 0.5358).abs() < 0.001);
    }

    #[test]
    fn uniform_blocks_count_as_one_request_each() {
        let blocks: Vec<Block> = (0..20)
            .map(|index| Block {
                below: index % 2 * 1000,
                count: 1000,
            })
            .collect();
        let effective = effective_count(&blocks).unwrap();
        assert!((effective.count - 19.0).abs() < 0.01, "{effective:?}");
    }

    #[test]
    fn too_few_blocks_give_no_effective_count() {
        let block = |below, count| Block { below, count };
        assert_eq!(effective_count(&[block(1, 2); 5]), None);
        let mut with_empty = [block(1, 2); 7];
        with_empty[3] = block(0, 0);
        with_empty[4] = block(0, 0);
        assert_eq!(effective_count(&with_empty), None);
        assert_eq!(effective_count(&[block(2, 2); 7]), None);
    }
}
