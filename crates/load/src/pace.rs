//! Due times of requests and the end of a run, and the inputs of both: clocks, the common start of all cores, the
//! target.

pub(crate) mod backlog;
pub(crate) mod dispatch;
pub mod error;
pub(crate) mod start_barrier;
pub mod stop;
pub mod target;
pub mod wall_clock;

pub mod arrivals;
pub mod profile;

use std::num::NonZeroU64;
use std::time::Duration;

use onrush_engine::Instant;

use arrivals::ArrivalPlan;
use onrush_engine::random::Random;
use profile::Profile;

/// Decides when a request starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Closed loop: a connection's next request starts when its last response has arrived.
    Closed,
    /// Closed loop with a think time: the next request starts this long after the response, plus or minus 3 %.
    Think(Duration),
    /// Open loop, independent of the responses. A due request is sent on the connection that has been idle longest. If
    /// none is idle, it waits for one, and the wait is part of its latency.
    Open(ArrivalPlan),
    /// Open loop on each connection: this many requests per second each, evenly spaced both per connection and in
    /// total.
    EachConnection(NonZeroU64),
}

impl Pace {
    /// Creates an open loop with evenly spaced requests.
    pub fn rate(rate: NonZeroU64) -> Pace {
        Pace::Open(ArrivalPlan::Spaced {
            profile: Profile::steady(rate),
            spacing: arrivals::Spacing::Even,
            seed: 0,
        })
    }

    /// Returns the number of requests due within `time` over `connections` connections; `None` in a closed loop.
    pub fn due_within(&self, time: Duration, connections: u64) -> Option<f64> {
        match self {
            Pace::Closed | Pace::Think(_) => None,
            Pace::Open(ArrivalPlan::Spaced { profile, .. }) => {
                Some(profile.count_before(time) as f64)
            }
            Pace::Open(ArrivalPlan::Bursts { size, every }) => {
                let bursts = time.as_nanos().div_ceil(every.as_nanos().max(1));
                Some(bursts as f64 * *size as f64)
            }
            Pace::Open(ArrivalPlan::Listed(times)) => {
                let count = times.partition_point(|&at| u128::from(at) < time.as_nanos());
                Some(count as f64)
            }
            Pace::EachConnection(rate) => {
                Some(rate.get() as f64 * connections as f64 * time.as_secs_f64())
            }
        }
    }

    /// Returns the requests per second at full load; `None` in a closed loop.
    pub fn target_rate(&self, connections: u64) -> Option<f64> {
        match self {
            Pace::Closed | Pace::Think(_) => None,
            Pace::Open(ArrivalPlan::Spaced { profile, .. }) => Some(profile.rate_per_second()),
            Pace::Open(ArrivalPlan::Bursts { size, every }) => {
                Some(*size as f64 / every.as_secs_f64())
            }
            // The mean rate; undefined if all requests start at time 0.
            Pace::Open(ArrivalPlan::Listed(times)) => {
                let seconds = *times.last()? as f64 / 1e9;
                (seconds > 0.0).then(|| times.len() as f64 / seconds)
            }
            Pace::EachConnection(rate) => Some(rate.get() as f64 * connections as f64),
        }
    }
}

/// How a run reaches its full load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// Full load at once.
    #[default]
    AtOnce,
    /// Linearly within this time.
    Ramp(Duration),
    /// In ten steps within this time, each rising for a quarter of its length and then constant, as in h1load.
    Stairs(Duration),
}

impl Start {
    /// Returns the time until full load.
    pub fn duration(self) -> Duration {
        match self {
            Start::AtOnce => Duration::ZERO,
            Start::Ramp(time) | Start::Stairs(time) => time,
        }
    }

    /// Returns the profile of a run that reaches `rate`.
    pub fn profile(self, rate: NonZeroU64) -> Profile {
        match self {
            Start::AtOnce => Profile::steady(rate),
            Start::Ramp(time) => Profile::ramp(rate, time),
            Start::Stairs(time) => Profile::soft_start(rate, time),
        }
    }

    /// Returns when connection `number` of `connections` starts in a closed loop.
    pub fn start_of(self, number: u64, connections: u64) -> Duration {
        let share = number as f64 / connections as f64;
        match self {
            Start::AtOnce => Duration::ZERO,
            Start::Ramp(time) => time.mul_f64(share),
            Start::Stairs(time) => {
                let stair = (share * 10.0).floor();
                let slope = share * 10.0 - stair;
                time.mul_f64((stair + slope / 4.0) / 10.0)
            }
        }
    }
}

/// Start times of the requests of one connection with its own rate. A turn is a batch of requests that are sent
/// together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Schedule {
    /// Start of request 0 of the run.
    begin: Instant,
    /// Run-wide number of this connection's next request.
    next: u64,
    /// Difference between the request numbers of two consecutive turns.
    step: u64,
    /// Requests per second of the whole run.
    rate: u128,
}

impl Schedule {
    /// For connection `number` of `connections` with `rate` requests per second each, in turns of `turn` requests.
    pub(crate) fn new(
        number: u64,
        connections: u64,
        rate: NonZeroU64,
        turn: u64,
        begin: Instant,
    ) -> Schedule {
        Schedule {
            begin,
            next: number * turn,
            step: connections * turn,
            rate: u128::from(rate.get()) * u128::from(connections),
        }
    }

    pub(crate) fn from(self, begin: Instant) -> Schedule {
        Schedule { begin, ..self }
    }

    /// Returns the intended start of the next turn. If it is in the past, the delay is part of the latency.
    pub(crate) fn peek(&self) -> Instant {
        // Computed from the number instead of the previous start, so that rounding errors do not add up.
        let after = u128::from(self.next) * 1_000_000_000 / self.rate;
        self.begin + Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX))
    }

    /// Returns the number of turns before `moment`.
    pub(crate) fn turns_before(&self, moment: Instant) -> u64 {
        let after = u128::from(moment.nanoseconds_since(self.begin));
        let requests = (after * self.rate).div_ceil(1_000_000_000);
        let requests = requests.saturating_sub(u128::from(self.next));
        u64::try_from(requests.div_ceil(u128::from(self.step))).unwrap_or(u64::MAX)
    }

    pub(crate) fn skip(&mut self, turns: u64) {
        self.next += self.step * turns;
    }

    /// Returns the intended start of the next turn and advances to the one after it.
    pub(crate) fn next(&mut self) -> Instant {
        let start = self.peek();
        self.next += self.step;
        start
    }
}

/// Returns `time` plus or minus 3 %.
pub(crate) fn think(time: Duration, random: &Random) -> Duration {
    time.mul_f64(0.97 + 0.06 * random.unit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGIN: Instant = Instant::from_nanoseconds(5_000_000_000);

    fn rate(per_second: u64) -> NonZeroU64 {
        NonZeroU64::new(per_second).unwrap()
    }

    #[test]
    fn per_connection_rates_interleave_evenly() {
        let mut starts: Vec<u64> = (0..4)
            .flat_map(|number| {
                let mut schedule = Schedule::new(number, 4, rate(250), 1, BEGIN);
                (0..3).map(move |_| schedule.next().nanoseconds_since(BEGIN))
            })
            .collect();
        starts.sort_unstable();
        let expected: Vec<u64> = (0..12).map(|number| number * 1_000_000).collect();
        assert_eq!(starts, expected);
    }

    #[test]
    fn think_time_jitter_is_three_percent() {
        let random = Random::stream(1, 0);
        let time = Duration::from_millis(100);
        let pauses: Vec<Duration> = (0..1000).map(|_| think(time, &random)).collect();
        let (low, high) = (time.mul_f64(0.97), time.mul_f64(1.03));
        assert!(pauses.iter().all(|pause| (low..=high).contains(pause)));
        let mean = pauses.iter().sum::<Duration>() / 1000;
        assert!(mean.abs_diff(time) < Duration::from_micros(500), "{mean:?}");
    }

    #[test]
    fn due_request_count_matches_pace() {
        let minute = Duration::from_secs(60);
        let bursts = Pace::Open(ArrivalPlan::Bursts {
            size: 7,
            every: Duration::from_secs(9),
        });
        for (pace, due, asked) in [
            (Pace::rate(rate(1000)), 60_000.0, 1000.0),
            (Pace::EachConnection(rate(3)), 1800.0, 30.0),
            (bursts, 49.0, 7.0 / 9.0),
        ] {
            assert_eq!(pace.due_within(minute, 10), Some(due));
            assert_eq!(pace.target_rate(10), Some(asked));
        }
        assert_eq!(Pace::Closed.due_within(minute, 10), None);
    }

    proptest! {
        #[test]
        fn ramp_opens_connections_in_order_and_in_time(
            connections in 1u64..1000,
            milliseconds in 1u64..100_000,
        ) {
            let time = Duration::from_millis(milliseconds);
            for start in [Start::Ramp(time), Start::Stairs(time)] {
                prop_assert_eq!(start.start_of(0, connections), Duration::ZERO);
                let mut last = Duration::ZERO;
                for number in 0..connections {
                    let at = start.start_of(number, connections);
                    prop_assert!(last <= at && at <= start.duration());
                    last = at;
                }
            }
        }
    }
}
