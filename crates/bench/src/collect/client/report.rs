//! What a client says it measured, whichever client it is. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::outcome::{Latency, PercentileValue, Second};

/// What a client counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientReport {
    /// Responses received.
    pub requests: u64,
    /// Requests that failed, responses with a status other than 2xx and 3xx among them.
    pub errors: u64,
    /// By the client's clock.
    pub duration_s: f64,
    /// By the client's clock.
    pub rps: f64,
    /// Bytes received.
    pub bytes_per_s: f64,
    /// Absent when the client reports none.
    pub latency: Option<Latency>,
    /// Absent when the client reports none.
    pub seconds: Vec<Second>,
    /// What the client itself found wrong.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct LatencyJson {
    pub(super) mean: Option<f64>,
    pub(super) max: Option<f64>,
    #[serde(default)]
    pub(super) percentiles: BTreeMap<String, Option<f64>>,
}

pub(super) fn latency(json: LatencyJson) -> Option<Latency> {
    let mut percentiles: Vec<(f64, PercentileValue)> = json
        .percentiles
        .into_iter()
        .filter_map(|(percentile, us)| {
            let number: f64 = percentile.parse().ok()?;
            Some((
                number,
                PercentileValue {
                    percentile,
                    us: us?,
                },
            ))
        })
        .collect();
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(Latency {
        mean: json.mean?,
        max: json.max?,
        percentiles: percentiles.into_iter().map(|(_, value)| value).collect(),
    })
}
