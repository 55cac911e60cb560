//! The remaining requests of a core's open loop, taken one by one, or many at once if they are too late to be made.
//! Pure.

use std::time::Duration;

use onrush_engine::Instant;

use crate::pace::arrivals::Arrivals;
use crate::pace::stop::Budget;

/// Due time when there are no more arrivals.
pub(crate) const NEVER: Instant = Instant::from_nanoseconds(u64::MAX);

/// Overdue arrivals are taken in blocks of this fraction: their delays stay as exact as a histogram stores them, and a
/// billion turns take about ten thousand steps.
pub(crate) const BLOCKS: u64 = 1000;

/// A turn to make: a batch of requests that start together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DueBatch {
    pub(crate) start: Instant,
    pub(crate) number: u64,
    pub(crate) count: u64,
}

/// One core's arrivals within its budget.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    arrivals: Arrivals,
    begin: Instant,
    /// End of the run; later arrivals are ignored.
    end: Option<Instant>,
    turn: u64,
    /// Remaining requests, including missed ones; `None` without a limit.
    left: Option<u64>,
    due: Instant,
}

impl Backlog {
    pub(crate) fn new(arrivals: Arrivals, turn: u64) -> Backlog {
        Backlog {
            arrivals,
            begin: Instant::default(),
            end: None,
            turn,
            left: None,
            due: NEVER,
        }
    }

    pub(crate) fn begin(&mut self, begin: Instant, budget: Budget) {
        (self.begin, self.end, self.left) = (begin, budget.end(), budget.left());
        self.look();
    }

    /// Returns the due time of the next arrival, or [`NEVER`].
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Whether there are no more arrivals, independent of the end of the run.
    pub(crate) fn is_spent(&self) -> bool {
        self.arrivals.peek().is_none() || self.left == Some(0)
    }

    /// Takes the next arrival, even if it is not due yet.
    pub(crate) fn next(&mut self) -> DueBatch {
        let count = self.left.map_or(self.turn, |left| left.min(self.turn));
        let taken = DueBatch {
            start: self.due,
            number: self.arrivals.number(),
            count,
        };
        self.left = self.left.map(|left| left - count);
        self.arrivals.skip(1);
        self.look();
        taken
    }

    /// Takes every arrival that has been due for longer than `late` at `now`. Calls `tell` for each block with the
    /// shortest delay in it and its number of requests.
    pub(crate) fn take_late(
        &mut self,
        late: Duration,
        now: Instant,
        mut tell: impl FnMut(Duration, u64),
    ) {
        let is_late = |due: Instant| due != NEVER && due + late < now;
        if !is_late(self.due) {
            return;
        }
        let mut about = self.turns_before(now.since(self.begin).saturating_sub(late));
        while is_late(self.due) {
            let piece = (about / BLOCKS).max(1);
            let skipped = self.skip(piece - 1);
            let DueBatch { start, count, .. } = self.next();
            tell(now.since(start), skipped + count);
            about = about.saturating_sub(piece);
        }
    }

    /// Returns the approximate number of turns before `after`.
    fn turns_before(&self, after: Duration) -> u64 {
        let turns = self.arrivals.turns_before(after);
        self.left
            .map_or(turns, |left| turns.min(left.div_ceil(self.turn)))
    }

    /// Skips up to `turns`, but leaves at least one turn to take. Returns the number of requests skipped.
    fn skip(&mut self, turns: u64) -> u64 {
        let turns = self
            .left
            .map_or(turns, |left| turns.min(left.saturating_sub(1) / self.turn));
        if turns == 0 {
            return 0;
        }
        let requests = turns * self.turn;
        self.left = self.left.map(|left| left - requests);
        self.arrivals.skip(turns);
        self.look();
        requests
    }

    fn look(&mut self) {
        let due = self
            .arrivals
            .peek()
            .map(|after| self.begin + Duration::from_nanos(after));
        let is_left = self.left != Some(0);
        let within = due.filter(|due| is_left && self.end.is_none_or(|end| *due < end));
        self.due = within.unwrap_or(NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::arrivals::{ArrivalPlan, Share, Spacing};
    use crate::pace::profile::Profile;
    use crate::pace::stop::Stop;
    use std::num::NonZeroU64;

    const BEGIN: Instant = Instant::from_nanoseconds(5_000_000_000);

    fn spaced(per_second: u64, spacing: Spacing) -> ArrivalPlan {
        ArrivalPlan::Spaced {
            profile: Profile::steady(NonZeroU64::new(per_second).expect("above 0")),
            spacing,
            seed: 3,
        }
    }

    fn backlog(plan: &ArrivalPlan, share: Share, turn: u64, stop: Stop) -> Backlog {
        let mut backlog = Backlog::new(Arrivals::new(plan, share, turn), turn);
        backlog.begin(BEGIN, stop.of_core(share, BEGIN));
        backlog
    }

    const ALONE: Share = Share {
        first: 0,
        stride: 1,
    };

    #[test]
    fn bulk_dequeue_equals_single_dequeues() {
        let after = |seconds| Stop {
            after: Some(Duration::from_secs(seconds)),
            count: None,
        };
        let count = Stop {
            after: None,
            count: Some(77_777),
        };
        let second_of_three = Share {
            first: 1,
            stride: 3,
        };
        let bursts = ArrivalPlan::Bursts {
            size: 7,
            every: Duration::from_micros(100),
        };
        let listed: Vec<u64> = (0..50_000).map(|number| number * 20_000).collect();
        for plan in [
            spaced(100_000, Spacing::Even),
            spaced(100_000, Spacing::Jittered),
            bursts,
            ArrivalPlan::Listed(listed.into()),
        ] {
            for (share, turn, stop) in [
                (ALONE, 1, after(1)),
                (second_of_three, 4, after(1)),
                (ALONE, 5, count),
            ] {
                let now = BEGIN + Duration::from_millis(990);
                let late = Duration::from_millis(10);
                let mut single = backlog(&plan, share, turn, stop);
                let mut expected = 0;
                while single.due() != NEVER && single.due() + late < now {
                    expected += single.next().count;
                }
                let mut taken = backlog(&plan, share, turn, stop);
                let (mut requests, mut steps, mut before) = (0, 0, Duration::MAX);
                taken.take_late(late, now, |wait, count| {
                    assert!(wait > late && wait <= before, "{plan:?}");
                    before = wait;
                    requests += count;
                    steps += 1;
                });
                assert_eq!(requests, expected, "{share:?} {turn}");
                assert_eq!((taken.due(), taken.left), (single.due(), single.left));
                assert!(requests < 20_000 || steps < requests / turn, "{steps}");
            }
        }
    }

    #[test]
    fn bulk_dequeue_of_exponential_arrivals_uses_mean_gap() {
        let mut taken = backlog(
            &spaced(1_000_000, Spacing::Exponential),
            ALONE,
            1,
            Stop::default(),
        );
        let mut requests = 0;
        let now = BEGIN + Duration::from_secs(10);
        taken.take_late(Duration::ZERO, now, |_, count| requests += count);
        assert!(requests.abs_diff(10_000_000) < 1000, "{requests}");
        assert!(taken.due() >= now);
    }

    #[test]
    fn bulk_take_has_few_steps() {
        let plan = spaced(1_000_000_000, Spacing::Even);
        let mut taken = backlog(&plan, ALONE, 1, Stop::default());
        let (mut requests, mut steps) = (0, 0);
        let now = BEGIN + Duration::from_secs(10);
        taken.take_late(Duration::ZERO, now, |_, count| {
            requests += count;
            steps += 1;
        });
        assert_eq!(requests, 10_000_000_000);
        assert!(steps < 30_000, "{steps}");
    }
}
