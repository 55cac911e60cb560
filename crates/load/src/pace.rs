//! When requests should start. Pure: state and `now` in, an instant out.

use std::num::NonZeroU64;

use onrush_engine::Instant;

/// What decides when a request starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Closed loop: a connection's next request starts when its last answer is there.
    Closed,
    /// Open loop: so many requests per second over all connections, evenly spaced, whatever the answers do.
    Rate(NonZeroU64),
}

impl Pace {
    /// The schedule of connection `number` of `connections`, when each turn starts `requests_per_turn` requests. All
    /// schedules of a run together are even: connection 1 starts one step after connection 0.
    pub fn of_connection(
        self,
        number: u64,
        connections: u64,
        requests_per_turn: u64,
        begin: Instant,
    ) -> Schedule {
        match self {
            Pace::Closed => Schedule::Closed,
            Pace::Rate(rate) => Schedule::Even {
                begin,
                next: number * requests_per_turn,
                step: connections * requests_per_turn,
                rate,
            },
        }
    }
}

/// When one connection's requests should start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// At once.
    Closed,
    /// Evenly, from `begin` on.
    Even {
        /// When request 0 of the run starts.
        begin: Instant,
        /// The number, in the whole run, of the request that is next here.
        next: u64,
        /// How far apart the numbers of two turns are.
        step: u64,
        /// Requests per second of the whole run.
        rate: NonZeroU64,
    },
}

impl Schedule {
    /// When the connection's next turn is intended to start; it may have passed already, and then the delay is part of
    /// the latency. Each call is one turn.
    pub fn next(&mut self, now: Instant) -> Instant {
        match self {
            Schedule::Closed => now,
            Schedule::Even {
                begin,
                next,
                step,
                rate,
            } => {
                // From the number and not from the turn before: rounding must not add up.
                let after = u128::from(*next) * 1_000_000_000 / u128::from(rate.get());
                *next += *step;
                Instant::from_nanoseconds(begin.nanoseconds() + after as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Instant = Instant::from_nanoseconds(5_000_000_000);

    fn rate(per_second: u64) -> Pace {
        Pace::Rate(NonZeroU64::new(per_second).unwrap())
    }

    /// The first `turns` starts of each connection, in nanoseconds since the beginning, in order.
    fn starts(pace: Pace, connections: u64, requests_per_turn: u64, turns: usize) -> Vec<u64> {
        let mut starts: Vec<u64> = (0..connections)
            .flat_map(|number| {
                let mut schedule =
                    pace.of_connection(number, connections, requests_per_turn, BEGIN);
                (0..turns).map(move |_| schedule.next(BEGIN).nanoseconds() - BEGIN.nanoseconds())
            })
            .collect();
        starts.sort_unstable();
        starts
    }

    #[test]
    fn a_closed_loop_starts_at_once() {
        let mut schedule = Pace::Closed.of_connection(3, 7, 1, BEGIN);
        let now = Instant::from_nanoseconds(77);
        assert_eq!(schedule.next(now), now);
    }

    #[test]
    fn all_connections_together_are_evenly_spaced() {
        let starts = starts(rate(1000), 4, 1, 3);
        let expected: Vec<u64> = (0..12).map(|number| number * 1_000_000).collect();
        assert_eq!(starts, expected);
    }

    #[test]
    fn pipelined_requests_share_a_start_and_keep_the_rate() {
        let starts = starts(rate(1000), 2, 5, 2);
        assert_eq!(starts, [0, 5_000_000, 10_000_000, 15_000_000]);
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_does_not_drift() {
        let starts = starts(rate(3), 1, 1, 3_000_001);
        assert_eq!(starts.last(), Some(&1_000_000_000_000_000));
    }

    #[test]
    fn a_late_connection_keeps_its_intended_starts() {
        let mut schedule = rate(10).of_connection(0, 1, 1, BEGIN);
        let late = Instant::from_nanoseconds(9_000_000_000);
        assert_eq!(schedule.next(late), BEGIN);
        assert_eq!(
            schedule.next(late).nanoseconds(),
            BEGIN.nanoseconds() + 100_000_000
        );
    }
}
