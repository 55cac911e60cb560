//! Output of memcaslap (memaslap) with the statistics of `-S`.

use super::parsing::{after_prefix, amount, count, count_after, find, not_a_number};
use super::report::{ClientReport, latency, sum};
use crate::outcome::{Latency, Second};

/// Error counters, printed only with the options that check for them (`-v`, `-e`, `-U`).
const ERROR_COUNTERS: [&str; 5] = [
    "verify_failed:",
    "unexpired_unget:",
    "packet_disorder:",
    "packet_drop:",
    "udp_timeout:",
];

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let last = after_prefix(text, "Run time:")?;
    let wrong = || not_a_number("Run time", last);
    let words: Vec<&str> = last.split_whitespace().collect();
    let [time, "Ops:", operations, "TPS:", rate, "Net_rate:", _] = words[..] else {
        return Err(wrong());
    };
    let duration_s = time.strip_suffix('s').and_then(amount).ok_or_else(wrong)?;
    let requests = count(operations).ok_or_else(wrong)?;
    let rps = amount(rate).ok_or_else(wrong)?;
    let bytes_read = count_after(text, "read_bytes:")? as f64;
    let mut warnings = Vec::new();
    let mut errors = 0;
    for name in ERROR_COUNTERS {
        if find(text, name).is_some() {
            let found = count_after(text, name)?;
            errors = sum([errors, found]);
            warnings.extend((found > 0).then(|| format!("{name} {found}")));
        }
    }
    let misses = count_after(text, "get_misses:")?;
    warnings.extend((misses > 0).then(|| format!("get_misses: {misses}")));
    Ok(ClientReport {
        requests,
        errors,
        duration_s,
        rps,
        // Computed from the rate, which is more precise than the printed time with one decimal.
        bytes_per_s: (requests > 0).then(|| bytes_read * rps / requests as f64),
        latency: total(text)?,
        seconds: rows(text)?,
        warnings,
        notes: vec!["memcaslap counts neither failed requests nor lost connections".to_owned()],
        ..ClientReport::default()
    })
}

/// Heading of the periodic totals and of the final statistics.
const TOTAL: &str = "Total Statistics";

/// The final statistics: `Total Statistics (450119 events)`, then one counter per line.
fn total(text: &str) -> Result<Option<Latency>, String> {
    let mut lines = text.lines().skip_while(|line| {
        let rest = line.trim().strip_prefix(TOTAL);
        rest.is_none_or(|rest| !rest.trim_start().starts_with('('))
    });
    if lines.next().is_none() {
        return Ok(None);
    }
    let block: Vec<&str> = lines.take_while(|line| !line.contains("Dist")).collect();
    let value = |name: &str| -> Result<f64, String> {
        let mut rest = block
            .iter()
            .filter_map(|line| line.trim().strip_prefix(name));
        let word = rest
            .next()
            .ok_or_else(|| format!("`{TOTAL}` has no `{name}`"))?
            .trim();
        amount(word).ok_or_else(|| not_a_number(name, word))
    };
    Ok(latency(Some(value("Avg:")?), Some(value("Max:")?), []))
}

/// Periodic rows below each heading: `Period 1 135925 135925 …`, then `Global 3 450111 …` with the time since the
/// start.
fn rows(text: &str) -> Result<Vec<Second>, String> {
    let mut rows = Vec::new();
    let mut is_total = false;
    let mut rate = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        match words[..] {
            ["Period", _, _, word] if is_total => {
                rate = Some(amount(word).ok_or_else(|| not_a_number("TPS", word))?);
            }
            ["Global", word, ..] if is_total => {
                let t = amount(word).ok_or_else(|| not_a_number("Time", word))?;
                rows.extend(rate.take().map(|rps| Second { t, rps, errors: 0 }));
            }
            [_, "Statistics", ..] => is_total = line.trim() == TOTAL,
            _ => {}
        }
    }
    Ok(rows)
}
