//! The seconds of several results. Pure.

use super::part::Part;
use super::span::{Span, round_to_thousandths};
use crate::limits::{LAST_ROW_MIN, MERGE_ROWS_MAX};
use crate::report::rows::SecondRow;

/// Merges the rows of all parts by the clock. A row is added to the merged row that contains its middle, so that no row
/// is split and every count adds up. Merged rows are as long as the longest rows of any part.
pub(super) fn sum(parts: &[Part], span: &Span) -> Result<Vec<SecondRow>, String> {
    let step = parts
        .iter()
        .map(|part| step(&part.report.seconds))
        .fold(1.0, f64::max);
    // A shorter last row would only show that one part began later, and look like a drop to zero.
    let count = (span.length() / step - LAST_ROW_MIN.as_secs_f64())
        .ceil()
        .max(1.0);
    if count > MERGE_ROWS_MAX as f64 {
        return Err(format!(
            "cannot merge: the time from the first start to the last end is {:.0} s, so the clocks of the machines \
             differ",
            span.length()
        ));
    }
    let mut rows = vec![Sum::default(); count as usize];
    for part in parts {
        let offset = part.report.began_unix_s.unwrap_or(span.began) - span.began;
        let mut begin = 0.0;
        // Open connections of this part in each merged row. If several rows of the part fall into one merged row, their
        // maximum counts.
        let mut open: Vec<u64> = vec![0; rows.len()];
        for row in &part.report.seconds {
            let middle = offset + (begin + row.t) / 2.0;
            let at = ((middle / step) as usize).min(rows.len().saturating_sub(1));
            if let Some(sum) = rows.get_mut(at) {
                sum.add(row, row.t - begin);
                open[at] = open[at].max(row.connections);
            }
            begin = row.t;
        }
        rows.iter_mut()
            .zip(open)
            .for_each(|(sum, open)| sum.connections += open);
    }
    Ok(rows
        .iter()
        .enumerate()
        .map(|(at, sum)| {
            let begin = at as f64 * step;
            let is_last = at + 1 == rows.len();
            let end = if is_last { span.length() } else { begin + step };
            sum.row(begin, end)
        })
        .collect())
}

/// Length of a result's rows in whole seconds; the last row may differ.
fn step(rows: &[SecondRow]) -> f64 {
    rows.first().map_or(1.0, |first| first.t.round().max(1.0))
}

#[derive(Clone, Copy, Default)]
struct Sum {
    connections: u64,
    requests: u64,
    errors: u64,
    unexpected: u64,
    bytes: f64,
    first_byte_us: f64,
    last_byte_us: f64,
    statuses: [u64; 5],
    max_us: Option<f64>,
}

impl Sum {
    fn add(&mut self, row: &SecondRow, length: f64) {
        let requests = row.requests as f64;
        self.requests += row.requests;
        self.errors += row.errors;
        self.unexpected += row.unexpected;
        self.bytes += row.bytes_per_s * length;
        self.first_byte_us += row.ttfb_us.unwrap_or(0.0) * requests;
        self.last_byte_us += row.ttlb_us.unwrap_or(0.0) * requests;
        for (sum, more) in self.statuses.iter_mut().zip(row.statuses) {
            *sum += more;
        }
        // Only the maximum can be derived from the values of the parts; the other percentiles of a second cannot.
        self.max_us = self.max_us.into_iter().chain(row.max_us).reduce(f64::max);
    }

    fn row(&self, begin: f64, end: f64) -> SecondRow {
        let length = (end - begin).max(f64::EPSILON);
        let mean = |sum: f64| {
            (self.requests > 0).then(|| round_to_thousandths(sum / self.requests as f64))
        };
        SecondRow {
            t: round_to_thousandths(end),
            connections: self.connections,
            requests: self.requests,
            errors: self.errors,
            unexpected: self.unexpected,
            rps: round_to_thousandths(self.requests as f64 / length),
            bytes_per_s: round_to_thousandths(self.bytes / length),
            ttfb_us: mean(self.first_byte_us),
            ttlb_us: mean(self.last_byte_us),
            statuses: self.statuses,
            max_us: self.max_us,
            ..SecondRow::default()
        }
    }
}
