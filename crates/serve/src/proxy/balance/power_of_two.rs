//! The policy `power_of_two`: of two servers drawn at random, the one with fewer requests in flight per weight.
//!
//! Two choices instead of one reduce the longest queue of n servers from about log n to about log log n (Mitzenmacher,
//! "The power of two choices in randomized load balancing", 2001), and the cost does not grow with n. Unlike least
//! connections, it does not send the requests of all cores to the same server when they choose at the same time.

use onrush_engine::random::Random;

use super::member::{Cost, Member};
use super::random::AliasTable;
use crate::limits::DRAWS_MAX;

/// Without the new request, so that idle servers are equal and the first one drawn, by weight, is chosen.
pub(super) fn cost(member: &Member, load: u32) -> Cost {
    Cost {
        amount: u64::from(load),
        weight: member.weight,
    }
}

/// Draws two members that fit; returns the cheaper one, or the first if equal. If hardly any fits, the cheapest of all.
pub(super) fn choose(
    lots: &AliasTable,
    members: &[Member],
    chance: &Random,
    fits: impl Fn(&Member) -> bool,
    cost: impl Fn(&Member) -> Cost,
) -> Option<usize> {
    if members.len() < 2 {
        return (0..members.len()).find(|&index| fits(&members[index]));
    }
    for _ in 0..DRAWS_MAX {
        let (one, other) = draw_two(lots, members.len(), chance);
        match (fits(&members[one]), fits(&members[other])) {
            (true, true) if cost(&members[other]).is_below(cost(&members[one])) => {
                return Some(other);
            }
            (true, _) => return Some(one),
            (false, true) => return Some(other),
            (false, false) => {}
        }
    }
    // From a random start, so that members of equal cost are equally likely.
    let start = chance.below(members.len() as u64) as usize;
    let mut least: Option<(usize, Cost)> = None;
    for index in (start..members.len()).chain(0..start) {
        let member = &members[index];
        if fits(member) && least.is_none_or(|(_, least)| cost(member).is_below(least)) {
            least = Some((index, cost(member)));
        }
    }
    least.map(|(index, _)| index)
}

/// Draws two different members by weight; there must be at least two.
fn draw_two(lots: &AliasTable, count: usize, chance: &Random) -> (usize, usize) {
    let one = lots.draw(chance);
    for _ in 0..DRAWS_MAX {
        let other = lots.draw(chance);
        if other != one {
            return (one, other);
        }
    }
    // One member has nearly all the weight: compare it with any other.
    let step = 1 + chance.below(count as u64 - 1) as usize;
    (one, (one + step) % count)
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::super::simulation::{Draws, Queues, assert_shares, shares};

    #[test]
    fn idle_servers_share_by_weight() {
        for seed in 1..=4 {
            for weights in [&[3, 1][..], &[1; 50], &[1000, 1, 500]] {
                let draws = Draws::idle(Policy::PowerOfTwo, weights, seed);
                assert_shares(&shares(&draws, 100_000), weights, seed);
            }
        }
    }

    #[test]
    fn busier_server_is_not_chosen() {
        for (weights, load, expected) in [
            ([1, 1], [1, 0], [0, 1]),
            ([3, 1], [2, 1], [1, 0]),
            ([3, 1], [4, 1], [0, 1]),
        ] {
            let draws = Draws {
                load: &load,
                ..Draws::idle(Policy::PowerOfTwo, &weights, 1)
            };
            assert_eq!(
                shares(&draws, 1000),
                expected.map(|share| share * 1000),
                "of {weights:?} with {load:?} in flight"
            );
        }
    }

    #[test]
    fn last_available_server_is_found() {
        let full: Vec<u32> = (0..100).filter(|&server| server != 73).collect();
        let draws = Draws {
            full: &full,
            ..Draws::idle(Policy::PowerOfTwo, &[1; 100], 1)
        };
        assert_eq!(shares(&draws, 100)[73], 100);
    }

    #[test]
    fn tail_latency_beats_random() {
        for seed in 1..=3 {
            let queues = |policy| Queues::even(policy, 10, 0.9, seed).run();
            let (random, two) = (queues(Policy::Random), queues(Policy::PowerOfTwo));
            assert!(
                two.percentile(99) * 2 < random.percentile(99),
                "99th percentile {} ns, by chance {} ns, seed {seed}",
                two.percentile(99),
                random.percentile(99)
            );
        }
    }

    #[test]
    fn load_follows_weight_and_speed() {
        let queues = Queues {
            weights: vec![2, 1, 1],
            service: vec![500_000, 1_000_000, 1_000_000],
            ..Queues::even(Policy::PowerOfTwo, 3, 0.8 * 4.0 / 3.0, 5)
        };
        let taken = queues.run().taken;
        let share = f64::from(taken[0]) / f64::from(taken.iter().sum::<u32>());
        assert!((0.47..0.53).contains(&share), "{share}");
    }
}
