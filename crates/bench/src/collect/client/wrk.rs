//! The text of wrk.

use super::report::ClientReport;
use crate::outcome::{Latency, PercentileValue};

pub(super) fn read(text: &str) -> Option<ClientReport> {
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
