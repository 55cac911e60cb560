//! The file of `onrush load --json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::report::{ClientReport, LatencyJson, latency};
use crate::outcome::Second;

/// The parts of `docs/load-result.schema.json` that are used here; others are ignored, since keys are only added.
#[derive(Deserialize)]
struct LoadJson {
    requests: u64,
    errors: u64,
    duration_s: f64,
    rps: f64,
    #[serde(default)]
    bytes_per_s: f64,
    #[serde(default)]
    statuses: BTreeMap<String, u64>,
    latency_us: Option<LatencyJson>,
    #[serde(default)]
    seconds: Vec<SecondJson>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct SecondJson {
    t: f64,
    rps: f64,
    #[serde(default)]
    errors: u64,
}

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let json: LoadJson = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let unwanted = |(status, count): (&String, &u64)| {
        let is_good = status.starts_with('2') || status.starts_with('3');
        if is_good { 0 } else { *count }
    };
    let bad_statuses: u64 = json.statuses.iter().map(unwanted).sum();
    let mut warnings = json.warnings;
    for status in json.statuses.iter().filter(|status| unwanted(*status) > 0) {
        let count = onrush_measure::units::count(*status.1);
        warnings.push(format!("{count} responses had status {}", status.0));
    }
    Ok(ClientReport {
        requests: json.requests,
        errors: json.errors + bad_statuses,
        duration_s: json.duration_s,
        rps: json.rps,
        bytes_per_s: json.bytes_per_s,
        latency: json.latency_us.and_then(latency),
        seconds: json
            .seconds
            .iter()
            .map(|second| Second {
                t: second.t,
                rps: second.rps,
                errors: second.errors,
            })
            .collect(),
        warnings,
    })
}
