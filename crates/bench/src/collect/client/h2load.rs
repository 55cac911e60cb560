//! Output of h2load, for any of its protocols.

use std::collections::BTreeMap;

use super::parsing::{after_prefix, amount, bytes, count, not_a_number, seconds};
use super::report::{ClientReport, latency, status_warnings};

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let (duration_s, rps, bytes_per_s) = rates(after_prefix(text, "finished in ")?)?;
    let requests = after_prefix(text, "requests: ")?;
    let done = named(requests, "done")?;
    // `failed` includes errors, timeouts and responses with a status of 400 or more.
    let (failed, errored) = (named(requests, "failed")?, named(requests, "errored")?);
    let statuses = after_prefix(text, "status codes: ")?;
    let classes = ["4xx", "5xx"].map(|class| Ok((class.to_owned(), named(statuses, class)?)));
    let classes: Vec<(String, u64)> = classes.into_iter().collect::<Result<_, String>>()?;
    let all =
        ["2xx", "3xx", "4xx", "5xx"].map(|class| Ok((class.to_owned(), named(statuses, class)?)));
    let by_class: BTreeMap<String, u64> = all.into_iter().collect::<Result<_, String>>()?;
    let mut warnings = status_warnings(classes.iter().map(|(class, count)| (class, count)));
    if errored > 0 {
        warnings.push(format!("requests: {requests}"));
    }
    Ok(ClientReport {
        requests: done,
        errors: failed,
        duration_s,
        rps,
        bytes_per_s: Some(bytes_per_s),
        statuses: by_class
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect(),
        // Without requests all latencies are printed as zero.
        latency: match done {
            0 => None,
            _ => request_times(text)?,
        },
        warnings,
        ..ClientReport::default()
    })
}

/// `2.02s, 114485.50 req/s, 16.70MB/s`.
fn rates(line: &str) -> Result<(f64, f64, f64), String> {
    let wrong = || not_a_number("finished in", line);
    let mut parts = line.split(", ");
    let mut next = |unit: &str| parts.next()?.strip_suffix(unit);
    let duration = next("").and_then(seconds).ok_or_else(wrong)?;
    let rate = next(" req/s").and_then(amount).ok_or_else(wrong)?;
    let size = next("/s").and_then(bytes).ok_or_else(wrong)?;
    Ok((duration, rate, size))
}

/// The number before a name: `10 total, 9 done`.
fn named(line: &str, name: &str) -> Result<u64, String> {
    let mut parts = line.split(", ");
    let part = parts.find_map(|part| part.trim().strip_suffix(name));
    let number = part
        .ok_or_else(|| format!("`{line}` has no `{name}`"))?
        .trim();
    count(number).ok_or_else(|| not_a_number(name, number))
}

/// Parses the line of times by the column names above it. Newer versions also have a median and percentiles (`p95`).
fn request_times(text: &str) -> Result<Option<crate::outcome::Latency>, String> {
    let mut lines = text.lines().map(str::trim);
    let header = lines.find(|line| line.starts_with("min "));
    let header = header.ok_or("the times of requests have no column names")?;
    let times = after_prefix(text, "time for request:")?;
    let (mut mean, mut max, mut percentiles) = (None, None, Vec::new());
    for (name, time) in header.split_whitespace().zip(times.split_whitespace()) {
        let us = || Some(seconds(time)? * 1e6);
        let us = || us().ok_or_else(|| not_a_number("time for request", time));
        match (name, name.strip_prefix('p')) {
            ("mean", _) => mean = Some(us()?),
            ("max", _) => max = Some(us()?),
            ("median", _) => percentiles.push(("50".to_owned(), us()?)),
            (_, Some(number)) => percentiles.push((number.to_owned(), us()?)),
            // Minimum and standard deviation.
            _ => {}
        }
    }
    Ok(latency(mean, max, percentiles))
}
