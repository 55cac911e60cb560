//! Limit of the retries of a group. Pure.

use std::ops::{AddAssign, SubAssign};

use onrush_engine::Instant;

use super::window::Window;
use crate::limits::{RETRIES_MIN, RETRY_WINDOW};

/// Limits retries to a share of the recent requests, plus a small constant for groups with little traffic. Retries are
/// useful when few requests fail; when many do, the servers are overloaded, and retries multiply the load and keep the
/// group down. Like Finagle's `RetryBudget`, but with a sliding window.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    /// Percentage of the requests in the window; retries do not count as requests.
    share_percent: u32,
    /// Retries per window that are granted regardless of the traffic.
    retries_min: u32,
    counts: Window<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    retries: u64,
}

impl RetryBudget {
    /// Each core has a budget; together they keep the share. A share of 0 disables retries.
    pub(crate) fn new(share_percent: u8) -> Self {
        Self {
            share_percent: u32::from(share_percent),
            retries_min: if share_percent == 0 { 0 } else { RETRIES_MIN },
            counts: Window::new(RETRY_WINDOW),
        }
    }

    /// A budget with the same counts and another share.
    pub(crate) fn with_share(&self, share_percent: u8) -> Self {
        Self {
            counts: self.counts.clone(),
            ..Self::new(share_percent)
        }
    }

    /// Counts the first attempt of a request.
    pub(crate) fn count_request(&mut self, now: Instant) {
        let request = Counts {
            requests: 1,
            retries: 0,
        };
        self.counts.add(request, now);
    }

    /// Whether a retry is granted; if so, counts it.
    pub(crate) fn try_retry(&mut self, now: Instant) -> bool {
        let Counts { requests, retries } = self.counts.sum(now);
        let granted = requests * u64::from(self.share_percent) / 100 + u64::from(self.retries_min);
        if retries >= granted {
            return false;
        }
        let retry = Counts {
            requests: 0,
            retries: 1,
        };
        self.counts.add(retry, now);
        true
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.requests += other.requests;
        self.retries += other.retries;
    }
}

impl SubAssign for Counts {
    fn sub_assign(&mut self, other: Counts) {
        self.requests -= other.requests;
        self.retries -= other.retries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanoseconds(milliseconds * 1_000_000)
    }

    /// Number of granted retries when `requests`, one per millisecond, all fail and want `attempts_max` attempts.
    fn granted(budget: &mut RetryBudget, requests: u64, attempts_max: u32) -> u32 {
        let mut granted = 0;
        for request in 0..requests {
            budget.count_request(at(request));
            for _ in 1..attempts_max {
                granted += u32::from(budget.try_retry(at(request)));
            }
        }
        granted
    }

    #[test]
    fn retries_are_limited_to_share() {
        for attempts_max in [2, 3, 10] {
            // Less than a window, so all requests count.
            let granted = granted(&mut RetryBudget::new(20), 9_000, attempts_max);
            assert_eq!(granted, 1_800 + RETRIES_MIN, "with {attempts_max} attempts");
        }
    }

    #[test]
    fn retry_share_holds_over_time() {
        let granted = granted(&mut RetryBudget::new(20), 200_000, 3);
        // The window covers nine to ten slices.
        assert!((36_000..=44_000).contains(&granted), "{granted}");
    }

    #[test]
    fn idle_group_has_minimum_retries() {
        let mut budget = RetryBudget::new(20);
        budget.count_request(at(0));
        let granted = (0..100).filter(|_| budget.try_retry(at(0)));
        assert_eq!(granted.count(), RETRIES_MIN as usize);
        assert!(!budget.try_retry(at(5_000)));
        assert!(budget.try_retry(at(10_000)), "a window later it may again");
    }

    #[test]
    fn counts_survive_share_change() {
        let mut before = RetryBudget::new(20);
        assert_eq!(granted(&mut before, 1_000, 2), 200 + RETRIES_MIN);
        let mut after = before.with_share(50);
        let granted = (0..1_000).filter(|_| after.try_retry(at(1_000)));
        assert_eq!(granted.count(), 300);
    }

    #[test]
    fn zero_share_disables_retries() {
        let mut budget = RetryBudget::new(0);
        (0..1000).for_each(|_| budget.count_request(at(0)));
        assert!(!budget.try_retry(at(0)));
    }
}
