//! JSON of `fortio load -json`. Latencies are in seconds, durations in nanoseconds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::parsing::json;
use super::report::{ClientReport, by_class, is_good_status, latency, sum};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Json {
    #[serde(rename = "ActualQPS")]
    actual_qps: f64,
    actual_duration: f64,
    duration_histogram: Histogram,
    ret_codes: BTreeMap<String, u64>,
    /// Sizes of whole responses; HTTP only.
    sizes: Option<Sizes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Histogram {
    count: u64,
    avg: f64,
    max: f64,
    #[serde(default)]
    percentiles: Option<Vec<Percentile>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Percentile {
    percentile: f64,
    value: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Sizes {
    sum: f64,
}

/// fortio's code for a request without a response.
const NONE: &str = "-1";

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let json: Json = json(text)?;
    // gRPC and TCP use words instead of HTTP statuses.
    let is_good = |code: &str| is_good_status(code) || ["OK", "SERVING"].contains(&code);
    let bad: Vec<_> = json
        .ret_codes
        .iter()
        .filter(|(code, _)| !is_good(code))
        .collect();
    let responses = json.ret_codes.iter().filter(|(code, _)| *code != NONE);
    let seconds = json.actual_duration / 1e9;
    let histogram = json.duration_histogram;
    let percentiles = histogram.percentiles.into_iter().flatten();
    let percentiles = percentiles.map(|found| (found.percentile.to_string(), found.value * 1e6));
    let words = bad.iter().map(|(code, count)| {
        let count = onrush_measure::units::count(**count);
        format!("{count} times: code {code}")
    });
    Ok(ClientReport {
        requests: sum(responses.map(|(_, count)| *count)),
        errors: sum(bad.iter().map(|(_, count)| **count)),
        duration_s: seconds,
        rps: json.actual_qps,
        bytes_per_s: json.sizes.map(|sizes| sizes.sum / seconds.max(1e-9)),
        statuses: by_class(&json.ret_codes),
        latency: match histogram.count {
            0 => None,
            _ => latency(
                Some(histogram.avg * 1e6),
                Some(histogram.max * 1e6),
                percentiles,
            ),
        },
        warnings: words.collect(),
        notes: vec![
            "percentiles of fortio are interpolated between bucket bounds 1 ms apart, or as far as -r sets; its rate \
             includes failed requests".to_owned(),
        ],
        ..ClientReport::default()
    })
}
