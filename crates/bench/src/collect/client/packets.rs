//! Result of `onrush load udp://… --json`: datagrams sent, received and lost.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::load_verdict::{VerdictJson, distrust};
use super::parsing::objects;
use super::report::{ClientReport, latency, sum};
use crate::outcome::Second;
use crate::scenario::CountedUnit;

pub(super) const KIND: &str = "packets";

/// The fields used here; others are ignored, because the schema may gain keys.
#[derive(Deserialize)]
struct Json {
    way: String,
    duration_s: f64,
    sent: u64,
    sent_bytes: u64,
    sent_per_s: f64,
    received: Option<u64>,
    received_per_s: Option<f64>,
    losses: Option<LossesJson>,
    #[serde(default)]
    latency_us: LatencyJson,
    #[serde(default)]
    seconds: Vec<SecondJson>,
    #[serde(default)]
    verdict: VerdictJson,
}

#[derive(Deserialize)]
struct LossesJson {
    lost: u64,
    unaccounted: u64,
}

#[derive(Deserialize, Default)]
struct LatencyJson {
    mean: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    percentiles: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct SecondJson {
    t: f64,
    sent: u64,
}

/// Reads one result, or the concatenated results of concurrent generators, whose counts are added.
pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let mut parts = objects::<Json>(text)?.into_iter().map(one);
    let Some(first) = parts.next() else {
        return Err("no JSON object found".to_owned());
    };
    Ok(parts.fold(first, add_reports))
}

/// Adds the results of two concurrent generators. Percentiles cannot be merged, and their rows do not start at the same
/// time.
fn add_reports(a: ClientReport, b: ClientReport) -> ClientReport {
    let both = |a: Vec<String>, b: Vec<String>| {
        let mut all = a;
        all.extend(b);
        all.sort();
        all.dedup();
        all
    };
    ClientReport {
        statuses: a.statuses,
        counted: a.counted,
        requests: sum([a.requests, b.requests]),
        errors: sum([a.errors, b.errors]),
        duration_s: a.duration_s.max(b.duration_s),
        rps: a.rps + b.rps,
        bytes_per_s: a.bytes_per_s.zip(b.bytes_per_s).map(|(a, b)| a + b),
        latency: None,
        seconds: Vec::new(),
        warnings: both(a.warnings, b.warnings),
        invalid_reasons: both(a.invalid_reasons, b.invalid_reasons),
        notes: both(a.notes, b.notes),
    }
}

fn one(json: Json) -> ClientReport {
    let mut report = ClientReport {
        counted: CountedUnit::Datagrams,
        duration_s: json.duration_s,
        requests: json.received.unwrap_or(json.sent),
        rps: json.received_per_s.unwrap_or(json.sent_per_s),
        errors: json.losses.as_ref().map_or(0, |losses| losses.lost),
        bytes_per_s: (json.duration_s > 0.0).then(|| json.sent_bytes as f64 / json.duration_s),
        latency: latency(
            json.latency_us.mean,
            json.latency_us.max,
            json.latency_us.percentiles,
        ),
        seconds: rows(&json.seconds),
        invalid_reasons: distrust(&json.verdict),
        ..ClientReport::default()
    };
    report.notes.push(format!(
        "datagrams are counted ({}): `requests` are those received, `errors` those lost, and rows those sent",
        json.way.replace('_', " ")
    ));
    if json.received.is_none() {
        report.warnings.push(
            "the number of received datagrams is not known: `requests` are those sent".to_owned(),
        );
    }
    if let Some(losses) = json.losses.filter(|losses| losses.unaccounted > 0) {
        let unaccounted = losses.unaccounted;
        report.warnings.push(format!(
            "{unaccounted} lost datagrams are not in any counter of the sending machine"
        ));
    }
    report
}

/// Rate of each second, from the end of the previous one.
fn rows(seconds: &[SecondJson]) -> Vec<Second> {
    let mut before = 0.0;
    let mut rows = Vec::with_capacity(seconds.len());
    for second in seconds {
        let time = (second.t - before).max(1e-9);
        rows.push(Second {
            t: second.t,
            rps: second.sent as f64 / time,
            errors: 0,
        });
        before = second.t;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_and_lost_packets_are_parsed() {
        let text = r#"{"kind":"packets","way":"one_way","duration_s":2.0,"sent":100,"sent_bytes":6400,"sent_per_s":50.0,
            "received":90,"received_per_s":45.0,"losses":{"lost":10,"found":[],"unaccounted":3},"latency_us":{"percentiles":{}},
            "seconds":[{"t":1.0,"sent":60,"received":0},{"t":2.0,"sent":40,"received":0}]}"#;
        let report = read(text).expect("a report");
        assert_eq!((report.requests, report.errors), (90, 10));
        assert_eq!(report.counted, CountedUnit::Datagrams);
        let rates: Vec<f64> = report.seconds.iter().map(|row| row.rps).collect();
        assert_eq!(rates, [60.0, 40.0]);
        assert!(report.warnings[0].starts_with("3 lost datagrams"));
        assert_eq!(report.latency, None);
    }

    #[test]
    fn concurrent_generator_counts_are_added() {
        let part = |received: u64| {
            format!(
                r#"{{"kind":"packets","way":"one_way","duration_s":2.0,"sent":100,"sent_bytes":6400,"sent_per_s":50.0,
                "received":{received},"received_per_s":{},"losses":{{"lost":{},"unaccounted":0}},
                "latency_us":{{"mean":1.0,"percentiles":{{"50":1.0}}}},"seconds":[{{"t":1.0,"sent":60}}],
                "verdict":{{"reasons":[{{"state":"invalid","what":"w","measured":"m","bound":"b"}}]}}}}"#,
                received as f64 / 2.0,
                100 - received
            )
        };
        let report = read(&[part(90), part(80), part(100)].join("\n")).expect("reports");
        assert_eq!(
            (report.requests, report.errors, report.rps),
            (270, 30, 135.0)
        );
        assert_eq!(report.bytes_per_s, Some(9600.0));
        assert_eq!((report.latency, report.seconds.len()), (None, 0));
        assert_eq!(report.invalid_reasons, ["w: m (bound: b)"]);
        assert!(read(&(part(90) + "rubbish")).is_err());
    }

    #[test]
    fn missing_receive_count_is_noted() {
        let text = r#"{"kind":"packets","way":"one_way","duration_s":1.0,"sent":7,"sent_bytes":448,"sent_per_s":7.0}"#;
        let report = read(text).expect("a report");
        assert_eq!((report.requests, report.errors), (7, 0));
        assert!(report.warnings[0].contains("the number of received datagrams is not known"));
    }
}
