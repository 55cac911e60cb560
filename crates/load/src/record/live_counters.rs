//! State of a run in progress: counters that the cores report each second, and the evidence so far. Facts that are
//! known only at the end, such as fairness between connections, are left out.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Duration;

use onrush_measure::second::Tally;
use onrush_measure::units;

use crate::plan::Plan;
use crate::protocol::failure::Failure;
use crate::record::TcpTotal;
use crate::record::evidence::{Evidence, GeneratorShare, ThreadEvidence};
use crate::record::host::{HostTime, ThreadTime};
use crate::record::times::Times;

/// Mean response time; `None` without responses.
pub(crate) fn response_mean_us(times: &Times) -> Option<f64> {
    let response = &times.response;
    (response.count() > 0).then(|| response.mean() / 1000.0)
}

/// Counters of one core so far, or the sum over all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LiveCounters {
    /// Requests, or journeys, that the pace started.
    pub(crate) begun: u64,
    pub(crate) sent: u64,
    pub(crate) in_flight: u64,
    /// Requests that were due and skipped.
    pub(crate) missed: u64,
    pub(crate) resent: u64,
    /// Resent requests whose streams were refused.
    pub(crate) refused: u64,
    pub(crate) connections_max: u64,
    /// In the order of [`Failure::ALL`].
    pub(crate) failures: [u64; Failure::ALL.len()],
    pub(crate) tcp: Option<TcpTotal>,
    /// Longest time between two polls of the kernel; of several cores, the longest.
    pub(crate) busy_max: Duration,
    /// Time in which the core noticed nothing, in delays longer than a turn may take; of several cores, the longest.
    pub(crate) stalled: Duration,
    /// Time in which a busy-polling core had work; of several cores, the longest.
    pub(crate) worked: Duration,
}

impl AddAssign for LiveCounters {
    fn add_assign(&mut self, other: LiveCounters) {
        self.begun += other.begun;
        self.sent += other.sent;
        self.in_flight += other.in_flight;
        self.missed += other.missed;
        self.resent += other.resent;
        self.refused += other.refused;
        self.connections_max += other.connections_max;
        let failures = self.failures.iter_mut().zip(other.failures);
        failures.for_each(|(sum, more)| *sum += more);
        if let Some(more) = other.tcp {
            *self.tcp.get_or_insert_default() += more;
        }
        self.busy_max = self.busy_max.max(other.busy_max);
        self.stalled = self.stalled.max(other.stalled);
        self.worked = self.worked.max(other.worked);
    }
}

impl LiveCounters {
    pub(crate) fn failures_of(&self, failure: Failure) -> u64 {
        self.failures[failure as usize]
    }

    /// Failures by name, without zeros.
    pub(crate) fn errors_by_kind(&self) -> BTreeMap<String, u64> {
        let kinds = Failure::ALL.into_iter().zip(self.failures);
        let happened = kinds.filter(|(_, count)| *count > 0);
        happened
            .map(|(kind, count)| (kind.name().to_owned(), count))
            .collect()
    }
}

/// A thread of the run: its ID, and its times when the run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) number: u32,
    pub(crate) before: ThreadTime,
}

pub(crate) struct RunView<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) elapsed: Duration,
    pub(crate) tally: &'a Tally,
    pub(crate) standing: &'a LiveCounters,
    /// Threads that have started.
    pub(crate) threads: &'a [Thread],
    /// The machine's times before the run.
    pub(crate) host: &'a HostTime,
}

impl RunView<'_> {
    /// Returns the evidence so far. Reads the times of the threads from outside, because they are running.
    pub(crate) fn evidence(&self, times: &Times) -> Evidence {
        let (tally, standing) = (self.tally, self.standing);
        let seconds = self.elapsed.as_secs_f64();
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let due = self.plan.due_within(self.elapsed);
        let host = HostTime::now();
        let lag = &times.send_lag;
        let failures = tally.requests - tally.last_bytes;
        Evidence {
            threads: self
                .threads
                .iter()
                .map(|thread| self.thread(thread))
                .collect(),
            rate_asked: due.map(per_second),
            rate_achieved: per_second(standing.begun as f64),
            missed: self.waiting() + standing.missed,
            connections_asked: self.connections_asked(),
            connections_achieved: standing.connections_max,
            fairness: None,
            steal_share: host.steal_share_since(self.host),
            throttled_s: host.throttled_s_since(self.host),
            retransmits: standing.tcp.map(|tcp| tcp.retransmits),
            segments_out: standing.tcp.map(|tcp| tcp.segments_out),
            no_local_port: standing.failures_of(Failure::ConnectNoPort),
            requests_sent: standing.sent,
            responses: tally.last_bytes,
            measured: None,
            failures,
            unfinished: standing.in_flight,
            // Their responses may still arrive.
            late: standing.in_flight,
            resent: standing.resent,
            refused: standing.refused,
            timeouts: standing.failures_of(Failure::Timeout),
            unasked: standing.failures_of(Failure::UnexpectedBytes),
            // Outcomes of responses are reported at the end.
            failed_responses: 0,
            unaccepted: 0,
            unexpected: 0,
            false_responses: 0,
            is_count_consistent: standing.sent == tally.last_bytes + failures + standing.in_flight,
            send_lag_p99_us: (lag.count() > 0).then(|| units::microseconds(lag.value_at(99.0))),
            duration_s: seconds,
            answered_until_s: None,
            silent_s: 0.0,
            longest_open: None,
            response_mean_us: response_mean_us(times),
            own: GeneratorShare::of(times),
            own_mean_us: GeneratorShare::mean_us(times),
            start_late_s: None,
        }
    }

    fn thread(&self, thread: &Thread) -> ThreadEvidence {
        let time = ThreadTime::of(thread.number).since(thread.before);
        let share = |ns: u64| ns as f64 / (self.elapsed.as_nanos() as f64).max(1.0);
        let busy_ns = match self.plan.options.busy_poll {
            true => self.standing.worked.as_nanos() as u64,
            false => time.cpu_ns,
        };
        ThreadEvidence {
            cpu_share: share(busy_ns),
            run_delay_share: share(time.run_delay_ns),
            involuntary_switches: time.involuntary_switches,
            longest_turn_us: self.standing.busy_max.as_nanos() as f64 / 1000.0,
            stalled_share: share(self.standing.stalled.as_nanos() as u64),
        }
    }

    /// Requests due and neither sent nor skipped, except one per thread that may be about to be sent.
    pub(crate) fn waiting(&self) -> u64 {
        let Some(due) = self.plan.due_within(self.elapsed) else {
            return 0;
        };
        let due = self.plan.count().unwrap_or(u64::MAX).min(due as u64);
        let standing = self.standing;
        due.saturating_sub(standing.begun + standing.missed + self.plan.options.threads as u64)
    }

    /// Requests per second that the pace asked for in the last second; `None` in a closed loop.
    pub(crate) fn rate_asked(&self) -> Option<f64> {
        let before = self.elapsed.saturating_sub(Duration::from_secs(1));
        let passed = (self.elapsed - before).as_secs_f64();
        let due = self.plan.due_within(self.elapsed)? - self.plan.due_within(before)?;
        (passed > 0.0).then(|| due / passed)
    }

    /// Connections to be open; zero while they are still being opened.
    fn connections_asked(&self) -> u64 {
        match self.elapsed > self.plan.options.start.duration() {
            true if self.plan.has_connection_per_request() => self.standing.connections_max,
            true => self.plan.connections() as u64,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Pace;
    use crate::plan::tests::options;
    use crate::plan::{Options, Plan};
    use crate::verdict::Verdict;
    use crate::verdict::reason::State;
    use std::num::NonZeroU64;

    /// Verdict after ten seconds in which `sent` requests were sent and all but `in_flight` got their responses.
    fn verdict(change: impl Fn(&mut Options), sent: u64, in_flight: u64) -> Verdict {
        let mut options = options("http://a/");
        options.stop.count = None;
        options.connections = 10;
        change(&mut options);
        let plan = Plan::new(options).unwrap();
        let responses = sent - in_flight;
        let tally = Tally {
            requests: responses,
            last_bytes: responses,
            ..Tally::default()
        };
        let mut standing = LiveCounters::default();
        standing += LiveCounters {
            begun: sent,
            sent,
            in_flight,
            connections_max: 10,
            ..LiveCounters::default()
        };
        let view = RunView {
            plan: &plan,
            elapsed: Duration::from_secs(10),
            tally: &tally,
            standing: &standing,
            threads: &[],
            host: &HostTime::default(),
        };
        Verdict::of(&view.evidence(&Times::default()))
    }

    fn rate(rate: u64) -> impl Fn(&mut Options) {
        move |options| options.pace = Pace::rate(NonZeroU64::new(rate).unwrap())
    }

    #[test]
    fn run_on_schedule_is_valid_so_far() {
        assert_eq!(verdict(|_| (), 5000, 10).state, State::Valid);
        assert_eq!(verdict(rate(1000), 10_000, 10).state, State::Valid);
        // At a low rate the next request may be slightly late.
        assert_eq!(verdict(rate(1), 9, 0).state, State::Valid);
    }

    #[test]
    fn due_requests_count_as_missed_during_run() {
        let behind = verdict(rate(1000), 8000, 10);
        assert_eq!(behind.state, State::Invalid);
        let reason = behind.reasons[0].to_string();
        assert!(reason.contains("never sent: 1,999 (20 %)"), "{reason}");
        let counted = verdict(
            |options| {
                rate(1000)(options);
                options.stop.count = Some(8000);
            },
            8000,
            0,
        );
        assert_ne!(counted.state, State::Invalid, "{counted}");
    }

    #[test]
    fn ramping_connections_are_not_missing() {
        let ramp = |seconds| {
            move |options: &mut Options| {
                options.start = crate::pace::Start::Ramp(Duration::from_secs(seconds));
                options.connections = 100;
            }
        };
        assert_eq!(verdict(ramp(20), 5000, 0).state, State::Valid);
        let short = verdict(ramp(5), 5000, 0);
        assert_eq!(short.state, State::Suspect, "{short}");
        assert!(
            short.reasons[0].what.contains("open at the same time"),
            "{short}"
        );
    }

    #[test]
    fn errors_are_summed_by_kind() {
        let mut sum = LiveCounters::default();
        let mut one = LiveCounters::default();
        one.failures[Failure::Reset as usize] = 2;
        sum += one;
        sum += one;
        assert_eq!(sum.errors_by_kind(), [("reset".to_owned(), 4)].into());
    }
}
