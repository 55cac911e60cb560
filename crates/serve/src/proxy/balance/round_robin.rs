//! The policy `round_robin`: weighted round robin.

use super::Member;

/// Smooth weighted round robin, as in nginx: every server earns its weight as credit; the one with the highest credit
/// is chosen and pays the sum earned by all. Heavy servers are spread evenly instead of being chosen in bursts.
#[derive(Clone, Debug)]
pub(super) struct SmoothRoundRobin {
    /// Credit of each member. Invariant: the sum is 0.
    credits: Vec<i64>,
    /// The first index among equal credits, modulo the number of members. It differs between cores: otherwise the first
    /// requests of all cores would go to the same server.
    start: u64,
}

impl SmoothRoundRobin {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            credits: Vec::new(),
            start: seed,
        }
    }

    /// Members that stay keep their credit, up to one full turn; new ones start with 0. Both lists are sorted by
    /// server.
    pub(super) fn update(&mut self, before: &[Member], members: &[Member]) {
        let turn: i64 = members.iter().map(|member| i64::from(member.weight)).sum();
        let mut old = before.iter().zip(&self.credits).peekable();
        let mut credits: Vec<i64> = members
            .iter()
            .map(|member| {
                while old.next_if(|(old, _)| old.server < member.server).is_some() {}
                let stays = old.next_if(|(old, _)| old.server == member.server);
                stays.map_or(0, |(_, &credit)| credit.clamp(-turn, turn))
            })
            .collect();
        settle(&mut credits);
        self.credits = credits;
    }

    /// Chooses the next member that fits. The others earn no credit.
    pub(super) fn next(
        &mut self,
        members: &[Member],
        fits: impl Fn(&Member) -> bool,
    ) -> Option<usize> {
        if members.is_empty() {
            return None;
        }
        let start = (self.start % members.len() as u64) as usize;
        let mut richest: Option<usize> = None;
        let mut earned = 0;
        for index in (start..members.len()).chain(0..start) {
            let member = &members[index];
            if !fits(member) {
                continue;
            }
            let weight = i64::from(member.weight);
            earned += weight;
            self.credits[index] += weight;
            if richest.is_none_or(|richest| self.credits[index] > self.credits[richest]) {
                richest = Some(index);
            }
        }
        self.credits[richest?] -= earned;
        richest
    }
}

/// Subtracts the same amount, within 1, from all credits, so that the sum is 0 again.
fn settle(credits: &mut [i64]) {
    let count = credits.len() as i64;
    if count == 0 {
        return;
    }
    let sum: i64 = credits.iter().sum();
    let (each, more) = (sum.div_euclid(count), sum.rem_euclid(count) as usize);
    for (index, credit) in credits.iter_mut().enumerate() {
        *credit -= each + i64::from(index < more);
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Draws, member, shares};
    use super::super::{Balancer, Policy};
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(draws: &Draws<'_>, expected: &[u32]) {
        let mut balancer = draws.balancer();
        let order: Vec<u32> = expected
            .iter()
            .map(|_| draws.choose(&mut balancer, 0).expect("some server fits"))
            .collect();
        assert_eq!(order, expected, "{draws:?}");
    }

    #[test]
    fn order_is_smooth_weighted_round_robin() {
        let idle = |weights, seed| Draws::idle(Policy::RoundRobin, weights, seed);
        check(&idle(&[5, 1, 1], 0), &[0, 0, 1, 0, 2, 0, 0, 0, 0, 1]);
        check(&idle(&[1, 1, 1], 0), &[0, 1, 2, 0]);
        check(&idle(&[7], 0), &[0, 0]);
    }

    #[test]
    fn cores_start_with_different_servers() {
        let idle = |weights, seed| Draws::idle(Policy::RoundRobin, weights, seed);
        check(&idle(&[1, 1, 1], 1), &[1, 2, 0, 1]);
        check(&idle(&[5, 1, 1], 2), &[0, 0, 2, 0, 1, 0, 0]);
    }

    #[test]
    fn skipped_servers_earn_no_credit() {
        let draws = Draws {
            full: &[1],
            avoid: &[3],
            ..Draws::idle(Policy::RoundRobin, &[2, 5, 1, 9], 0)
        };
        check(&draws, &[0, 2, 0, 0, 2, 0]);
        // Afterwards they get their share and no more.
        let mut balancer = draws.balancer();
        for _ in 0..99 {
            assert!([Some(0), Some(2)].contains(&draws.choose(&mut balancer, 0)));
        }
        let all_fit = Draws::idle(Policy::RoundRobin, &[2, 5, 1, 9], 0);
        let mut taken = [0; 4];
        (0..170).for_each(|_| {
            taken[all_fit.choose(&mut balancer, 0).expect("all fit") as usize] += 1;
        });
        assert_eq!(taken, [20, 50, 10, 90]);
    }

    #[test]
    fn returning_server_gets_its_share() {
        let both = [member(0, 1), member(1, 1)];
        let mut balancer = Balancer::new(Policy::RoundRobin, &both, 0);
        let idle = Draws::idle(Policy::RoundRobin, &[1, 1], 0);
        for _ in 0..50 {
            balancer.update(&both[..1]);
            assert_eq!(idle.choose(&mut balancer, 0), Some(0));
            balancer.update(&both);
            let two = [(); 2].map(|()| idle.choose(&mut balancer, 0));
            assert!(two.contains(&Some(0)) && two.contains(&Some(1)), "{two:?}");
        }
    }

    #[test]
    fn single_server_gets_all() {
        let draws = Draws::idle(Policy::RoundRobin, &[4], 9);
        assert_eq!(shares(&draws, 5), [5]);
    }

    proptest! {
        #[test]
        fn credits_sum_to_zero(
            steps in prop::collection::vec((prop::collection::vec(0..5_u32, 1..8), 0..20_usize), 1..20),
            seed: u64,
        ) {
            let mut turns = SmoothRoundRobin::new(seed);
            let mut before: Vec<Member> = Vec::new();
            for (weights, choices) in steps {
                let members: Vec<Member> = (0..)
                    .zip(weights)
                    .filter(|(_, weight)| *weight > 0)
                    .map(|(server, weight)| member(server, weight))
                    .collect();
                turns.update(&before, &members);
                for _ in 0..choices {
                    prop_assert_eq!(turns.next(&members, |_| true).is_some(), !members.is_empty());
                }
                prop_assert_eq!(turns.credits.iter().sum::<i64>(), 0);
                let turn: i64 = members.iter().map(|member| i64::from(member.weight)).sum();
                prop_assert!(turns.credits.iter().all(|credit| credit.abs() <= 2 * turn + 1));
                before = members;
            }
        }
    }
}
