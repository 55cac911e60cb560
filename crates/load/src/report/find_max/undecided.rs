//! Trials that could not decide whether the condition holds; they count as trials in which it did not.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Trial, TrialOutcome};

/// Undecided trials at one rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct UndecidedTrials {
    /// Requested rate, per second.
    pub rate: u64,
    /// Undecided trials, at least 1.
    pub trials: u32,
}

/// Returns the rates with undecided trials, lowest first.
pub fn of(trials: &[Trial]) -> Vec<UndecidedTrials> {
    let mut by_rate: BTreeMap<u64, u32> = BTreeMap::new();
    for trial in trials {
        match trial.held {
            TrialOutcome::Undecided | TrialOutcome::TooShort => {
                *by_rate.entry(trial.rate).or_default() += 1
            }
            TrialOutcome::Yes
            | TrialOutcome::No
            | TrialOutcome::RateNotKept
            | TrialOutcome::GeneratorLimit => {}
        }
    }
    let rates = by_rate.into_iter();
    rates
        .map(|(rate, trials)| UndecidedTrials { rate, trials })
        .collect()
}
