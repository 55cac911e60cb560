//! Which server of a group takes the next request. Pure: state in, a choice out.

use onrush_config::plan::Balance;

/// The state of a policy over a group's servers.
#[derive(Debug)]
pub(crate) struct Balancer {
    policy: Balance,
    weights: Vec<u64>,
    weight_sum: u64,
    /// Smooth weighted round robin: how far each server is behind its share. Invariant: the sum is 0.
    credits: Vec<i64>,
    random: u64,
}

impl Balancer {
    /// `weights` is not empty and has no zero; `seed` tells the cores apart.
    pub(crate) fn new(policy: Balance, weights: impl Iterator<Item = u32>, seed: u64) -> Self {
        let weights: Vec<u64> = weights.map(u64::from).collect();
        assert!(!weights.is_empty(), "a group has at least one server");
        Self {
            policy,
            weight_sum: weights.iter().sum(),
            credits: vec![0; weights.len()],
            weights,
            random: seed,
        }
    }

    /// The index of the server that takes the next request.
    pub(crate) fn next(&mut self) -> usize {
        if self.weights.len() == 1 {
            return 0;
        }
        match self.policy {
            Balance::RoundRobin => self.next_in_turn(),
            Balance::Random => self.next_by_chance(),
            _ => unreachable!("no configuration has another yet"),
        }
    }

    /// Smooth weighted round robin as nginx introduced it: every server earns its weight, the richest is taken and
    /// pays the sum. Heavy servers are spread evenly instead of coming in bursts.
    fn next_in_turn(&mut self) -> usize {
        let mut richest = 0;
        for index in 0..self.credits.len() {
            self.credits[index] += self.weights[index] as i64;
            if self.credits[index] > self.credits[richest] {
                richest = index;
            }
        }
        self.credits[richest] -= self.weight_sum as i64;
        richest
    }

    fn next_by_chance(&mut self) -> usize {
        // xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016).
        let mut bits = self.random | 1;
        bits ^= bits >> 12;
        bits ^= bits << 25;
        bits ^= bits >> 27;
        self.random = bits;
        let bits = bits.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let mut point = ((u128::from(bits) * u128::from(self.weight_sum)) >> 64) as u64;
        for (index, &weight) in self.weights.iter().enumerate() {
            match point.checked_sub(weight) {
                Some(rest) => point = rest,
                None => return index,
            }
        }
        unreachable!("the point is below the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_follows_the_weights_exactly_and_smoothly() {
        let mut balancer = Balancer::new(Balance::RoundRobin, [5, 1, 1].into_iter(), 1);
        let order: Vec<usize> = (0..7).map(|_| balancer.next()).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn random_follows_the_weights_within_chance() {
        for seed in [1, 2, 3, 1 << 40] {
            let mut balancer = Balancer::new(Balance::Random, [3, 1].into_iter(), seed);
            let heavy = (0..40_000).filter(|_| balancer.next() == 0).count();
            // Five standard deviations of a binomial with n = 40,000 and p = 3/4 are 433.
            assert!(
                (29_567..=30_433).contains(&heavy),
                "{heavy} of 40,000 with seed {seed}"
            );
        }
    }
}
