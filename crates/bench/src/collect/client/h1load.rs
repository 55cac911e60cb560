//! Rows of h1load in each of its formats, and the percentile table of `-P`.

use std::collections::HashMap;

use super::parsing::{amount, count, not_a_number};
use super::report::{ClientReport, counted_from, latency, sum};
use crate::outcome::Second;
use crate::scenario::LatencyFrom;

/// Times above this are Unix times (`-l`), below are seconds since the start: a run is shorter than 30 years.
const SINCE_1970: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Row {
    /// End of the row, in seconds since the start of the run.
    t: u64,
    connections: u64,
    requests: u64,
    bytes: u64,
    errors: u64,
}

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let mut lines = text.lines();
    let header = lines
        .by_ref()
        .map(|line| line.trim_start_matches(['#', '_', ' ']))
        .find(|line| line.starts_with("time "))
        .ok_or("the line of column names is missing")?;
    let columns: HashMap<&str, usize> = header
        .split_whitespace()
        .enumerate()
        .map(|(at, name)| (name, at))
        .collect();
    let has_statuses = columns.contains_key("4xx") && columns.contains_key("5xx");
    let mut rows: Vec<Row> = Vec::new();
    let mut statuses = 0;
    let mut first = None;
    for line in lines.take_while(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != columns.len() {
            return Err(format!(
                "row `{line}` has {} columns of {}",
                words.len(),
                columns.len()
            ));
        }
        let number = |name: &str| -> Result<u64, String> {
            let at = columns
                .get(name)
                .ok_or_else(|| format!("column `{name}` is missing"))?;
            count(words[*at]).ok_or_else(|| not_a_number(name, words[*at]))
        };
        if has_statuses {
            statuses = sum([statuses, number("4xx")?, number("5xx")?]);
        }
        let time = number("time")?;
        let first = *first.get_or_insert(time);
        let before = if first >= SINCE_1970 { first - 1 } else { 0 };
        let row = Row {
            t: time.saturating_sub(before),
            connections: number("conns")?,
            requests: number("tot_req")?,
            bytes: number("tot_bytes")?,
            errors: number("err")?,
        };
        // A delayed row repeats the time of the previous one.
        rows.pop_if(|last| last.t >= row.t);
        rows.push(row);
    }
    let mut notes = vec!["latencies of h1load end with the first byte of a response".to_owned()];
    if !has_statuses {
        notes.push("h1load does not report the statuses of responses; with -S it does".to_owned());
    }
    let loaded = under_load(&rows);
    let last = *loaded.last().ok_or("no row found")?;
    let total = rows.last().map_or(last, |row| *row);
    let duration_s = (last.t as f64).max(1.0);
    let found = latency(None, None, percentiles(text)?);
    Ok(ClientReport {
        requests: total.requests,
        errors: sum([total.errors, statuses]),
        duration_s,
        rps: last.requests as f64 / duration_s,
        bytes_per_s: Some(last.bytes as f64 / duration_s),
        latency: counted_from(LatencyFrom::SentToFirstByte, found),
        seconds: seconds(loaded),
        notes,
        ..ClientReport::default()
    })
}

/// Removes rows at the end in which connections only finished their last requests, two each at most: h1load keeps
/// printing while it waits for them.
fn under_load(rows: &[Row]) -> &[Row] {
    let adds = |pair: &[Row]| pair[1].requests.saturating_sub(pair[0].requests);
    let idle = rows
        .windows(2)
        .rev()
        .take_while(|pair| adds(pair) <= pair[0].connections.saturating_mul(2))
        .count();
    match rows.len() - idle {
        // The rate is too low to distinguish the load from the last requests.
        1 if idle > 2 => rows,
        left => &rows[..left],
    }
}

fn seconds(rows: &[Row]) -> Vec<Second> {
    let start = Row {
        t: 0,
        connections: 0,
        requests: 0,
        bytes: 0,
        errors: 0,
    };
    let before = std::iter::once(&start).chain(rows);
    let pairs = before.zip(rows);
    let second = |(before, row): (&Row, &Row)| Second {
        t: row.t as f64,
        rps: row.requests.saturating_sub(before.requests) as f64
            / row.t.saturating_sub(before.t).max(1) as f64,
        errors: row.errors,
    };
    pairs.map(second).collect()
}

/// `99.9  0.1  1000  ttfbcnt  ttfb(ms)  ttlbcnt  ttlb(ms)`: uses the time to first byte. The time to last byte is
/// missing in the last rows, where the columns shift.
fn percentiles(text: &str) -> Result<Vec<(String, f64)>, String> {
    let lines = text.lines().skip_while(|line| !line.starts_with("#pctl"));
    let rows = lines.skip(1).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [percentile, _, _, _, ttfb, ..] = words[..] else {
            return Err(format!("row `{line}` of the percentiles is truncated"));
        };
        let ms = amount(ttfb).ok_or_else(|| not_a_number(percentile, ttfb))?;
        Ok((percentile.to_owned(), ms * 1e3))
    });
    rows.collect()
}
