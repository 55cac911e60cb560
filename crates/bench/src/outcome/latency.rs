//! Latencies of a trial, as reported by its client.

use serde::{Deserialize, Serialize};

use crate::scenario::LatencyFrom;

/// Latencies reported by a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The moment from which the client measures.
    #[serde(default)]
    pub from: LatencyFrom,
    /// Arithmetic mean, if reported.
    pub mean: Option<f64>,
    /// Maximum, if reported.
    pub max: Option<f64>,
    /// Percentiles in ascending order.
    pub percentiles: Vec<PercentileValue>,
}

impl Latency {
    /// Value of a percentile, by its name.
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
    /// As the client wrote it, without trailing zeros: `99.9`.
    pub percentile: String,
    /// Value in microseconds.
    pub us: f64,
}
