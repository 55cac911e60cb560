//! When a run ends. Pure: decides from a state and the current time.

use std::ops::AddAssign;
use std::time::Duration;

use onrush_engine::Instant;

use crate::limits::{TARGET_LOST_AFTER, UNREACHABLE_AFTER};
use crate::pace::arrivals::Share;

/// Limits of a run; the first one reached ends it. Without any, it runs until the user interrupts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stop {
    /// Duration.
    pub after: Option<Duration>,
    /// Requests over all connections.
    pub count: Option<u64>,
}

impl Stop {
    /// Returns the budget of a core with `share` of the run, from `begin` on.
    pub fn of_core(&self, share: Share, begin: Instant) -> Budget {
        Budget {
            end: self.after.map(|after| begin + after),
            left: self.count.map(|count| share.count_of(count)),
        }
    }
}

/// Requests that one core may still start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// No request is started from then on.
    end: Option<Instant>,
    /// `None`: unlimited.
    left: Option<u64>,
}

impl Budget {
    /// Takes up to `wanted` requests to start now. Returns 0 when the run is over.
    pub fn take(&mut self, now: Instant, wanted: u64) -> u64 {
        if self.is_over(now) {
            return 0;
        }
        let Some(left) = &mut self.left else {
            return wanted;
        };
        let granted = wanted.min(*left);
        *left -= granted;
        granted
    }

    /// Whether the end time has passed.
    pub fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    /// Whether all requests of the count have been taken.
    pub fn is_spent(&self) -> bool {
        self.left == Some(0)
    }

    /// Returns how many requests may still start; `None` if unlimited.
    pub fn left(&self) -> Option<u64> {
        self.left
    }

    /// Returns the end time of the run.
    pub fn end(&self) -> Option<Instant> {
        self.end
    }
}

/// Whether a run can still succeed; checked once a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunHealth {
    /// Responses may still arrive.
    Hopeful,
    /// No connection was ever established.
    Unreachable,
    /// Connections were established, but for a long time every attempt has failed.
    Lost,
}

/// Totals of a run that show whether it can still succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Connections established.
    pub established: u64,
    /// Failed connection attempts.
    pub connect_failures: u64,
    /// Responses received.
    pub responses: u64,
}

impl AddAssign for Progress {
    fn add_assign(&mut self, other: Progress) {
        self.established += other.established;
        self.connect_failures += other.connect_failures;
        self.responses += other.responses;
    }
}

/// Checks once a second whether a run can still succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StallDetector {
    last: Progress,
    /// Time of the last progress, since the start.
    last_progress: Duration,
}

impl StallDetector {
    /// Returns the state at `elapsed` since the start.
    pub fn judge(&mut self, now: Progress, elapsed: Duration) -> RunHealth {
        let moved = now.established > self.last.established || now.responses > self.last.responses;
        let failing = now.connect_failures > self.last.connect_failures;
        if moved || !failing {
            self.last_progress = elapsed;
        }
        self.last = now;
        if now.established == 0 && now.connect_failures > 0 && elapsed >= UNREACHABLE_AFTER {
            return RunHealth::Unreachable;
        }
        if elapsed.saturating_sub(self.last_progress) >= TARGET_LOST_AFTER {
            return RunHealth::Lost;
        }
        RunHealth::Hopeful
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Share = Share {
        first: 0,
        stride: 1,
    };

    const fn at(seconds: u64) -> Instant {
        Instant::from_nanoseconds(seconds * 1_000_000_000)
    }

    fn progress(established: u64, connect_failures: u64, responses: u64) -> Progress {
        Progress {
            established,
            connect_failures,
            responses,
        }
    }

    #[test]
    fn request_budget_ends_at_count() {
        let stop = Stop {
            after: None,
            count: Some(10),
        };
        let mut budget = stop.of_core(ALONE, at(0));
        assert_eq!(
            [4, 4, 4, 4].map(|wanted| budget.take(at(1), wanted)),
            [4, 4, 2, 0]
        );
        assert!(budget.is_spent());
    }

    #[test]
    fn request_budget_is_empty_after_end_time() {
        let stop = Stop {
            after: Some(Duration::from_secs(2)),
            count: None,
        };
        let mut budget = stop.of_core(ALONE, at(1));
        assert_eq!(budget.take(Instant::from_nanoseconds(2_999_999_999), 1), 1);
        assert_eq!(budget.take(at(3), 1), 0);
    }

    #[test]
    fn run_ends_at_count_or_time() {
        let stop = Stop {
            after: Some(Duration::from_secs(2)),
            count: Some(1),
        };
        let mut budget = stop.of_core(ALONE, at(0));
        assert_eq!(budget.take(at(1), 1), 1);
        assert_eq!(budget.take(at(1), 1), 0);
        assert_eq!(stop.of_core(ALONE, at(0)).take(at(2), 1), 0);
    }

    #[test]
    fn refusing_target_is_unreachable_after_one_second() {
        let mut patience = StallDetector::default();
        let refused = progress(0, 50, 0);
        assert_eq!(
            patience.judge(refused, Duration::from_millis(900)),
            RunHealth::Hopeful
        );
        assert_eq!(
            patience.judge(refused, UNREACHABLE_AFTER),
            RunHealth::Unreachable
        );
    }

    #[test]
    fn silent_target_is_not_given_up() {
        let mut patience = StallDetector::default();
        for second in 1..60 {
            let prospect = patience.judge(progress(0, 0, 0), Duration::from_secs(second));
            assert_eq!(prospect, RunHealth::Hopeful);
        }
    }

    #[test]
    fn vanished_target_is_given_up() {
        let mut patience = StallDetector::default();
        assert_eq!(
            patience.judge(progress(5, 0, 100), Duration::from_secs(1)),
            RunHealth::Hopeful
        );
        let mut given_up = None;
        for second in 2..60 {
            if patience.judge(progress(5, second * 9, 100), Duration::from_secs(second))
                == RunHealth::Lost
            {
                given_up = Some(Duration::from_secs(second));
                break;
            }
        }
        assert_eq!(given_up, Some(TARGET_LOST_AFTER + Duration::from_secs(1)));
    }

    #[test]
    fn slow_response_is_not_a_lost_target() {
        let mut patience = StallDetector::default();
        for second in 1..60 {
            let prospect = patience.judge(progress(1, 0, 0), Duration::from_secs(second));
            assert_eq!(prospect, RunHealth::Hopeful);
        }
    }
}
