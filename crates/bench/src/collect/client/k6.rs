//! Summaries of k6 as JSON: of `--summary-export`, of `handleSummary()`, and the machine-readable one of version 2.
//! Times are in milliseconds.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::parsing::json;
use super::report::{ClientReport, latency};

#[derive(Deserialize)]
#[serde(untagged)]
enum Json {
    Listed {
        results: Results,
    },
    Named {
        metrics: BTreeMap<String, Metric>,
        state: Option<State>,
    },
}

#[derive(Deserialize)]
struct Results {
    metrics: Vec<NamedMetric>,
}

#[derive(Deserialize)]
struct NamedMetric {
    name: String,
    values: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    test_run_duration_ms: f64,
}

/// A metric; its values are members of it or of `values`.
#[derive(Deserialize)]
struct Metric {
    values: Option<BTreeMap<String, Value>>,
    #[serde(flatten)]
    beside: BTreeMap<String, Value>,
}

struct Metrics(BTreeMap<String, BTreeMap<String, Value>>);

impl Metrics {
    fn find(&self, metric: &str, value: &str) -> Option<f64> {
        self.0.get(metric)?.get(value)?.as_f64()
    }

    fn value(&self, metric: &str, value: &str) -> Result<f64, String> {
        let found = self.find(metric, value);
        found.ok_or_else(|| format!("its metric `{metric}` has no `{value}`"))
    }
}

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let (metrics, duration_ms) = match json(text)? {
        Json::Listed { results } => {
            let metrics = results.metrics.into_iter();
            let metrics = metrics.map(|metric| (metric.name, metric.values));
            (Metrics(metrics.collect()), None)
        }
        Json::Named { metrics, state } => {
            let metrics = metrics.into_iter();
            let metrics =
                metrics.map(|(name, metric)| (name, metric.values.unwrap_or(metric.beside)));
            let duration = state.map(|state| state.test_run_duration_ms);
            (Metrics(metrics.collect()), duration)
        }
    };
    let count = metrics.value("http_reqs", "count")?;
    let rps = metrics.value("http_reqs", "rate")?;
    // Share of failed requests; older summaries call it `value`. The fields with their number have changed names.
    let failed = match metrics.find("http_req_failed", "rate") {
        Some(share) => share,
        None => metrics.value("http_req_failed", "value")?,
    };
    let latencies = metrics.0.get("http_req_duration").into_iter().flatten();
    let percentiles = latencies.filter_map(|(name, value)| {
        let number = match name.as_str() {
            "med" => "50",
            _ => name.strip_prefix("p(")?.strip_suffix(')')?,
        };
        Some((number.to_owned(), value.as_f64()? * 1e3))
    });
    let micros = |name| metrics.find("http_req_duration", name).map(|ms| ms * 1e3);
    let errors = (failed * count).round();
    let warning = || format!("http_req_failed: {errors} of {count}");
    Ok(ClientReport {
        requests: count as u64,
        errors: errors as u64,
        // k6 computes the rate from its duration.
        duration_s: duration_ms.map_or(count / rps.max(1e-9), |ms| ms / 1e3),
        rps,
        bytes_per_s: metrics.find("data_received", "rate"),
        latency: latency(micros("avg"), micros("max"), percentiles),
        warnings: (errors > 0.0).then(warning).into_iter().collect(),
        notes: vec!["latencies of k6 exclude the connect time; its rate includes requests that got no response".to_owned()],
        ..ClientReport::default()
    })
}
