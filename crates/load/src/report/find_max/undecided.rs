//! Trials that could not tell whether the condition holds, which count as trials in which it did not.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Held, Trial};

/// How many trials of a rate could not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Undecided {
    /// Requests per second asked for.
    pub rate: u64,
    /// Trials, 1 at least.
    pub trials: u32,
}

/// The rates of those among `trials`, lowest first.
pub fn of(trials: &[Trial]) -> Vec<Undecided> {
    let mut by_rate: BTreeMap<u64, u32> = BTreeMap::new();
    for trial in trials {
        match trial.held {
            Held::Undecided | Held::TooShort => *by_rate.entry(trial.rate).or_default() += 1,
            Held::Yes | Held::No | Held::RateNotKept | Held::GeneratorLimit => {}
        }
    }
    let rates = by_rate.into_iter();
    rates
        .map(|(rate, trials)| Undecided { rate, trials })
        .collect()
}
