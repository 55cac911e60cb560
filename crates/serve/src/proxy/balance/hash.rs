//! The policy `hash`: equal keys go to the same server, and few keys move when the set of servers changes.
//!
//! It is a hash ring (Karger and others, "Consistent hashing and random trees", 1997) with bounded loads (Mirrokni,
//! Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", 2016). The alternatives:
//!
//! - Rendezvous hashing visits every server for every request, which with hundreds of servers takes longer than all
//!   other work.
//! - Maglev's table is faster by a few nanoseconds and more even, but a change of one weight also moves keys between
//!   other servers, and slow start changes a weight twenty times.
//! - On a ring, keys move only from or to the server that changed, and a growing server takes them gradually. An index
//!   finds the position of a key in constant time: see [`Ring::find`].

use std::net::IpAddr;

use onrush_engine::random::{STEP, mix};
use xxhash_rust::xxh3::xxh3_64;

use super::Member;
use crate::limits::{HASH_LOAD_FREE, HASH_WALK_MAX, RING_POINTS_MAX, RING_POINTS_PER_MEMBER};
use crate::worker::time_slice::TimeSlice;

/// Hash of a request's key, or of a server's address.
///
/// XXH3 with 64 bits and no seed: its results are fixed since xxHash 0.8.0 for all versions and machines, so cores,
/// releases of Onrush and other programs agree. It does not resist deliberate collisions; the load bound limits them.
pub(crate) fn key(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Hash of a client's address; an IPv4-mapped IPv6 address equals its IPv4 address.
pub(crate) fn address_key(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => key(&address.octets()),
        IpAddr::V6(address) => key(&address.octets()),
    }
}

/// Points of all members on a circle of 2^64 positions. A key belongs to the first point at or after its position.
///
/// ```text
///  points   0 ─●──────●───●────────●──●─ 2^64     sorted; the low 16 bits of each are its member's index
///  starts   0  ▲  │   ▲   │        ▲  │           index of the first point of each equal part
/// ```
#[derive(Clone, Debug)]
pub(super) struct Ring {
    load_percent_max: Option<u32>,
    /// Sum of the weights, and its maximum so far.
    weight_sum: u64,
    weight_sum_max: u64,
    points_per_weight: Density,
    points: Vec<u64>,
    /// Invariant: `starts[part]` points have `point >> part_shift` below `part`.
    starts: Vec<u32>,
    part_shift: u32,
}

/// Points per unit of weight: a power of two, so that groups of nearly the same weight have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Density {
    /// 2^n points per unit of weight.
    Points(u32),
    /// One point per 2^n units of weight.
    Weights(u32),
}

/// Number of parts of the circle processed between two yields.
const PARTS_PER_STEP: usize = 1024;

/// The bits of a point that hold its member's index.
const INDEX_BITS: u64 = 0xffff;

impl Ring {
    pub(super) fn new(load_percent_max: Option<u32>) -> Self {
        assert!(
            load_percent_max.is_none_or(|percent| percent > 100),
            "some server must always be below the bound"
        );
        Self {
            load_percent_max,
            weight_sum: 0,
            weight_sum_max: 0,
            points_per_weight: Density::Points(0),
            points: Vec::new(),
            starts: Vec::new(),
            part_shift: 0,
        }
    }

    /// Places the points of `members` in linear time (bucket sort): counts, writes and sorts the points of each part.
    pub(super) async fn update(&mut self, members: &[Member], slice: &mut TimeSlice) {
        assert!(
            members.len() <= INDEX_BITS as usize + 1,
            "an index has 16 bits"
        );
        self.weight_sum = members.iter().map(|member| u64::from(member.weight)).sum();
        if self.weight_sum > self.weight_sum_max {
            self.weight_sum_max = self.weight_sum;
            self.points_per_weight = Density::of(self.weight_sum, members.len());
        }
        let density = self.points_per_weight;
        let counts = members.iter().map(|member| density.points(member.weight));
        let count = counts.map(|points| points as usize).sum::<usize>();
        let parts = count.next_power_of_two().max(2);
        self.part_shift = u64::BITS - parts.ilog2();
        self.points.clear();
        self.points.resize(count, 0);
        self.starts.clear();
        self.starts.resize(parts, 0);
        slice.step().await;
        for (index, member) in members.iter().enumerate() {
            for point in density.points_of(member, index) {
                self.starts[(point >> self.part_shift) as usize] += 1;
            }
            slice.step().await;
        }
        // Set each start to the end of its part; writing the points of the part moves it to the start.
        let mut end = 0;
        for some in self.starts.chunks_mut(PARTS_PER_STEP) {
            for start in some {
                end += *start;
                *start = end;
            }
            slice.step().await;
        }
        for (index, member) in members.iter().enumerate() {
            for point in density.points_of(member, index) {
                let at = &mut self.starts[(point >> self.part_shift) as usize];
                *at -= 1;
                self.points[*at as usize] = point;
            }
            slice.step().await;
        }
        for first in (0..parts).step_by(PARTS_PER_STEP) {
            self.sort_parts(first, parts.min(first + PARTS_PER_STEP));
            slice.step().await;
        }
    }

    fn sort_parts(&mut self, first: usize, end: usize) {
        for part in first..end {
            let next = self.starts.get(part + 1).map(|&start| start as usize);
            let end = next.unwrap_or(self.points.len());
            self.points[self.starts[part] as usize..end].sort_unstable();
        }
    }

    /// Index in `points` of the first point at or after `place`. Constant time: one point per part on average.
    fn find(&self, place: u64) -> usize {
        let mut at = self.starts[(place >> self.part_shift) as usize] as usize;
        while self.points.get(at).is_some_and(|&point| point < place) {
            at += 1;
        }
        if at == self.points.len() { 0 } else { at }
    }

    /// Index of the key's member, or, if that does not fit or is overloaded, of the next one on the ring.
    pub(super) fn choose(
        &self,
        members: &[Member],
        key: u64,
        fits: impl Fn(&Member) -> bool,
        load: impl Fn(&Member) -> u32,
        load_sum: u32,
    ) -> Option<usize> {
        if members.is_empty() {
            return None;
        }
        let can_take =
            |index: usize| fits(&members[index]) && self.has_room(&members[index], &load, load_sum);
        // Mixing spreads poor keys, and prevents keys chosen to match a server's points.
        let mut at = self.find(mix(key) & !INDEX_BITS);
        let owner = self.member_at(at);
        for _ in 0..HASH_WALK_MAX {
            let index = self.member_at(at);
            if can_take(index) {
                return Some(index);
            }
            at = if at + 1 == self.points.len() {
                0
            } else {
                at + 1
            };
        }
        // Nearly all members are full: take the next one in the list, which is the same for all keys of the owner.
        let others = || (owner..members.len()).chain(0..owner);
        others()
            .find(|&index| can_take(index))
            .or_else(|| others().find(|&index| fits(&members[index])))
    }

    fn member_at(&self, at: usize) -> usize {
        (self.points[at] & INDEX_BITS) as usize
    }

    /// Whether a member has, with the new request, at most its share times the factor, rounded up. The sum of these
    /// bounds exceeds the sum of all loads, so some member always has room.
    fn has_room(&self, member: &Member, load: impl Fn(&Member) -> u32, load_sum: u32) -> bool {
        let Some(percent) = self.load_percent_max else {
            return true;
        };
        let load = load(member);
        if load < HASH_LOAD_FREE {
            return true;
        }
        let share = u128::from(percent) * u128::from(member.weight) * (u128::from(load_sum) + 1);
        u128::from(load) * 100 * u128::from(self.weight_sum) < share
    }
}

impl Density {
    /// The highest density within the limits of the ring's size.
    fn of(weight_sum: u64, members: usize) -> Self {
        let points = RING_POINTS_MAX.min(RING_POINTS_PER_MEMBER * members) as u64;
        match points / weight_sum {
            0 => Density::Weights(weight_sum.div_ceil(points).next_power_of_two().ilog2()),
            whole => Density::Points(whole.ilog2()),
        }
    }

    /// At least 1, so that every member is on the ring.
    fn points(self, weight: u32) -> u32 {
        match self {
            Density::Points(doublings) => weight << doublings,
            Density::Weights(halvings) => (weight >> halvings).max(1),
        }
    }

    fn points_of(self, member: &Member, index: usize) -> impl Iterator<Item = u64> {
        let mut place = member.identity;
        (0..self.points(member.weight)).map(move |_| {
            place = place.wrapping_add(STEP);
            (mix(place) & !INDEX_BITS) | index as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Draws, member};
    use super::super::{Balancer, Policy, State};
    use super::*;
    use crate::limits::{SLICE_ITEMS, WEIGHT_SCALE};
    use crate::testing::harness::on_simulated_core;
    use crate::worker::time_slice::run_unsliced;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::rc::Rc;

    const KEYS: u64 = 100_000;
    const FREE: Policy = Policy::Hash {
        load_percent_max: None,
    };
    const BOUNDED: Policy = Policy::Hash {
        load_percent_max: Some(125),
    };

    /// The server of each key when nothing is in flight.
    fn owners(balancer: &mut Balancer) -> Vec<u32> {
        let idle = Draws::idle(FREE, &[], 0);
        (0..KEYS)
            .map(|key| idle.choose(balancer, key).expect("some server fits"))
            .collect()
    }

    fn update(ring: &mut Ring, members: &[Member]) {
        run_unsliced(async |slice| ring.update(members, slice).await);
    }

    fn members(weights: &[u32]) -> Vec<Member> {
        (0..)
            .zip(weights)
            .map(|(server, &weight)| member(server, weight))
            .collect()
    }

    fn count(owners: &[u32], server: u32) -> f64 {
        owners.iter().filter(|&&owner| owner == server).count() as f64
    }

    #[test]
    fn key_shares_follow_weights() {
        for weights in [&[1; 3][..], &[1; 10], &[1; 100], &[5, 1, 3], &[1000, 500]] {
            let members = members(weights);
            let mut balancer = Balancer::new(FREE, &members, 0);
            let State::Hash(ring) = &balancer.state else {
                unreachable!("the policy is a ring");
            };
            let densities: Vec<u32> = members
                .iter()
                .map(|member| ring.points_per_weight.points(member.weight))
                .collect();
            let owners = owners(&mut balancer);
            let sum: u32 = weights.iter().sum();
            for (server, (&weight, points)) in (0..).zip(weights.iter().zip(densities)) {
                let expected = KEYS as f64 * f64::from(weight) / f64::from(sum);
                // A share is a sum of exponential gaps, one per point, and has their deviation in addition to that of
                // drawing keys.
                let deviation = expected / f64::from(points).sqrt() + expected.sqrt();
                let difference = (count(&owners, server) - expected).abs();
                assert!(
                    difference < 4.5 * deviation,
                    "server {server} of {weights:?} is off by {difference} of {expected}"
                );
            }
        }
    }

    #[test]
    fn removed_server_moves_only_its_keys() {
        let all = members(&[1; 20]);
        let mut balancer = Balancer::new(BOUNDED, &all, 0);
        let before = owners(&mut balancer);
        let rest: Vec<Member> = all.iter().copied().filter(|m| m.server != 7).collect();
        balancer.update(&rest);
        let after = owners(&mut balancer);
        let mut heirs = [0_u32; 20];
        for (before, after) in before.iter().zip(&after) {
            assert!(before == after || *before == 7);
            heirs[*after as usize] += u32::from(before != after);
        }
        // A twentieth of the keys has moved, within the deviation of a share.
        let moved = heirs.iter().sum::<u32>();
        assert!((4000..6000).contains(&moved), "{moved} of {KEYS} moved");
        assert!(
            heirs.iter().all(|&heir| heir < moved / 5),
            "{heirs:?} inherited {moved}"
        );
        // When the server returns, so do its keys.
        balancer.update(&all);
        assert_eq!(owners(&mut balancer), before);
    }

    #[test]
    fn added_server_takes_keys() {
        let mut balancer = Balancer::new(BOUNDED, &members(&[2; 20]), 0);
        let mut larger = Balancer::new(BOUNDED, &members(&[2; 21]), 0);
        let (before, after) = (owners(&mut balancer), owners(&mut larger));
        let moved = || {
            before
                .iter()
                .zip(&after)
                .filter(|(before, after)| before != after)
        };
        assert!(moved().all(|(_, after)| *after == 20));
        let share = moved().count() as f64 / KEYS as f64;
        assert!((0.038..0.058).contains(&share), "{share} of the keys moved");
    }

    #[test]
    fn slow_start_moves_keys_gradually() {
        let mut all = members(&[1; 10]);
        let mut balancer = Balancer::new(BOUNDED, &all, 0);
        let full = owners(&mut balancer);
        let mut last: Option<Vec<u32>> = None;
        for step in 1..=8 {
            all[3].weight = WEIGHT_SCALE * step / 8;
            balancer.update(&all);
            let now = owners(&mut balancer);
            let share = count(&now, 3) / count(&full, 3);
            assert!(
                (share - f64::from(step) / 8.0).abs() < 0.1,
                "{share} at step {step}"
            );
            for (last, now) in last.iter().flatten().zip(&now) {
                assert!(last == now || *now == 3);
            }
            last = Some(now);
        }
        assert_eq!(last, Some(full));
    }

    #[test]
    fn ring_points_depend_on_server_name() {
        let mut one = Balancer::new(FREE, &members(&[1; 5]), 1);
        let renumbered: Vec<Member> = members(&[1; 5])
            .into_iter()
            .map(|member| Member {
                server: member.server * 10 + 3,
                ..member
            })
            .collect();
        let mut other = Balancer::new(FREE, &renumbered, 2);
        let expected: Vec<u32> = owners(&mut one)
            .iter()
            .map(|owner| owner * 10 + 3)
            .collect();
        assert_eq!(owners(&mut other), expected);
    }

    #[test]
    fn hash_key_owners_are_stable_across_releases() {
        // XXH3 of nothing and of an address, and the owners of some keys. A change of these moves the keys of all
        // users.
        assert_eq!(key(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(
            address_key("::ffff:192.0.2.1".parse().unwrap()),
            key(&[192, 0, 2, 1])
        );
        let mut balancer = Balancer::new(FREE, &members(&[1; 10]), 0);
        let places = [9, 6, 6, 7, 8, 7, 4, 5, 2, 2, 8, 0];
        assert_eq!(owners(&mut balancer)[..12], places);
    }

    #[test]
    fn bounded_load_holds_for_hot_key() {
        let weights = [3, 1, 1, 1, 2, 1, 1];
        let draws = Draws::idle(BOUNDED, &weights, 0);
        let mut balancer = draws.balancer();
        for hot in 0..20 {
            let mut load = [0_u32; 7];
            // Nine in ten requests have the same key; none ends.
            for request in 0..2000_u32 {
                let key = if request % 10 > 0 {
                    hot
                } else {
                    u64::from(request)
                };
                let draws = Draws {
                    load: &load,
                    ..draws.clone()
                };
                let chosen = draws.choose(&mut balancer, key).expect("never full") as usize;
                load[chosen] += 1;
                let even = f64::from(request + 1) * f64::from(weights[chosen]) / 10.0;
                let bound = (even * 1.25).ceil().max(f64::from(HASH_LOAD_FREE));
                assert!(f64::from(load[chosen]) <= bound, "{load:?} after {request}");
            }
        }
    }

    #[test]
    fn hot_key_load_does_not_exceed_bound() {
        let draws = Draws::idle(BOUNDED, &[1; 10], 0);
        let mut balancer = draws.balancer();
        for key in 0..100 {
            let owner = draws.choose(&mut balancer, key).expect("never full");
            let mut load = [20; 10];
            for (at_owner, stays) in [(5, true), (24, true), (26, false)] {
                load[owner as usize] = at_owner;
                let busy = Draws {
                    load: &load,
                    ..draws.clone()
                };
                let chosen = busy.choose(&mut balancer, key).expect("never full");
                assert_eq!(chosen == owner, stays, "with {at_owner} in flight");
            }
        }
    }

    #[test]
    fn full_servers_are_skipped_on_ring() {
        let full: Vec<u32> = (0..200).filter(|&server| server != 151).collect();
        let draws = Draws {
            full: &full,
            ..Draws::idle(BOUNDED, &[1; 200], 0)
        };
        let mut balancer = draws.balancer();
        assert!((0..100).all(|key| draws.choose(&mut balancer, key) == Some(151)));
    }

    #[test]
    fn large_ring_updates_in_slices() {
        on_simulated_core(1, |site| async move {
            let members = members(&[1; 2000]);
            let done: Rc<Cell<bool>> = Rc::default();
            let (core, is_done, all) = (site.core.clone(), Rc::clone(&done), members.clone());
            site.core.spawn(async move {
                let mut ring = Ring::new(None);
                ring.update(&all, &mut TimeSlice::begin(&core)).await;
                assert!(ring.points.is_sorted());
                is_done.set(true);
            });
            let mut turns = 0;
            while !done.get() {
                site.core.yield_now().await;
                turns += 1;
            }
            // Each member is counted, then placed.
            assert!(turns >= 2 * members.len() / SLICE_ITEMS, "{turns} turns");
        });
    }

    #[test]
    fn ring_size_is_bounded() {
        for (count, weight) in [(1, 1), (2, 1000), (256, 7), (4096, 1), (4096, 1000)] {
            let mut ring = Ring::new(None);
            update(&mut ring, &members(&vec![weight; count]));
            let points = ring.points.len();
            let bound = RING_POINTS_MAX.min(RING_POINTS_PER_MEMBER * count);
            assert!(points <= bound && points >= count, "{points} for {count}");
        }
        // A server with very little weight is on the ring too.
        let mut ring = Ring::new(None);
        update(&mut ring, &members(&[vec![1000; 4095], vec![1]].concat()));
        assert!((0..ring.points.len()).any(|at| ring.member_at(at) == 4095));
    }

    proptest! {
        #[test]
        fn ring_index_matches_binary_search(
            weights in prop::collection::vec(1..50_u32, 1..12),
            places in prop::collection::vec(any::<u64>(), 100),
        ) {
            let mut ring = Ring::new(None);
            update(&mut ring, &members(&weights));
            let points = ring.points.clone();
            for place in places.into_iter().chain(points).chain([0, u64::MAX]) {
                let searched = ring.points.partition_point(|&point| point < place);
                prop_assert_eq!(ring.find(place), searched % ring.points.len());
            }
        }
    }
}
