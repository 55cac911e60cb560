//! The file of `onrush load --json` (`docs/load-result.schema.json`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::report::{ClientReport, is_good_status, latency, status_warnings, sum};
use super::words::json;
use crate::outcome::Second;

/// The parts of the schema that are used here; others are ignored, since keys are only added.
#[derive(Deserialize)]
struct Json {
    requests: u64,
    errors: u64,
    duration_s: f64,
    rps: f64,
    bytes_per_s: Option<f64>,
    #[serde(default)]
    statuses: BTreeMap<String, u64>,
    latency_us: Option<LatencyJson>,
    #[serde(default)]
    seconds: Vec<SecondJson>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct LatencyJson {
    mean: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    percentiles: BTreeMap<String, Option<f64>>,
}

#[derive(Deserialize)]
struct SecondJson {
    t: f64,
    rps: f64,
    #[serde(default)]
    errors: u64,
}

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let json: Json = json(text)?;
    let bad = json
        .statuses
        .iter()
        .filter(|(status, _)| !is_good_status(status));
    let errors = sum([json.errors]
        .into_iter()
        .chain(bad.map(|(_, count)| *count)));
    let mut warnings = json.warnings;
    warnings.extend(status_warnings(&json.statuses));
    let rows = json.seconds.iter().map(|row| Second {
        t: row.t,
        rps: row.rps,
        errors: row.errors,
    });
    Ok(ClientReport {
        requests: json.requests,
        errors,
        duration_s: json.duration_s,
        rps: json.rps,
        bytes_per_s: json.bytes_per_s,
        latency: json.latency_us.and_then(|found| {
            let percentiles = found.percentiles.into_iter();
            let percentiles = percentiles.filter_map(|(name, us)| Some((name, us?)));
            latency(found.mean, found.max, percentiles)
        }),
        seconds: rows.collect(),
        warnings,
        ..ClientReport::default()
    })
}
