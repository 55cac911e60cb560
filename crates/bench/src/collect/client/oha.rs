//! JSON of oha with `--output-format json`. Times are in seconds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::parsing::json;
use super::report::{ClientReport, by_class, is_good_status, latency, status_warnings, sum};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    summary: Summary,
    #[serde(default)]
    latency_percentiles: BTreeMap<String, Option<f64>>,
    status_code_distribution: BTreeMap<String, u64>,
    #[serde(default)]
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    total: f64,
    total_data: f64,
    average: Option<f64>,
    slowest: Option<f64>,
}

/// oha's name for requests in flight at the end.
const IN_FLIGHT: &str = "aborted due to deadline";

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let json: Json = json(text)?;
    let statuses = &json.status_code_distribution;
    let bad = statuses
        .iter()
        .filter(|(status, _)| !is_good_status(status));
    let failures = json.error_distribution.iter();
    let failures: Vec<_> = failures.filter(|(what, _)| *what != IN_FLIGHT).collect();
    let requests = sum(statuses.values().copied());
    // oha's own rate includes failed requests and those in flight at the end.
    let seconds = json.summary.total.max(1e-9);
    let percentiles = json.latency_percentiles.into_iter();
    let percentiles = percentiles.filter_map(|(name, seconds)| {
        Some((name.trim_start_matches('p').to_owned(), seconds? * 1e6))
    });
    let micros = |seconds: f64| seconds * 1e6;
    let mut warnings = status_warnings(statuses);
    let words = failures.iter().map(|(what, count)| {
        let count = onrush_measure::units::count(**count);
        format!("{count} times: {what}")
    });
    warnings.extend(words);
    let errors = bad.chain(failures).map(|(_, count)| *count);
    Ok(ClientReport {
        requests,
        errors: sum(errors),
        duration_s: json.summary.total,
        rps: requests as f64 / seconds,
        bytes_per_s: Some(json.summary.total_data / seconds),
        statuses: by_class(statuses),
        latency: latency(
            json.summary.average.map(micros),
            json.summary.slowest.map(micros),
            percentiles,
        ),
        warnings,
        ..ClientReport::default()
    })
}
