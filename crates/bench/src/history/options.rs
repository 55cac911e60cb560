//! What a history is asked for.

use crate::limits::SMALLEST_DEFAULT;

/// What is asked of a history.
#[derive(Debug, Clone)]
pub struct Options {
    /// The smallest change that matters: 0.02 is 2 %.
    pub smallest: f64,
    /// How surely a change has to be one.
    pub confidence: f64,
    /// Only series whose name, `experiment / work / variant / metric`, holds one of these; all where there are none.
    pub only: Vec<String>,
    /// Changes before this day, `2026-11-21`, are known, and no news.
    pub since: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            smallest: SMALLEST_DEFAULT,
            // A history is looked at often, and has many series.
            confidence: 0.99,
            only: Vec::new(),
            since: None,
        }
    }
}
