//! Options of a history.

use crate::limits::MIN_EFFECT_DEFAULT;

/// Options of a history.
#[derive(Debug, Clone)]
pub struct Options {
    /// Smallest relevant change: 0.02 is 2 %.
    pub min_effect: f64,
    /// Required confidence of a change.
    pub confidence: f64,
    /// Only series whose name, `experiment / work / variant / metric`, contains one of these; all if empty.
    pub only: Vec<String>,
    /// Changes before this date, such as `2026-11-21`, are known and do not affect the result.
    pub since: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            min_effect: MIN_EFFECT_DEFAULT,
            // High, because a history is inspected often and has many series.
            confidence: 0.99,
            only: Vec::new(),
            since: None,
        }
    }
}
