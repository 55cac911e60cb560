//! The policy `least_connections`: the server with the fewest requests in flight per weight. Equals take turns by
//! weight; otherwise an idle group would use its first server only.
//!
//! The name is the usual one: in HTTP/1, each connection in use has one request in flight.

use super::Member;
use super::power_of_two::cost;
use super::round_robin::SmoothRoundRobin;

/// O(n), in two passes.
pub(super) fn choose(
    turns: &mut SmoothRoundRobin,
    members: &[Member],
    fits: impl Fn(&Member) -> bool,
    load: impl Fn(&Member) -> u32,
) -> Option<usize> {
    let cost = |member: &Member| cost(member, load(member));
    let least = members
        .iter()
        .filter(|member| fits(member))
        .map(cost)
        .reduce(|least, cost| if cost.is_below(least) { cost } else { least })?;
    turns.next(members, |member| {
        !least.is_below(cost(member)) && fits(member)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::super::simulation::{Draws, Queues, shares};

    #[test]
    fn least_load_per_weight_is_chosen() {
        for (weights, load, least) in [
            ([1, 1, 1], [3, 1, 2], 1),
            ([1, 1, 4], [1, 1, 3], 2),
            ([1, 3, 4], [1, 2, 4], 1),
        ] {
            let draws = Draws {
                load: &load,
                ..Draws::idle(Policy::LeastConnections, &weights, 1)
            };
            assert_eq!(shares(&draws, 10)[least], 10, "{draws:?}");
        }
    }

    #[test]
    fn equal_loads_are_distributed_by_weight() {
        for (weights, load, expected) in [
            ([1, 1, 1], [0, 0, 0], [20, 20, 20]),
            ([1, 2, 3], [0, 0, 0], [10, 20, 30]),
            ([1, 1, 1], [5, 6, 5], [30, 0, 30]),
            // Per unit of weight, the first two have the same load.
            ([1, 2, 3], [2, 4, 9], [20, 40, 0]),
        ] {
            let draws = Draws {
                load: &load,
                ..Draws::idle(Policy::LeastConnections, &weights, 3)
            };
            assert_eq!(shares(&draws, 60), expected, "{draws:?}");
        }
    }

    #[test]
    fn full_and_avoided_servers_are_skipped() {
        let draws = Draws {
            load: &[0, 0, 7, 7],
            full: &[0],
            avoid: &[1],
            ..Draws::idle(Policy::LeastConnections, &[1; 4], 1)
        };
        assert_eq!(shares(&draws, 10), [0, 0, 5, 5]);
    }

    #[test]
    fn tail_latency_beats_random() {
        let queues = |policy| Queues::even(policy, 10, 0.9, 1).run();
        let (random, least) = (queues(Policy::Random), queues(Policy::LeastConnections));
        assert!(least.percentile(99) * 2 < random.percentile(99));
    }
}
