//! How the trials at one rate went.

use super::Held;
use crate::limits::{FIND_CONFIRM_MAX, FIND_TRIALS_PER_RATE};

/// How a rate is confirmed: the probability of as many trials holding by chance, if it held only half of the time.
pub(super) const DOUBT_MAX: f64 = 0.05;

/// How the trials at one rate went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Score {
    pub(super) rate: u64,
    pub(super) held: u32,
    pub(super) trials: u32,
    /// How many failed because the target did not keep up.
    pub(super) not_kept: u32,
    /// How many could not tell, and how many of others for want of responses.
    pub(super) undecided: u32,
    pub(super) too_short: u32,
    /// Whether the generator was the limit in any of them.
    pub(super) is_generators: bool,
}

impl Score {
    /// That of a rate without a trial.
    pub(super) fn new(rate: u64) -> Score {
        Score {
            rate,
            held: 0,
            trials: 0,
            not_kept: 0,
            undecided: 0,
            too_short: 0,
            is_generators: false,
        }
    }

    /// One more trial came to this.
    pub(super) fn add(&mut self, held: Held) {
        self.trials += 1;
        match held {
            Held::Yes => self.held += 1,
            Held::No => {}
            Held::RateNotKept => self.not_kept += 1,
            Held::GeneratorLimit => self.is_generators = true,
            Held::Undecided => self.undecided += 1,
            Held::TooShort => self.too_short += 1,
        }
    }

    /// Whether so many are most of the trials that failed.
    pub(super) fn is_mostly(&self, count: u32) -> bool {
        2 * count > self.trials - self.held
    }

    /// Whether it holds, as far as two of three trials say; none before they do. A rate that many trials could not
    /// confirm does not.
    pub(super) fn leaning(self) -> Option<bool> {
        let majority = FIND_TRIALS_PER_RATE / 2 + 1;
        let is_unconfirmed = self.trials >= FIND_CONFIRM_MAX && self.doubt() > DOUBT_MAX;
        if self.is_generators || is_unconfirmed {
            return Some(false);
        }
        let failed = self.trials - self.held;
        match self.held.cmp(&failed) {
            _ if self.held.max(failed) < majority => None,
            std::cmp::Ordering::Greater => Some(true),
            std::cmp::Ordering::Equal | std::cmp::Ordering::Less => Some(false),
        }
    }

    /// The probability of at least this many holding were each as likely to fail.
    pub(super) fn doubt(self) -> f64 {
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
