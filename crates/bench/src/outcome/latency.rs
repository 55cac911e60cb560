//! Latencies of a trial, as its client reports them.

use serde::{Deserialize, Serialize};

use crate::scenario::LatencyFrom;

/// Latency as a client reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The moment from which the client counts.
    #[serde(default)]
    pub from: LatencyFrom,
    /// Arithmetic mean, where the client gives it.
    pub mean: Option<f64>,
    /// The largest, where the client gives it.
    pub max: Option<f64>,
    /// By percentile, ascending.
    pub percentiles: Vec<PercentileValue>,
}

impl Latency {
    /// The value at a percentile, by the text of its key.
    pub fn at(&self, percentile: &str) -> Option<f64> {
        self.percentiles
            .iter()
            .find(|value| value.percentile == percentile)
            .map(|value| value.us)
    }
}

/// One point of a latency curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PercentileValue {
    /// As the client wrote it, without zeros at the end: `99.9`.
    pub percentile: String,
    /// Microseconds.
    pub us: f64,
}
