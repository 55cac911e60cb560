//! Whether more of a metric is better.

use serde::Serialize;

use crate::scenario::Metric;

/// Which way a metric should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Up,
    /// Less is better.
    Down,
}

impl Direction {
    /// Of a metric.
    pub fn of(metric: &Metric) -> Direction {
        match metric.is_better_high() {
            true => Direction::Up,
            false => Direction::Down,
        }
    }

    /// Whether a figure that became `ratio` times what it was became worse.
    pub fn is_worse(self, ratio: f64) -> bool {
        match self {
            Direction::Up => ratio < 1.0,
            Direction::Down => ratio > 1.0,
        }
    }
}
