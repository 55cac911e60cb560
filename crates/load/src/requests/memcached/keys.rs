//! Distribution of requests over keys.

use onrush_engine::random::Random;
use onrush_measure::amount;

/// Distribution of requests over keys.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Distribution {
    /// All keys equally often.
    #[default]
    Uniform,
    /// The key of rank r in proportion to 1/r^S, where S is above 0.
    Zipf(f64),
    /// Round robin.
    Sequential,
    /// This share of the requests, above 0 and up to 1, uses one key; the others are uniform.
    Hot(f64),
}

const EXPECTED: &str = "expected uniform, zipf:S with S above 0 and up to 10 such as zipf:0.99, sequential, or hot:SHARE such as hot:0.1 or hot:10%";

impl Distribution {
    /// Parses `uniform`, `zipf:S`, `sequential` or `hot:SHARE`.
    ///
    /// # Errors
    /// A sentence with the expected form.
    pub fn parse(text: &str) -> Result<Distribution, String> {
        let read = match text.split_once(':') {
            None => match text {
                "uniform" => Some(Distribution::Uniform),
                "sequential" => Some(Distribution::Sequential),
                _ => None,
            },
            Some(("zipf", exponent)) => {
                let exponent: Option<f64> = exponent.parse().ok();
                let exponent = exponent.filter(|exponent| *exponent > 0.0 && *exponent <= 10.0);
                exponent.map(Distribution::Zipf)
            }
            Some(("hot", part)) => share(part)
                .filter(|share| *share > 0.0)
                .map(Distribution::Hot),
            Some(_) => None,
        };
        read.ok_or_else(|| format!("{text:?} is not a key distribution: {EXPECTED}"))
    }
}

/// Parses a share from 0 to 1, such as `0.9` or `90%`.
pub fn share(text: &str) -> Option<f64> {
    let share = match amount::number(text) {
        Ok(share) => share,
        Err(_) => amount::percent(text).ok()? / 100.0,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

#[derive(Clone, Debug)]
pub(crate) enum KeySelector {
    Uniform,
    Zipf(Zipf),
    Sequential,
    Hot(f64),
}

impl KeySelector {
    pub(crate) fn new(distribution: Distribution, keys: u64) -> KeySelector {
        match distribution {
            Distribution::Uniform => KeySelector::Uniform,
            Distribution::Zipf(exponent) => KeySelector::Zipf(Zipf::new(keys, exponent)),
            Distribution::Sequential => KeySelector::Sequential,
            Distribution::Hot(share) => KeySelector::Hot(share),
        }
    }

    /// Returns the key, below `keys`, for position `place` among all requested keys.
    #[inline]
    pub(crate) fn pick(&self, random: &Random, place: u64, keys: u64) -> u64 {
        match self {
            KeySelector::Uniform => random.below(keys),
            KeySelector::Sequential => place % keys,
            KeySelector::Zipf(zipf) => zipf.rank(random) - 1,
            KeySelector::Hot(share) => match random.unit() < *share {
                true => 0,
                false => random.below(keys),
            },
        }
    }
}

/// Zipf-distributed ranks by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6(3), 1996): no table, and about one random number per rank.
///
/// A rank is the inverse of the integral of the hat function x^-S at a random value; the few values above the rank's
/// bar are rejected.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    exponent: f64,
    ranks: f64,
    /// Integral of the hat at 1.5 minus the bar of rank 1, and at the last rank plus 0.5.
    low: f64,
    high: f64,
    /// Distance from `x` to its rank up to which the rank is accepted without evaluating the integral.
    accept_distance: f64,
}

impl Zipf {
    fn new(keys: u64, exponent: f64) -> Zipf {
        let ranks = keys as f64;
        let mut zipf = Zipf {
            exponent,
            ranks,
            low: 0.0,
            high: 0.0,
            accept_distance: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(ranks + 0.5);
        zipf.accept_distance = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-exponent));
        zipf
    }

    /// Returns the integral of x^-S from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let logarithm = x.ln();
        match (1.0 - self.exponent) * logarithm {
            // Series for S near 1, where the quotient loses all significant digits.
            small if small.abs() < 1e-8 => logarithm * (1.0 + small / 2.0),
            power => power.exp_m1() / (1.0 - self.exponent),
        }
    }

    /// Returns the inverse of the integral at `y`.
    fn inverse(&self, y: f64) -> f64 {
        match y * (1.0 - self.exponent) {
            small if small.abs() < 1e-8 => (y * (1.0 - small / 2.0)).exp(),
            power => (power.max(-1.0).ln_1p() / (1.0 - self.exponent)).exp(),
        }
    }

    fn rank(&self, random: &Random) -> u64 {
        loop {
            let y = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(y);
            let rank = x.round().clamp(1.0, self.ranks);
            let is_taken = rank - x <= self.accept_distance
                || y >= self.integral(rank + 0.5) - rank.powf(-self.exponent);
            if is_taken {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 200_000;

    /// Returns how often each of `keys` keys is selected.
    fn drawn(text: &str, keys: u64) -> Vec<u64> {
        let picker = KeySelector::new(Distribution::parse(text).unwrap(), keys);
        let mut counts = vec![0; keys as usize];
        for place in 0..DRAWS {
            counts[picker.pick(&Random::stream(3, place), place, keys) as usize] += 1;
        }
        counts
    }

    #[test]
    fn zipf_frequencies_match_definition() {
        for exponent in [0.5, 0.99, 1.0, 1.2, 3.0] {
            let counts = drawn(&format!("zipf:{exponent}"), 50);
            let weights = (1..=50).map(|rank| f64::from(rank).powf(-exponent));
            let sum: f64 = weights.clone().sum();
            for (rank, (count, weight)) in counts.iter().zip(weights).enumerate() {
                let expected = DRAWS as f64 * weight / sum;
                let bound = 5.0 * expected.sqrt() + 5.0;
                assert!(
                    (*count as f64 - expected).abs() < bound,
                    "zipf:{exponent}, rank {rank}: {count}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn key_frequencies_match_distribution() {
        let even = drawn("uniform", 100);
        // Five standard deviations of a binomial with n = 200,000 and p = 0.01 are 223.
        assert!(
            even.iter().all(|count| count.abs_diff(2000) < 223),
            "{even:?}"
        );
        assert_eq!(drawn("sequential", 100), vec![2000; 100]);
        let hot = drawn("hot:25%", 100);
        // A quarter, plus its share of the rest.
        assert!(hot[0].abs_diff(51_500) < 1000, "{}", hot[0]);
        assert!(
            hot[1..].iter().all(|count| count.abs_diff(1500) < 200),
            "{hot:?}"
        );
    }

    #[test]
    fn only_key_is_always_drawn() {
        for text in ["uniform", "zipf:1", "sequential", "hot:1"] {
            assert_eq!(drawn(text, 1), [DRAWS], "{text}");
        }
    }

    #[test]
    fn invalid_distributions_are_refused() {
        for text in [
            "",
            "gauss",
            "zipf",
            "zipf:0",
            "zipf:-1",
            "zipf:nan",
            "zipf:11",
            "hot:0",
            "hot:2",
            "hot:101%",
            "uniform:1",
        ] {
            let error = Distribution::parse(text).unwrap_err();
            assert!(
                error.contains("is not a key distribution"),
                "{text}: {error}"
            );
        }
    }
}
