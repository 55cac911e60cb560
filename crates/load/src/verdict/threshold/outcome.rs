//! What became of a condition.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What became of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// The condition does not hold.
    Passed,
    /// It holds: the run fails.
    Failed,
    /// The run was too small to say, which is no pass.
    Undecided,
}

/// A condition and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// As it was written.
    pub condition: String,
    /// What became of it.
    pub fate: Fate,
    /// What was measured, with its unit, or why nothing can be said.
    pub measured: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::Passed => "passed",
            Fate::Failed => "FAILED",
            Fate::Undecided => "UNDECIDED",
        };
        write!(out, "fail if {}: {fate}: {}", self.condition, self.measured)
    }
}
