//! The rules of ejection. Pure: computes the reason for an ejection from outcomes and the time.
//!
//! There are four kinds of evidence: no connection (the server is gone), failures in a row (it does not respond), a
//! share of failures (it fails now and then), and a latency far above the median (it is about to fail). Active checks
//! do not detect the last two, and the first two only at their next interval. As in Envoy's outlier detection, the
//! share of servers that may be out at once is limited, because ejection may overload the remaining ones.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::{AddAssign, SubAssign};
use std::time::Duration;

use onrush_config::plan::{self, EjectOn};
use onrush_engine::Instant;

use super::outcome::Outcome;
use super::recheck_delay::Cause;
use crate::limits::{EJECT_LATENCY_MARGIN, EJECT_REQUESTS_MIN, EJECT_WINDOW, WINDOW_SLICES};
use crate::proxy::window::Window;

/// Rules for taking servers out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Outcomes that count as failures.
    pub(crate) on: EjectOn,
    /// Number of consecutive failures that takes a server out.
    pub(crate) failures_in_row: Option<u32>,
    pub(crate) failure_share: Option<FailureShare>,
    pub(crate) latency: Option<LatencyExcess>,
    /// Length of the window for shares and latencies.
    pub(crate) window: Duration,
    /// Largest percentage of servers out at once, rounded down, but at least one server. The last one always stays.
    pub(crate) out_percent_max: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureShare {
    pub(crate) percent: u32,
    /// Fewest requests in the window for the rule to apply.
    pub(crate) requests_min: u32,
}

/// A limit on a server's mean latency, in percent of the median of all servers' means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatencyExcess {
    pub(crate) percent: u32,
    /// Fewest responses in the window for the rule to apply to a server and for its mean to enter the median.
    pub(crate) requests_min: u32,
}

/// Why a server is taken out, as shown in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Unreachable,
    InRow { failures: u32 },
    Share { failures: u32, requests: u32 },
    Slow { mean: Duration, median: Duration },
}

/// Counts of a group's servers, backups included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupSnapshot {
    /// Number of servers with an address.
    pub(crate) with_address: usize,
    /// Number of servers that are ejected, draining or disabled.
    pub(crate) out: usize,
    /// Number of servers that may get requests.
    pub(crate) in_service: usize,
}

/// Ejection counters of one core for the servers of a group.
#[derive(Debug)]
pub(crate) struct Ejector {
    rules: Rules,
    /// Consecutive failures of each server since its last response.
    failures_in_row: Vec<u32>,
    /// Number of servers whose count is not 0.
    failing_servers: usize,
    /// Outcomes in the window for each server; empty if no rule needs them, because they take most of the memory.
    counts: Vec<Window<Counts>>,
    /// Median of the servers' mean latencies in nanoseconds, computed once per slice of the window.
    median: Option<u64>,
    median_due: Instant,
    /// Buffer for the means, so that computing the median does not allocate.
    means: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    responses: u32,
    failures: u32,
    /// Sum over the responses, in nanoseconds.
    latency_sum: u64,
}

impl Ejector {
    pub(crate) fn new(rules: Rules, servers: usize) -> Self {
        let counted = if rules.needs_window() { servers } else { 0 };
        Self {
            rules,
            failures_in_row: vec![0; servers],
            failing_servers: 0,
            counts: vec![Window::new(rules.window); counted],
            median: None,
            median_due: Instant::default(),
            means: Vec::with_capacity(counted),
        }
    }

    /// Takes over the counts of `before`; `positions` has the index there of each server here, or `None`. Does nothing
    /// if the definition of a failure or the window has changed, because the old counts are not comparable then.
    pub(crate) fn take_over(&mut self, before: &Ejector, positions: &[Option<usize>]) {
        if self.rules.on != before.rules.on || self.rules.window != before.rules.window {
            return;
        }
        for (server, position) in (0..).zip(positions) {
            let Some(position) = *position else { continue };
            self.set_failures_in_row(server, before.failures_in_row[position]);
            if let Some(counts) = self.counts.get_mut(server as usize)
                && let Some(known) = before.counts.get(position)
            {
                counts.clone_from(known);
            }
        }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether a successful response would change any count.
    pub(crate) fn wants_responses(&self) -> bool {
        self.failing_servers > 0 || self.rules.needs_window()
    }

    /// Counts the outcome of a request at a server in service. Returns the reason to take it out, if any, and then
    /// resets its counts: if it may not be taken out now, later requests decide.
    pub(crate) fn observe(
        &mut self,
        server: u32,
        outcome: Outcome,
        now: Instant,
    ) -> Option<Reason> {
        self.count(server, outcome, now);
        let reason = match outcome {
            Outcome::Responded(_) => self.slowness(server, now),
            Outcome::Unreachable if self.rules.on == EjectOn::Connections => {
                Some(Reason::Unreachable)
            }
            Outcome::Failed | Outcome::Unreachable => self.unreliability(server, now),
        }?;
        self.forget(server);
        Some(reason)
    }

    pub(crate) fn forget(&mut self, server: u32) {
        self.set_failures_in_row(server, 0);
        if let Some(counts) = self.counts.get_mut(server as usize) {
            counts.clear();
        }
    }

    fn set_failures_in_row(&mut self, server: u32, failures: u32) {
        let before = std::mem::replace(&mut self.failures_in_row[server as usize], failures);
        self.failing_servers += usize::from(failures > 0);
        self.failing_servers -= usize::from(before > 0);
    }

    fn count(&mut self, server: u32, outcome: Outcome, now: Instant) {
        let (failures, counts) = match outcome {
            Outcome::Responded(latency) => {
                let counts = Counts {
                    responses: 1,
                    failures: 0,
                    latency_sum: latency.as_nanos() as u64,
                };
                (0, counts)
            }
            Outcome::Failed | Outcome::Unreachable => {
                let counts = Counts {
                    responses: 0,
                    failures: 1,
                    latency_sum: 0,
                };
                let failures = self.failures_in_row[server as usize].saturating_add(1);
                (failures, counts)
            }
        };
        self.set_failures_in_row(server, failures);
        if let Some(window) = self.counts.get_mut(server as usize) {
            window.add(counts, now);
        }
    }

    fn unreliability(&mut self, server: u32, now: Instant) -> Option<Reason> {
        let failures = self.failures_in_row[server as usize];
        if (self.rules.failures_in_row).is_some_and(|limit| failures >= limit) {
            return Some(Reason::InRow { failures });
        }
        let limit = self.rules.failure_share?;
        let Counts {
            responses,
            failures,
            ..
        } = self.counts[server as usize].sum(now);
        let requests = responses + failures;
        let is_too_much =
            u64::from(failures) * 100 >= u64::from(requests) * u64::from(limit.percent);
        (requests >= limit.requests_min && is_too_much)
            .then_some(Reason::Share { failures, requests })
    }

    fn slowness(&mut self, server: u32, now: Instant) -> Option<Reason> {
        let limit = self.rules.latency?;
        if now >= self.median_due {
            self.median = self.find_median(limit, now);
            self.median_due = now + self.rules.window / WINDOW_SLICES as u32;
        }
        let median = self.median?;
        let counts = self.counts[server as usize].sum(now);
        if counts.responses < limit.requests_min {
            return None;
        }
        // mean > median * percent / 100, and above the median by more than the margin; written without a division.
        let responses = u128::from(counts.responses);
        let sum = u128::from(counts.latency_sum);
        let bound = u128::from(median) * u128::from(limit.percent) / 100;
        let margin = u128::from(median) + EJECT_LATENCY_MARGIN.as_nanos();
        (sum > responses * bound.max(margin)).then(|| Reason::Slow {
            mean: Duration::from_nanos(counts.latency_sum / u64::from(counts.responses)),
            median: Duration::from_nanos(median),
        })
    }

    /// The lower median, so that of two servers the faster one is the reference. `None` with fewer than two servers to
    /// compare. O(n), once per slice. Servers that are out have no counts.
    fn find_median(&mut self, limit: LatencyExcess, now: Instant) -> Option<u64> {
        self.means.clear();
        for counts in &mut self.counts {
            let counts = counts.sum(now);
            if counts.responses >= limit.requests_min.max(1) {
                (self.means).push(counts.latency_sum / u64::from(counts.responses));
            }
        }
        if self.means.len() < 2 {
            return None;
        }
        let middle = (self.means.len() - 1) / 2;
        Some(*self.means.select_nth_unstable(middle).1)
    }
}

impl Rules {
    /// Whether any rule needs the window.
    fn needs_window(&self) -> bool {
        self.failure_share.is_some() || self.latency.is_some()
    }

    /// Whether one more server may be taken out. One may always be out, but never the last in service, backups
    /// included.
    pub(crate) fn may_take_out(&self, census: GroupSnapshot) -> bool {
        let out_max = census.with_address * self.out_percent_max as usize / 100;
        census.in_service > 1 && census.out < out_max.max(1)
    }
}

impl From<&plan::Eject> for Rules {
    fn from(written: &plan::Eject) -> Self {
        Self {
            on: written.on,
            failures_in_row: written.consecutive_failures.map(NonZeroU32::get),
            failure_share: written.error_share.map(|percent| FailureShare {
                percent: u32::from(percent),
                requests_min: EJECT_REQUESTS_MIN,
            }),
            latency: written.latency_share.map(|percent| LatencyExcess {
                percent: u32::from(percent),
                requests_min: EJECT_REQUESTS_MIN,
            }),
            window: EJECT_WINDOW,
            out_percent_max: u32::from(written.share_max),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.responses += other.responses;
        self.failures += other.failures;
        self.latency_sum = self.latency_sum.wrapping_add(other.latency_sum);
    }
}

impl SubAssign for Counts {
    fn sub_assign(&mut self, other: Counts) {
        self.responses -= other.responses;
        self.failures -= other.failures;
        self.latency_sum = self.latency_sum.wrapping_sub(other.latency_sum);
    }
}

impl Reason {
    pub(crate) fn cause(self) -> Cause {
        match self {
            Reason::Unreachable => Cause::Unreachable,
            Reason::InRow { .. } | Reason::Share { .. } | Reason::Slow { .. } => Cause::Unreliable,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unreachable => f.write_str("it could not be connected to"),
            Reason::InRow { failures: 1 } => f.write_str("a request failed"),
            Reason::InRow { failures } => write!(f, "{failures} consecutive requests failed"),
            Reason::Share { failures, requests } => {
                write!(f, "{failures} of the last {requests} requests failed")
            }
            Reason::Slow { mean, median } => write!(
                f,
                "its mean latency is {mean:.1?}, the median of all servers {median:.1?}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        on: EjectOn::Responses,
        failures_in_row: None,
        failure_share: None,
        latency: None,
        window: Duration::from_secs(10),
        out_percent_max: 50,
    };
    const IN_ROW: Rules = Rules {
        failures_in_row: Some(3),
        ..RULES
    };
    const SHARE: Rules = Rules {
        failure_share: Some(FailureShare {
            percent: 50,
            requests_min: 10,
        }),
        ..RULES
    };
    const LATENCY: Rules = Rules {
        latency: Some(LatencyExcess {
            percent: 300,
            requests_min: 5,
        }),
        ..RULES
    };

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanoseconds(milliseconds * 1_000_000)
    }

    fn responded(milliseconds: u64) -> Outcome {
        Outcome::Responded(Duration::from_millis(milliseconds))
    }

    /// Feeds outcomes to one server: `x` is a failed request, `o` a failed connection, `.` a response. Only the last
    /// outcome may take the server out, for the reason `expected`.
    #[track_caller]
    fn check(rules: Rules, outcomes: &str, expected: Option<&str>) {
        let mut ejector = Ejector::new(rules, 2);
        let reasons: Vec<Option<String>> = (0..)
            .zip(outcomes.chars())
            .map(|(step, outcome)| {
                let outcome = match outcome {
                    'x' => Outcome::Failed,
                    'o' => Outcome::Unreachable,
                    _ => responded(1),
                };
                let reason = ejector.observe(0, outcome, at(1000 + step))?;
                Some(reason.to_string())
            })
            .collect();
        let (last, before) = reasons.split_last().expect("something happens");
        assert!(
            before.iter().all(Option::is_none),
            "too early: {before:?} of {outcomes}"
        );
        assert_eq!(last.as_deref(), expected, "of {outcomes}");
    }

    #[test]
    fn consecutive_failures_eject() {
        check(IN_ROW, "xx", None);
        check(IN_ROW, "xxx", Some("3 consecutive requests failed"));
        check(IN_ROW, "xx.xx.xx.", None);
        check(IN_ROW, "..xx.xxx", Some("3 consecutive requests failed"));
        check(IN_ROW, "xox", Some("3 consecutive requests failed"));
    }

    #[test]
    fn failed_connection_ejects_on_connections() {
        let rules = Rules {
            on: EjectOn::Connections,
            ..IN_ROW
        };
        check(rules, ".o", Some("it could not be connected to"));
        check(rules, "xx.xx.", None);
        check(rules, "xxx", Some("3 consecutive requests failed"));
    }

    #[test]
    fn responses_are_observed_only_if_needed() {
        let mut ejector = Ejector::new(IN_ROW, 3);
        assert!(!ejector.wants_responses());
        for server in [1, 2, 1] {
            assert_eq!(ejector.observe(server, Outcome::Failed, at(1)), None);
            assert!(ejector.wants_responses());
        }
        assert_eq!(ejector.observe(1, responded(1), at(2)), None);
        assert!(ejector.wants_responses());
        ejector.forget(2);
        assert!(!ejector.wants_responses());
        assert!(Ejector::new(SHARE, 3).wants_responses());
    }

    #[test]
    fn counts_survive_rule_change() {
        let patient = Rules {
            failures_in_row: Some(5),
            ..IN_ROW
        };
        let mut before = Ejector::new(patient, 2);
        for _ in 0..4 {
            assert_eq!(before.observe(1, Outcome::Failed, at(1)), None);
        }
        let mut after = Ejector::new(IN_ROW, 3);
        after.take_over(&before, &[Some(1), None, Some(0)]);
        assert!(after.wants_responses());
        assert_eq!(after.observe(1, Outcome::Failed, at(2)), None);
        assert_eq!(after.observe(2, Outcome::Failed, at(2)), None);
        let reason = after.observe(0, Outcome::Failed, at(2));
        assert_eq!(reason, Some(Reason::InRow { failures: 5 }));
        let connections = Rules {
            on: EjectOn::Connections,
            ..IN_ROW
        };
        let mut after = Ejector::new(connections, 2);
        after.take_over(&before, &[Some(0), Some(1)]);
        assert!(!after.wants_responses(), "they may have been no failures");
    }

    #[test]
    fn failure_share_ejects() {
        check(SHARE, "xxxxxxxxx", None);
        check(
            SHARE,
            "xxxxxxxxxx",
            Some("10 of the last 10 requests failed"),
        );
        check(
            SHARE,
            ".....xxxxx",
            Some("5 of the last 10 requests failed"),
        );
        check(SHARE, "......xxxxx", None);
        check(
            SHARE,
            "......xxxxxx",
            Some("6 of the last 12 requests failed"),
        );
    }

    #[test]
    fn old_failures_expire() {
        let mut ejector = Ejector::new(SHARE, 2);
        for _ in 0..9 {
            assert_eq!(ejector.observe(0, Outcome::Failed, at(0)), None);
        }
        assert_eq!(ejector.observe(0, Outcome::Failed, at(11_000)), None);
    }

    /// The servers respond in turn, each with its latency in milliseconds. Returns the ejected servers and the reasons.
    fn slow(latencies: &[u64], rounds: u64) -> Vec<(u32, String)> {
        let mut ejector = Ejector::new(LATENCY, latencies.len());
        let mut out = Vec::new();
        for round in 0..rounds {
            for (server, &latency) in (0..).zip(latencies) {
                let now = at(1000 + round * 200);
                // Ejected servers get no more requests.
                if out.iter().any(|(gone, _)| *gone == server) {
                    continue;
                }
                if let Some(reason) = ejector.observe(server, responded(latency), now) {
                    out.push((server, reason.to_string()));
                }
            }
        }
        out
    }

    #[test]
    fn slow_server_is_ejected() {
        let reason = "its mean latency is 50.0ms, the median of all servers 10.0ms".to_owned();
        assert_eq!(slow(&[10, 12, 50, 9], 20), [(2, reason.clone())]);
        assert_eq!(slow(&[50, 10], 20), [(0, reason)]);
    }

    #[test]
    fn small_latency_difference_is_ignored() {
        assert!(slow(&[10, 12, 29, 9], 20).is_empty());
        assert!(slow(&[1, 1, 10, 1], 20).is_empty());
        assert!(slow(&[500], 20).is_empty());
        assert!(slow(&[10, 12, 50, 9], 4).is_empty(), "too few requests");
    }

    #[test]
    fn ejected_share_is_limited() {
        for (located, percent, out_max) in [
            (10, 50, 5),
            (10, 0, 1),
            (3, 50, 1),
            (3, 100, 2),
            (2, 100, 1),
            (1, 100, 0),
        ] {
            let rules = Rules {
                out_percent_max: percent,
                ..IN_ROW
            };
            let may_go = |out| {
                rules.may_take_out(GroupSnapshot {
                    with_address: located,
                    out,
                    in_service: located - out,
                })
            };
            let out = (0..located).find(|&out| !may_go(out));
            assert_eq!(out, Some(out_max), "{percent} % of {located}");
        }
    }

    #[test]
    fn down_servers_count_as_out_of_service() {
        let census = |in_service| GroupSnapshot {
            with_address: 5,
            out: 0,
            in_service,
        };
        assert!(!IN_ROW.may_take_out(census(1)));
        assert!(IN_ROW.may_take_out(census(2)));
    }

    proptest! {
        #[test]
        fn reordered_servers_keep_counts(
            events in prop::collection::vec((0..4_usize, 0..3_usize, 0..2_000_u64), 1..200),
            configurations in prop::collection::vec(Just(vec![0, 1, 2, 3]).prop_shuffle(), 200),
        ) {
            let rules = Rules { failures_in_row: Some(4), ..SHARE };
            let mut steady = Ejector::new(rules, 4);
            let mut moving = Ejector::new(rules, 4);
            let mut order = vec![0, 1, 2, 3];
            let mut now = 0;
            for ((server, outcome, pause), next) in events.into_iter().zip(configurations) {
                now += pause;
                let outcome = [responded(pause), Outcome::Failed, Outcome::Unreachable][outcome];
                let place = order.iter().position(|known| *known == server);
                let place = place.expect("all are in every configuration");
                let expected = steady.observe(server as u32, outcome, at(now));
                prop_assert_eq!(moving.observe(place as u32, outcome, at(now)), expected);
                prop_assert_eq!(moving.failing_servers, steady.failing_servers);
                let positions: Vec<Option<usize>> = next
                    .iter()
                    .map(|server| order.iter().position(|known| known == server))
                    .collect();
                let mut after = Ejector::new(rules, 4);
                after.take_over(&moving, &positions);
                (moving, order) = (after, next);
            }
        }

        #[test]
        fn failing_servers_count_is_exact(
            events in prop::collection::vec((0..6_u32, 0..3_u32, 0..3_000_u64), 1..400),
        ) {
            let rules = Rules { failures_in_row: Some(4), latency: LATENCY.latency, ..SHARE };
            let mut ejector = Ejector::new(rules, 6);
            let mut now = 0;
            for (server, outcome, pause) in events {
                now += pause;
                let outcome = [responded(pause), Outcome::Failed, Outcome::Unreachable][outcome as usize];
                let reason = ejector.observe(server, outcome, at(now));
                let suspects = ejector.failures_in_row.iter().filter(|failures| **failures > 0);
                prop_assert_eq!(suspects.count(), ejector.failing_servers);
                prop_assert!(ejector.failures_in_row[server as usize] < 4);
                if reason.is_some() {
                    prop_assert_eq!(ejector.failures_in_row[server as usize], 0);
                }
            }
        }
    }
}
