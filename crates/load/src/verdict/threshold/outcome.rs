//! Result of judging a condition.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Result of judging a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThresholdOutcome {
    /// The condition does not hold.
    Passed,
    /// The condition holds, so the run fails.
    Failed,
    /// The run has too few values to decide; this is not a pass.
    Undecided,
}

/// A condition and its result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JudgedThreshold {
    /// The condition as given.
    pub condition: String,
    /// Result.
    pub fate: ThresholdOutcome,
    /// Measured value with its unit, or the reason why it is undecided.
    pub measured: String,
}

impl fmt::Display for JudgedThreshold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            ThresholdOutcome::Passed => "passed",
            ThresholdOutcome::Failed => "FAILED",
            ThresholdOutcome::Undecided => "UNDECIDED",
        };
        write!(out, "fail if {}: {fate}: {}", self.condition, self.measured)
    }
}
