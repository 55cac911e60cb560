//! What is judged of trials: whether figures stand, and what was full.

use onrush_measure::compare::Rounds;
use serde::{Deserialize, Serialize};

use crate::scenario::{Bound, Role};

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The median reached the target.
    Reached,
    /// It did not.
    Missed,
    /// Measured; there is no target.
    Measured,
    /// No round gave a number for both sides.
    NotMeasured,
    /// Too many rounds were invalid.
    Invalid,
}

/// What limited a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limiter {
    /// The kind, for programs.
    pub kind: LimiterKind,
    /// The CPUs that were full.
    pub cpus: Vec<usize>,
    /// The roles that filled them, the largest first.
    pub roles: Vec<Role>,
    /// For people.
    pub sentence: String,
    /// A change to try, where what was full says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The kinds of limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimiterKind {
    /// Nothing is known.
    #[default]
    Unknown,
    /// CPUs of some role were full.
    Cpu,
    /// The hypervisor took the CPUs away.
    Steal,
    /// Programs that are not part of the experiment filled a role's CPU.
    Others,
    /// The client was told a rate and kept it.
    Rate,
    /// No CPU was full: the time went into waiting.
    Waiting,
}

/// An interval that holds a median with a probability (sign test; see `onrush_measure::compare`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The probability, 0 to 1.
    pub confidence: f64,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureLine {
    /// `server.cpu_us_per_request`.
    pub metric: String,
    /// In words.
    pub title: String,
    /// Of the numbers, not of the ratio.
    pub unit: String,
    /// The variant that is judged.
    pub ours: String,
    /// The variant it is divided by.
    pub theirs: Option<String>,
    /// The judged variant's numbers.
    pub ours_value: Option<Rounds>,
    /// The other's.
    pub theirs_value: Option<Rounds>,
    /// Ratio round by round, or the number itself where there is nothing to divide by.
    pub value: Option<Rounds>,
    /// Where the median of all rounds one could run lies.
    pub interval: Option<Interval>,
    /// The target.
    pub target: Option<Bound>,
    /// Whether other programs disturbed half of the rounds or more; without a target the numbers are shown all the same.
    pub is_disturbed: bool,
    /// Reached or not.
    pub verdict: Verdict,
    /// Rounds left out and why.
    pub notes: Vec<String>,
}
