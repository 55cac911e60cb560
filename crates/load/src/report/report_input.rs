//! Raw results of a run, and the evidence computed from them.

use std::time::Duration;

use onrush_engine::Io;
use onrush_measure::second::Tally;
use onrush_measure::units;

use super::rounding::{microseconds, rounded, share_of};
use crate::connection::core_run::CoreEnd;
use crate::connection::outcome::Outcome;
use crate::pace::stop::RunHealth;
use crate::pace::target::lookup::Lookup;
use crate::pace::wall_clock::WallTime;
use crate::plan::Plan;
use crate::protocol::failure::Failure;
use crate::record::Record;
use crate::record::evidence::{Evidence, GeneratorShare, ThreadEvidence};
use crate::record::history::History;
use crate::record::host::HostTime;
use crate::record::host::ports::Ports;
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::live_counters::response_mean_us;
use crate::record::silence::Silence;
use crate::record::times::Times;

pub(crate) struct ReportInput<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) io: Io,
    /// Lookup of the target's name before the run.
    pub(crate) lookup: Option<Lookup>,
    pub(crate) outcomes: &'a [Outcome],
    pub(crate) times: Times,
    pub(crate) history: History,
    /// Start of the run; `None` if it was stopped before.
    pub(crate) began: Option<WallTime>,
    /// The machine's CPU times before and after the run.
    pub(crate) host: (HostTime, HostTime),
    /// Local ports before and after, if they were read.
    pub(crate) ports: Option<(Ports, Ports)>,
    pub(crate) prospect: RunHealth,
    /// Why the caller stopped the run.
    pub(crate) reason: Option<String>,
}

/// See [`Evidence::longest_open`].
fn longest_open(times: &Times, unanswered: &IncompleteWaits) -> Option<f64> {
    let waits = &unanswered.response;
    (waits.count() > 0).then(|| rounded(waits.max() as f64 / times.response.max().max(1) as f64))
}

/// Time in which the target sent no responses.
pub(super) fn silence(found: &ReportInput<'_>, record: &Record, elapsed: Duration) -> Silence {
    let last = found.outcomes.iter().filter_map(|core| core.answered_until);
    let unfinished: u64 = found.outcomes.iter().map(|core| core.end.unfinished).sum();
    let open = unfinished.saturating_sub(record.late);
    let longest = Duration::from_nanos(found.times.response.max());
    Silence::of(found.history.rows(), elapsed, last.max(), open, longest)
}

/// Part of a run that rates are computed from.
pub(super) struct Window {
    /// Counters at its start.
    pub(super) before: Tally,
    pub(super) time: Duration,
}

impl Window {
    pub(super) fn of(outcomes: &[Outcome], dead: Duration, elapsed: Duration) -> Window {
        let from = outcomes.iter().map(|core| core.before.1).max();
        Window {
            before: outcomes.iter().map(|core| core.before.0).sum(),
            time: elapsed.saturating_sub(from.unwrap_or_default() + dead),
        }
    }
}

pub(super) fn evidence(
    found: &ReportInput<'_>,
    record: &Record,
    elapsed: Duration,
    silence: &Silence,
) -> Evidence {
    let ReportInput {
        plan,
        outcomes,
        times,
        host: (before, after),
        ..
    } = found;
    let connections = match plan.has_connection_per_request() {
        true => record.connections_max,
        // A run never needs more connections than it has requests.
        false => (plan.connections() as u64).min(plan.count().unwrap_or(u64::MAX)),
    };
    let seconds = elapsed.as_secs_f64();
    let due = plan.due_within(elapsed);
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let failures = record.tally.requests - record.responses();
    let unfinished: u64 = outcomes.iter().map(|core| core.end.unfinished).sum();
    let accounted = record.responses() + failures + unfinished;
    let measured = record.responses() - record.unmeasured;
    Evidence {
        threads: outcomes.iter().map(thread_evidence).collect(),
        rate_asked: due.map(per_second).map(rounded),
        rate_achieved: rounded(per_second(record.begun as f64)),
        missed: outcomes.iter().map(|core| core.missed).sum(),
        connections_asked: connections,
        connections_achieved: record.connections_max,
        fairness: fairness(outcomes.iter().flat_map(|core| &core.responses)),
        steal_share: after.steal_share_since(before),
        throttled_s: after.throttled_s_since(before),
        retransmits: record.tcp.map(|tcp| tcp.retransmits),
        segments_out: record.tcp.map(|tcp| tcp.segments_out),
        no_local_port: record.failures_of(Failure::ConnectNoPort),
        requests_sent: record.sent,
        responses: record.responses(),
        measured: Some(times.response.count()),
        failures,
        unfinished,
        late: record.late,
        resent: record.resent,
        refused: record.refused,
        timeouts: record.failures_of(Failure::Timeout),
        unasked: record.failures_of(Failure::UnexpectedBytes),
        failed_responses: record.failed_responses(),
        unaccepted: record.unaccepted,
        // Failed and false responses are separate reasons.
        unexpected: record
            .unexpected_responses()
            .saturating_sub(record.failed_responses() + record.false_responses()),
        false_responses: record.false_responses(),
        is_count_consistent: record.sent == accounted
            && times.is_consistent(measured + record.late - record.late_unmeasured),
        send_lag_p99_us: (measured > 0).then(|| units::microseconds(times.send_lag.value_at(99.0))),
        duration_s: rounded(seconds),
        answered_until_s: (!silence.at_end.is_zero())
            .then(|| rounded(seconds - silence.at_end.as_secs_f64())),
        silent_s: rounded(silence.within.as_secs_f64()),
        longest_open: longest_open(times, &record.unanswered),
        response_mean_us: response_mean_us(times),
        own: GeneratorShare::of(times),
        own_mean_us: GeneratorShare::mean_us(times),
        start_late_s: start_late_s(found),
    }
}

/// Delay of the start after the configured moment.
fn start_late_s(found: &ReportInput<'_>) -> Option<f64> {
    let (began, asked) = (found.began?, found.plan.options.start_at?);
    Some(microseconds(began.since(asked).as_secs_f64()))
}

fn thread_evidence(outcome: &Outcome) -> ThreadEvidence {
    let CoreEnd {
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

/// Jain's fairness index: the square of the sum divided by n times the sum of squares.
fn fairness<'a>(responses: impl Iterator<Item = &'a u64> + Clone) -> Option<f64> {
    let count = responses.clone().count() as f64;
    let sum: f64 = responses.clone().map(|&responses| responses as f64).sum();
    let squares: f64 = responses.map(|&responses| (responses as f64).powi(2)).sum();
    (count > 1.0 && sum >= count).then(|| sum * sum / (count * squares))
}
