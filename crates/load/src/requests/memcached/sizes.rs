//! Lengths of keys and values: fixed, uniform in a range, weighted, or as measured at Facebook.
//!
//! The last is the pool ETC of Atikoglu, Xu, Frachtenberg, Jiang and Paleczny, "Workload Analysis of a Large-Scale
//! Key-Value Store" (SIGMETRICS 2012), table 5: a generalized extreme value distribution for keys, and for values a
//! generalized Pareto distribution, with separate shares of lengths below 15 bytes.

use onrush_engine::random::{Random, scaled};
use onrush_measure::amount;

use crate::limits::{SIZES_MAX, VALUE_BYTES_MAX};

/// Distribution of lengths, in bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum LengthDistribution {
    /// Constant.
    Fixed(usize),
    /// Uniform in an inclusive range.
    Range(usize, usize),
    /// Weighted lengths, each with the cumulative weight. Invariants: no weight is 0, and the list is not empty.
    Weighted(Box<[(usize, u64)]>),
    /// Keys of Facebook's ETC.
    FacebookKeys,
    /// Values of Facebook's ETC.
    FacebookValues,
}

/// Values of ETC with 0, 1, 2 … 14 bytes, per [`SHORT_OF`] values.
const SHORT_VALUES: [u64; 15] = [
    536, 47, 17_820, 9_239, 18, 2_740, 65, 606, 23, 837, 837, 8_989, 92, 326, 1_980,
];

const SHORT_OF: u64 = 100_000;

/// Values of 15 bytes and more: start, scale and shape.
const VALUE_START: f64 = 15.0;
const VALUE_SCALE: f64 = 214.476;
const VALUE_SHAPE: f64 = 0.348_238;

/// Keys: location, scale and shape.
const KEY_LOCATION: f64 = 30.7984;
const KEY_SCALE: f64 = 8.204_49;
const KEY_SHAPE: f64 = 0.078_688;

impl LengthDistribution {
    /// Parses lengths of values: `100`, `1k`, a range `10-2000`, weights `100:9,1000:1`, or `facebook`.
    ///
    /// # Errors
    /// A sentence with the expected form.
    pub fn of_values(text: &str) -> Result<LengthDistribution, String> {
        match text {
            "facebook" => Ok(LengthDistribution::FacebookValues),
            _ => LengthDistribution::parse(text, "values", VALUE_BYTES_MAX),
        }
    }

    /// Parses lengths of keys, at most 250 bytes (memcached, doc/protocol.txt).
    ///
    /// # Errors
    /// A sentence with the expected form.
    pub fn of_keys(text: &str) -> Result<LengthDistribution, String> {
        match text {
            "facebook" => Ok(LengthDistribution::FacebookKeys),
            _ => LengthDistribution::parse(text, "keys", crate::limits::KEY_BYTES_MAX),
        }
    }

    fn parse(text: &str, what: &str, most: usize) -> Result<LengthDistribution, String> {
        let expected = || {
            format!(
                "{text:?} is not a size of {what}: expected bytes up to {most} such as 100 or 1k, a range such as \
                 10-100, weights such as 100:9,1000:1, or facebook"
            )
        };
        let size = |word: &str| size(word).filter(|size| *size <= most).ok_or_else(expected);
        if text.contains(':') {
            let mut sum = 0;
            let mut sizes = Vec::new();
            for part in text.split(',') {
                let (bytes, weight) = part.split_once(':').ok_or_else(expected)?;
                let weight: u32 = weight.parse().map_err(|_| expected())?;
                if weight == 0 || sizes.len() == SIZES_MAX {
                    return Err(expected());
                }
                sum += u64::from(weight);
                sizes.push((size(bytes)?, sum));
            }
            return Ok(LengthDistribution::Weighted(sizes.into()));
        }
        match text.split_once('-') {
            None => Ok(LengthDistribution::Fixed(size(text)?)),
            Some((low, high)) => match (size(low)?, size(high)?) {
                (low, high) if low <= high => Ok(LengthDistribution::Range(low, high)),
                _ => Err(expected()),
            },
        }
    }

    /// Returns the length of item `number`, which is always the same for the same seed.
    #[inline]
    pub(crate) fn of(&self, seed: u64, number: u64) -> usize {
        match self {
            LengthDistribution::Fixed(bytes) => *bytes,
            LengthDistribution::Range(..)
            | LengthDistribution::Weighted(_)
            | LengthDistribution::FacebookKeys
            | LengthDistribution::FacebookValues => self.drawn(&Random::stream(seed, number)),
        }
    }

    fn drawn(&self, random: &Random) -> usize {
        match self {
            LengthDistribution::Fixed(bytes) => *bytes,
            LengthDistribution::Range(low, high) => {
                low + random.below((high - low) as u64 + 1) as usize
            }
            LengthDistribution::Weighted(sizes) => {
                let sum = sizes.last().map_or(1, |(_, sum)| *sum);
                let point = random.below(sum);
                sizes[sizes.partition_point(|(_, end)| *end <= point)].0
            }
            LengthDistribution::FacebookKeys => {
                // The inverse of the distribution function; `exponential()` is -ln(u) of a uniform u.
                let bytes = KEY_LOCATION
                    + KEY_SCALE * (random.exponential().powf(-KEY_SHAPE) - 1.0) / KEY_SHAPE;
                bytes.max(1.0) as usize
            }
            LengthDistribution::FacebookValues => {
                let mut point = scaled(random.bits(), SHORT_OF);
                for (bytes, share) in SHORT_VALUES.into_iter().enumerate() {
                    match point.checked_sub(share) {
                        None => return bytes,
                        Some(rest) => point = rest,
                    }
                }
                let tail = (1.0 - random.unit()).powf(-VALUE_SHAPE) - 1.0;
                let bytes = VALUE_START + VALUE_SCALE * tail / VALUE_SHAPE;
                (bytes as usize).min(VALUE_BYTES_MAX)
            }
        }
    }

    pub(crate) fn min(&self) -> usize {
        match self {
            LengthDistribution::Fixed(bytes) | LengthDistribution::Range(bytes, _) => *bytes,
            LengthDistribution::Weighted(sizes) => {
                sizes.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0)
            }
            // The workload lengthens such keys to hold their numbers.
            LengthDistribution::FacebookKeys => usize::MAX,
            LengthDistribution::FacebookValues => 0,
        }
    }

    pub(crate) fn max(&self) -> usize {
        match self {
            LengthDistribution::Fixed(bytes) | LengthDistribution::Range(_, bytes) => *bytes,
            LengthDistribution::Weighted(sizes) => {
                sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
            }
            LengthDistribution::FacebookKeys => crate::limits::KEY_BYTES_MAX,
            LengthDistribution::FacebookValues => VALUE_BYTES_MAX,
        }
    }
}

/// Parses a number of bytes; the units `k` and `m` are powers of 1,024.
fn size(word: &str) -> Option<usize> {
    usize::try_from(amount::size(word).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sizes: &LengthDistribution, count: u64) -> Vec<usize> {
        (0..count).map(|number| sizes.of(7, number)).collect()
    }

    #[test]
    fn parsed_sizes_are_drawn_within_range() {
        for (text, low, high) in [
            ("100", 100, 100),
            ("0", 0, 0),
            ("1k", 1024, 1024),
            ("10-20", 10, 20),
            ("5-5", 5, 5),
            ("100:9,1000:1", 100, 1000),
        ] {
            let sizes = LengthDistribution::of_values(text).unwrap();
            assert_eq!((sizes.min(), sizes.max()), (low, high), "{text}");
            let drawn = drawn(&sizes, 2000);
            assert_eq!(drawn.iter().min(), Some(&low), "{text}");
            assert_eq!(drawn.iter().max(), Some(&high), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in [
            "", "x", "-1", "+5", "10-", "20-10", "1:0", "1:1,2", "5m-6m-7m", "2000m", "1:x",
        ] {
            let error = LengthDistribution::of_values(text).unwrap_err();
            assert!(error.contains("is not a size of values"), "{text}: {error}");
        }
        assert!(
            LengthDistribution::of_keys("251")
                .unwrap_err()
                .contains("up to 250")
        );
        assert_eq!(
            LengthDistribution::of_keys("250"),
            Ok(LengthDistribution::Fixed(250))
        );
    }

    #[test]
    fn size_weights_are_shares() {
        let drawn = drawn(
            &LengthDistribution::of_values("100:9,1000:1").unwrap(),
            100_000,
        );
        let large = drawn.iter().filter(|bytes| **bytes == 1000).count();
        // Five standard deviations of a binomial with n = 100,000 and p = 0.1 are 474.
        assert!(large.abs_diff(10_000) < 474, "{large}");
    }

    #[test]
    fn facebook_sizes_match_publication() {
        let values = drawn(&LengthDistribution::of_values("facebook").unwrap(), 200_000);
        let share = |wanted: usize| {
            let count = values.iter().filter(|bytes| **bytes == wanted).count();
            count as f64 / values.len() as f64
        };
        for (bytes, expected) in [(2, 0.1782), (3, 0.09239), (11, 0.08989), (0, 0.00536)] {
            // Four to six standard deviations.
            assert!(
                (share(bytes) - expected).abs() < 0.004,
                "{bytes}: {}",
                share(bytes)
            );
        }
        let short = values.iter().filter(|bytes| **bytes < 15).count() as f64;
        assert!((short / values.len() as f64 - 0.44155).abs() < 0.006);
        let keys = drawn(&LengthDistribution::of_keys("facebook").unwrap(), 200_000);
        let mean = keys.iter().sum::<usize>() as f64 / keys.len() as f64;
        // The distribution's mean is 36.2; lengths are rounded down.
        assert!((mean - 35.7).abs() < 0.2, "{mean}");
    }
}
