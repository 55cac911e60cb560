//! The JSON of oha.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::report::{ClientReport, LatencyJson, latency};

/// What oha writes with `--output-format json`, as far as it is used here; its times are in seconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OhaJson {
    summary: OhaSummary,
    #[serde(default)]
    latency_percentiles: BTreeMap<String, Option<f64>>,
    status_code_distribution: BTreeMap<String, u64>,
    #[serde(default)]
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OhaSummary {
    total: f64,
    total_data: f64,
    average: Option<f64>,
    slowest: Option<f64>,
}

/// What oha calls the requests in flight when its time was over.
const OHA_IN_FLIGHT: &str = "aborted due to deadline";

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    // Something may stand before it.
    let begin = text.find('{').unwrap_or(0);
    let mut values = serde_json::Deserializer::from_str(&text[begin..]).into_iter();
    let json: OhaJson = match values.next() {
        Some(value) => value.map_err(|error| format!("the output of oha: {error}"))?,
        None => return Err("oha printed nothing".to_owned()),
    };
    let statuses = json.status_code_distribution.iter();
    let bad_statuses: u64 = statuses
        .filter(|(status, _)| !status.starts_with(['2', '3']))
        .map(|(_, count)| count)
        .sum();
    let errors = json.error_distribution.iter();
    let errors: u64 = errors
        .filter(|(what, _)| *what != OHA_IN_FLIGHT)
        .map(|(_, count)| count)
        .sum();
    let requests: u64 = json.status_code_distribution.values().sum();
    let seconds = json.summary.total.max(1e-9);
    let percentiles = json.latency_percentiles.into_iter().map(|(name, seconds)| {
        let percentile = name.trim_start_matches('p').to_owned();
        (percentile, seconds.map(|seconds| seconds * 1e6))
    });
    Ok(ClientReport {
        requests,
        errors: errors + bad_statuses,
        duration_s: json.summary.total,
        rps: requests as f64 / seconds,
        bytes_per_s: json.summary.total_data / seconds,
        latency: latency(LatencyJson {
            mean: json.summary.average.map(|seconds| seconds * 1e6),
            max: json.summary.slowest.map(|seconds| seconds * 1e6),
            percentiles: percentiles.collect(),
        }),
        ..ClientReport::default()
    })
}
