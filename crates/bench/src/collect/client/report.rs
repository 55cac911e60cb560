//! What a client says it measured, whichever client it is, and the bounds of it. Pure.

use std::collections::BTreeMap;

use crate::limits::{CLIENT_ROWS_MAX, CLIENT_WORDS_MAX, PERCENTILES_MAX};
use crate::outcome::{Latency, PercentileValue, Second};
use crate::scenario::{Counted, LatencyFrom};

/// What a client counted. Nothing in it is made up: what a client does not report is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientReport {
    /// What `requests`, `errors` and `rps` are numbers of.
    pub counted: Counted,
    /// Responses received.
    pub requests: u64,
    /// Requests that failed, responses with a status other than 2xx and 3xx among them where the client tells.
    pub errors: u64,
    /// By the client's clock.
    pub duration_s: f64,
    /// By the client's clock.
    pub rps: f64,
    /// Bytes received. Absent when the client reports none.
    pub bytes_per_s: Option<f64>,
    /// Responses by class of status, `2xx` to `5xx`; empty when the client reports none.
    pub statuses: BTreeMap<String, u64>,
    /// Absent when the client reports none.
    pub latency: Option<Latency>,
    /// Absent when the client reports none.
    pub seconds: Vec<Second>,
    /// What the client itself found wrong, in its own words.
    pub warnings: Vec<String>,
    /// Why the client itself takes its numbers for wrong.
    pub distrust: Vec<String>,
    /// What a reader must know of this client to read its numbers.
    pub notes: Vec<String>,
}

impl ClientReport {
    /// Itself, when it can be a measurement: every number is finite and not negative. Lists are cut at their bounds, which
    /// is noted.
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
            CLIENT_WORDS_MAX,
            "warnings",
            &mut self.notes,
        );
        Ok(self)
    }
}

fn cut<T>(list: &mut Vec<T>, most: usize, what: &str, notes: &mut Vec<String>) {
    if list.len() > most {
        notes.push(format!(
            "of {} {what} of the client the first {most} are here",
            list.len()
        ));
        list.truncate(most);
    }
}

/// Whether a measurement can have this value.
pub(super) fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Latencies from what a client reports of them, in microseconds; `None` when it reports nothing.
///
/// A percentile is named by its number as the client writes it, without zeros at the end: sockperf's 99.900 and wrk2's
/// 99.900% are the 99.9 of others. What is no number between 0 and 100 is none: 100 is the largest.
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

/// `99.900` is `99.9`, `50.000` is `50`, and `90` stays.
fn without_zeros(name: &str) -> String {
    match name.contains('.') {
        true => name.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => name.to_owned(),
    }
}

/// The sum of a list, or the largest number where that is beyond it.
pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// The same latencies, counted from another moment than sending.
pub(super) fn counted_from(from: LatencyFrom, latency: Option<Latency>) -> Option<Latency> {
    latency.map(|latency| Latency { from, ..latency })
}

/// Responses by class of status, from counts by status. Anything that is not a status of three digits is left out.
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

/// Whether a status of HTTP, as text, is one of a request that went well.
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
