//! The policy `random`: weighted random choice.

use onrush_engine::random::Random;

use super::Member;
use crate::limits::DRAWS_MAX;

/// Draws members by weight in constant time: Walker's alias method ("An efficient method for generating discrete random
/// variables with general distributions", 1977), with Vose's construction of the table ("A linear algorithm for
/// generating random numbers with a given distribution", 1991), in integers.
///
/// The table has n columns of the same height. Each column is divided among at most two members, so that every member's
/// total is its weight. A draw picks a column and a height in it, both uniformly:
///
/// ```text
///  weights 5 1 3      ┌───┬───┬───┐
///  height  9 / 3      │ 0 │ 0 │ 2 │   column 0 belongs to member 0,
///                     │ 0 │ 0 │ 2 │   column 1 to member 1 up to a third, and to member 0 above
///                     │ 0 │ 1 │ 2 │
///                     └───┴───┴───┘
/// ```
#[derive(Clone, Debug, Default)]
pub(super) struct AliasTable {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// Height, out of 2^64, up to which the column is its own member's. A full column has 2^64 - 1 and itself as
    /// `other`.
    own: u64,
    /// The member above that height.
    other: u32,
}

impl AliasTable {
    pub(super) fn update(&mut self, members: &[Member]) {
        let count = members.len() as u64;
        let height: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
        // Weights times n, so that the height of a column, the sum of the weights, is an integer.
        let mut rest: Vec<u64> = members
            .iter()
            .map(|member| u64::from(member.weight) * count)
            .collect();
        self.columns.clear();
        self.columns
            .extend((0..members.len() as u32).map(|other| Column {
                own: u64::MAX,
                other,
            }));
        let (mut low, mut high): (Vec<usize>, Vec<usize>) =
            (0..members.len()).partition(|&index| rest[index] < height);
        while let (Some(&poor), Some(&rich)) = (low.last(), high.last()) {
            low.pop();
            self.columns[poor] = Column {
                own: ((u128::from(rest[poor]) << 64) / u128::from(height)) as u64,
                other: rich as u32,
            };
            rest[rich] -= height - rest[poor];
            if rest[rich] < height {
                high.pop();
                low.push(rich);
            }
        }
        debug_assert!(low.is_empty(), "in whole numbers nothing is left over");
    }

    /// Draws the index of a member; there must be at least one.
    pub(super) fn draw(&self, chance: &Random) -> usize {
        // The integer part of a number in 0..n is the column, the fraction the height.
        let point = u128::from(chance.bits()) * self.columns.len() as u128;
        let index = (point >> 64) as usize;
        let Column { own, other } = self.columns[index];
        if (point as u64) < own {
            index
        } else {
            other as usize
        }
    }
}

/// Constant time while enough members fit; otherwise O(n).
pub(super) fn choose(
    lots: &AliasTable,
    members: &[Member],
    chance: &Random,
    fits: impl Fn(&Member) -> bool,
) -> Option<usize> {
    if members.is_empty() {
        return None;
    }
    // Rejected draws do not change the proportions of the others.
    for _ in 0..DRAWS_MAX {
        let index = lots.draw(chance);
        if fits(&members[index]) {
            return Some(index);
        }
    }
    choose_counting(members, chance, fits)
}

fn choose_counting(
    members: &[Member],
    chance: &Random,
    fits: impl Fn(&Member) -> bool,
) -> Option<usize> {
    let fitting = || {
        let members = members.iter().enumerate();
        members.filter(|(_, member)| fits(member))
    };
    let sum = fitting().map(|(_, member)| u64::from(member.weight)).sum();
    if sum == 0 {
        return None;
    }
    let mut point = chance.below(sum);
    for (index, member) in fitting() {
        match point.checked_sub(u64::from(member.weight)) {
            Some(rest) => point = rest,
            None => return Some(index),
        }
    }
    unreachable!("the point is below the sum of the weights")
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::super::simulation::{Draws, assert_shares, shares};

    #[test]
    fn random_shares_follow_weights() {
        for seed in [1, 2, 3, 1 << 40] {
            for weights in [&[3, 1][..], &[5, 1, 3], &[1; 100], &[1000, 1, 500, 1, 1]] {
                let draws = Draws::idle(Policy::Random, weights, seed);
                assert_shares(&shares(&draws, 100_000), weights, seed);
            }
        }
    }

    #[test]
    fn skipped_share_is_divided_by_weight() {
        for seed in 1..=4 {
            let draws = Draws {
                full: &[0],
                avoid: &[2],
                ..Draws::idle(Policy::Random, &[1000, 2, 1, 6], seed)
            };
            assert_shares(&shares(&draws, 40_000), &[0, 2, 0, 6], seed);
        }
    }
}
