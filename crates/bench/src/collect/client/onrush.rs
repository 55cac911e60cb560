//! Result of `onrush load --json` (`docs/load-result.schema.json`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::load_verdict::{VerdictJson, distrust};
use super::packets;
use super::parsing::json;
use super::report::{
    ClientReport, by_class, counted_from, is_good_status, latency, status_warnings, sum,
};
use crate::outcome::{Latency, Second};
use crate::scenario::LatencyFrom;

/// The fields used here; others are ignored, because the schema may gain keys.
#[derive(Deserialize)]
struct Json {
    requests: u64,
    errors: u64,
    duration_s: f64,
    rps: f64,
    bytes_per_s: Option<f64>,
    #[serde(default)]
    statuses: BTreeMap<String, u64>,
    #[serde(default)]
    options: OptionsJson,
    #[serde(default)]
    evidence: EvidenceJson,
    latency_us: Option<LatencyJson>,
    #[serde(default)]
    seconds: Vec<SecondJson>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    verdict: VerdictJson,
}

#[derive(Deserialize, Default)]
struct OptionsJson {
    /// Requested requests per second; `None` for a closed loop.
    #[serde(default)]
    rate: Option<f64>,
}

#[derive(Deserialize, Default)]
struct EvidenceJson {
    /// Mean of a rate that changes over the run.
    #[serde(default)]
    rate_asked: Option<f64>,
}

#[derive(Deserialize)]
struct LatencyJson {
    mean: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    percentiles: BTreeMap<String, Option<f64>>,
    /// Names of figures that are only lower bounds: percentiles, and `max`.
    #[serde(default)]
    at_least: Vec<String>,
}

#[derive(Deserialize)]
struct SecondJson {
    t: f64,
    rps: f64,
    #[serde(default)]
    errors: u64,
}

#[derive(Deserialize)]
struct KindJson {
    kind: Option<String>,
}

/// Times from the moment a request was passed to the kernel.
#[derive(Deserialize)]
struct ServiceJson {
    #[serde(default)]
    service_us: Option<LatencyJson>,
}

/// Reads one result, with service times instead of response times.
pub(super) fn read_service(text: &str) -> Result<ClientReport, String> {
    let service = json::<ServiceJson>(text)?.service_us;
    let mut report = read(text)?;
    report.latency = service.and_then(of_json);
    report
        .notes
        .push("latencies are service times: from writing a request to its response".to_owned());
    Ok(report)
}

/// Latencies without lower bounds, which cannot be compared with values.
fn of_json(found: LatencyJson) -> Option<Latency> {
    let is_known = |name: &str| !found.at_least.iter().any(|bound| bound == name);
    let percentiles = found.percentiles.into_iter();
    let percentiles = percentiles.filter(|(name, _)| is_known(name));
    let percentiles = percentiles.filter_map(|(name, us)| Some((name, us?)));
    latency(
        found.mean,
        found.max.filter(|_| is_known("max")),
        percentiles,
    )
}

fn bounds_warning(found: Option<&LatencyJson>) -> Option<String> {
    let bounds = found?.at_least.iter().filter(|name| *name != "max");
    let bounds: Vec<&str> = bounds.map(String::as_str).collect();
    (!bounds.is_empty()).then(|| {
        format!(
            "some requests had no response, so latencies at {} % are only lower bounds and are left out",
            bounds.join(", ")
        )
    })
}

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    if json::<KindJson>(text)?.kind.as_deref() == Some(packets::KIND) {
        return packets::read(text);
    }
    let json: Json = json(text)?;
    // Other keys are outcomes of other protocols than HTTP; their errors are already in `errors`.
    let statuses = || {
        let all = json.statuses.iter();
        all.filter(|(status, _)| status.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let bad = statuses().filter(|(status, _)| !is_good_status(status));
    let errors = sum([json.errors]
        .into_iter()
        .chain(bad.map(|(_, count)| *count)));
    let bad = status_warnings(statuses());
    let mut warnings = json.warnings;
    warnings.extend(bad);
    warnings.extend(bounds_warning(json.latency_us.as_ref()));
    let from = match json.options.rate.or(json.evidence.rate_asked) {
        Some(_) => LatencyFrom::Due,
        None => LatencyFrom::Sent,
    };
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
        statuses: by_class(statuses()),
        latency: counted_from(from, json.latency_us.and_then(of_json)),
        seconds: rows.collect(),
        warnings,
        invalid_reasons: distrust(&json.verdict),
        ..ClientReport::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspect_reasons_do_not_invalidate() {
        let reason = |state: &str| {
            format!(
                r#"{{"state":"{state}","what":"not sent","measured":"3 %","bound":"1 %","remedy":"r"}}"#
            )
        };
        let verdict = format!("[{},{}]", reason("suspect"), reason("invalid"));
        let text = format!(
            r#"{{"requests":1,"errors":0,"duration_s":1,"rps":1,"verdict":{{"state":"invalid","reasons":{verdict}}}}}"#
        );
        let report = read(&text).expect("a report");
        assert_eq!(report.invalid_reasons, ["not sent: 3 % (bound: 1 %)"]);
        let times = r#"{"requests":1,"errors":0,"duration_s":1,"rps":1,"latency_us":{"mean":2,"percentiles":{"50":3}},"service_us":{"mean":1,"percentiles":{"50":2,"99":null}}}"#;
        let p50 = |report: Result<ClientReport, String>| {
            let latency = report.expect("a report").latency.expect("latencies");
            (
                latency.mean,
                latency.percentiles.len(),
                latency.percentiles[0].us,
            )
        };
        assert_eq!(p50(read(times)), (Some(2.0), 1, 3.0));
        assert_eq!(p50(read_service(times)), (Some(1.0), 1, 2.0));
        let cached =
            r#"{"requests":2,"errors":0,"duration_s":1,"rps":2,"statuses":{"hit":1,"miss":1}}"#;
        let report = read(cached).expect("a report");
        assert_eq!((report.errors, report.warnings.len()), (0, 0));
        let bounded = r#"{"requests":1,"errors":0,"duration_s":1,"rps":1,"latency_us":{"mean":2,"max":9,"at_least":["99","max"],"percentiles":{"50":3,"99":9}}}"#;
        let report = read(bounded).expect("a report");
        assert!(report.warnings[0].contains("at 99 %"));
        let latency = report.latency.expect("latencies");
        assert_eq!((latency.percentiles.len(), latency.max), (1, None));
        let without = r#"{"requests":1,"errors":0,"duration_s":1,"rps":1}"#;
        assert!(read(without).expect("a report").invalid_reasons.is_empty());
    }
}
