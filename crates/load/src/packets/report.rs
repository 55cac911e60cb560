//! Results of a run of datagrams, for files and for display.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_engine::{Io, Segmentation};
use onrush_measure::histogram::Histogram;
use onrush_packet::tally::FlowCounters;
use serde::Serialize;

use super::counts::{Counts, PacketTimes, Unsent};
use super::departure::SendMode;
use super::kernel::{InterfaceCounters, KernelCounters};
use super::loss::{Facts, Losses};
use super::origin::{self, Origin};
use super::part::Outcome;
use super::plan::Direction;
use super::run::Second;
use super::target_reports::TargetReports;
use super::task::RunContext;
use super::verdict;
use crate::pace::target::lookup::Lookup;
use crate::pace::wall_clock::WallTime;
use crate::record::figures::Figures;
use crate::record::host::HostTime;
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::provenance;
use crate::record::times::Times;
use crate::report::latency::Latency;
use crate::verdict::Verdict;
use crate::verdict::threshold::{self, Threshold};

pub(crate) struct ReportInputs<'a> {
    pub(crate) task: &'a RunContext,
    pub(crate) io: Io,
    pub(crate) outcomes: &'a [Outcome],
    pub(crate) seconds: Vec<Second>,
    pub(crate) began: Option<WallTime>,
    pub(crate) host: (HostTime, HostTime),
    pub(crate) kernel: KernelCounters,
}

/// Figures of a run. Times are in microseconds, rates per second; unknown figures are omitted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Kind of the result: `packets`.
    pub kind: &'static str,
    /// URL of the target.
    pub url: String,
    /// Destination address.
    pub address: String,
    /// Resolution of the name; empty if an address was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<Lookup>,
    /// `one_way` or `round_trip`.
    #[serde(rename = "way")]
    pub direction: &'static str,
    /// Bytes of payload, as given by the user.
    pub size: String,
    /// How they were sent: `single`, `batch`, `offload` or `xdp`.
    pub departure: &'static str,
    /// Maximum of datagrams per message; with `offload` an interface may count a message as one packet.
    pub datagrams_per_message: u64,
    /// Whether `kernel` or `program` segmented messages; the latter if the kernel refused.
    pub segmentation: &'static str,
    /// Number of sockets.
    pub flows: u64,
    /// Number of threads.
    pub threads: u64,
    /// Driver: `epoll` or `io_uring`.
    pub io: &'static str,
    /// Whether the threads never slept.
    pub busy_poll: bool,
    /// Start in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_unix_s: Option<f64>,
    /// Time during which datagrams were sent.
    pub duration_s: f64,
    /// Target rate in datagrams per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_asked: Option<f64>,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of payload sent.
    pub sent_bytes: u64,
    /// Datagrams sent per second.
    pub sent_per_s: f64,
    /// Datagrams that were due and could not be sent in time.
    pub skipped: u64,
    /// Datagrams that the kernel refused, by reason.
    pub unsent: BTreeMap<String, u64>,
    /// Errors because nothing listens at the target (ICMP port unreachable).
    pub refused: u64,
    /// Datagrams that reached their destination, without duplicates: the target one way, this program after a round
    /// trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Datagrams received per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_per_s: Option<f64>,
    /// Echoes received after the timeout.
    pub late: u64,
    /// Echoes with a different length than the datagram.
    pub wrong_length: u64,
    /// Duplicates at the destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    /// Datagrams received after one with a higher number (RFC 4737).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Datagrams too late to be recognized as duplicates or first arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_late: Option<u64>,
    /// Jitter at the destination (RFC 3550 section 6.4.1); the largest of all sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_us: Option<f64>,
    /// Received datagrams that are not from this run.
    pub foreign: u64,
    /// Figures by interface, or by source if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// Lost datagrams by cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Losses>,
    /// Round-trip times from the intended send time; without a rate, from the actual one.
    pub latency_us: Latency,
    /// Round-trip times from the actual send time.
    pub service_us: Latency,
    /// Delay of sending, at a rate.
    pub lateness_us: Latency,
    /// CPU time of the sending threads per datagram sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_datagram: Option<f64>,
    /// CPU time of the target's threads per datagram received, as reported by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_cpu_us_per_datagram: Option<f64>,
    /// CPU share of each thread.
    pub cpu_shares: Vec<f64>,
    /// Largest share of the run during which a thread was stalled: stopped, or without a CPU.
    pub stalled_share: f64,
    /// Traffic of this machine's interfaces during the run, of all programs.
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// Figures of each second.
    pub seconds: Vec<SecondRow>,
    /// Results of thresholds.
    pub thresholds: Vec<threshold::JudgedThreshold>,
    /// Whether the figures are valid.
    pub verdict: Verdict,
    #[serde(skip)]
    pub(crate) times: PacketTimes,
}

/// Figures of one second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SecondRow {
    /// End of the second, in seconds since the start.
    pub t: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Echoes received.
    pub received: u64,
}

struct Sum {
    counts: Counts,
    times: PacketTimes,
    unsent: Unsent,
    skipped: u64,
    echoes: FlowCounters,
    far: Option<TargetReports>,
}

fn sum(outcomes: &[Outcome]) -> Sum {
    let mut sum = Sum {
        counts: Counts::default(),
        times: PacketTimes::default(),
        unsent: Unsent::default(),
        skipped: 0,
        echoes: FlowCounters::default(),
        // Unknown if the report of one flow is missing.
        far: TargetReports::of(outcomes.iter().flat_map(|outcome| &outcome.flows)),
    };
    for outcome in outcomes {
        sum.counts.add(&outcome.counts);
        sum.times.merge(&outcome.times);
        sum.unsent.merge(&outcome.unsent);
        sum.skipped += outcome.skipped;
        sum.echoes.add(&outcome.echoes);
    }
    sum
}

impl Report {
    pub(crate) fn new(found: ReportInputs<'_>) -> Report {
        let elapsed = found.outcomes.iter().map(|outcome| outcome.elapsed).max();
        let elapsed = elapsed.unwrap_or_default();
        let sum = sum(found.outcomes);
        let mut report = with_options(&found);
        report.duration_s = rounded(elapsed.as_secs_f64());
        report.began_unix_s = found.began.map(|began| began.nanoseconds() as f64 / 1e9);
        report.seconds = found.seconds.iter().map(row).collect();
        report.interfaces = found.kernel.interfaces.clone();
        report.counted(&sum, &found, elapsed);
        report.cost(&sum, found.outcomes);
        let flows = found.outcomes.iter().flat_map(|outcome| &outcome.flows);
        report.origins = origin::of(found.task, flows);
        report.latency_us =
            Latency::bounded(&sum.times.response, &report.lost(&sum.times.response));
        report.service_us = Latency::bounded(&sum.times.service, &report.lost(&sum.times.service));
        report.lateness_us = Latency::of(&sum.times.lateness);
        report.times = sum.times;
        let steal = found.host.1.steal_share_since(&found.host.0);
        report.verdict = verdict::of(&report, steal);
        report
    }

    /// Sets the figures of sent, received and lost datagrams.
    fn counted(&mut self, sum: &Sum, found: &ReportInputs<'_>, elapsed: Duration) {
        let way = found.task.direction;
        let per_second = |count: u64| match elapsed.is_zero() {
            true => 0.0,
            false => rounded(count as f64 / elapsed.as_secs_f64()),
        };
        let end = match way {
            Direction::OneWay => sum.far.map(|far| far.tally),
            Direction::RoundTrip => Some(sum.echoes),
        };
        self.sent = sum.counts.sent;
        self.sent_bytes = sum.counts.sent_bytes;
        self.sent_per_s = per_second(sum.counts.sent);
        self.skipped = sum.skipped;
        self.unsent = sum.unsent.named();
        self.refused = sum.counts.refused;
        // Datagrams that are too late to be classified have arrived nevertheless.
        let received = end.map(|end| end.received + end.too_late);
        self.received = received;
        self.received_per_s = received.map(per_second);
        self.late = sum.counts.late;
        self.wrong_length = sum.counts.wrong_length;
        self.duplicated = end.map(|end| end.duplicated);
        self.reordered = end.map(|end| end.reordered);
        self.too_late = end.map(|end| end.too_late);
        let departure = found.task.plan.options.departure;
        // Frames have no send time.
        let has_jitter = |end: &FlowCounters| end.received > 1 && departure != SendMode::Xdp;
        let jitter = end.filter(has_jitter).map(|end| end.jitter);
        self.jitter_us = jitter.map(|jitter| rounded(jitter / 1e3));
        self.foreign = sum.counts.foreign;
        self.losses = Losses::of(&Facts {
            direction: way,
            sent: sum.counts.sent,
            per_packet: found.task.plan.per_packet(),
            received,
            target_received: sum.far.map(|far| far.tally.received),
            target_dropped: sum.far.map_or(0, |far| far.dropped),
            own_receive_buffer: found.kernel.receive_buffer,
            interfaces: interface_drops(found, &sum.unsent),
            backlog: found.kernel.backlog,
        });
    }

    /// Sets the CPU figures of both ends.
    fn cost(&mut self, sum: &Sum, outcomes: &[Outcome]) {
        let cpu: u64 = outcomes.iter().map(|outcome| outcome.time.cpu_ns).sum();
        let per_datagram =
            |cpu: u64, count: u64| (count > 0).then(|| rounded(cpu as f64 / 1e3 / count as f64));
        self.cpu_us_per_datagram = per_datagram(cpu, sum.counts.sent);
        self.far_cpu_us_per_datagram = sum
            .far
            .and_then(|far| per_datagram(far.cpu, far.tally.received));
        self.cpu_shares = outcomes.iter().map(share).collect();
        let stalled = |outcome: &Outcome| {
            outcome.stalled.as_secs_f64() / outcome.elapsed.as_secs_f64().max(1e-9)
        };
        self.stalled_share = outcomes.iter().map(stalled).fold(0.0, f64::max);
    }

    /// Returns the figures for thresholds: a lost datagram is an error, a received one a response.
    fn figures(&self) -> Figures {
        let times = Times {
            response: self.times.response.clone(),
            service: self.times.service.clone(),
            send_lag: self.times.lateness.clone(),
            ..Times::default()
        };
        Figures {
            unanswered: IncompleteWaits {
                response: self.lost(&self.times.response),
                service: self.lost(&self.times.service),
            },
            times,
            responses: self.received.unwrap_or(0),
            errors: self.losses.as_ref().map_or(0, |losses| losses.lost),
            missed: self.skipped,
            rps: self.received_per_s.unwrap_or(0.0),
            ..Figures::default()
        }
    }

    /// Returns the wait of each lost datagram, which counts as slow as the slowest echo in `times`.
    fn lost(&self, times: &Histogram) -> Histogram {
        let lost = self.losses.as_ref().map_or(0, |losses| losses.lost);
        let mut waits = Histogram::new();
        if times.count() > 0 {
            waits.record_many(times.max(), lost);
        }
        waits
    }

    /// Evaluates a threshold. One about received datagrams is undecided if their number is unknown.
    pub fn judge(&self, condition: &Threshold) -> threshold::JudgedThreshold {
        if !self.is_counted() && condition.needs_receipt_counts() {
            return condition.undecided("the number of received datagrams is not known".to_owned());
        }
        condition.judge(&self.figures())
    }

    /// Whether the number of received datagrams is known.
    pub fn is_counted(&self) -> bool {
        self.received.is_some()
    }

    /// Returns the histogram of round trips, in nanoseconds.
    pub fn round_trips(&self) -> &Histogram {
        &self.times.response
    }

    /// Returns the number of datagrams that the kernel refused.
    pub fn unsent(&self) -> u64 {
        self.unsent.values().sum()
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        provenance::to_json(self)
    }
}

/// Creates a report with the options only.
fn with_options(found: &ReportInputs<'_>) -> Report {
    let task = found.task;
    let options = &task.plan.options;
    let by_engine = |outcome: &Outcome| outcome.segmentation == Segmentation::Engine;
    let is_offload = options.departure == SendMode::Offload;
    Report {
        kind: "packets",
        url: options.target.url.clone(),
        address: task.target.to_string(),
        dns: task.lookup.iter().cloned().collect(),
        direction: task.direction.name(),
        size: options.sizes.to_string(),
        departure: options.departure.name(),
        datagrams_per_message: task.plan.segments() as u64,
        segmentation: match is_offload && found.outcomes.iter().any(by_engine) {
            true => "program",
            false => "kernel",
        },
        flows: options.flows as u64,
        threads: options.threads as u64,
        io: match found.io {
            Io::Epoll => "epoll",
            Io::IoUring => "io_uring",
            Io::Auto => "auto",
        },
        busy_poll: options.busy_poll,
        rate_asked: task.plan.rate,
        ..Report::default()
    }
}

/// Returns the sent packets that interfaces dropped. An interface also counts refused frames as dropped.
fn interface_drops(found: &ReportInputs<'_>, unsent: &Unsent) -> u64 {
    let drops = found.kernel.interface_drops();
    match found.task.plan.options.departure {
        SendMode::Single | SendMode::Batch | SendMode::Offload => drops,
        SendMode::Xdp => drops.saturating_sub(unsent.count()),
    }
}

fn row(second: &Second) -> SecondRow {
    SecondRow {
        t: second.t,
        sent: second.sent,
        received: second.received,
    }
}

fn share(outcome: &Outcome) -> f64 {
    let elapsed = outcome.elapsed.as_nanos().max(1) as f64;
    rounded((outcome.time.cpu_ns as f64 / elapsed).min(1.0))
}

/// Rounds to ten-thousandths: some figures are a few hundredths of a microsecond.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
