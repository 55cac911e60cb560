//! Output of wrk, and the parts that wrk2 has in common with it.

use super::parsing::{amount, bytes, count, not_a_number, seconds};
use super::report::{ClientReport, counted_from, latency, sum};
use crate::scenario::LatencyFrom;

/// Occurs only in the output of wrk2, a fork of wrk.
pub(super) const OF_WRK2: &str = "HdrHistogram";

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    match text.contains(OF_WRK2) {
        true => Err("it is the output of wrk2: set `results = \"wrk2\"`".to_owned()),
        false => totals(text),
    }
}

pub(super) fn totals(text: &str) -> Result<ClientReport, String> {
    let mut report = ClientReport::default();
    let (mut has_totals, mut has_rate) = (false, false);
    let (mut mean, mut max) = (None, None);
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_ascii_whitespace().take(7).collect();
        match words[..] {
            [requests, "requests", "in", time, size, "read"] => {
                let time = time.trim_end_matches(',');
                report.requests = count(requests).ok_or_else(|| not_a_number(line, requests))?;
                report.duration_s = seconds(time).ok_or_else(|| not_a_number(line, time))?;
                let size = bytes(size).ok_or_else(|| not_a_number(line, size))?;
                report.bytes_per_s = Some(size / report.duration_s.max(1e-9));
                has_totals = true;
            }
            ["Requests/sec:", rate] => {
                report.rps = amount(rate).ok_or_else(|| not_a_number(line, rate))?;
                has_rate = true;
            }
            ["Latency", average, _, largest, _] => {
                (mean, max) = (seconds(average), seconds(largest));
            }
            ["Non-2xx", "or", "3xx", "responses:", responses] => {
                let responses = count(responses).ok_or_else(|| not_a_number(line, responses))?;
                report.errors = sum([report.errors, responses]);
                report.warnings.push(line.to_owned());
            }
            _ if line.starts_with("Socket errors:") => {
                report.errors = sum([report.errors, sum_of_numbers(line)]);
                report.warnings.push(line.to_owned());
            }
            _ => {}
        }
    }
    if !has_totals || !has_rate {
        return Err("its totals are missing".to_owned());
    }
    // Without requests all latencies are printed as zero.
    if report.requests > 0 {
        let micros = |seconds: f64| seconds * 1e6;
        let found = latency(mean.map(micros), max.map(micros), percentiles(text)?);
        report.latency = counted_from(LatencyFrom::Backfilled, found);
    }
    Ok(report)
}

/// `50%  500.00us`: the lines below the first heading. wrk2 may print a second distribution of other latencies.
fn percentiles(text: &str) -> Result<Vec<(String, f64)>, String> {
    let lines = text.lines().map(str::trim);
    let below = lines
        .skip_while(|line| !line.starts_with("Latency Distribution"))
        .skip(1);
    let rows = below.map_while(|line| {
        let (percentile, time) = line.split_once('%')?;
        Some((percentile, time.trim()))
    });
    let read = |(percentile, time): (&str, &str)| {
        let us = seconds(time).ok_or_else(|| not_a_number(percentile, time))? * 1e6;
        Ok((percentile.to_owned(), us))
    };
    rows.map(read).collect()
}

/// `connect 0, read 1, write 2, timeout 3`.
fn sum_of_numbers(line: &str) -> u64 {
    sum(line.split([' ', ',']).filter_map(count))
}
