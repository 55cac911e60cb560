//! What a run came to: the figures, what speaks against them, as JSON (`docs/load-result.schema.json`) and as text.

mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_engine::Io;
use onrush_measure::histogram::Histogram;
use onrush_measure::second::{Second, Tally};
use onrush_measure::{percentile, units};
use serde::{Deserialize, Serialize};

use crate::certainty::{Blocks, EffectiveRow};
use crate::core_run::End;
use crate::evidence::{Evidence, OwnPart, ThreadEvidence};
use crate::failure::Failure;
use crate::figures::{Figures, Kind};
use crate::history::History;
use crate::host::HostTime;
use crate::limits::{KINDS_SHOWN_MAX, RATE_MISSED_SHARE};
use crate::ordered;
use crate::part::Outcome;
use crate::plan::{Plan, Shard};
use crate::record::{Handshakes, Record};
use crate::rows::Row;
use crate::silence::Silence;
use crate::standing::response_mean_us;
use crate::stop::Prospect;
use crate::threshold;
use crate::times::Times;
use crate::unanswered::{Unanswered, bounds};
use crate::verdict::{Reason, Verdict};
use crate::wall_clock::{ClockRow, WallTime};

/// How surely the intervals of percentiles hold the true ones.
pub const CONFIDENCE: f64 = 0.95;

/// The names over the columns of the lines that show a run's seconds; h1load's.
pub const COLUMNS: &str = Second::HEADER;

/// What a report is made of.
pub(crate) struct Found<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) io: Io,
    pub(crate) outcomes: &'a [Outcome],
    /// What all answers took.
    pub(crate) times: Times,
    pub(crate) history: History,
    /// When it began; none when it was ended before.
    pub(crate) began: Option<WallTime>,
    /// The machine's time before and after the run.
    pub(crate) host: (HostTime, HostTime),
    pub(crate) prospect: Prospect,
    /// Why the caller ended it.
    pub(crate) reason: Option<String>,
}

/// The result of a run. Its fields are the keys of the JSON; times there are in microseconds unless the key says
/// otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The URL, and how many others are asked for beside it.
    pub target: String,
    /// What was asked for.
    pub options: Asked,
    /// Answers received.
    pub requests: u64,
    /// Requests without an answer, answers other than expected, and failures to connect.
    pub errors: u64,
    /// `errors`, each kind by its name; their sum is `errors`.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// How long the run took.
    pub duration_s: f64,
    /// Answers per second, of [`measured_s`](Self::measured_s).
    pub rps: f64,
    /// How long the part of the run took that rates are of: without ramp and warm-up, and without the time in which the
    /// target was dead; at a set rate only without that at the end.
    #[serde(default)]
    pub measured_s: f64,
    /// Bytes received, heads and bodies.
    pub bytes: u64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Answers by status; their sum is `requests`.
    pub statuses: BTreeMap<String, u64>,
    /// From the intended start of a request to the last byte of its answer.
    pub latency_us: Latency,
    /// From the moment a request was written to the last byte of its answer.
    #[serde(default)]
    pub service_us: Latency,
    /// From the intended start of a request to the moment it was written.
    #[serde(default)]
    pub send_lag_us: Latency,
    /// From the moment a request was written to the complete head of its answer.
    #[serde(default)]
    pub first_byte_us: Latency,
    /// Of connections, from the first packet to connected.
    #[serde(default)]
    pub connect_us: Latency,
    /// Of connections, from connected to the end of the TLS handshake.
    #[serde(default)]
    pub tls_us: Latency,
    /// The generator's own CPU time, user and system, for each answer; none without answers.
    pub cpu_us_per_request: Option<f64>,
    /// How busy each thread was.
    pub cores: Vec<Busy>,
    /// Connections that were made.
    pub connections: u64,
    /// Their TLS handshakes; none without TLS.
    pub tls: Option<TlsRow>,
    /// Requests sent again because the server had closed a kept-alive connection before it saw them; not errors.
    pub resent: u64,
    /// Requests that were due and never sent.
    #[serde(default)]
    pub missed: u64,
    /// Requests whose answer had not come at the end.
    #[serde(default)]
    pub unfinished: u64,
    /// Of these, how many were answered shortly behind it.
    #[serde(default)]
    pub late: u64,
    /// What speaks for or against the run.
    #[serde(default)]
    pub evidence: Evidence,
    /// Why it was ended before its time; none when it was not.
    #[serde(default)]
    pub stopped_because: Option<String>,
    /// The histograms of the whole run.
    #[serde(skip)]
    pub times: Times,
    /// How long requests without an answer had waited.
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
    /// [`KINDS_SHOWN_MAX`].
    #[serde(default)]
    pub by_request: Vec<RequestRow>,
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

/// Histograms in nanoseconds as HdrHistogram V2, compressed, in Base64; three significant digits, as they were recorded.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Histograms {
    /// From the intended start of a request to the last byte of its answer.
    pub response: String,
    /// From written to the last byte.
    pub service: String,
    /// From the intended start to written.
    pub send_lag: String,
    /// From written to the end of the head.
    pub first_byte: String,
    /// Of connections: being made.
    pub connect: String,
    /// Of connections: the TLS handshake.
    pub tls: String,
    /// The response times without what the generator itself added to them; none in results of versions that did not
    /// measure it.
    #[serde(default)]
    pub undelayed: Option<String>,
    /// How long requests without an answer had waited since their intended start.
    #[serde(default)]
    pub unanswered: Option<String>,
    /// The same since a connection was free for them.
    #[serde(default)]
    pub unanswered_service: Option<String>,
}

impl Histograms {
    /// The text of these times.
    pub fn of(times: &Times, unanswered: &Unanswered) -> Histograms {
        let text = |kind| times.of(kind).to_base64();
        Histograms {
            response: text(Kind::Response),
            service: text(Kind::Service),
            send_lag: text(Kind::SendLag),
            first_byte: text(Kind::FirstByte),
            connect: text(Kind::Connect),
            tls: text(Kind::Tls),
            undelayed: Some(times.undelayed.to_base64()),
            unanswered: Some(unanswered.response.to_base64()),
            unanswered_service: Some(unanswered.service.to_base64()),
        }
    }

    /// The times of this text.
    ///
    /// # Errors
    /// Says which of them is something else.
    pub fn times(&self) -> Result<Times, String> {
        let mut times = Times::default();
        for kind in Kind::ALL {
            let text = match kind {
                Kind::Response => &self.response,
                Kind::Service => &self.service,
                Kind::SendLag => &self.send_lag,
                Kind::FirstByte => &self.first_byte,
                Kind::Connect => &self.connect,
                Kind::Tls => &self.tls,
            };
            *times.of_mut(kind) = Histogram::from_base64(text)
                .map_err(|reason| format!("histograms.{}: {reason}", kind.name()))?;
        }
        times.undelayed = optional("undelayed", self.undelayed.as_deref())?;
        Ok(times)
    }

    /// The waits of requests without an answer.
    ///
    /// # Errors
    /// As [`times`](Self::times).
    pub fn unanswered(&self) -> Result<Unanswered, String> {
        Ok(Unanswered {
            response: optional("unanswered", self.unanswered.as_deref())?,
            service: optional("unanswered_service", self.unanswered_service.as_deref())?,
        })
    }
}

/// A histogram that older versions did not write.
fn optional(name: &str, text: Option<&str>) -> Result<Histogram, String> {
    text.map_or(Ok(Histogram::new()), |text| {
        Histogram::from_base64(text).map_err(|reason| format!("histograms.{name}: {reason}"))
    })
}

/// What was asked for, with defaults filled in.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Asked {
    /// Connections over all threads.
    pub connections: usize,
    /// Threads.
    pub threads: usize,
    /// The CPUs they are pinned to, in turn; empty when they are not.
    pub cpus: Vec<usize>,
    /// The driver that was taken, `epoll` or `io_uring`.
    pub io: String,
    /// After how long the run was to end.
    pub duration_s: Option<f64>,
    /// After how many requests the run was to end.
    pub count: Option<u64>,
    /// Requests after which a connection is closed.
    pub requests_per_connection: Option<u64>,
    /// Requests per second that were to be started; none for a closed loop.
    pub rate: Option<u64>,
    /// Requests sent at once on a connection.
    pub pipeline: u64,
    /// The method; `mixed` when there are several.
    pub method: String,
    /// Fields sent besides the usual ones, as `Name: value`; what credentials and cookies are is left out.
    pub headers: Vec<String>,
    /// How long nothing may arrive while an answer is due.
    pub timeout_s: f64,
    /// Which part of a run of several generators this is; its connections, count and rate are those of the part.
    #[serde(default)]
    pub shard: Option<ShardRow>,
    /// The addresses that connections came from, where they were given.
    #[serde(default)]
    pub source: Option<String>,
    /// Where connections went, where that was not what the URL says.
    #[serde(default)]
    pub connect_to: Option<String>,
    /// The version of the PROXY protocol that connections began with.
    #[serde(default)]
    pub proxy_protocol: Option<String>,
}

/// One part of a run of several generators.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ShardRow {
    /// Its number, from 1.
    pub part: u64,
    /// How many there are.
    pub of: u64,
}

/// One result that a sum is made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartRow {
    /// A name for what it measured: equal for copies of one result.
    pub digest: String,
    /// Which part of the run it was.
    pub shard: Option<ShardRow>,
}

/// Latencies in microseconds; none without answers.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// The mean, exact.
    pub mean: Option<f64>,
    /// The largest, exact.
    pub max: Option<f64>,
    /// Which of these figures are only known to be at least so much, by the names of percentiles and `max`: there are
    /// requests without an answer, and theirs may be larger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
    /// By percentile (`"99.9"`), as far as the count of answers supports them.
    #[serde(with = "ordered")]
    pub percentiles: Vec<(String, f64)>,
    /// For the same percentiles, between which two latencies the true one lies with a probability of
    /// [`CONFIDENCE`]: by the blocks of time behind `effective` where that has the percentile, else as if the answers were
    /// independent of each other.
    #[serde(with = "ordered", default)]
    pub intervals: Vec<(String, [f64; 2])>,
    /// For the same percentiles, how many independent answers would be as sure of it; see
    /// [`onrush_measure::blocks`]. Empty for runs that were too short to say.
    #[serde(with = "ordered", default, skip_serializing_if = "Vec::is_empty")]
    pub effective: Vec<(String, EffectiveRow)>,
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
    /// The version of the first.
    pub version: String,
    /// The cipher suite of the first.
    pub cipher: String,
}

impl TlsRow {
    fn of(handshakes: Handshakes) -> TlsRow {
        TlsRow {
            handshakes: handshakes.count,
            resumed: handshakes.resumed,
            mean_us: rounded(handshakes.sum_ns as f64 / 1000.0 / handshakes.count as f64),
            version: handshakes.version.name().to_owned(),
            cipher: handshakes.cipher.to_owned(),
        }
    }
}

/// What came of the requests of one kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RequestRow {
    /// Its method and its path, as they were given.
    pub name: String,
    /// Answers received.
    pub requests: u64,
    /// Of these, others than expected.
    pub unexpected: u64,
    /// From the intended start to the last byte.
    pub latency_us: Latency,
    /// The same as a histogram; see [`Histograms`].
    pub histogram: String,
}

impl RequestRow {
    /// With the figures of `response`, in nanoseconds.
    pub(crate) fn new(
        name: String,
        requests: u64,
        unexpected: u64,
        response: &Histogram,
    ) -> RequestRow {
        RequestRow {
            name,
            requests,
            unexpected,
            latency_us: Latency::of(response),
            histogram: response.to_base64(),
        }
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
    /// Answers received during the row.
    pub requests: u64,
    /// Errors during the row.
    pub errors: u64,
    /// Of these, answers other than expected.
    #[serde(default)]
    pub unexpected: u64,
    /// Answers per second.
    pub rps: f64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Mean time to the end of the head; none without answers.
    pub ttfb_us: Option<f64>,
    /// Mean time to the last byte; none without answers.
    pub ttlb_us: Option<f64>,
    /// Answers during the row by class of status, 1xx to 5xx.
    #[serde(default)]
    pub statuses: [u64; 5],
    /// The median response time of the row's answers; this and the others as far as their count supports it.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// The 99th percentile of their response times.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// The 99.9th percentile.
    #[serde(default)]
    pub p99_9_us: Option<f64>,
    /// Their largest response time; none without answers.
    #[serde(default)]
    pub max_us: Option<f64>,
    /// The 99th percentile of their service times.
    #[serde(default)]
    pub service_p99_us: Option<f64>,
}

impl Report {
    pub(crate) fn new(found: Found<'_>) -> Report {
        let Found { plan, outcomes, .. } = found;
        let mut record = Record::new(plan.protocol.outcomes());
        outcomes.iter().for_each(|core| record.merge(&core.record));
        let elapsed = outcomes.iter().map(|core| core.end.elapsed).max();
        let elapsed = elapsed.unwrap_or_default();
        let cpu_ns: u64 = outcomes.iter().map(|core| core.end.time.cpu_ns).sum();
        let (answers, bytes) = (record.answers(), record.tally.bytes);
        let cores: Vec<Busy> = outcomes
            .iter()
            .enumerate()
            .map(|(core, outcome)| busy(plan.cpu_of(core), outcome))
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
            options: Asked::of(plan, found.io),
            requests: answers,
            errors: record.tally.errors,
            errors_by_kind: Failure::ALL
                .map(|kind| (kind.name().to_owned(), record.failures_of(kind)))
                .into(),
            duration_s: rounded(elapsed.as_secs_f64()),
            rps: per_second(answers - window.before.last_bytes, window.time),
            bytes,
            bytes_per_s: per_second(bytes - window.before.bytes, window.time),
            measured_s: rounded(window.time.as_secs_f64()),
            statuses: record.said().collect(),
            latency_us: Latency::bounded(&times.response, &record.unanswered.response)
                .by_blocks(&times.response, &blocks.response),
            service_us: Latency::bounded(&times.service, &record.unanswered.service)
                .by_blocks(&times.service, &blocks.service),
            send_lag_us: Latency::of(&times.send_lag),
            first_byte_us: Latency::bounded(&times.first_byte, &record.unanswered.service),
            connect_us: Latency::of(&times.connect),
            tls_us: Latency::of(&times.tls),
            cpu_us_per_request: (answers > 0)
                .then(|| rounded(cpu_ns as f64 / 1e3 / answers as f64)),
            cores,
            connections: record.established,
            tls: record.handshakes.map(TlsRow::of),
            resent: record.resent,
            missed: evidence.missed,
            unfinished: evidence.unfinished,
            late: record.late,
            stopped_because: found.reason,
            seconds: seconds(&found.history),
            by_request: by_request(plan, &record),
            began_unix_s: found.began.map(|began| microseconds(began.seconds())),
            clock: ClockRow::new(found.began, plan.options.start_at),
            histograms: Some(Histograms::of(&times, &record.unanswered)),
            verdict: Verdict::of(&evidence),
            evidence,
            parts: Vec::new(),
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

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// Says what is missing or wrong, and where.
    pub fn from_json(text: &str) -> Result<Report, String> {
        let report: Report = serde_json::from_str(text)
            .map_err(|error| format!("not the JSON of onrush load --json: {error}"))?;
        // Each has a histogram, which is small in the file and large in memory.
        if report.by_request.len() > KINDS_SHOWN_MAX {
            return Err(format!(
                "by_request has {} entries: expected {KINDS_SHOWN_MAX} at most, as onrush load --json writes them",
                report.by_request.len()
            ));
        }
        Ok(report)
    }

    /// The report as JSON, for `docs/load-result.schema.json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, strings and maps with string keys")
    }
}

impl Report {
    /// The warnings that are not reasons of the verdict, too.
    pub fn other_warnings(&self) -> &[String] {
        let reasons = self.verdict.reasons.len();
        self.warnings.get(reasons..).unwrap_or_default()
    }

    /// Answers, and whatever has none.
    pub fn tried(&self) -> u64 {
        self.requests + self.errors - self.unexpected()
    }

    /// All requests that were to be made: answered, failed, unfinished or never sent.
    pub fn asked_for(&self) -> u64 {
        self.requests + self.evidence.failures + self.unfinished + self.missed
    }

    /// Of the errors, answers that were other than expected.
    fn unexpected(&self) -> u64 {
        let kinds = ["unexpected_status", "unexpected_body", "unexpected_bytes"];
        let counts = kinds
            .iter()
            .filter_map(|kind| self.errors_by_kind.get(*kind));
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
            answers: self.requests,
            errors: self.errors,
            unexpected: self.unexpected(),
            timeouts: self.evidence.timeouts,
            unanswered: self.unanswered.clone(),
            unfinished: self.unfinished,
            resent: self.resent,
            missed: self.missed,
            statuses: self.statuses.clone(),
            rps: self.rps,
        }
    }
}

impl Asked {
    fn of(plan: &Plan, io: Io) -> Asked {
        let options = &plan.options;
        Asked {
            connections: plan.connections(),
            threads: options.threads,
            cpus: options.cpus.clone(),
            io: match io {
                Io::IoUring => "io_uring",
                Io::Auto | Io::Epoll => "epoll",
            }
            .to_owned(),
            duration_s: options.stop.after.map(|after| after.as_secs_f64()),
            count: plan.count(),
            requests_per_connection: options.requests_per_connection,
            rate: plan.rate_asked(),
            shard: (options.shard != Shard::default()).then(|| ShardRow {
                part: options.shard.index + 1,
                of: options.shard.count,
            }),
            source: (!options.reach.sources.is_empty()).then(|| options.reach.sources.to_string()),
            connect_to: options.reach.connect_to.as_ref().map(ToString::to_string),
            proxy_protocol: options
                .reach
                .proxy_protocol
                .map(|version| version.name().to_owned()),
            pipeline: options.pipeline,
            method: plan.method().to_owned(),
            headers: options
                .headers
                .iter()
                .map(|(name, value)| match is_secret(name) {
                    true => format!("{name}: (not shown)"),
                    false => format!("{name}: {value}"),
                })
                .collect(),
            timeout_s: options.timeout.as_secs_f64(),
        }
    }
}

/// Whether a field says what others should not read in a report.
fn is_secret(name: &str) -> bool {
    let secrets = ["authorization", "proxy-authorization", "cookie"];
    secrets
        .iter()
        .any(|secret| name.eq_ignore_ascii_case(secret))
}

impl Latency {
    /// The figures of a histogram in nanoseconds.
    pub(crate) fn of(latency: &Histogram) -> Latency {
        let known = latency.count() > 0;
        Latency {
            at_least: Vec::new(),
            mean: known.then(|| rounded(latency.mean() / 1000.0)),
            max: known.then(|| units::microseconds(latency.max())),
            percentiles: latency
                .percentiles()
                .map(|(percentile, ns)| (units::percentile(percentile), units::microseconds(ns)))
                .collect(),
            intervals: percentile::supported(latency.count())
                .filter_map(|percentile| {
                    let (low, high) = latency.interval(percentile, CONFIDENCE)?;
                    let bounds = [low, high].map(units::microseconds);
                    Some((units::percentile(percentile), bounds))
                })
                .collect(),
            effective: Vec::new(),
        }
    }

    /// The same where requests without an answer had waited for `waits`: a percentile that they could change is the least
    /// it can be, and has no interval.
    pub(crate) fn bounded(latency: &Histogram, waits: &Histogram) -> Latency {
        let mut figures = Latency::of(latency);
        if waits.count() == 0 || latency.count() == 0 {
            return figures;
        }
        let listed: Vec<f64> = latency
            .percentiles()
            .map(|(percentile, _)| percentile)
            .collect();
        for (place, percentile) in listed.into_iter().enumerate() {
            let bounds = bounds(latency, waits, percentile);
            if bounds.is_known() {
                continue;
            }
            let (name, us) = &mut figures.percentiles[place];
            *us = bounds.low / 1000.0;
            figures.intervals.retain(|(of, _)| of != name);
            figures.at_least.push(name.clone());
        }
        // Each of them may take longer than all that were answered, whatever it had waited so far.
        figures.max = Some(units::microseconds(waits.max().max(latency.max())));
        figures.at_least.push("max".to_owned());
        figures
    }

    /// Whether a figure, a percentile or `max`, is only known to be at least so much.
    pub fn is_at_least(&self, name: &str) -> bool {
        self.at_least.iter().any(|of| of == name)
    }

    /// The latency at `percentile`, such as `99.9`, where the count supports it.
    pub fn percentile(&self, percentile: &str) -> Option<f64> {
        let mut all = self.percentiles.iter();
        let found = all.find(|(of, _)| of == percentile);
        found.map(|(_, us)| *us)
    }

    /// See [`intervals`](Self::intervals).
    pub fn interval(&self, percentile: &str) -> Option<[f64; 2]> {
        let mut intervals = self.intervals.iter();
        let found = intervals.find(|(of, _)| of == percentile);
        found.map(|(_, interval)| *interval)
    }
}

fn by_request(plan: &Plan, record: &Record) -> Vec<RequestRow> {
    let rows = plan.kinds().zip(&record.kinds).map(|(of, kind)| {
        RequestRow::new(
            of.name.clone(),
            kind.answers,
            kind.unexpected,
            &kind.response,
        )
    });
    rows.collect()
}

/// A row for each second that is kept.
fn seconds(history: &History) -> Vec<SecondRow> {
    let rows = history.rows().zip(history.intervals());
    rows.map(|(row, interval)| SecondRow::of(row, &interval.response, &interval.service))
        .collect()
}

impl SecondRow {
    /// What `row` counts, with what its answers took.
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
            p50_us: supported(response, 50.0),
            p99_us: supported(response, 99.0),
            p99_9_us: supported(response, 99.9),
            max_us: (response.count() > 0).then(|| units::microseconds(response.max())),
            service_p99_us: supported(service, 99.0),
        }
    }
}

/// A percentile in microseconds, where the count supports it.
pub(crate) fn supported(times: &Histogram, percentile: f64) -> Option<f64> {
    let is_supported = times.count() >= percentile::count_for(percentile);
    is_supported.then(|| units::microseconds(times.value_at(percentile)))
}

fn busy(cpu: Option<usize>, outcome: &Outcome) -> Busy {
    Busy {
        cpu,
        share: rounded(share_of(outcome.end.time.cpu_ns, outcome.end.elapsed)),
    }
}

fn share_of(nanoseconds: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() {
        return 0.0;
    }
    nanoseconds as f64 / elapsed.as_nanos() as f64
}

/// See [`Evidence::longest_open`].
fn longest_open(times: &Times, unanswered: &Unanswered) -> Option<f64> {
    let waits = &unanswered.response;
    (waits.count() > 0).then(|| rounded(waits.max() as f64 / times.response.max().max(1) as f64))
}

/// For how long the target was dead.
fn silence(found: &Found<'_>, record: &Record, elapsed: Duration) -> Silence {
    let last = found.outcomes.iter().filter_map(|core| core.answered_until);
    let unfinished: u64 = found.outcomes.iter().map(|core| core.end.unfinished).sum();
    let unanswered = unfinished.saturating_sub(record.late);
    let longest = Duration::from_nanos(found.times.response.max());
    Silence::of(
        found.history.rows(),
        elapsed,
        last.max(),
        unanswered,
        longest,
    )
}

/// The part of a run that rates are of.
struct Window {
    /// What had been counted before.
    before: Tally,
    time: Duration,
}

impl Window {
    fn of(outcomes: &[Outcome], dead: Duration, elapsed: Duration) -> Window {
        let from = outcomes.iter().map(|core| core.before.1).max();
        Window {
            before: outcomes.iter().map(|core| core.before.0).sum(),
            time: elapsed.saturating_sub(from.unwrap_or_default() + dead),
        }
    }
}

/// What speaks for or against the run.
fn evidence(found: &Found<'_>, record: &Record, elapsed: Duration, silence: &Silence) -> Evidence {
    let Found {
        plan,
        outcomes,
        times,
        host: (before, after),
        ..
    } = found;
    let connections = plan.connections() as u64;
    let seconds = elapsed.as_secs_f64();
    let due = plan.due_within(elapsed);
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let failures = record.tally.requests - record.answers();
    let unfinished: u64 = outcomes.iter().map(|core| core.end.unfinished).sum();
    let accounted = record.answers() + failures + unfinished;
    let measured = record.answers() - record.unmeasured;
    Evidence {
        threads: outcomes.iter().map(thread_evidence).collect(),
        rate_asked: due.map(per_second).map(rounded),
        rate_achieved: rounded(per_second(record.sent as f64)),
        missed: outcomes.iter().map(|core| core.missed).sum(),
        connections_asked: connections,
        connections_achieved: record.connections_max,
        fairness: fairness(outcomes.iter().flat_map(|core| &core.answers)),
        steal_share: after.steal_share_since(before),
        throttled_s: after.throttled_s_since(before),
        retransmits: record.tcp.map(|tcp| tcp.retransmits),
        segments_out: record.tcp.map(|tcp| tcp.segments_out),
        no_local_port: record.failures_of(Failure::ConnectNoPort),
        requests_sent: record.sent,
        answers: record.answers(),
        measured: Some(times.response.count()),
        failures,
        unfinished,
        late: record.late,
        resent: record.resent,
        timeouts: record.failures_of(Failure::Timeout),
        unasked: record.failures_of(Failure::UnexpectedBytes),
        is_count_consistent: record.sent == accounted
            && times.is_consistent(measured + record.late - record.late_unmeasured),
        send_lag_p99_us: (measured > 0).then(|| units::microseconds(times.send_lag.value_at(99.0))),
        duration_s: rounded(seconds),
        answered_until_s: (!silence.at_end.is_zero())
            .then(|| rounded(seconds - silence.at_end.as_secs_f64())),
        silent_s: rounded(silence.within.as_secs_f64()),
        longest_open: longest_open(times, &record.unanswered),
        response_mean_us: response_mean_us(times),
        own: OwnPart::of(times),
        start_late_s: start_late_s(found),
    }
}

/// For how long a run began after the moment that was set.
fn start_late_s(found: &Found<'_>) -> Option<f64> {
    let (began, asked) = (found.began?, found.plan.options.start_at?);
    Some(microseconds(began.since(asked).as_secs_f64()))
}

fn thread_evidence(outcome: &Outcome) -> ThreadEvidence {
    let End {
        elapsed,
        time,
        busy_max,
        worked,
        stalled,
        ..
    } = outcome.end;
    let busy_ns = worked.map_or(time.cpu_ns, |worked| worked.as_nanos() as u64);
    ThreadEvidence {
        cpu_share: rounded(share_of(busy_ns, elapsed)),
        run_delay_share: rounded(share_of(time.run_delay_ns, elapsed)),
        involuntary_switches: time.involuntary_switches,
        longest_turn_us: rounded(busy_max.as_nanos() as f64 / 1000.0),
        stalled_share: rounded(share_of(stalled.as_nanos() as u64, elapsed)),
    }
}

/// Jain's index: the square of the sum by the number times the sum of squares.
fn fairness<'a>(answers: impl Iterator<Item = &'a u64> + Clone) -> Option<f64> {
    let count = answers.clone().count() as f64;
    let sum: f64 = answers.clone().map(|&answers| answers as f64).sum();
    let squares: f64 = answers.map(|&answers| (answers as f64).powi(2)).sum();
    (count > 1.0 && sum >= count).then(|| sum * sum / (count * squares))
}

fn per_second(count: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 {
        rounded(count as f64 / seconds)
    } else {
        0.0
    }
}

/// To millionths: of seconds since 1970 a number has no more digits.
fn microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// To thousandths: more digits of a mean or a rate would only pretend.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// What a reader must know before believing the figures.
fn warnings(report: &Report, plan: &Plan, record: &Record, prospect: Prospect) -> Vec<String> {
    let mut warnings = Vec::new();
    if prospect == Prospect::Lost {
        warnings.push("ended early: for a long time no connection could be made".to_owned());
    } else if report.stopped_because.is_none() && is_early(report, plan, record) {
        warnings.push("ended early, before what was asked for was done".to_owned());
    }
    warnings.extend(rate_missed(report, plan, record));
    if let Some(error) = &record.connect_error {
        warnings.push(format!("not all connections could be made: {error}"));
    }
    if let Some(reason) = record.protocol_error {
        let name = plan.protocol.name();
        warnings.push(format!("some answers were not {name}: {reason}"));
    }
    if let Some(first) = &record.unexpected {
        warnings.push(format!(
            "{} not as expected, the first of a core: {first}",
            match record.tally.unexpected {
                1 => "1 answer was".to_owned(),
                count => format!("{} answers were", units::count(count)),
            },
        ));
    }
    let timeouts = record.failures_of(Failure::Timeout);
    if timeouts > 0 {
        warnings.push(format!(
            "{} timed out after {} s: their latencies, longer than that, are not among the percentiles",
            units::plural(timeouts, "request"),
            report.options.timeout_s,
        ));
    }
    let refusals = record.refusals();
    if refusals > 0 {
        warnings.push(format!(
            "{} of {} {}",
            units::count(refusals),
            units::plural(report.requests, "answer"),
            plan.protocol.outcomes().refusals,
        ));
    }
    if let Some(reason) = &report.stopped_because {
        warnings.push(format!("ended early: {reason}"));
    }
    warnings
}

/// When clearly fewer requests were finished than the rate asked for.
fn rate_missed(report: &Report, plan: &Plan, record: &Record) -> Option<String> {
    let elapsed = Duration::from_secs_f64(report.duration_s);
    let asked = plan.due_within(elapsed)?;
    let in_flight = report.options.connections as f64 * report.options.pipeline as f64;
    let finished = record.tally.requests as f64;
    let is_missed = asked - finished > in_flight.max(asked * RATE_MISSED_SHARE);
    is_missed.then(|| {
        format!(
            "{} requests per second were asked for and {:.0} finished: the wait of those that started late is part of their latency",
            units::count((asked / report.duration_s).round() as u64),
            finished / report.duration_s,
        )
    })
}

/// Whether neither the time nor the count that was asked for was reached.
fn is_early(report: &Report, plan: &Plan, record: &Record) -> bool {
    let in_time = |after: Duration| report.duration_s >= rounded(after.as_secs_f64());
    let in_count = |count: u64| record.tally.requests + report.missed >= count;
    !plan.options.stop.after.is_some_and(in_time) && !plan.count().is_some_and(in_count)
}
