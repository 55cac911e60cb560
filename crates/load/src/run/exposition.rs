//! Prometheus metrics of a run in progress (text format 0.0.4). Pure; `exposition/server.rs` serves them.

pub mod server;

use std::fmt::Write;

use onrush_measure::histogram::Histogram;

use crate::report::snapshot::Snapshot;

/// Bucket bounds (us): three per decade, from a loopback response to the default timeout.
const BOUNDS_US: [u64; 17] = [
    50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// Returns the metrics at `moment`.
pub fn text(moment: &Snapshot<'_>) -> String {
    let mut out = String::new();
    let view = &moment.view;
    let target = [("target", view.plan.target())];
    family(&mut out, "run_info", "gauge", "Target under load.");
    sample(&mut out, "run_info", &target, 1.0);
    let seconds = view.elapsed.as_secs_f64();
    one(
        &mut out,
        "run_seconds",
        "gauge",
        "Time since the run began.",
        seconds,
    );
    said(&mut out, moment);
    counted(&mut out, moment);
    if let Some(rate) = view.rate_asked() {
        let help = "Requests, or journeys, scheduled in the last second.";
        one(&mut out, "rate_asked", "gauge", help, rate);
    }
    let response = "Time from the scheduled start of a request to the last byte of its response.";
    histogram(
        &mut out,
        "response_seconds",
        response,
        &moment.times.response,
    );
    let service = "Time from writing a request to the last byte of its response.";
    histogram(&mut out, "service_seconds", service, &moment.times.service);
    out
}

/// Responses by status class, and errors by kind.
fn said(out: &mut String, moment: &Snapshot<'_>) {
    let classes = moment.view.plan.protocol.outcomes().classes;
    family(
        out,
        "responses_total",
        "counter",
        "Responses by status, class or code.",
    );
    for (class, count) in classes.iter().zip(moment.statuses) {
        if !class.is_empty() {
            let class = [("class", (*class).to_owned())];
            sample(out, "responses_total", &class, count as f64);
        }
    }
    family(out, "errors_total", "counter", "Errors, by kind.");
    for (kind, count) in moment.all_errors_by_kind() {
        let kind = [("kind", kind.to_owned())];
        sample(out, "errors_total", &kind, count as f64);
    }
}

/// Counters and gauges without labels.
fn counted(out: &mut String, moment: &Snapshot<'_>) {
    let standing = moment.view.standing;
    let second = &moment.second;
    for (name, kind, help, value) in [
        (
            "received_bytes_total",
            "counter",
            "Bytes received.",
            second.bytes,
        ),
        (
            "connections_total",
            "counter",
            "Connections attempted.",
            second.connections,
        ),
        (
            "resent_total",
            "counter",
            "Requests sent again after the server had not processed them.",
            standing.resent,
        ),
        (
            "missed_total",
            "counter",
            "Scheduled requests that were never sent.",
            standing.missed,
        ),
        (
            "connections_open",
            "gauge",
            "Open connections.",
            second.connections_open,
        ),
        (
            "requests_in_flight",
            "gauge",
            "Requests without a response yet.",
            standing.in_flight,
        ),
        (
            "requests_waiting",
            "gauge",
            "Scheduled requests that are not sent yet.",
            moment.waiting(),
        ),
    ] {
        one(out, name, kind, help, value as f64);
    }
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP onrush_load_{name} {help}");
    let _ = writeln!(out, "# TYPE onrush_load_{name} {kind}");
}

fn one(out: &mut String, name: &str, kind: &str, help: &str, value: f64) {
    family(out, name, kind, help);
    sample(out, name, &[], value);
}

fn sample(out: &mut String, name: &str, labels: &[(&str, String)], value: f64) {
    let labels: Vec<String> = labels
        .iter()
        .map(|(label, text)| format!("{label}=\"{}\"", escaped(text)))
        .collect();
    let labels = match labels.len() {
        0 => String::new(),
        _ => format!("{{{}}}", labels.join(",")),
    };
    let _ = writeln!(out, "onrush_load_{name}{labels} {value}");
}

fn histogram(out: &mut String, name: &str, help: &str, times: &Histogram) {
    family(out, name, "histogram", help);
    let bucket = format!("{name}_bucket");
    for bound in BOUNDS_US {
        let le = [("le", format!("{}", bound as f64 / 1e6))];
        sample(out, &bucket, &le, times.count_up_to(bound * 1000) as f64);
    }
    let count = times.count();
    sample(out, &bucket, &[("le", "+Inf".to_owned())], count as f64);
    let sum = if count == 0 {
        0.0
    } else {
        times.mean() * count as f64 / 1e9
    };
    sample(out, &format!("{name}_sum"), &[], sum);
    sample(out, &format!("{name}_count"), &[], count as f64);
}

/// Escapes backslash, double quote and line feed in a label value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let mut times = Histogram::new();
        let all = [40_000, 60_000, 3_000_000, 20_000_000_000];
        all.into_iter().for_each(|ns| times.record(ns));
        let mut out = String::new();
        histogram(&mut out, "x_seconds", "Help.", &times);
        for line in [
            "# TYPE onrush_load_x_seconds histogram",
            "onrush_load_x_seconds_bucket{le=\"0.00005\"} 1",
            "onrush_load_x_seconds_bucket{le=\"0.0001\"} 2",
            "onrush_load_x_seconds_bucket{le=\"0.005\"} 3",
            "onrush_load_x_seconds_bucket{le=\"10\"} 3",
            "onrush_load_x_seconds_bucket{le=\"+Inf\"} 4",
            "onrush_load_x_seconds_count 4",
        ] {
            assert!(out.lines().any(|found| found == line), "{line}: {out}");
        }
        let mut empty = String::new();
        histogram(&mut empty, "x_seconds", "Help.", &Histogram::new());
        assert!(empty.contains("x_seconds_sum 0\n"), "{empty}");
    }

    #[test]
    fn labels_are_escaped() {
        let mut out = String::new();
        sample(&mut out, "x", &[("a", "b\"c\\d\ne".to_owned())], 1.0);
        assert_eq!(out, "onrush_load_x{a=\"b\\\"c\\\\d\\ne\"} 1\n");
    }
}
