//! Random numbers, reproducible from a seed on every machine: for pauses, arrivals and simulations, not for secrets.

use std::cell::Cell;

/// The increment of the state: 2^64 divided by the golden ratio, odd. Its multiples are evenly distributed.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of random numbers: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014), in which the n-th number can be computed directly. Any seed is suitable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Random(Cell<u64>);

impl Random {
    /// The sequence of `seed`, as published.
    pub const fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// Sequence number `stream` of `seed`. The streams of a seed are independent.
    pub const fn stream(seed: u64, stream: u64) -> Self {
        Self::new(mix(seed ^ mix(stream.wrapping_add(STEP))))
    }

    /// The next 64 uniformly distributed bits.
    #[inline]
    pub fn bits(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(STEP));
        mix(self.0.get())
    }

    /// The next number below `bound`, which is not 0. The bias is less than `bound` in 2^64.
    #[inline]
    pub fn below(&self, bound: u64) -> u64 {
        scaled(self.bits(), bound)
    }

    /// The next number from 0 up to but not including 1.
    pub fn unit(&self) -> f64 {
        unit(self.bits())
    }

    /// The next exponentially distributed number, with mean 1.
    pub fn exponential(&self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// The number from 0 up to but not including 1 that [`Random::unit`] would return after `position` more numbers.
    pub fn unit_at(&self, position: u64) -> f64 {
        let ahead = position.wrapping_add(1).wrapping_mul(STEP);
        unit(mix(self.0.get().wrapping_add(ahead)))
    }
}

/// SplitMix64's finalizer, a permutation: each bit of the result depends on each bit of `number`.
#[inline]
pub const fn mix(number: u64) -> u64 {
    let mut bits = number;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Scales 64 uniformly distributed bits to a number below `bound`.
#[inline]
pub const fn scaled(bits: u64, bound: u64) -> u64 {
    ((bits as u128 * bound as u128) >> 64) as u64
}

/// Uses the 53 bits that a double holds.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_published_splitmix64() {
        // The first outputs of the authors' C code with the seed 1234567, as listed by Rosetta Code.
        let random = Random::new(1_234_567);
        let bits = [(); 3].map(|()| random.bits());
        assert_eq!(
            bits,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn random_below_is_uniform() {
        let random = Random::new(7);
        let mut drawn = [0_u32; 6];
        for _ in 0..60_000 {
            drawn[random.below(6) as usize] += 1;
        }
        // Five standard deviations of a binomial with n = 60,000 and p = 1/6 are 456.
        assert!(
            drawn.iter().all(|count| count.abs_diff(10_000) <= 456),
            "{drawn:?}"
        );
    }

    #[test]
    fn random_unit_at_matches_unit() {
        let random = Random::stream(7, 3);
        let taken = random.clone();
        for position in 0..1000 {
            assert_eq!(taken.unit(), random.unit_at(position));
        }
    }

    #[test]
    fn seeds_and_streams_differ() {
        let first = Random::stream(1, 0).bits();
        assert_ne!(first, Random::stream(2, 0).bits());
        assert_ne!(first, Random::stream(1, 1).bits());
        assert_ne!(Random::stream(0, 1).bits(), Random::stream(1, 0).bits());
    }

    #[test]
    fn exponential_has_expected_mean_and_median() {
        let random = Random::stream(5, 0);
        let mut numbers: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let median = numbers[numbers.len() / 2];
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((median - std::f64::consts::LN_2).abs() < 0.02, "{median}");
    }
}
