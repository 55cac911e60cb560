//! The rows of a result: its seconds, kinds of requests, threads, handshakes and parts.

use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};
use serde::{Deserialize, Serialize};

use super::latency::Latency;
use super::reported_options::ShardRow;
use super::rounding::{per_second, rounded, share_of};
use crate::connection::outcome::Outcome;
use crate::plan::Plan;
use crate::record::Handshakes;
use crate::record::host::ports::Ports;
use crate::record::kind::KindRecord;
use crate::record::rows::Row;

/// One of the results in a merged result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartRow {
    /// Digest of its measurements: equal for copies of one result.
    pub digest: String,
    /// Its share of the run.
    pub shard: Option<ShardRow>,
}

/// The TLS handshakes of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TlsRow {
    /// Number of handshakes.
    pub handshakes: u64,
    /// Handshakes resumed with a ticket.
    pub resumed: u64,
    /// Mean time from connected to the end of the handshake.
    pub mean_us: f64,
    /// Upper bound of the generator's own part of the mean: it noticed the end late; see
    /// [`Report::connect_own_us`](super::Report::connect_own_us).
    #[serde(default)]
    pub own_us: f64,
    /// Version of the first handshake.
    pub version: String,
    /// Cipher suite of the first handshake.
    pub cipher: String,
}

impl TlsRow {
    pub(super) fn of(handshakes: Handshakes) -> TlsRow {
        TlsRow {
            handshakes: handshakes.count,
            resumed: handshakes.resumed,
            mean_us: rounded(handshakes.sum_ns as f64 / 1000.0 / handshakes.count as f64),
            own_us: rounded(handshakes.own_ns as f64 / 1000.0 / handshakes.count as f64),
            version: handshakes.version.name().to_owned(),
            cipher: handshakes.cipher.to_owned(),
        }
    }
}

/// Local ports in a run that opens many connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PortsRow {
    /// Size of the ephemeral port range, or of the range given for this run.
    pub local: u64,
    /// Number of source addresses.
    pub addresses: u64,
    /// Connections of all programs in TIME_WAIT at the start, which keep their port.
    pub time_wait_before: u64,
    /// The same at the end.
    pub time_wait_after: u64,
}

impl PortsRow {
    pub(super) fn of(plan: &Plan, (before, after): (Ports, Ports)) -> PortsRow {
        let reach = &plan.options.reach;
        PortsRow {
            local: reach
                .source_ports
                .as_ref()
                .map_or(after.local, |ports| ports.len() as u64),
            addresses: reach.sources.count().max(1),
            time_wait_before: before.time_wait,
            time_wait_after: after.time_wait,
        }
    }

    /// Connections in TIME_WAIT added during the run, as a share of the ports of all addresses.
    pub(super) fn share(&self) -> f64 {
        let kept = self.time_wait_after.saturating_sub(self.time_wait_before);
        kept as f64 / (self.local * self.addresses).max(1) as f64
    }
}

/// Requests of one kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RequestRow {
    /// Method and path as given.
    pub name: String,
    /// Responses received.
    pub requests: u64,
    /// Unexpected responses.
    pub unexpected: u64,
    /// From the intended start to the last byte.
    pub latency_us: Latency,
    /// The same times as a histogram; see [`Histograms`](super::histograms::Histograms).
    pub histogram: String,
    /// Waits of its requests that were sent and got no response, as a histogram; `None` if there are no such requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<String>,
}

impl RequestRow {
    pub(crate) fn new(name: String, record: &KindRecord) -> RequestRow {
        let (response, waits) = (&record.response, &record.unanswered);
        RequestRow {
            name,
            requests: record.responses,
            unexpected: record.unexpected,
            latency_us: Latency::bounded(response, waits),
            histogram: response.to_base64(),
            unanswered: (waits.count() > 0).then(|| waits.to_base64()),
        }
    }

    /// Returns the counts and histograms that the figures are computed from.
    ///
    /// # Errors
    /// When a histogram cannot be decoded.
    pub(crate) fn record(&self) -> Result<KindRecord, String> {
        let waits = self.unanswered.as_deref().map(Histogram::from_base64);
        Ok(KindRecord {
            responses: self.requests,
            unexpected: self.unexpected,
            response: Histogram::from_base64(&self.histogram)?,
            unanswered: waits.transpose()?.unwrap_or_default(),
        })
    }
}

/// One thread of the generator.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ThreadRow {
    /// CPU to which it was pinned.
    pub cpu: Option<usize>,
    /// Share of the run during which it was on a CPU, 0 to 1.
    pub share: f64,
}

/// One second of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SecondRow {
    /// End of the row, in seconds since the start.
    pub t: f64,
    /// Connections open at the end of the row.
    pub connections: u64,
    /// Responses received during the row.
    pub requests: u64,
    /// Errors during the row.
    pub errors: u64,
    /// Unexpected responses among the errors.
    #[serde(default)]
    pub unexpected: u64,
    /// Responses per second.
    pub rps: f64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Mean time from the intended start to the complete head; `None` without responses.
    pub ttfb_us: Option<f64>,
    /// Mean time from the intended start to the last byte; `None` without responses.
    pub ttlb_us: Option<f64>,
    /// Responses during the row by status class, 1xx to 5xx.
    #[serde(default)]
    pub statuses: [u64; 5],
    /// Median response time of the requests that ended in the row. Each percentile is there if the count of requests
    /// supports it. Requests without a response count as slower than all others; a percentile among them is `None`.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// 99th percentile of the response times.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// 99.9th percentile of the response times.
    #[serde(default)]
    pub p99_9_us: Option<f64>,
    /// Largest response time; `None` without responses.
    #[serde(default)]
    pub max_us: Option<f64>,
    /// 99th percentile of the service times.
    #[serde(default)]
    pub service_p99_us: Option<f64>,
}

impl SecondRow {
    /// Returns the counts of `row` with the times of its responses.
    pub(crate) fn of(row: &Row, response: &Histogram, service: &Histogram) -> SecondRow {
        let second = row.second();
        let interval = row.elapsed.saturating_sub(row.elapsed_before);
        let requests = row.now.last_bytes - row.before.last_bytes;
        SecondRow {
            t: rounded(second.time_s),
            connections: second.connections_open,
            requests,
            errors: row.now.errors - row.before.errors,
            unexpected: row.now.unexpected - row.before.unexpected,
            rps: per_second(requests, interval),
            bytes_per_s: rounded(second.bytes_per_s),
            ttfb_us: second.first_byte_us.map(rounded),
            ttlb_us: second.last_byte_us.map(rounded),
            statuses: second.statuses,
            p50_us: supported(response, row.failed(), 50.0),
            p99_us: supported(response, row.failed(), 99.0),
            p99_9_us: supported(response, row.failed(), 99.9),
            max_us: (response.count() > 0).then(|| units::microseconds(response.max())),
            service_p99_us: supported(service, row.failed(), 99.0),
        }
    }
}

/// Returns a percentile, in microseconds, of the requests that ended in a second; `None` if the count does not support
/// it. Failed requests count as slower than all others, and a percentile among them is unknown.
pub(crate) fn supported(times: &Histogram, failed: u64, percentile: f64) -> Option<f64> {
    let count = times.count() + failed;
    let rank = percentile::rank(count, percentile);
    let is_known = count >= percentile::count_for(percentile) && rank <= times.count();
    is_known.then(|| units::microseconds(times.value_at_rank(rank)))
}

impl ThreadRow {
    pub(super) fn of(cpu: Option<usize>, outcome: &Outcome) -> ThreadRow {
        ThreadRow {
            cpu,
            share: rounded(share_of(outcome.end.time.cpu_ns, outcome.end.elapsed)),
        }
    }
}
