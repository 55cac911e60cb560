//! Report of a client in a form common to all clients.

use std::collections::BTreeMap;

use crate::limits::{CLIENT_ROWS_MAX, CLIENT_WARNINGS_MAX, PERCENTILES_MAX};
use crate::outcome::{Latency, PercentileValue, Second};
use crate::scenario::{CountedUnit, LatencyFrom};

/// Figures reported by a client. Figures that it does not report are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientReport {
    /// Unit of `requests`, `errors` and `rps`.
    pub counted: CountedUnit,
    /// Responses received.
    pub requests: u64,
    /// Failed requests, including responses with a status other than 2xx and 3xx if the client reports statuses.
    pub errors: u64,
    /// Duration by the client's clock.
    pub duration_s: f64,
    /// Requests per second by the client's clock.
    pub rps: f64,
    /// Bytes received per second, if reported.
    pub bytes_per_s: Option<f64>,
    /// Responses by status class, `2xx` to `5xx`; empty if not reported.
    pub statuses: BTreeMap<String, u64>,
    /// Latencies, if reported.
    pub latency: Option<Latency>,
    /// Rows per second, if reported.
    pub seconds: Vec<Second>,
    /// Errors reported by the client, in its own words.
    pub warnings: Vec<String>,
    /// Reasons for which the client considers its own figures invalid.
    pub invalid_reasons: Vec<String>,
    /// Peculiarities of this client that matter for its figures.
    pub notes: Vec<String>,
}

impl ClientReport {
    /// Checks that every number is finite and not negative. Truncates lists at their limits and adds a note if it did.
    pub(super) fn checked(mut self) -> Result<ClientReport, String> {
        let latency = self.latency.iter();
        let latencies = latency.flat_map(|latency| {
            let values = latency.percentiles.iter().map(|value| value.us);
            latency.mean.into_iter().chain(latency.max).chain(values)
        });
        let rows = self.seconds.iter().flat_map(|row| [row.t, row.rps]);
        let single = [self.duration_s, self.rps].into_iter();
        let mut all = single.chain(self.bytes_per_s).chain(latencies).chain(rows);
        if let Some(wrong) = all.find(|value| !is_amount(*value)) {
            return Err(format!("one of its numbers is {wrong}"));
        }
        if let Some(latency) = &mut self.latency {
            cut(
                &mut latency.percentiles,
                PERCENTILES_MAX,
                "percentiles",
                &mut self.notes,
            );
        }
        cut(&mut self.seconds, CLIENT_ROWS_MAX, "rows", &mut self.notes);
        cut(
            &mut self.warnings,
            CLIENT_WARNINGS_MAX,
            "warnings",
            &mut self.notes,
        );
        Ok(self)
    }
}

fn cut<T>(list: &mut Vec<T>, most: usize, what: &str, notes: &mut Vec<String>) {
    if list.len() > most {
        notes.push(format!(
            "only the first {most} of {} {what} of the client are kept",
            list.len()
        ));
        list.truncate(most);
    }
}

pub(super) fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Latencies in microseconds; `None` if the client reports none.
///
/// Percentiles are named by their number without trailing zeros: sockperf's 99.900 and wrk2's 99.900% become 99.9.
/// Names that are not numbers between 0 and 100 are skipped; 100 would be the maximum.
pub(super) fn latency(
    mean: Option<f64>,
    max: Option<f64>,
    percentiles: impl IntoIterator<Item = (String, f64)>,
) -> Option<Latency> {
    let named = percentiles.into_iter().filter_map(|(name, us)| {
        let number: f64 = name.parse().ok()?;
        let is_inside = number > 0.0 && number < 100.0;
        let percentile = without_zeros(&name);
        is_inside.then_some((number, PercentileValue { percentile, us }))
    });
    let mut named: Vec<(f64, PercentileValue)> = named.collect();
    named.sort_by(|a, b| a.0.total_cmp(&b.0));
    let percentiles: Vec<_> = named.into_iter().map(|(_, value)| value).collect();
    let says_anything = mean.is_some() || max.is_some() || !percentiles.is_empty();
    says_anything.then_some(Latency {
        from: LatencyFrom::Sent,
        mean,
        max,
        percentiles,
    })
}

/// Removes trailing zeros: `99.900` becomes `99.9`, `50.000` becomes `50`, and `90` stays.
fn without_zeros(name: &str) -> String {
    match name.contains('.') {
        true => name.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => name.to_owned(),
    }
}

pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

pub(super) fn counted_from(from: LatencyFrom, latency: Option<Latency>) -> Option<Latency> {
    latency.map(|latency| Latency { from, ..latency })
}

/// Sums counts by status into classes. Keys other than three-digit statuses are skipped.
pub(super) fn by_class<'a>(
    statuses: impl IntoIterator<Item = (&'a String, &'a u64)>,
) -> BTreeMap<String, u64> {
    let mut classes = BTreeMap::new();
    for (status, count) in statuses {
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        if is_status && *count > 0 {
            let class = classes.entry(format!("{}xx", &status[..1])).or_insert(0u64);
            *class = class.saturating_add(*count);
        }
    }
    classes
}

pub(super) fn is_good_status(status: &str) -> bool {
    status.len() == 3 && status.starts_with(['2', '3'])
}

/// `7 responses had status 404`, for each status that is not 2xx or 3xx.
pub(super) fn status_warnings<'a>(
    statuses: impl IntoIterator<Item = (&'a String, &'a u64)>,
) -> Vec<String> {
    let bad = statuses
        .into_iter()
        .filter(|(status, count)| !is_good_status(status) && **count > 0);
    let words = bad.map(|(status, count)| {
        let count = onrush_measure::units::count(*count);
        format!("{count} responses had status {status}")
    });
    words.collect()
}
