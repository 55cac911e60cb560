//! Judges whether a run is valid, from its evidence. Pure.
//!
//! A run is invalid if its figures are wrong, and suspect if they may mean something else than they seem to. Each reason
//! is a function of `generator.rs` or `responses.rs` with its limits in `limits.rs`, and decides which of the two the run is.

pub mod threshold;

pub mod reason;

mod generator;
mod responses;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::evidence::Evidence;
use generator::{
    connections, cpu, fairness, own, ports, rate, retransmits, run_delay, stalls, start, steal,
    throttling,
};
use reason::{Reason, State};
use responses::{
    counts, failed_responses, failures, false_responses, measured, no_response, resent, silence,
    unaccepted, unanswered, unasked, unexpected,
};

/// Verdict on a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// State of the worst reason; valid without any.
    pub state: State,
    /// Reasons against the run, worst first.
    pub reasons: Vec<Reason>,
}

/// The state, then a line for each reason; each line ends with a line feed.
impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "verdict      {}", self.state)?;
        self.reasons
            .iter()
            .try_for_each(|reason| writeln!(out, "  {:<8} {reason}", reason.state))
    }
}

impl Verdict {
    /// Judges a run by its evidence.
    pub fn of(evidence: &Evidence) -> Verdict {
        let found = [
            counts(evidence),
            no_response(evidence),
            measured(evidence),
            silence(evidence),
            failures(evidence),
            unasked(evidence),
            false_responses(evidence),
            failed_responses(evidence),
            unaccepted(evidence),
            unexpected(evidence),
            unanswered(evidence),
            resent(evidence),
            start(evidence),
            cpu(evidence),
            rate(evidence),
            own(evidence),
            stalls(evidence),
            run_delay(evidence),
            connections(evidence),
            ports(evidence),
            fairness(evidence),
            steal(evidence),
            throttling(evidence),
            retransmits(evidence),
        ];
        Verdict::from(found.into_iter().flatten().collect())
    }

    /// Returns the verdict with these reasons.
    pub fn from(mut reasons: Vec<Reason>) -> Verdict {
        // Stable: reasons of one state keep the order of the checks.
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.state));
        Verdict {
            state: reasons
                .first()
                .map(|reason| reason.state)
                .unwrap_or_default(),
            reasons,
        }
    }
}

#[cfg(test)]
mod tests;
