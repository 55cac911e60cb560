//! The rows of a result: its seconds, kinds of requests, threads, handshakes and parts.

use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};
use serde::{Deserialize, Serialize};

use super::asked::ShardRow;
use super::latency::Latency;
use super::number::{per_second, rounded, share_of};
use crate::connection::outcome::Outcome;
use crate::plan::Plan;
use crate::record::Handshakes;
use crate::record::host::ports::Ports;
use crate::record::kind::KindRecord;
use crate::record::rows::Row;

/// One result that a sum is made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartRow {
    /// A name for what it measured: equal for copies of one result.
    pub digest: String,
    /// Which part of the run it was.
    pub shard: Option<ShardRow>,
}

/// The TLS handshakes of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TlsRow {
    /// How many there were.
    pub handshakes: u64,
    /// Of these, with a ticket of an earlier connection.
    pub resumed: u64,
    /// Their mean time, from the connection to the keys.
    pub mean_us: f64,
    /// How much of the mean the generator itself may have added, since it saw the end late; see
    /// [`Report::connect_own_us`](super::Report::connect_own_us).
    #[serde(default)]
    pub own_us: f64,
    /// The version of the first.
    pub version: String,
    /// The cipher suite of the first.
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

/// The local ports of a run that makes its connections again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PortsRow {
    /// Ports that the kernel gives to connections from one address, or those that were given for it.
    pub local: u64,
    /// Addresses that connections came from.
    pub addresses: u64,
    /// Connections of all programs that had ended less than a minute before and kept their port (TIME_WAIT), at the beginning.
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

    /// The share of the ports of all addresses that the connections kept which ended during the run.
    pub(super) fn share(&self) -> f64 {
        let kept = self.time_wait_after.saturating_sub(self.time_wait_before);
        kept as f64 / (self.local * self.addresses).max(1) as f64
    }
}

/// What came of the requests of one kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RequestRow {
    /// Its method and its path, as they were given.
    pub name: String,
    /// Responses received.
    pub requests: u64,
    /// Of these, others than expected.
    pub unexpected: u64,
    /// From the intended start to the last byte.
    pub latency_us: Latency,
    /// The same as a histogram; see [`Histograms`](super::histograms::Histograms).
    pub histogram: String,
    /// Waits of its requests that were sent and got no response, as a histogram; `None` if there are no such requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<String>,
}

impl RequestRow {
    /// Figures of the requests called `name`.
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

    /// Counts and histograms from which the figures are computed.
    ///
    /// # Errors
    /// When a histogram cannot be read.
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
pub struct Busy {
    /// The CPU it was pinned to.
    pub cpu: Option<usize>,
    /// The share of the run during which it was on a CPU, 0 to 1.
    pub share: f64,
}

/// What happened in one second.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SecondRow {
    /// The end of the row, in seconds since the start.
    pub t: f64,
    /// Connections open then.
    pub connections: u64,
    /// Responses received during the row.
    pub requests: u64,
    /// Errors during the row.
    pub errors: u64,
    /// Of these, responses other than expected.
    #[serde(default)]
    pub unexpected: u64,
    /// Responses per second.
    pub rps: f64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Mean time to the end of the head; none without responses.
    pub ttfb_us: Option<f64>,
    /// Mean time to the last byte; none without responses.
    pub ttlb_us: Option<f64>,
    /// Responses during the row by class of status, 1xx to 5xx.
    #[serde(default)]
    pub statuses: [u64; 5],
    /// The median response time of the requests that ended in the row. Each percentile is there if the count of requests supports
    /// it. Requests without a response count as slower than all others; a percentile that falls among them is `None`.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// The 99th percentile of their response times.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// The 99.9th percentile.
    #[serde(default)]
    pub p99_9_us: Option<f64>,
    /// Their largest response time; none without responses.
    #[serde(default)]
    pub max_us: Option<f64>,
    /// The 99th percentile of their service times.
    #[serde(default)]
    pub service_p99_us: Option<f64>,
}

impl SecondRow {
    /// What `row` counts, with what its responses took.
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

/// A percentile in microseconds of the requests that ended in a second, where their count supports it. Failed requests count as
/// slower than all others, and a percentile among them is unknown.
pub(crate) fn supported(times: &Histogram, failed: u64, percentile: f64) -> Option<f64> {
    let count = times.count() + failed;
    let rank = percentile::rank(count, percentile);
    let is_known = count >= percentile::count_for(percentile) && rank <= times.count();
    is_known.then(|| units::microseconds(times.value_at_rank(rank)))
}

impl Busy {
    /// The thread of a core on this CPU.
    pub(super) fn of(cpu: Option<usize>, outcome: &Outcome) -> Busy {
        Busy {
            cpu,
            share: rounded(share_of(outcome.end.time.cpu_ns, outcome.end.elapsed)),
        }
    }
}
