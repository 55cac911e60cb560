//! Output of ab.

use super::parsing::{amount, amount_after, count, count_after, find, not_a_number};
use super::report::{ClientReport, latency, sum};

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let requests = count_after(text, "Complete requests:")?;
    let duration_s = amount_after(text, "Time taken for tests:")?;
    let rps = amount_after(text, "Requests per second:")?;
    let transferred = count_after(text, "Total transferred:")?;
    // The last two lines are printed only if their count is not zero.
    let mut trouble = vec![("Failed requests:", count_after(text, "Failed requests:")?)];
    for start in ["Write errors:", "Non-2xx responses:"] {
        if find(text, start).is_some() {
            trouble.push((start, count_after(text, start)?));
        }
    }
    let errors = sum(trouble.iter().map(|(_, count)| *count));
    trouble.retain(|(_, count)| *count > 0);
    let warnings = trouble
        .iter()
        .map(|(name, count)| format!("{name} {count}"));
    let mut warnings: Vec<String> = warnings.collect();
    warnings.extend(find(text, "(Connect: ").map(|kinds| format!("(Connect: {kinds}")));
    let mut notes = vec!["ab reports percentiles of latency in whole milliseconds".to_owned()];
    if errors > 0 {
        notes.push("the rate of ab includes failed requests, and one request may be counted as failed more than once".to_owned());
    }
    let mean = match requests {
        0 => None,
        _ => Some(amount_after(text, "Time per request:")? * 1e3),
    };
    let (max, percentiles) = percentiles(text)?;
    Ok(ClientReport {
        requests,
        errors,
        duration_s,
        rps,
        bytes_per_s: Some(transferred as f64 / duration_s.max(1e-9)),
        latency: latency(mean, max, percentiles),
        warnings,
        notes,
        ..ClientReport::default()
    })
}

type Distribution = (Option<f64>, Vec<(String, f64)>);

/// `99%      5`, in ms, and `100%     12 (longest request)` as the last line.
fn percentiles(text: &str) -> Result<Distribution, String> {
    let lines = text.lines().map(str::trim);
    let heading = "Percentage of the requests served within a certain time (ms)";
    let rows = lines.skip_while(|line| *line != heading).skip(1);
    let (mut max, mut percentiles) = (None, Vec::new());
    for (percentile, rest) in rows.map_while(|line| line.split_once('%')) {
        let word = rest.split_whitespace().next().unwrap_or_default();
        let us = amount(word).ok_or_else(|| not_a_number(percentile, word))? * 1e3;
        match count(percentile) {
            Some(100) => max = Some(us),
            _ => percentiles.push((percentile.to_owned(), us)),
        }
    }
    match (percentiles.is_empty(), max) {
        (false, None) => Err("its percentiles end before `100%`".to_owned()),
        _ => Ok((max, percentiles)),
    }
}
