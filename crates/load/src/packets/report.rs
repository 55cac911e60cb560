//! What a run has come to: the figures, for files and for people.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_engine::{Io, Segmentation};
use onrush_measure::histogram::Histogram;
use onrush_packet::tally::Tally;
use serde::Serialize;

use super::account::{Facts, Losses};
use super::counts::{Counts, PacketTimes, Unsent};
use super::departure::Departure;
use super::far::Far;
use super::kernel::{InterfaceCounters, KernelCounters};
use super::origin::{self, Origin};
use super::part::Outcome;
use super::plan::Way;
use super::run::Second;
use super::task::Task;
use super::verdict;
use crate::pace::target::lookup::Lookup;
use crate::pace::wall_clock::WallTime;
use crate::record::figures::Figures;
use crate::record::host::HostTime;
use crate::record::provenance;
use crate::record::times::Times;
use crate::record::unanswered::Unanswered;
use crate::report::latency::Latency;
use crate::verdict::Verdict;
use crate::verdict::threshold::{self, Threshold};

/// What is known behind a run.
pub(crate) struct Found<'a> {
    pub(crate) task: &'a Task,
    pub(crate) io: Io,
    pub(crate) outcomes: &'a [Outcome],
    pub(crate) seconds: Vec<Second>,
    pub(crate) began: Option<WallTime>,
    pub(crate) host: (HostTime, HostTime),
    pub(crate) kernel: KernelCounters,
}

/// The figures of a run. Times are in microseconds, rates per second; what is not known is left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What kind of result this is: `packets`.
    pub kind: &'static str,
    /// The target, as it was written.
    pub url: String,
    /// Where datagrams went.
    pub address: String,
    /// Name that was resolved to the address; empty if an address was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<Lookup>,
    /// `one_way` or `round_trip`.
    pub way: &'static str,
    /// Bytes of payload, as they were asked for.
    pub size: String,
    /// How they left: `single`, `batch`, `offload` or `xdp`.
    pub departure: &'static str,
    /// Datagrams that left as one message at most; with `offload` an interface may count such a message as one packet.
    pub datagrams_per_message: u64,
    /// Who made datagrams of messages: `kernel`, or `program` where the kernel refused to.
    pub segmentation: &'static str,
    /// Sockets.
    pub flows: u64,
    /// Threads.
    pub threads: u64,
    /// How the threads waited: `epoll` or `io_uring`; and whether they never slept.
    pub io: &'static str,
    /// Whether the threads never slept.
    pub busy_poll: bool,
    /// Seconds since 1970 at the beginning, by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_unix_s: Option<f64>,
    /// For how long datagrams were sent.
    pub duration_s: f64,
    /// Datagrams per second that were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_asked: Option<f64>,
    /// Datagrams that left.
    pub sent: u64,
    /// Bytes of payload of these.
    pub sent_bytes: u64,
    /// The same per second.
    pub sent_per_s: f64,
    /// Datagrams that were due and could not be sent in time.
    pub skipped: u64,
    /// Datagrams that the kernel did not take, by its reason.
    pub unsent: BTreeMap<String, u64>,
    /// How often the network said that nobody listens.
    pub refused: u64,
    /// Datagrams that came to the end of their way for the first time: to the far end one way, back here behind a round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// The same per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_per_s: Option<f64>,
    /// Of these, those that nobody waited for any more (round trips).
    pub late: u64,
    /// Of these, those with another length than they were sent with (round trips).
    pub wrong_length: u64,
    /// Datagrams that came again, at the end of their way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    /// Of those received, those behind one with a higher number (RFC 4737).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Datagrams that came so late that it is not known whether they had come before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_late: Option<u64>,
    /// How much the time on the way varies at the end of it (RFC 3550 6.4.1); of several sockets the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_us: Option<f64>,
    /// Datagrams that are none of this run.
    pub foreign: u64,
    /// The parts of the run by interface, or by source where several were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// Those that did not come, and where they were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Losses>,
    /// Round trips from when datagrams should have left; without a rate that is when they did.
    pub latency_us: Latency,
    /// Round trips from when they left.
    pub service_us: Latency,
    /// How late they left, at a rate.
    pub lateness_us: Latency,
    /// CPU time of the sending threads for each datagram that left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_datagram: Option<f64>,
    /// CPU time of the far end's threads for each datagram that they received, as they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_cpu_us_per_datagram: Option<f64>,
    /// The share of the time that each thread was on a CPU.
    pub cpu_shares: Vec<f64>,
    /// The largest share of the time for which a thread saw nothing that happened: it was stopped, or had no CPU.
    pub stalled_share: f64,
    /// What this machine's interfaces moved meanwhile, whoever it was for.
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// The seconds.
    pub seconds: Vec<SecondRow>,
    /// What becomes of conditions.
    pub thresholds: Vec<threshold::Outcome>,
    /// Whether the figures may be believed.
    pub verdict: Verdict,
    #[serde(skip)]
    pub(crate) times: PacketTimes,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SecondRow {
    /// Seconds since the beginning, at its end.
    pub t: f64,
    /// Datagrams that left in it.
    pub sent: u64,
    /// Echoes that came in it.
    pub received: u64,
}

/// What all cores have come to.
struct Sum {
    counts: Counts,
    times: PacketTimes,
    unsent: Unsent,
    skipped: u64,
    echoes: Tally,
    far: Option<Far>,
}

fn sum(outcomes: &[Outcome]) -> Sum {
    let mut sum = Sum {
        counts: Counts::default(),
        times: PacketTimes::default(),
        unsent: Unsent::default(),
        skipped: 0,
        echoes: Tally::default(),
        // Without the report of one flow nothing is said of what came.
        far: Far::of(outcomes.iter().flat_map(|outcome| &outcome.flows)),
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
    /// What was found behind a run, in figures.
    pub(crate) fn new(found: Found<'_>) -> Report {
        let elapsed = found.outcomes.iter().map(|outcome| outcome.elapsed).max();
        let elapsed = elapsed.unwrap_or_default();
        let sum = sum(found.outcomes);
        let mut report = asked(&found);
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

    /// What left, what came, and where the others are.
    fn counted(&mut self, sum: &Sum, found: &Found<'_>, elapsed: Duration) {
        let way = found.task.way;
        let per_second = |count: u64| match elapsed.is_zero() {
            true => 0.0,
            false => rounded(count as f64 / elapsed.as_secs_f64()),
        };
        let end = match way {
            Way::OneWay => sum.far.map(|far| far.tally),
            Way::RoundTrip => Some(sum.echoes),
        };
        self.sent = sum.counts.sent;
        self.sent_bytes = sum.counts.sent_bytes;
        self.sent_per_s = per_second(sum.counts.sent);
        self.skipped = sum.skipped;
        self.unsent = sum.unsent.named();
        self.refused = sum.counts.refused;
        // What came too late to be told from duplicates came all the same.
        let received = end.map(|end| end.received + end.too_late);
        self.received = received;
        self.received_per_s = received.map(per_second);
        self.late = sum.counts.late;
        self.wrong_length = sum.counts.wrong_length;
        self.duplicated = end.map(|end| end.duplicated);
        self.reordered = end.map(|end| end.reordered);
        self.too_late = end.map(|end| end.too_late);
        let departure = found.task.plan.options.departure;
        // Frames do not say when they left.
        let has_jitter = |end: &Tally| end.received > 1 && departure != Departure::Xdp;
        let jitter = end.filter(has_jitter).map(|end| end.jitter);
        self.jitter_us = jitter.map(|jitter| rounded(jitter / 1e3));
        self.foreign = sum.counts.foreign;
        self.losses = Losses::of(&Facts {
            way,
            sent: sum.counts.sent,
            per_packet: found.task.plan.per_packet(),
            received,
            far_received: sum.far.map(|far| far.tally.received),
            far_dropped: sum.far.map_or(0, |far| far.dropped),
            own_receive_buffer: found.kernel.receive_buffer,
            interfaces: interface_drops(found, &sum.unsent),
            backlog: found.kernel.backlog,
        });
    }

    /// What it cost both ends.
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

    /// The figures that conditions look at: a datagram that was lost is an error, one that came a response.
    fn figures(&self) -> Figures {
        let times = Times {
            response: self.times.response.clone(),
            service: self.times.service.clone(),
            send_lag: self.times.lateness.clone(),
            ..Times::default()
        };
        Figures {
            unanswered: Unanswered {
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

    /// Waits of datagrams that were lost: each counts as slower than all datagrams that came back after `times`.
    fn lost(&self, times: &Histogram) -> Histogram {
        let lost = self.losses.as_ref().map_or(0, |losses| losses.lost);
        let mut waits = Histogram::new();
        if times.count() > 0 {
            waits.record_many(times.max(), lost);
        }
        waits
    }

    /// What becomes of a condition. One about what came is undecided where nobody says what did.
    pub fn judge(&self, condition: &Threshold) -> threshold::Outcome {
        if !self.is_counted() && condition.is_about_receipt() {
            return condition.undecided("nobody says how many datagrams came".to_owned());
        }
        condition.judge(&self.figures())
    }

    /// Whether it is known how many datagrams came.
    pub fn is_counted(&self) -> bool {
        self.received.is_some()
    }

    /// The histogram of round trips, in nanoseconds.
    pub fn round_trips(&self) -> &Histogram {
        &self.times.response
    }

    /// Datagrams that the kernel did not take.
    pub fn unsent(&self) -> u64 {
        self.unsent.values().sum()
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        provenance::to_json(self)
    }
}

/// What was asked for; the rest is not known yet.
fn asked(found: &Found<'_>) -> Report {
    let task = found.task;
    let options = &task.plan.options;
    let by_engine = |outcome: &Outcome| outcome.segmentation == Segmentation::Engine;
    let is_offload = options.departure == Departure::Offload;
    Report {
        kind: "packets",
        url: options.target.url.clone(),
        address: task.target.to_string(),
        dns: task.lookup.iter().cloned().collect(),
        way: task.way.name(),
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

/// Packets that interfaces here dropped and that had left. Frames that one did not take are counted by it as dropped, too.
fn interface_drops(found: &Found<'_>, unsent: &Unsent) -> u64 {
    let drops = found.kernel.interface_drops();
    match found.task.plan.options.departure {
        Departure::Single | Departure::Batch | Departure::Offload => drops,
        Departure::Xdp => drops.saturating_sub(unsent.count()),
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

/// To ten thousandths: some figures are a few hundredths of a microsecond.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
