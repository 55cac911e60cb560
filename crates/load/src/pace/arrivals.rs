//! The arrival times of one core's requests: its share of the run's.

use std::sync::Arc;
use std::time::Duration;

use onrush_engine::random::Random;

use super::profile::Profile;

/// Distribution of requests around the even spacing of their rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spacing {
    /// Even. Requests may run in step with a periodic task of the server.
    #[default]
    Even,
    /// Each request at a random time within its own interval, so that the rate is constant and nothing runs in step.
    Jittered,
    /// Independent, like the requests of many users: gaps are exponentially distributed (a Poisson process).
    Exponential,
}

/// A core's share of a run's turns: numbers `first`, `first + stride`, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The first number.
    pub first: u64,
    /// Distance between numbers: the number of cores of all generators.
    pub stride: u64,
}

impl Share {
    /// Returns the share of core `core` of `cores` in generator `shard` of `shards`. The shares partition the run.
    pub fn of_core(core: u64, cores: u64, shard: u64, shards: u64) -> Share {
        Share {
            first: core * shards + shard,
            stride: cores * shards,
        }
    }

    /// Returns how many of `total` belong to this share.
    pub fn count_of(self, total: u64) -> u64 {
        total / self.stride + u64::from(self.first < total % self.stride)
    }
}

/// The arrivals of one core, in order. Pure: it does not read the clock.
#[derive(Clone, Debug)]
pub struct Arrivals {
    plan: ArrivalPlan,
    share: Share,
    /// Run-wide number of the next turn.
    next: u64,
    /// Requests per turn, which are sent together.
    turn: u64,
    random: Random,
    /// With exponential gaps: due time of the next arrival, in billionths of a request.
    due: u128,
}

/// Start times of requests over a whole run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArrivalPlan {
    /// Following a rate.
    Spaced {
        /// Rate over time.
        profile: Profile,
        /// Distribution around the rate.
        spacing: Spacing,
        /// Seed of random spacings.
        seed: u64,
    },
    /// Groups of requests at regular intervals.
    Bursts {
        /// Requests per burst.
        size: u64,
        /// Interval between bursts.
        every: Duration,
    },
    /// At these times, in nanoseconds since the start, in order; the run ends after the last.
    Listed(Arc<[u64]>),
}

const BILLION: u64 = 1_000_000_000;

impl Arrivals {
    /// For a core that makes `share` of the run's turns of `turn` requests each.
    pub fn new(plan: &ArrivalPlan, share: Share, turn: u64) -> Arrivals {
        let (seed, stream) = match plan {
            // Exponential gaps are random per core; jitter depends on the turn only, not on the core.
            ArrivalPlan::Spaced {
                seed,
                spacing: Spacing::Exponential,
                ..
            } => (*seed, share.first),
            ArrivalPlan::Spaced { seed, .. } => (*seed, u64::MAX),
            ArrivalPlan::Bursts { .. } | ArrivalPlan::Listed(_) => (0, 0),
        };
        let mut arrivals = Arrivals {
            plan: plan.clone(),
            share,
            next: share.first,
            turn,
            random: Random::stream(seed, stream),
            due: 0,
        };
        arrivals.draw_gap();
        arrivals
    }

    /// Returns the run-wide number of the next turn.
    pub fn number(&self) -> u64 {
        self.next
    }

    /// Returns the due time of the next turn, in nanoseconds since the start of the run; `None` after the last.
    pub fn peek(&self) -> Option<u64> {
        Some(match &self.plan {
            ArrivalPlan::Spaced {
                profile,
                spacing: Spacing::Even,
                ..
            } => profile.time_of(self.next * self.turn),
            ArrivalPlan::Spaced {
                profile,
                spacing: Spacing::Jittered,
                ..
            } => {
                let offset = self.random.unit_at(self.next) * self.turn as f64 * BILLION as f64;
                profile.time_of_part(self.next * self.turn, offset as u64)
            }
            ArrivalPlan::Spaced { profile, .. } => {
                let billion = u128::from(BILLION);
                let (number, part) = (self.due / billion, self.due % billion);
                profile.time_of_part(number as u64, part as u64)
            }
            ArrivalPlan::Bursts { size, every } => {
                let burst = self.next * self.turn / size;
                let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
                burst.saturating_mul(every)
            }
            ArrivalPlan::Listed(times) => {
                let first = usize::try_from(self.next.saturating_mul(self.turn)).ok()?;
                return times.get(first).copied();
            }
        })
    }

    /// Advances by `turns`. For several turns at once, exponential gaps are replaced by their mean.
    pub fn skip(&mut self, turns: u64) {
        self.next += self.share.stride * turns;
        if turns == 1 {
            self.draw_gap();
        } else if let ArrivalPlan::Spaced {
            spacing: Spacing::Exponential,
            ..
        } = self.plan
        {
            let requests = u128::from(turns) * u128::from(self.share.stride * self.turn);
            self.due += requests * u128::from(BILLION);
        }
    }

    /// Returns the number of turns before `after`; approximate for exponential gaps.
    pub fn turns_before(&self, after: Duration) -> u64 {
        let time = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let requests = match &self.plan {
            ArrivalPlan::Spaced {
                profile,
                spacing: Spacing::Exponential,
                ..
            } => {
                let due = (self.due / u128::from(BILLION)) as u64;
                let requests = profile.count_before(after).saturating_sub(due);
                return requests / (self.share.stride * self.turn);
            }
            ArrivalPlan::Spaced { profile, .. } => profile.count_before(after),
            ArrivalPlan::Bursts { size, every } => {
                let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
                time.div_ceil(every.max(1)).saturating_mul(*size)
            }
            ArrivalPlan::Listed(times) => times.partition_point(|&at| at < time) as u64,
        };
        let turns = requests.div_ceil(self.turn);
        turns.saturating_sub(self.next).div_ceil(self.share.stride)
    }

    /// The core makes one of `stride` equal shares of the run's requests, so its gaps are `stride` times as long.
    fn draw_gap(&mut self) {
        if let ArrivalPlan::Spaced {
            spacing: Spacing::Exponential,
            ..
        } = self.plan
        {
            let requests = self.random.exponential() * (self.share.stride * self.turn) as f64;
            self.due += (requests * BILLION as f64) as u128;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroU64;

    fn spaced(rate: u64, spacing: Spacing) -> ArrivalPlan {
        ArrivalPlan::Spaced {
            profile: Profile::steady(NonZeroU64::new(rate).unwrap()),
            spacing,
            seed: 1,
        }
    }

    /// Returns the first `turns` arrivals of one core.
    fn arrivals(plan: &ArrivalPlan, share: Share, turn: u64, turns: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(plan, share, turn);
        (0..turns)
            .map(|_| {
                let at = arrivals.peek().unwrap();
                arrivals.skip(1);
                at
            })
            .collect()
    }

    const ALONE: Share = Share {
        first: 0,
        stride: 1,
    };

    #[test]
    fn pipelined_requests_share_start_time() {
        let starts = arrivals(&spaced(1000, Spacing::Even), ALONE, 5, 4);
        assert_eq!(starts, [0, 5_000_000, 10_000_000, 15_000_000]);
    }

    #[test]
    fn bursts_start_together() {
        let plan = ArrivalPlan::Bursts {
            size: 3,
            every: Duration::from_millis(1),
        };
        let starts = arrivals(&plan, ALONE, 1, 7);
        assert_eq!(
            starts,
            [0, 0, 0, 1_000_000, 1_000_000, 1_000_000, 2_000_000]
        );
    }

    #[test]
    fn jittered_arrivals_keep_their_interval() {
        let starts = arrivals(&spaced(1000, Spacing::Jittered), ALONE, 1, 1000);
        for (number, start) in (0..).zip(&starts) {
            assert!((number * 1_000_000..=(number + 1) * 1_000_000).contains(start));
        }
        let off: Vec<u64> = starts.iter().map(|start| start % 1_000_000).collect();
        let early = off.iter().filter(|&&off| off < 500_000).count();
        assert!((400..600).contains(&early), "{early} in the first half");
    }

    #[test]
    fn exponential_gaps_have_expected_mean_and_deviation() {
        for cores in [1, 4] {
            let plan = spaced(1_000_000, Spacing::Exponential);
            let mut all: Vec<u64> = (0..cores)
                .flat_map(|core| arrivals(&plan, Share::of_core(core, cores, 0, 1), 1, 50_000))
                .collect();
            all.sort_unstable();
            // Only while every core still has arrivals.
            let gaps: Vec<f64> = all
                .windows(2)
                .take(40_000)
                .map(|pair| (pair[1] - pair[0]) as f64)
                .collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
            let deviation = (variance / gaps.len() as f64).sqrt();
            assert!((mean - 1000.0).abs() < 30.0, "{cores} cores: {mean}");
            assert!((deviation / mean - 1.0).abs() < 0.05, "{deviation}");
        }
    }

    proptest! {
        /// The numbers of threads and generators change who makes a request, not when.
        #[test]
        fn shares_add_up_to_whole(
            cores in 1u64..9,
            shards in 1u64..5,
            turn in 1u64..4,
            rate in 1u64..1_000_000,
            total in 0u64..10_000,
            jittered in any::<bool>(),
        ) {
            let spacing = if jittered { Spacing::Jittered } else { Spacing::Even };
            let plan = spaced(rate, spacing);
            let shares: Vec<Share> = (0..cores)
                .flat_map(|core| (0..shards).map(move |shard| Share::of_core(core, cores, shard, shards)))
                .collect();
            prop_assert_eq!(shares.iter().map(|share| share.count_of(total)).sum::<u64>(), total);
            let mut together: Vec<u64> = shares
                .iter()
                .flat_map(|&share| arrivals(&plan, share, turn, share.count_of(200) as usize))
                .collect();
            together.sort_unstable();
            prop_assert_eq!(together, arrivals(&plan, ALONE, turn, 200));
        }
    }
}
