//! Verdicts on trials and figures, and bottlenecks.

use onrush_measure::compare::Rounds;
use serde::{Deserialize, Serialize};

use crate::scenario::{Bound, Role};

/// Verdict on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The median reached the target.
    Reached,
    /// The median missed the target.
    Missed,
    /// Measured without a target.
    Measured,
    /// No round has values for both sides.
    NotMeasured,
    /// Too many rounds were invalid.
    Invalid,
}

/// Bottleneck of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// Kind of bottleneck.
    pub kind: BottleneckKind,
    /// The saturated CPUs.
    pub cpus: Vec<usize>,
    /// The roles that used them, highest use first.
    pub roles: Vec<Role>,
    /// Description as a sentence.
    pub sentence: String,
    /// Suggested change, if the bottleneck suggests one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Kinds of bottlenecks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BottleneckKind {
    /// Not known.
    #[default]
    Unknown,
    /// CPUs of a role were saturated.
    Cpu,
    /// The hypervisor used the CPUs for other guests.
    Steal,
    /// Programs outside the experiment used a role's CPU.
    Others,
    /// The client was told a rate and reached it.
    Rate,
    /// No CPU was saturated: requests were waiting.
    Waiting,
}

/// Confidence interval of a median (sign test; see `onrush_measure::compare`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Confidence, 0 to 1.
    pub confidence: f64,
}

/// One line of the results table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureLine {
    /// Name of the metric, such as `server.cpu_us_per_request`.
    pub metric: String,
    /// Title for readers.
    pub title: String,
    /// Unit of the values, not of the ratio.
    pub unit: String,
    /// The variant that is judged.
    pub ours: String,
    /// The variant it is compared with.
    pub theirs: Option<String>,
    /// Values of the judged variant.
    pub ours_value: Option<Rounds>,
    /// Values of the other variant.
    pub theirs_value: Option<Rounds>,
    /// Ratio round by round, or the value itself without another variant.
    pub value: Option<Rounds>,
    /// Confidence interval of the median.
    pub interval: Option<Interval>,
    /// The target.
    pub target: Option<Bound>,
    /// Whether other programs disturbed half of the rounds or more. Without a target the values are shown nevertheless.
    pub is_disturbed: bool,
    /// Verdict.
    pub verdict: Verdict,
    /// Excluded rounds and reasons.
    pub notes: Vec<String>,
}
