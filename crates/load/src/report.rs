//! Result of a run: figures, verdict and warnings, as JSON (`docs/load-result.schema.json`), text, HTML and CSV.

pub(crate) mod confidence_interval;
pub mod csv;
pub(crate) mod exact_times;
pub mod find_max;
pub mod hdr;
pub mod html;
pub mod snapshot;

pub mod classes;
pub mod histograms;
pub mod journeys;
mod json;
mod judgement;
pub mod latency;
pub mod memcached;
pub mod reported_options;
pub mod rows;
mod text;

pub(crate) mod report_input;
mod rounding;
mod warnings;

use std::collections::BTreeMap;

use onrush_measure::second::{Second, Tally};
use serde::{Deserialize, Serialize};

use crate::journey::Journeys;
use crate::pace::target::Target;
use crate::pace::target::lookup::Lookup;
use crate::pace::wall_clock::ClockRow;
use crate::plan::Plan;
use crate::protocol;
use crate::protocol::failure::Failure;
use crate::record::Record;
use crate::record::evidence::Evidence;
use crate::record::figures::{Figures, Kind};
use crate::record::history::History;
use crate::record::incomplete_waits::{Censored, IncompleteWaits};
use crate::record::journeys::JourneysRecord;
use crate::record::times::Times;
use crate::report::confidence_interval::Blocks;
use crate::verdict::Verdict;
use crate::verdict::reason::Reason;
use crate::verdict::threshold;
use classes::ClassRow;
use histograms::Histograms;
use journeys::JourneyRow;
use latency::Latency;
use memcached::MemcachedRow;
use report_input::{ReportInput, Window, evidence, silence};
use reported_options::ReportedOptions;
use rounding::{microseconds, per_second, rounded};
use rows::{PartRow, PortsRow, RequestRow, SecondRow, ThreadRow, TlsRow};
use warnings::warnings;

/// Column headers of the lines for the seconds of a run, as in h1load.
pub const COLUMNS: &str = Second::HEADER;

/// Result of a run. The fields are the keys of the JSON; times are in microseconds unless the key has another unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The URL, and the number of further URLs.
    pub target: String,
    /// Options of the run, with defaults filled in.
    pub options: ReportedOptions,
    /// Responses received.
    pub requests: u64,
    /// Requests without a response, unexpected responses, and failures to connect.
    pub errors: u64,
    /// `errors` by kind; the sum of the kinds is `errors`.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Duration of the run.
    pub duration_s: f64,
    /// Responses per second over [`measured_s`](Self::measured_s).
    pub rps: f64,
    /// Duration of the part of the run that rates are computed from: without ramp and warm-up, and without the time in
    /// which the target sent no responses; in an open loop only without such a time at the end.
    #[serde(default)]
    pub measured_s: f64,
    /// Bytes received, heads and bodies.
    pub bytes: u64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Responses by status; the sum is `requests`.
    pub statuses: BTreeMap<String, u64>,
    /// From the intended start of a request to the last byte of its response.
    pub latency_us: Latency,
    /// Names resolved before the run; empty if addresses were given.
    #[serde(default)]
    pub dns: Vec<Lookup>,
    /// Response times by status class.
    #[serde(default)]
    pub by_class: Vec<ClassRow>,
    /// From the request being written to the last byte of its response.
    #[serde(default)]
    pub service_us: Latency,
    /// From the intended start of a request to its being written.
    #[serde(default)]
    pub send_lag_us: Latency,
    /// From the request being written to the complete head of its response.
    #[serde(default)]
    pub first_byte_us: Latency,
    /// Connect times, from the first packet of a connection.
    #[serde(default)]
    pub connect_us: Latency,
    /// Upper bound of the generator's own part of the mean connect time: it was busy and noticed the connect late.
    #[serde(default)]
    pub connect_own_us: Option<f64>,
    /// Times of TLS handshakes, from connected.
    #[serde(default)]
    pub tls_us: Latency,
    /// CPU time of the generator per response, user and system; `None` without responses.
    pub cpu_us_per_request: Option<f64>,
    /// CPU use of each thread.
    pub cores: Vec<ThreadRow>,
    /// Connections established.
    pub connections: u64,
    /// TLS handshakes; `None` without TLS.
    pub tls: Option<TlsRow>,
    /// Requests sent again because the server had not processed them: it closed a kept-alive connection before they
    /// arrived, excluded them in a GOAWAY, or refused their streams. They are not errors.
    pub resent: u64,
    /// Resent requests whose HTTP/2 streams were refused before the server had sent its limit on concurrent streams.
    #[serde(default)]
    pub refused: u64,
    /// Use of local ports, if requests per connection are limited; `None` over Unix sockets and in merged results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortsRow>,
    /// Requests that were due and never sent.
    #[serde(default)]
    pub missed: u64,
    /// Requests without a response at the end.
    #[serde(default)]
    pub unfinished: u64,
    /// Unfinished requests whose response came shortly after the end.
    #[serde(default)]
    pub late: u64,
    /// Counts of memcached's commands, keys and values; `None` with other protocols.
    #[serde(default)]
    pub memcached: Option<MemcachedRow>,
    /// Facts by which the run is judged.
    #[serde(default)]
    pub evidence: Evidence,
    /// Why the run was stopped early; `None` if it was not.
    #[serde(default)]
    pub stopped_because: Option<String>,
    /// Counters at the end of ramp and warm-up.
    #[serde(skip)]
    pub unmeasured: Tally,
    /// Histograms of the whole run.
    #[serde(skip)]
    pub times: Times,
    /// Waits of requests without a response.
    #[serde(skip)]
    pub unanswered: IncompleteWaits,
    /// Histograms of each second.
    #[serde(skip)]
    pub history: History,
    /// Counts of each second; the last row may be shorter, and in a run of hours a row is several seconds.
    pub seconds: Vec<SecondRow>,
    /// Warnings about the figures, as sentences.
    pub warnings: Vec<String>,
    /// Requests of each kind; empty with one kind or more than [`KINDS_SHOWN_MAX`](crate::limits::KINDS_SHOWN_MAX).
    #[serde(default)]
    pub by_request: Vec<RequestRow>,
    /// Results of each journey, in a run with users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyRow>,
    /// Results of the setup steps of users; no other figure includes their requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<JourneyRow>,
    /// Start of the run by this machine's clock, in Unix time; `None` in results of versions that did not report it.
    #[serde(default)]
    pub began_unix_s: Option<f64>,
    /// Start as text, intended start, and state of the clock.
    #[serde(default)]
    pub clock: ClockRow,
    /// All histograms, for [`merge`](crate::merge) and [`compare`](crate::compare).
    #[serde(default)]
    pub histograms: Option<Histograms>,
    /// The results that a merged result contains; empty in others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRow>,
    /// Whether the run is valid.
    #[serde(default)]
    pub verdict: Verdict,
    /// Thresholds of the run and their outcomes.
    #[serde(default)]
    pub thresholds: Vec<threshold::JudgedThreshold>,
}

impl Report {
    pub(crate) fn new(found: ReportInput<'_>) -> Report {
        let ReportInput { plan, outcomes, .. } = found;
        let mut record = Record::new(plan.protocol.outcomes());
        outcomes.iter().for_each(|core| record.merge(&core.record));
        let elapsed = outcomes.iter().map(|core| core.end.elapsed).max();
        let elapsed = elapsed.unwrap_or_default();
        let cpu_ns: u64 = outcomes.iter().map(|core| core.end.time.cpu_ns).sum();
        let (responses, bytes) = (record.responses(), record.tally.bytes);
        let cores: Vec<ThreadRow> = outcomes
            .iter()
            .enumerate()
            .map(|(core, outcome)| ThreadRow::of(plan.cpu_of(core), outcome))
            .collect();
        let silence = silence(&found, &record, elapsed);
        let window = Window::of(
            outcomes,
            silence.excluded(plan.due_within(elapsed)),
            elapsed,
        );
        let evidence = evidence(&found, &record, elapsed, &silence);
        let times = found.times;
        let blocks = Blocks::of(&found.history);
        let mut report = Report {
            target: plan.target(),
            dns: found.lookup.into_iter().collect(),
            by_class: classes::rows(&record, &times.response),
            options: ReportedOptions::of(plan, found.io),
            requests: responses,
            errors: record.tally.errors,
            errors_by_kind: Failure::ALL
                .map(|kind| (kind.name().to_owned(), record.failures_of(kind)))
                .into(),
            duration_s: rounded(elapsed.as_secs_f64()),
            rps: per_second(responses - window.before.last_bytes, window.time),
            bytes,
            bytes_per_s: per_second(bytes - window.before.bytes, window.time),
            measured_s: rounded(window.time.as_secs_f64()),
            statuses: record.outcome_counts().collect(),
            latency_us: Latency::bounded(&times.response, &record.unanswered.response).by_blocks(
                &Censored::new(&times.response, &record.unanswered.response),
                &blocks.response,
            ),
            service_us: Latency::bounded(&times.service, &record.unanswered.service).by_blocks(
                &Censored::new(&times.service, &record.unanswered.service),
                &blocks.service,
            ),
            send_lag_us: Latency::of(&times.send_lag),
            first_byte_us: Latency::bounded(&times.first_byte, &record.unanswered.service),
            connect_us: Latency::of(&times.connect),
            connect_own_us: (times.connect.count() > 0)
                .then(|| rounded(record.connect_own_ns as f64 / 1e3 / record.established as f64)),
            tls_us: Latency::of(&times.tls),
            cpu_us_per_request: (responses > 0)
                .then(|| rounded(cpu_ns as f64 / 1e3 / responses as f64)),
            cores,
            connections: record.established,
            tls: record.handshakes.map(TlsRow::of),
            resent: record.resent,
            refused: record.refused,
            ports: found.ports.map(|ports| PortsRow::of(plan, ports)),
            missed: evidence.missed,
            unfinished: evidence.unfinished,
            late: record.late,
            memcached: MemcachedRow::of(
                outcomes.iter().map(|core| core.counts.as_ref()),
                plan.filled.as_ref(),
            ),
            stopped_because: found.reason,
            seconds: seconds(&found.history),
            by_request: by_request(plan, &record),
            journeys: of_journeys(plan, &record, journeys::rows).unwrap_or_default(),
            setup: of_journeys(plan, &record, journeys::setup).flatten(),
            began_unix_s: found.began.map(|began| microseconds(began.seconds())),
            clock: ClockRow::new(found.began, plan.options.start_at),
            histograms: Some(Histograms::of(&times, &record.unanswered)),
            verdict: Verdict::of(&evidence),
            evidence,
            parts: Vec::new(),
            unmeasured: window.before,
            times,
            unanswered: record.unanswered.clone(),
            history: found.history,
            warnings: Vec::new(),
            thresholds: Vec::new(),
        };
        let reasons = report.verdict.reasons.iter().map(Reason::to_string);
        report.warnings = reasons
            .chain(warnings(&report, plan, &record, found.prospect))
            .collect();
        report
    }
}

impl Report {
    /// Warnings that are not reasons of the verdict.
    pub fn other_warnings(&self) -> &[String] {
        let reasons = self.verdict.reasons.len();
        self.warnings.get(reasons..).unwrap_or_default()
    }

    /// Requests sent again over another connection, because the server had closed theirs.
    pub(crate) fn resent_after_close(&self) -> u64 {
        self.resent.saturating_sub(self.refused)
    }

    /// Names of the status classes counted in rows.
    pub(crate) fn class_names(&self) -> [&'static str; 5] {
        // Derived from the URL, which is also in results of earlier versions.
        let is_grpc = Target::of_url(self.target.split(' ').next().unwrap_or_default())
            .is_ok_and(|target| target.scheme.is_grpc());
        match self.memcached {
            None if is_grpc => protocol::grpc::OUTCOMES.classes,
            None => protocol::http1::OUTCOMES.classes,
            Some(_) => protocol::memcached::OUTCOMES.classes,
        }
    }

    /// Responses and errors, each attempt counted once.
    pub fn attempts(&self) -> u64 {
        self.requests + self.errors - self.unexpected()
    }

    /// All requests due: with a response, failed, unfinished or never sent.
    pub fn due_requests(&self) -> u64 {
        self.requests + self.evidence.failures + self.unfinished + self.missed
    }

    fn unexpected(&self) -> u64 {
        let kinds = Failure::ALL.into_iter().filter(|kind| kind.has_response());
        let counts = kinds.filter_map(|kind| self.errors_by_kind.get(kind.name()));
        counts.sum()
    }

    /// Returns the figures of one kind of time.
    pub fn latency_of(&self, kind: Kind) -> &Latency {
        match kind {
            Kind::Response => &self.latency_us,
            Kind::Service => &self.service_us,
            Kind::SendLag => &self.send_lag_us,
            Kind::FirstByte => &self.first_byte_us,
            Kind::Connect => &self.connect_us,
            Kind::Tls => &self.tls_us,
        }
    }

    /// Returns the figures that thresholds are judged by.
    pub fn figures(&self) -> Figures {
        Figures {
            times: self.times.clone(),
            responses: self.requests,
            errors: self.errors,
            unexpected: self.unexpected(),
            timeouts: self.evidence.timeouts,
            unanswered: self.unanswered.clone(),
            unfinished: self.unfinished,
            resent: self.resent,
            missed: self.missed,
            checks: judgement::checks(&self.journeys),
            statuses: self.statuses.clone(),
            rps: self.rps,
        }
    }
}

fn by_request(plan: &Plan, record: &Record) -> Vec<RequestRow> {
    let rows = plan.kinds().zip(&record.kinds);
    rows.map(|(of, kind)| RequestRow::new(of.name.clone(), kind))
        .collect()
}

/// Calls `make` in a run with journeys.
fn of_journeys<T>(
    plan: &Plan,
    record: &Record,
    make: impl FnOnce(&Journeys, &JourneysRecord) -> T,
) -> Option<T> {
    let (journeys, _) = plan.journeys.as_ref()?;
    Some(make(journeys, record.journeys.as_ref()?))
}

fn seconds(history: &History) -> Vec<SecondRow> {
    let rows = history.rows().zip(history.intervals());
    rows.map(|(row, interval)| SecondRow::of(row, &interval.response, &interval.service))
        .collect()
}
