//! What clients say they measured: the file of `onrush load --json`, the text of wrk, or the JSON of oha. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::outcome::{Latency, PercentileValue, Second};
use crate::scenario::Results;

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

/// Reads a report; the error says what is wrong with it.
pub fn read(results: Results, text: &str) -> Result<ClientReport, String> {
    match results {
        Results::Onrush => onrush(text),
        Results::Wrk => wrk(text).ok_or_else(|| "the output of wrk has no totals".to_owned()),
        Results::Oha => oha(text),
    }
}

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

fn onrush(text: &str) -> Result<ClientReport, String> {
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

fn latency(json: LatencyJson) -> Option<Latency> {
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

fn oha(text: &str) -> Result<ClientReport, String> {
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

fn wrk(text: &str) -> Option<ClientReport> {
    let mut report = ClientReport::default();
    let mut has_totals = false;
    let mut mean_and_max = None;
    let mut percentiles = Vec::new();
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [requests, "requests", "in", time, bytes, "read"] => {
                report.requests = requests.parse().ok()?;
                report.duration_s = wrk_seconds(time.trim_end_matches(','))?;
                report.bytes_per_s = wrk_bytes(bytes)? / report.duration_s.max(1e-9);
                has_totals = true;
            }
            ["Requests/sec:", rate] => report.rps = rate.parse().ok()?,
            ["Latency", mean, _, max, _] => {
                mean_and_max = wrk_seconds(mean).zip(wrk_seconds(max));
            }
            [percentile, time] if percentile.ends_with('%') => {
                percentiles.push(PercentileValue {
                    percentile: percentile.trim_end_matches('%').to_owned(),
                    us: wrk_seconds(time)? * 1e6,
                });
            }
            ["Non-2xx", "or", "3xx", "responses:", count] => {
                report.errors += count.parse::<u64>().ok()?;
            }
            _ if line.starts_with("Socket errors:") => report.errors += sum_of_numbers(line),
            _ => {}
        }
    }
    report.latency = mean_and_max.map(|(mean, max)| Latency {
        mean: mean * 1e6,
        max: max * 1e6,
        percentiles,
    });
    has_totals.then_some(report)
}

/// `connect 0, read 1, write 2, timeout 3`.
fn sum_of_numbers(line: &str) -> u64 {
    line.split([' ', ','])
        .filter_map(|word| word.parse::<u64>().ok())
        .sum()
}

/// `512.00us`, `1.20ms`, `5.00s`, `1.00m`, `1.00h`, as wrk's units.c writes them.
fn wrk_seconds(text: &str) -> Option<f64> {
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// `1.23MB`, in steps of 1,024.
fn wrk_bytes(text: &str) -> Option<f64> {
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let power = match unit {
        "B" => 0,
        "KB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * 1_024_f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_report_is_read_and_bad_statuses_are_errors() {
        let text = r#"{ "requests": 1000, "errors": 2, "duration_s": 2.0, "rps": 500.0, "bytes_per_s": 64000,
            "statuses": { "200": 990, "404": 7, "301": 3 }, "cpu_us_per_request": 4.2, "new_key": [],
            "latency_us": { "mean": 80.5, "max": 900, "percentiles": { "99.9": 300, "50": 70, "9": 1, "99.99": null } },
            "seconds": [ { "t": 1, "connections": 4, "requests": 500, "errors": 0, "rps": 500, "ttfb_us": 3 } ],
            "warnings": ["the generator was the limit"] }"#;
        let report = read(Results::Onrush, text).expect("a report");
        assert_eq!((report.requests, report.errors), (1000, 9));
        let latency = report.latency.expect("latency");
        let order: Vec<_> = latency
            .percentiles
            .iter()
            .map(|value| value.percentile.as_str())
            .collect();
        assert_eq!(order, ["9", "50", "99.9"]);
        assert_eq!(latency.at("99.9"), Some(300.0));
        assert_eq!(report.seconds[0].rps, 500.0);
        assert_eq!(
            report.warnings,
            ["the generator was the limit", "7 responses had status 404"]
        );
    }

    #[test]
    fn wrk_text_is_read() {
        let text = "Running 5s test @ http://127.0.0.1:8080/\n  1 threads and 100 connections\n  \
            Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
            Latency   512.03us  100.00us   1.20ms   90.00%\n    Req/Sec   190.00k     1.00k  195.00k    70.00%\n  \
            Latency Distribution\n     50%  500.00us\n     99%    1.00ms\n  \
            950000 requests in 5.00s, 64.00MB read\n  Socket errors: connect 0, read 1, write 2, timeout 3\n  \
            Non-2xx or 3xx responses: 4\nRequests/sec: 190000.00\nTransfer/sec:     12.80MB\n";
        let report = read(Results::Wrk, text).expect("a report");
        assert_eq!((report.requests, report.errors), (950_000, 10));
        assert_eq!((report.rps, report.duration_s), (190_000.0, 5.0));
        let latency = report.latency.expect("latency");
        assert!((latency.mean - 512.03).abs() < 1e-6);
        assert!((latency.at("99").expect("99 %") - 1_000.0).abs() < 1e-6);
    }

    #[test]
    fn oha_json_is_read_and_what_was_in_flight_at_the_end_is_no_error() {
        let text = r#"{ "summary": { "successRate": 1.0, "total": 2.0, "slowest": 0.005, "fastest": 9e-6, "average": 0.000082,
            "requestsPerSec": 500.0, "totalData": 4000, "sizePerRequest": 4, "sizePerSec": 2000.0 },
            "latencyPercentiles": { "p50": 0.00007, "p99.9": 0.0025, "p99.99": null },
            "statusCodeDistribution": { "200": 990, "503": 10 },
            "errorDistribution": { "aborted due to deadline": 100, "connection refused": 3 } }"#;
        let report = read(Results::Oha, text).expect("a report");
        assert_eq!((report.requests, report.errors), (1000, 13));
        assert_eq!((report.rps, report.bytes_per_s), (500.0, 2000.0));
        let latency = report.latency.expect("latency");
        assert!((latency.mean - 82.0).abs() < 1e-6);
        assert!((latency.at("99.9").expect("99.9 %") - 2500.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_report_is_refused() {
        assert!(read(Results::Wrk, "unable to connect").is_err());
        assert!(read(Results::Onrush, "").is_err());
        assert!(read(Results::Oha, "").is_err());
        assert!(read(Results::Oha, "{}").is_err());
        assert!(read(Results::Onrush, "{}").is_err());
    }
}
