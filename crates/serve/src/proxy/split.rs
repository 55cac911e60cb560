//! Weighted random choice among a route's groups. Pure.

use std::num::NonZeroU32;

use onrush_engine::random::scaled;

#[derive(Debug)]
pub(crate) struct Split {
    /// Index of each group, with the sum of the weights up to and including it; never empty.
    groups: Box<[(u32, u64)]>,
}

impl Split {
    /// `split` has indexes of groups with their weights and must not be empty.
    pub(crate) fn new(split: &[(usize, NonZeroU32)]) -> Self {
        let mut sum = 0;
        let groups = split.iter().map(|&(group, weight)| {
            sum += u64::from(weight.get());
            (group as u32, sum)
        });
        let groups: Box<[_]> = groups.collect();
        assert!(!groups.is_empty(), "a request goes to one of the groups");
        Self { groups }
    }

    /// Chooses the group of a request. `chance` returns 64 uniform bits; not called for a single group.
    #[inline]
    pub(crate) fn choose(&self, chance: impl FnOnce() -> u64) -> usize {
        let (last, sum) = self.groups[self.groups.len() - 1];
        if self.groups.len() == 1 {
            return last as usize;
        }
        let point = scaled(chance(), sum);
        let found = self.groups.iter().find(|(_, end)| point < *end);
        found.map_or(last, |(group, _)| *group) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(weights: &[(usize, u32)]) -> Split {
        let weight = |&(group, weight)| (group, NonZeroU32::new(weight).expect("a weight"));
        Split::new(&weights.iter().map(weight).collect::<Vec<_>>())
    }

    #[test]
    fn single_group_needs_no_random_bits() {
        assert_eq!(split(&[(7, 3)]).choose(|| unreachable!("no choice")), 7);
    }

    #[test]
    fn random_range_is_divided_by_weight() {
        let split = split(&[(4, 1), (2, 2), (9, 1)]);
        let quarter = 1 << 62;
        for (bits, group) in [
            (0, 4),
            (quarter - 1, 4),
            (quarter, 2),
            (3 * quarter - 1, 2),
            (3 * quarter, 9),
            (u64::MAX, 9),
        ] {
            assert_eq!(split.choose(|| bits), group, "{bits:#x}");
        }
    }
}
