//! Random numbers that are the same for the same seed, on every machine: for pauses and arrivals, nothing secret.

/// A sequence of random numbers: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014), whose n-th number needs none of those before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Random(u64);

/// What the state moves on by: 2^64 divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The sequence number `stream` of `seed`. Streams of a seed have nothing to do with each other.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(mixed(seed ^ mixed(stream.wrapping_add(STEP))))
    }

    /// The number at `position`, whatever was taken before, from 0 up to but not including 1.
    pub fn at(self, position: u64) -> f64 {
        unit(mixed(
            self.0
                .wrapping_add(position.wrapping_add(1).wrapping_mul(STEP)),
        ))
    }

    /// The next number, from 0 up to but not including 1.
    pub fn next_unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(STEP);
        unit(mixed(self.0))
    }

    /// The next of exponentially distributed numbers with the mean 1.
    pub fn next_exponential(&mut self) -> f64 {
        -(1.0 - self.next_unit()).ln()
    }
}

/// The 53 bits that a double holds.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_the_same_whether_it_is_taken_in_turn_or_by_position() {
        let random = Random::new(7, 3);
        let mut taken = random;
        for position in 0..1000 {
            assert_eq!(taken.next_unit(), random.at(position));
        }
    }

    #[test]
    fn seeds_and_streams_give_other_numbers() {
        let first = Random::new(1, 0).at(0);
        assert_ne!(first, Random::new(2, 0).at(0));
        assert_ne!(first, Random::new(1, 1).at(0));
        assert_ne!(Random::new(0, 1).at(0), Random::new(1, 0).at(0));
    }

    #[test]
    fn exponential_numbers_have_their_mean_and_their_median() {
        let mut random = Random::new(5, 0);
        let mut numbers: Vec<f64> = (0..100_000).map(|_| random.next_exponential()).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let median = numbers[numbers.len() / 2];
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((median - std::f64::consts::LN_2).abs() < 0.02, "{median}");
    }
}
