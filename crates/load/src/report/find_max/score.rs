//! Results of the trials at one rate.

use super::TrialOutcome;
use crate::limits::{FIND_CONFIRM_MAX, FIND_TRIALS_PER_RATE};

/// A rate is confirmed if the probability of this many passes by chance, each with probability 1/2, is at most this.
pub(super) const P_VALUE_MAX: f64 = 0.05;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Score {
    pub(super) rate: u64,
    pub(super) held: u32,
    pub(super) trials: u32,
    /// Trials that failed because the target did not keep up.
    pub(super) not_kept: u32,
    /// Undecided trials because of requests without a response, and because of too few responses.
    pub(super) undecided: u32,
    pub(super) too_short: u32,
    /// Whether the generator was the limit in any trial.
    pub(super) is_generator_limited: bool,
}

impl Score {
    pub(super) fn new(rate: u64) -> Score {
        Score {
            rate,
            held: 0,
            trials: 0,
            not_kept: 0,
            undecided: 0,
            too_short: 0,
            is_generator_limited: false,
        }
    }

    pub(super) fn add(&mut self, held: TrialOutcome) {
        self.trials += 1;
        match held {
            TrialOutcome::Yes => self.held += 1,
            TrialOutcome::No => {}
            TrialOutcome::RateNotKept => self.not_kept += 1,
            TrialOutcome::GeneratorLimit => self.is_generator_limited = true,
            TrialOutcome::Undecided => self.undecided += 1,
            TrialOutcome::TooShort => self.too_short += 1,
        }
    }

    /// Whether `count` is more than half of the failed trials.
    pub(super) fn is_mostly(&self, count: u32) -> bool {
        2 * count > self.trials - self.held
    }

    /// Whether the condition holds by two of three trials; `None` before that. A rate not confirmed in time counts as
    /// failed.
    pub(super) fn majority(self) -> Option<bool> {
        let majority = FIND_TRIALS_PER_RATE / 2 + 1;
        let is_unconfirmed = self.trials >= FIND_CONFIRM_MAX && self.p_value() > P_VALUE_MAX;
        if self.is_generator_limited || is_unconfirmed {
            return Some(false);
        }
        let failed = self.trials - self.held;
        match self.held.cmp(&failed) {
            _ if self.held.max(failed) < majority => None,
            std::cmp::Ordering::Greater => Some(true),
            std::cmp::Ordering::Equal | std::cmp::Ordering::Less => Some(false),
        }
    }

    /// Probability of at least this many passes if each trial passed with probability 1/2.
    pub(super) fn p_value(self) -> f64 {
        upper_tail(self.trials, self.held)
    }
}

/// P(B >= `least`) for B ~ Bin(`count`, 1/2).
fn upper_tail(count: u32, least: u32) -> f64 {
    let mut ways = 1.0;
    let mut sum = 0.0;
    for outcome in 0..=count {
        if outcome >= least {
            sum += ways;
        }
        ways *= f64::from(count - outcome) / f64::from(outcome + 1);
    }
    sum / 2_f64.powi(count as i32)
}
