//! Load balancing: chooses the server of a group for the next request. Pure: computes a choice from state and a
//! question.
//!
//! Each policy has a file; `member.rs` has their common types. A choice allocates nothing; `update` rebuilds the data
//! of a policy when the set of servers changes, which is rare.

mod first;
pub(crate) mod hash;
mod least_connections;
mod member;
mod peak_ewma;
mod power_of_two;
mod random;
mod round_robin;

#[cfg(test)]
mod simulation;

use onrush_config::plan::Balance;
use onrush_engine::random::Random;

use self::hash::Ring;
use self::random::AliasTable;
use self::round_robin::SmoothRoundRobin;
use crate::limits::HASH_LOAD_PERCENT_MAX;
use crate::worker::time_slice::{TimeSlice, run_unsliced};

pub(crate) use member::{BalanceRequest, Member};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Weighted round robin.
    RoundRobin,
    /// Weighted random choice.
    Random,
    /// The less loaded of two servers drawn at random, by requests in flight per weight.
    PowerOfTwo,
    /// The server with the fewest requests in flight per weight.
    LeastConnections,
    /// Consistent hashing with bounded loads: equal keys go to the same server unless it is overloaded. With
    /// `Some(125)`, that is above 125 % of its fair share; the percentage must be above 100.
    Hash { load_percent_max: Option<u32> },
    /// The one of two randomly drawn servers that is expected to finish its requests first.
    PeakEwma,
    /// The first server, in the order of the group, that is not full.
    First,
}

impl From<&Balance> for Policy {
    /// The caller computes the key of `Hash`.
    fn from(balance: &Balance) -> Self {
        match balance {
            Balance::RoundRobin => Policy::RoundRobin,
            Balance::Random => Policy::Random,
            Balance::PowerOfTwo => Policy::PowerOfTwo,
            Balance::LeastConnections => Policy::LeastConnections,
            Balance::Hash(_) => Policy::Hash {
                load_percent_max: Some(HASH_LOAD_PERCENT_MAX),
            },
            Balance::PeakEwma => Policy::PeakEwma,
            Balance::First => Policy::First,
        }
    }
}

/// A policy applied to the servers that may be chosen now.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    /// Invariant: in ascending order of `server`, without duplicates or zero weights.
    members: Vec<Member>,
    chance: Random,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    RoundRobin(SmoothRoundRobin),
    Random(AliasTable),
    PowerOfTwo(AliasTable),
    LeastConnections(SmoothRoundRobin),
    Hash(Ring),
    PeakEwma(AliasTable),
    First,
}

impl Balancer {
    /// Creates a balancer for `members`, which should be all servers of the group at full weight: the resolution of
    /// `Hash` is derived from them and must be equal everywhere. `seed` differs between cores. Otherwise as `update`.
    pub(crate) async fn prepare(
        policy: Policy,
        members: &[Member],
        seed: u64,
        slice: &mut TimeSlice,
    ) -> Self {
        let state = match policy {
            Policy::RoundRobin => State::RoundRobin(SmoothRoundRobin::new(seed)),
            Policy::Random => State::Random(AliasTable::default()),
            Policy::PowerOfTwo => State::PowerOfTwo(AliasTable::default()),
            Policy::LeastConnections => State::LeastConnections(SmoothRoundRobin::new(seed)),
            Policy::Hash { load_percent_max } => State::Hash(Ring::new(load_percent_max)),
            Policy::PeakEwma => State::PeakEwma(AliasTable::default()),
            Policy::First => State::First,
        };
        let mut balancer = Self {
            members: Vec::new(),
            chance: Random::new(seed),
            state,
        };
        balancer.update_in_slices(members, slice).await;
        balancer
    }

    /// Replaces the members, which must be in ascending order of their servers; may be empty. `Hash` takes about 30 ns
    /// per point of its ring (some hundred per server), the others about 20 ns per server.
    pub(crate) fn update(&mut self, members: &[Member]) {
        run_unsliced(async |slice| self.update_in_slices(members, slice).await);
    }

    /// [`Balancer::update`] in time slices.
    pub(crate) async fn update_in_slices(&mut self, members: &[Member], slice: &mut TimeSlice) {
        if members == self.members {
            return;
        }
        assert!(
            members.is_sorted_by(|one, next| one.server < next.server),
            "members are in the order of the group"
        );
        assert!(
            members.iter().all(|member| member.weight > 0),
            "a server without weight is no member"
        );
        match &mut self.state {
            State::RoundRobin(turns) | State::LeastConnections(turns) => {
                turns.update(&self.members, members)
            }
            State::Random(lots) | State::PowerOfTwo(lots) | State::PeakEwma(lots) => {
                lots.update(members)
            }
            State::Hash(ring) => ring.update(members, slice).await,
            State::First => {}
        }
        self.members.clear();
        self.members.extend_from_slice(members);
    }

    /// Returns a copy to update, or `None` if `members` are unchanged.
    pub(crate) fn if_others(&self, members: &[Member]) -> Option<Self> {
        (members != self.members).then(|| self.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has a member that is not in `servers`.
    pub(crate) fn has_others_than(&self, servers: &[u32]) -> bool {
        let is_other = |member: &Member| !servers.contains(&member.server);
        self.members.iter().any(is_other)
    }

    /// Chooses a server; `None` if every member is full or to be avoided.
    pub(crate) fn choose<Load, Latency>(
        &mut self,
        question: &BalanceRequest<'_, Load, Latency>,
    ) -> Option<u32>
    where
        Load: Fn(u32) -> u32,
        Latency: Fn(u32) -> u64,
    {
        self.choose_index(question)
            .map(|index| self.members[index].server)
    }

    fn choose_index<Load, Latency>(
        &mut self,
        question: &BalanceRequest<'_, Load, Latency>,
    ) -> Option<usize>
    where
        Load: Fn(u32) -> u32,
        Latency: Fn(u32) -> u64,
    {
        let avoid = question.avoid;
        let load = |member: &Member| (question.load)(member.server);
        let latency = |member: &Member| (question.latency)(member.server);
        let fits =
            |member: &Member| load(member) < member.load_max && !avoid.contains(&member.server);
        let members = &self.members[..];
        if let [only] = members {
            return fits(only).then_some(0);
        }
        let chance = &self.chance;
        match &mut self.state {
            State::RoundRobin(turns) => turns.next(members, fits),
            State::Random(lots) => random::choose(lots, members, chance, fits),
            State::PowerOfTwo(lots) => {
                let cost = |member: &Member| power_of_two::cost(member, load(member));
                power_of_two::choose(lots, members, chance, fits, cost)
            }
            State::LeastConnections(turns) => least_connections::choose(turns, members, fits, load),
            State::Hash(ring) => ring.choose(members, question.key, fits, load, question.load_sum),
            State::PeakEwma(lots) => {
                let cost = |member: &Member| peak_ewma::cost(member, load(member), latency(member));
                power_of_two::choose(lots, members, chance, fits, cost)
            }
            State::First => first::choose(members, fits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::simulation::Draws;
    use super::*;

    impl Balancer {
        /// [`Balancer::prepare`] without slices.
        pub(crate) fn new(policy: Policy, members: &[Member], seed: u64) -> Self {
            run_unsliced(async |slice| Self::prepare(policy, members, seed, slice).await)
        }
    }

    const POLICIES: [Policy; 8] = [
        Policy::RoundRobin,
        Policy::Random,
        Policy::PowerOfTwo,
        Policy::LeastConnections,
        Policy::Hash {
            load_percent_max: None,
        },
        Policy::Hash {
            load_percent_max: Some(125),
        },
        Policy::PeakEwma,
        Policy::First,
    ];

    /// Asks every policy 200 times; each choice must be one of `possible`.
    #[track_caller]
    fn check(weights: &[u32], full: &[u32], avoid: &[u32], possible: &[Option<u32>]) {
        for policy in POLICIES {
            let draws = Draws {
                full,
                avoid,
                ..Draws::idle(policy, weights, 1)
            };
            let mut balancer = draws.balancer();
            assert_eq!(balancer.len(), weights.len());
            for key in 0..200 {
                let chosen = draws.choose(&mut balancer, key);
                assert!(possible.contains(&chosen), "{chosen:?} of {draws:?}");
            }
        }
    }

    #[test]
    fn no_server_is_chosen_without_capacity() {
        check(&[], &[], &[], &[None]);
        check(&[1], &[0], &[], &[None]);
        check(&[3, 1, 1], &[0, 1, 2], &[], &[None]);
        check(&[3, 1, 1], &[0, 1, 2], &[0], &[None]);
    }

    #[test]
    fn avoided_server_is_not_chosen() {
        check(&[9, 1, 9], &[], &[0, 2], &[Some(1)]);
        check(&[9, 1, 9], &[1], &[0, 2], &[None]);
        check(&[9, 1, 9], &[], &[0, 1, 2], &[None]);
        check(&[1], &[], &[0], &[None]);
    }

    #[test]
    fn balancer_update_replaces_members() {
        for policy in POLICIES {
            let all: Vec<Member> = (0..6).map(|server| simulation::member(server, 2)).collect();
            let mut balancer = Balancer::new(policy, &all, 1);
            let draws = Draws::idle(policy, &[], 0);
            for members in [&all[2..4], &[], &all[5..], &all] {
                balancer.update(members);
                let mut chosen: Vec<u32> = (0..300)
                    .filter_map(|key| draws.choose(&mut balancer, key))
                    .collect();
                chosen.sort_unstable();
                chosen.dedup();
                let mut expected: Vec<u32> = members.iter().map(|member| member.server).collect();
                if policy == Policy::First {
                    expected.truncate(1);
                }
                assert_eq!(chosen, expected, "with {policy:?}");
            }
        }
    }
}
