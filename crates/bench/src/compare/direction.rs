//! Whether higher or lower values of a metric are better.

use serde::Serialize;

use crate::scenario::Metric;

/// The direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Higher is better.
    Up,
    /// Lower is better.
    Down,
}

impl Direction {
    /// Direction of a metric.
    pub fn of(metric: &Metric) -> Direction {
        match metric.is_better_high() {
            true => Direction::Up,
            false => Direction::Down,
        }
    }

    /// Whether a change by the factor `ratio` is for the worse.
    pub fn is_worse(self, ratio: f64) -> bool {
        match self {
            Direction::Up => ratio < 1.0,
            Direction::Down => ratio > 1.0,
        }
    }
}
