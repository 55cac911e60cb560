//! What a run came to: the figures, what speaks against them, as JSON (`docs/load-result.schema.json`) and as text.

pub(crate) mod certainty;
pub mod csv;
pub(crate) mod exact;
pub mod find_max;
pub mod hdr;
pub mod html;
pub mod moment;

pub mod asked;
pub mod classes;
pub mod histograms;
pub mod journeys;
mod json;
mod judged;
pub mod latency;
pub mod memcached;
pub mod rows;
mod text;

pub(crate) mod found;
mod number;
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
use crate::record::journeys::JourneysRecord;
use crate::record::times::Times;
use crate::record::unanswered::{Censored, Unanswered};
use crate::report::certainty::Blocks;
use crate::verdict::Verdict;
use crate::verdict::reason::Reason;
use crate::verdict::threshold;
use asked::Asked;
use classes::ClassRow;
use found::{Found, Window, evidence, silence};
use histograms::Histograms;
use journeys::JourneyRow;
use latency::Latency;
use memcached::MemcachedRow;
use number::{microseconds, per_second, rounded};
use rows::{Busy, PartRow, PortsRow, RequestRow, SecondRow, TlsRow};
use warnings::warnings;

/// The names over the columns of the lines that show a run's seconds; h1load's.
pub const COLUMNS: &str = Second::HEADER;

/// The result of a run. Its fields are the keys of the JSON; times there are in microseconds unless the key says
/// otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The URL, and how many others are asked for beside it.
    pub target: String,
    /// What was asked for.
    pub options: Asked,
    /// Responses received.
    pub requests: u64,
    /// Requests without a response, responses other than expected, and failures to connect.
    pub errors: u64,
    /// `errors`, each kind by its name; their sum is `errors`.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// How long the run took.
    pub duration_s: f64,
    /// Responses per second, of [`measured_s`](Self::measured_s).
    pub rps: f64,
    /// How long the part of the run took that rates are of: without ramp and warm-up, and without the time in which the
    /// target was dead; at a set rate only without that at the end.
    #[serde(default)]
    pub measured_s: f64,
    /// Bytes received, heads and bodies.
    pub bytes: u64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Responses by status; their sum is `requests`.
    pub statuses: BTreeMap<String, u64>,
    /// From the intended start of a request to the last byte of its response.
    pub latency_us: Latency,
    /// Names resolved before the run; empty if addresses were given.
    #[serde(default)]
    pub dns: Vec<Lookup>,
    /// Response times by status class.
    #[serde(default)]
    pub by_class: Vec<ClassRow>,
    /// From the moment a request was written to the last byte of its response.
    #[serde(default)]
    pub service_us: Latency,
    /// From the intended start of a request to the moment it was written.
    #[serde(default)]
    pub send_lag_us: Latency,
    /// From the moment a request was written to the complete head of its response.
    #[serde(default)]
    pub first_byte_us: Latency,
    /// Of connections, from the first packet to connected.
    #[serde(default)]
    pub connect_us: Latency,
    /// How much of its mean the generator itself may have added, since it was busy with others and saw the end late.
    #[serde(default)]
    pub connect_own_us: Option<f64>,
    /// Of connections, from connected to the end of the TLS handshake.
    #[serde(default)]
    pub tls_us: Latency,
    /// The generator's own CPU time, user and system, for each response; none without responses.
    pub cpu_us_per_request: Option<f64>,
    /// How busy each thread was.
    pub cores: Vec<Busy>,
    /// Connections that were made.
    pub connections: u64,
    /// Their TLS handshakes; none without TLS.
    pub tls: Option<TlsRow>,
    /// Requests sent again because the server did nothing for them: it had closed a kept-alive connection before it saw them, has
    /// said so as it went away, or has refused their streams; not errors.
    pub resent: u64,
    /// Of these, those whose streams it has refused before it had said how many it takes (HTTP/2).
    #[serde(default)]
    pub refused: u64,
    /// What became of local ports, where connections carried so many requests only; none over Unix sockets and in sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortsRow>,
    /// Requests that were due and never sent.
    #[serde(default)]
    pub missed: u64,
    /// Requests whose response had not come at the end.
    #[serde(default)]
    pub unfinished: u64,
    /// Of these, those whose response came shortly behind it.
    #[serde(default)]
    pub late: u64,
    /// What memcached's commands, keys and values came to; none with another protocol.
    #[serde(default)]
    pub memcached: Option<MemcachedRow>,
    /// What speaks for or against the run.
    #[serde(default)]
    pub evidence: Evidence,
    /// Why it was ended before its time; none when it was not.
    #[serde(default)]
    pub stopped_because: Option<String>,
    /// Counters at the end of ramp and warm-up.
    #[serde(skip)]
    pub unmeasured: Tally,
    /// The histograms of the whole run.
    #[serde(skip)]
    pub times: Times,
    /// How long requests without a response had waited.
    #[serde(skip)]
    pub unanswered: Unanswered,
    /// Those of each second.
    #[serde(skip)]
    pub history: History,
    /// What happened in each second; the last row may be shorter, and in a run of hours a row is several seconds.
    pub seconds: Vec<SecondRow>,
    /// What speaks against the figures, in sentences.
    pub warnings: Vec<String>,
    /// The requests of each kind, where there are several and not too many: at most
    /// [`KINDS_SHOWN_MAX`](crate::limits::KINDS_SHOWN_MAX).
    #[serde(default)]
    pub by_request: Vec<RequestRow>,
    /// What came of each journey, where users go them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyRow>,
    /// What came of what users do before they begin; its requests are in no other figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<JourneyRow>,
    /// When the run began, in seconds since 1970-01-01T00:00:00Z by this machine's clock; none in results of versions
    /// that did not say.
    #[serde(default)]
    pub began_unix_s: Option<f64>,
    /// The same for people, when it was to begin, and what is known of the clock.
    #[serde(default)]
    pub clock: ClockRow,
    /// Every time that was measured, for [`merge`](crate::merge) and [`compare`](crate::compare).
    #[serde(default)]
    pub histograms: Option<Histograms>,
    /// Of a sum, the results that it is made of; empty in others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRow>,
    /// Whether the run may be believed.
    #[serde(default)]
    pub verdict: Verdict,
    /// The conditions under which the run was to fail, and what became of them.
    #[serde(default)]
    pub thresholds: Vec<threshold::Outcome>,
}

impl Report {
    pub(crate) fn new(found: Found<'_>) -> Report {
        let Found { plan, outcomes, .. } = found;
        let mut record = Record::new(plan.protocol.outcomes());
        outcomes.iter().for_each(|core| record.merge(&core.record));
        let elapsed = outcomes.iter().map(|core| core.end.elapsed).max();
        let elapsed = elapsed.unwrap_or_default();
        let cpu_ns: u64 = outcomes.iter().map(|core| core.end.time.cpu_ns).sum();
        let (responses, bytes) = (record.responses(), record.tally.bytes);
        let cores: Vec<Busy> = outcomes
            .iter()
            .enumerate()
            .map(|(core, outcome)| Busy::of(plan.cpu_of(core), outcome))
            .collect();
        let silence = silence(&found, &record, elapsed);
        let window = Window::of(
            outcomes,
            silence.left_out(plan.due_within(elapsed)),
            elapsed,
        );
        let evidence = evidence(&found, &record, elapsed, &silence);
        let times = found.times;
        let blocks = Blocks::of(&found.history);
        let mut report = Report {
            target: plan.target(),
            dns: found.lookup.into_iter().collect(),
            by_class: classes::rows(&record, &times.response),
            options: Asked::of(plan, found.io),
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
            statuses: record.said().collect(),
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
    /// The warnings that are not reasons of the verdict, too.
    pub fn other_warnings(&self) -> &[String] {
        let reasons = self.verdict.reasons.len();
        self.warnings.get(reasons..).unwrap_or_default()
    }

    /// Requests sent again over another connection, since the server had closed theirs.
    pub(crate) fn resent_after_close(&self) -> u64 {
        self.resent.saturating_sub(self.refused)
    }

    /// The names of the classes of responses that rows have counts of.
    pub(crate) fn class_names(&self) -> [&'static str; 5] {
        // The URL tells; results of earlier versions tell it, too.
        let is_grpc = Target::of_url(self.target.split(' ').next().unwrap_or_default())
            .is_ok_and(|target| target.scheme.is_grpc());
        match self.memcached {
            None if is_grpc => protocol::grpc::OUTCOMES.classes,
            None => protocol::http1::OUTCOMES.classes,
            Some(_) => protocol::memcached::OUTCOMES.classes,
        }
    }

    /// Responses, and whatever has none.
    pub fn tried(&self) -> u64 {
        self.requests + self.errors - self.unexpected()
    }

    /// All requests that were to be made: with a response, failed, unfinished or never sent.
    pub fn asked_for(&self) -> u64 {
        self.requests + self.evidence.failures + self.unfinished + self.missed
    }

    /// Of the errors, responses that were other than expected.
    fn unexpected(&self) -> u64 {
        let kinds = Failure::ALL.into_iter().filter(|kind| kind.has_response());
        let counts = kinds.filter_map(|kind| self.errors_by_kind.get(kind.name()));
        counts.sum()
    }

    /// The figures of the times of one kind.
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

    /// The figures that conditions are about.
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
            checks: judged::checks(&self.journeys),
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

/// What `make` makes of journeys; none where there are none.
fn of_journeys<T>(
    plan: &Plan,
    record: &Record,
    make: impl FnOnce(&Journeys, &JourneysRecord) -> T,
) -> Option<T> {
    let (journeys, _) = plan.journeys.as_ref()?;
    Some(make(journeys, record.journeys.as_ref()?))
}

/// A row for each second that is kept.
fn seconds(history: &History) -> Vec<SecondRow> {
    let rows = history.rows().zip(history.intervals());
    rows.map(|(row, interval)| SecondRow::of(row, &interval.response, &interval.service))
        .collect()
}
