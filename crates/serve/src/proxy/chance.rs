//! Chance for policies: a small generator with a seed, so that whatever it decided can be seen again.

/// splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): any seed will do.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 even bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0. The bias is less than `bound` in 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

/// 2^64 divided by the golden ratio: multiples of it are spread evenly.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// splitmix64's last step, a permutation: each bit of the result depends on each bit of the number.
pub(crate) fn mix(number: u64) -> u64 {
    let mut bits = number;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first outputs of the authors' C code with the seed 1234567, as listed by Rosetta Code.
        let mut chance = Chance::new(1_234_567);
        let bits = [(); 3].map(|()| chance.bits());
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
    fn all_numbers_below_a_bound_are_drawn_alike() {
        let mut chance = Chance::new(7);
        let mut drawn = [0_u32; 6];
        for _ in 0..60_000 {
            drawn[chance.below(6) as usize] += 1;
        }
        // Five standard deviations of a binomial with n = 60,000 and p = 1/6 are 456.
        assert!(
            drawn.iter().all(|count| count.abs_diff(10_000) <= 456),
            "{drawn:?}"
        );
    }
}
