//! The policy `peak_ewma`: of two servers drawn at random, the one expected to finish its requests first.
//!
//! The expected time is the server's latency, averaged by [`Ewma`](crate::proxy::ewma::Ewma), times the requests it
//! would have in flight. This is the load metric of Finagle's "Power of Two Choices (P2C) + Peak EWMA" balancer
//! (Finagle user guide, "Clients", Twitter), which Linkerd adopted ("Beyond round robin: load balancing for latency",
//! Buoyant, 2016). Here it is also divided by the weight.

use super::member::{Cost, Member};

/// Latency assumed for a server that has not responded yet while its first request is in flight: higher than any
/// measured one, so that a new server is tried with a single request (as in Finagle). 2^47 ns is more than a day; the
/// shift leaves room for the factor of requests in flight.
const UNKNOWN: u64 = u64::MAX >> 17;

pub(super) fn cost(member: &Member, load: u32, latency: u64) -> Cost {
    let requests = u64::from(load) + 1;
    let amount = match (latency, load) {
        (0, 0) => 0,
        (0, _) => UNKNOWN.saturating_mul(requests),
        (latency, _) => latency.saturating_mul(requests),
    };
    Cost {
        amount,
        weight: member.weight,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::super::simulation::{Draws, Queues, Slowdown, assert_shares, shares};

    #[test]
    fn unknown_latencies_are_distributed_by_weight() {
        for seed in 1..=4 {
            let weights = [3, 1, 2];
            let draws = Draws::idle(Policy::PeakEwma, &weights, seed);
            assert_shares(&shares(&draws, 60_000), &weights, seed);
        }
    }

    #[test]
    fn cost_is_latency_times_requests_per_weight() {
        for (weights, load, latency, expected) in [
            // 3 ms against 2 ms, both idle.
            ([1, 1], [0, 0], [3_000_000, 2_000_000], 1),
            // 2 ms for three requests against 5 ms for one.
            ([1, 1], [2, 0], [2_000_000, 5_000_000], 1),
            // The same, with three times the weight.
            ([3, 1], [2, 0], [2_000_000, 5_000_000], 0),
            // No response yet: chosen when idle, but not for a second request.
            ([1, 1], [0, 0], [0, 1], 0),
            ([1, 1], [1, 0], [0, 60_000_000_000], 1),
        ] {
            let draws = Draws {
                load: &load,
                latency: &latency,
                ..Draws::idle(Policy::PeakEwma, &weights, 1)
            };
            assert_eq!(shares(&draws, 100)[expected], 100, "{draws:?}");
        }
    }

    #[test]
    fn tail_latency_beats_random() {
        for seed in 1..=3 {
            let queues = |policy| Queues::even(policy, 10, 0.9, seed).run();
            let (random, peak) = (queues(Policy::Random), queues(Policy::PeakEwma));
            assert!(
                peak.percentile(99) * 2 < random.percentile(99),
                "99th percentile {} ns, by chance {} ns, seed {seed}",
                peak.percentile(99),
                random.percentile(99)
            );
        }
    }

    #[test]
    fn slow_server_is_avoided_until_it_recovers() {
        for seed in 1..=3 {
            let queues = Queues {
                slowdown: Some(Slowdown {
                    server: 4,
                    factor: 20,
                    requests: 100_000..200_000,
                }),
                requests: 400_000,
                ..Queues::even(Policy::PeakEwma, 10, 0.6, seed)
            };
            let outcome = queues.run();
            let share = |requests| outcome.share(4, requests);
            let (before, slow, after) = (
                share(50_000..100_000),
                share(110_000..200_000),
                share(300_000..400_000),
            );
            assert!(
                (0.08..0.12).contains(&before) && slow < 0.01 && after > 0.08,
                "{before} of the requests before, {slow} while slow, {after} after; seed {seed}"
            );
        }
    }

    #[test]
    fn peak_ewma_beats_power_of_two_with_slow_server() {
        for seed in 1..=3 {
            let queues = |policy| {
                let queues = Queues::even(policy, 10, 0.5, seed);
                Queues {
                    service: [vec![20_000_000], vec![1_000_000; 9]].concat(),
                    ..queues
                }
                .run()
            };
            let (two, peak) = (queues(Policy::PowerOfTwo), queues(Policy::PeakEwma));
            assert!(
                peak.percentile(99) * 5 < two.percentile(99) * 4,
                "99th percentile {} ns, counting requests {} ns, seed {seed}",
                peak.percentile(99),
                two.percentile(99)
            );
        }
    }
}
