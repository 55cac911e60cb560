//! JSON of `vegeta report -type=json`. Times are in nanoseconds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::parsing::json;
use super::report::{ClientReport, by_class, is_good_status, latency, status_warnings, sum};

#[derive(Deserialize)]
struct Json {
    latencies: BTreeMap<String, f64>,
    bytes_in: Bytes,
    duration: f64,
    wait: f64,
    requests: u64,
    throughput: f64,
    status_codes: BTreeMap<String, u64>,
    #[serde(default)]
    errors: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Bytes {
    total: f64,
}

/// vegeta's status of requests without a response.
const NONE: &str = "0";

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let json: Json = json(text)?;
    let statuses = json.status_codes.iter();
    let bad = statuses.filter(|(status, _)| !is_good_status(status));
    let unanswered = json.status_codes.get(NONE).copied().unwrap_or(0);
    // From the first request to the last response.
    let duration_s = (json.duration + json.wait) / 1e9;
    let micros = |name: &str| json.latencies.get(name).map(|ns| ns / 1e3);
    let percentiles = json.latencies.iter().filter_map(|(name, ns)| {
        let number = name.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        Some((number.to_owned(), ns / 1e3)).filter(|_| !number.is_empty())
    });
    let measured = json.requests > 0;
    let mut warnings = status_warnings(
        json.status_codes
            .iter()
            .filter(|(status, _)| *status != NONE),
    );
    warnings.extend(json.errors.into_iter().flatten());
    Ok(ClientReport {
        requests: json.requests.saturating_sub(unanswered),
        errors: sum(bad.map(|(_, count)| *count)),
        duration_s,
        rps: json.throughput,
        bytes_per_s: Some(json.bytes_in.total / duration_s.max(1e-9)),
        statuses: by_class(&json.status_codes),
        latency: match measured {
            true => latency(micros("mean"), micros("max"), percentiles),
            false => None,
        },
        warnings,
        notes: vec!["the rate of vegeta covers responses with a successful status; its bytes count only bodies".to_owned()],
        ..ClientReport::default()
    })
}
