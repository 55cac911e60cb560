//! Which servers are taken out for a while because of what clients' requests met there: passive health. Pure: outcomes
//! and `now` in, an ejection out.
//!
//! Three kinds of evidence: failures in a row (a server that is gone), a share of failures (one that is sick), and a
//! latency far above that of its peers (one that is about to be). Active checks do not see the second and third, and
//! the first only at their next turn. As in Envoy's outlier detection, taking out has its own danger, a group that
//! shrinks until the rest breaks down; so how many may be out at once is limited.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::{AddAssign, SubAssign};
use std::time::Duration;

use onrush_config::plan;
use onrush_engine::Instant;

use super::window::Window;
use crate::limits::{
    EJECT_DOUBLINGS_MAX, EJECT_LATENCY_MARGIN, EJECT_REQUESTS_MIN, EJECT_TIME_MAX, EJECT_WINDOW,
    WINDOW_SLICES,
};

/// When a server is taken out, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// After so many failures without an answer in between.
    pub(crate) failures_in_row: Option<u32>,
    pub(crate) failure_share: Option<FailureShare>,
    pub(crate) latency: Option<LatencyExcess>,
    /// How far back shares and latencies look.
    pub(crate) window: Duration,
    /// How long a server is out for the first time; each time after that twice as long.
    pub(crate) out_time: Duration,
    /// But no longer than this.
    pub(crate) out_time_max: Duration,
    /// How many of all servers may be out at once, rounded down, but not to 0. One that is left alone always stays.
    pub(crate) out_percent_max: u32,
}

/// So many per cent of its requests have failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureShare {
    pub(crate) percent: u32,
    /// With fewer requests in the window nothing is concluded.
    pub(crate) requests_min: u32,
}

/// Its mean latency is above so many per cent of the median of all servers' means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatencyExcess {
    pub(crate) percent: u32,
    /// With fewer answers in the window a server is neither judged nor part of the median.
    pub(crate) requests_min: u32,
}

/// How a request went at a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// An answer that is no failure, after this time.
    Answered(Duration),
    /// No connection, no answer in time, a bad one, or a status that counts as a failure.
    Failed,
}

/// A server has been taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ejected {
    /// When it returns.
    pub(crate) until: Instant,
    pub(crate) reason: Reason,
}

/// Why, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    InRow { failures: u32 },
    Share { failures: u32, requests: u32 },
    Slow { mean: Duration, median: Duration },
}

/// What is known of the servers of a group, and which of them are out.
#[derive(Debug)]
pub(crate) struct Ejector {
    rules: Rules,
    records: Vec<Record>,
    /// The median of the servers' mean latencies in nanoseconds, as of the last slice of the window.
    median: Option<u64>,
    median_due: Instant,
    /// Room for the means, so that finding the median allocates nothing.
    means: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Record {
    counts: Window<Counts>,
    failures_in_row: u32,
    /// `Some` until it is noticed that the time has come.
    out_until: Option<Instant>,
    /// How often it was taken out, less what has been forgiven.
    repeats: u32,
    /// When it returned the last time.
    returned: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    answers: u32,
    failures: u32,
    /// Of the answers, in nanoseconds.
    latency_sum: u64,
}

impl Ejector {
    /// For a group of so many servers, none of which is out.
    pub(crate) fn new(rules: Rules, servers: usize) -> Self {
        let record = Record {
            counts: Window::new(rules.window),
            failures_in_row: 0,
            out_until: None,
            repeats: 0,
            returned: Instant::default(),
        };
        Self {
            rules,
            records: vec![record; servers],
            median: None,
            median_due: Instant::default(),
            means: Vec::with_capacity(servers),
        }
    }

    /// Counts a request's outcome, and takes the server out if that was the last straw. `in_service` is how many
    /// servers take requests now, this one included: who is down for other reasons counts as gone.
    pub(crate) fn observe(
        &mut self,
        server: u32,
        outcome: Outcome,
        in_service: usize,
        now: Instant,
    ) -> Option<Ejected> {
        let record = &mut self.records[server as usize];
        if record.is_out(now) {
            // A request from before. What it met is why the server is out.
            return None;
        }
        record.notice_return();
        record.count(outcome, now);
        let reason = match outcome {
            Outcome::Answered(_) => self.slowness(server, now),
            Outcome::Failed => self.unreliability(server, now),
        }?;
        let may_go = self.may_take_out(in_service, now);
        let record = &mut self.records[server as usize];
        // Either way it begins anew: who may not go now is judged again by what comes.
        record.forget();
        may_go.then(|| Ejected {
            until: record.take_out(&self.rules, now),
            reason,
        })
    }

    /// Whether a server is out.
    #[cfg(test)]
    fn is_out(&self, server: u32, now: Instant) -> bool {
        self.records[server as usize].is_out(now)
    }

    /// When the next server returns; `None` when none is out. O(n), for when something has changed.
    #[cfg(test)]
    fn next_return(&self, now: Instant) -> Option<Instant> {
        let returns = self.records.iter().filter_map(|record| record.out_until);
        returns.filter(|&until| now < until).min()
    }

    fn unreliability(&mut self, server: u32, now: Instant) -> Option<Reason> {
        let record = &mut self.records[server as usize];
        let failures = record.failures_in_row;
        if (self.rules.failures_in_row).is_some_and(|limit| failures >= limit) {
            return Some(Reason::InRow { failures });
        }
        let limit = self.rules.failure_share?;
        let Counts {
            answers, failures, ..
        } = record.counts.sum(now);
        let requests = answers + failures;
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
        let counts = self.records[server as usize].counts.sum(now);
        if counts.answers < limit.requests_min {
            return None;
        }
        // mean > median * percent / 100, and by more than the margin, without dividing.
        let answers = u128::from(counts.answers);
        let sum = u128::from(counts.latency_sum);
        let bound = u128::from(median) * u128::from(limit.percent) / 100;
        let margin = u128::from(median) + EJECT_LATENCY_MARGIN.as_nanos();
        (sum > answers * bound.max(margin)).then(|| Reason::Slow {
            mean: Duration::from_nanos(counts.latency_sum / u64::from(counts.answers)),
            median: Duration::from_nanos(median),
        })
    }

    /// The lower median, so that of two servers the faster one is the norm. `None` with fewer than two to compare. O(n),
    /// once in a slice.
    fn find_median(&mut self, limit: LatencyExcess, now: Instant) -> Option<u64> {
        self.means.clear();
        for record in self.records.iter_mut().filter(|record| !record.is_out(now)) {
            let counts = record.counts.sum(now);
            if counts.answers >= limit.requests_min.max(1) {
                (self.means).push(counts.latency_sum / u64::from(counts.answers));
            }
        }
        if self.means.len() < 2 {
            return None;
        }
        let middle = (self.means.len() - 1) / 2;
        Some(*self.means.select_nth_unstable(middle).1)
    }

    fn may_take_out(&self, in_service: usize, now: Instant) -> bool {
        let out = self.records.iter().filter(|record| record.is_out(now));
        let out_max = self.records.len() * self.rules.out_percent_max as usize / 100;
        in_service > 1 && out.count() < out_max.max(1)
    }
}

impl From<&plan::Eject> for Rules {
    fn from(written: &plan::Eject) -> Self {
        Self {
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
            out_time: written.time,
            out_time_max: EJECT_TIME_MAX.max(written.time),
            out_percent_max: u32::from(written.share_max),
        }
    }
}

impl Rules {
    /// How long a server is out that was out so often before.
    fn out_time(&self, repeats: u32) -> Duration {
        let doubled = self
            .out_time
            .saturating_mul(1 << repeats.min(EJECT_DOUBLINGS_MAX));
        doubled.min(self.out_time_max)
    }
}

impl Record {
    fn is_out(&self, now: Instant) -> bool {
        self.out_until.is_some_and(|until| now < until)
    }

    /// The time it was out has passed, if it was.
    fn notice_return(&mut self) {
        if let Some(until) = self.out_until.take() {
            self.returned = until;
        }
    }

    fn count(&mut self, outcome: Outcome, now: Instant) {
        let counts = match outcome {
            Outcome::Answered(latency) => {
                self.failures_in_row = 0;
                Counts {
                    answers: 1,
                    failures: 0,
                    latency_sum: latency.as_nanos() as u64,
                }
            }
            Outcome::Failed => {
                self.failures_in_row = self.failures_in_row.saturating_add(1);
                Counts {
                    answers: 0,
                    failures: 1,
                    latency_sum: 0,
                }
            }
        };
        self.counts.add(counts, now);
    }

    fn forget(&mut self) {
        self.counts.clear();
        self.failures_in_row = 0;
    }

    /// Returns when it is back.
    fn take_out(&mut self, rules: &Rules, now: Instant) -> Instant {
        self.forgive(rules, now);
        let until = now + rules.out_time(self.repeats);
        self.repeats = (self.repeats + 1).min(EJECT_DOUBLINGS_MAX);
        self.out_until = Some(until);
        until
    }

    /// Who has served for as long as it was out the last time goes back one step, and so on.
    fn forgive(&mut self, rules: &Rules, now: Instant) {
        let mut served = now.since(self.returned);
        while let Some(before) = self.repeats.checked_sub(1) {
            let Some(rest) = served.checked_sub(rules.out_time(before)) else {
                return;
            };
            (served, self.repeats) = (rest, before);
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.answers += other.answers;
        self.failures += other.failures;
        self.latency_sum = self.latency_sum.wrapping_add(other.latency_sum);
    }
}

impl SubAssign for Counts {
    fn sub_assign(&mut self, other: Counts) {
        self.answers -= other.answers;
        self.failures -= other.failures;
        self.latency_sum = self.latency_sum.wrapping_sub(other.latency_sum);
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::InRow { failures: 1 } => f.write_str("a request failed"),
            Reason::InRow { failures } => write!(f, "{failures} requests in a row failed"),
            Reason::Share { failures, requests } => {
                write!(f, "{failures} of the last {requests} requests failed")
            }
            Reason::Slow { mean, median } => write!(
                f,
                "it answers after {mean:.1?} in the mean, the others after {median:.1?}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        failures_in_row: None,
        failure_share: None,
        latency: None,
        window: Duration::from_secs(10),
        out_time: Duration::from_secs(10),
        out_time_max: Duration::from_secs(100),
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

    fn answered(milliseconds: u64) -> Outcome {
        Outcome::Answered(Duration::from_millis(milliseconds))
    }

    /// Fails requests at a server until it is out.
    fn fail(
        ejector: &mut Ejector,
        server: u32,
        in_service: usize,
        now: Instant,
    ) -> Option<Ejected> {
        (0..3).find_map(|_| ejector.observe(server, Outcome::Failed, in_service, now))
    }

    /// `x` is a failed request, `.` an answered one, at one server of two; why it is taken out by the last of them.
    #[track_caller]
    fn check(rules: Rules, outcomes: &str, expected: Option<&str>) {
        let mut ejector = Ejector::new(rules, 2);
        let reasons: Vec<Option<String>> = (0..)
            .zip(outcomes.chars())
            .map(|(step, outcome)| {
                let outcome = match outcome {
                    'x' => Outcome::Failed,
                    _ => answered(1),
                };
                let ejected = ejector.observe(0, outcome, 2, at(1000 + step))?;
                Some(ejected.reason.to_string())
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
    fn failures_in_a_row_take_a_server_out() {
        check(IN_ROW, "xx", None);
        check(IN_ROW, "xxx", Some("3 requests in a row failed"));
        check(IN_ROW, "xx.xx.xx.", None);
        check(IN_ROW, "..xx.xxx", Some("3 requests in a row failed"));
    }

    #[test]
    fn a_share_of_failures_takes_a_server_out_when_there_are_enough_requests() {
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
    fn what_is_older_than_the_window_counts_no_more() {
        let mut ejector = Ejector::new(SHARE, 2);
        for _ in 0..9 {
            assert_eq!(ejector.observe(0, Outcome::Failed, 2, at(0)), None);
        }
        assert_eq!(ejector.observe(0, Outcome::Failed, 2, at(11_000)), None);
    }

    /// The servers answer in turn, each after its own milliseconds; who is taken out, and why.
    fn slow(latencies: &[u64], rounds: u64) -> Vec<(u32, String)> {
        let mut ejector = Ejector::new(LATENCY, latencies.len());
        let mut out = Vec::new();
        for round in 0..rounds {
            for (server, &latency) in (0..).zip(latencies) {
                let now = at(1000 + round * 200);
                if let Some(ejected) = ejector.observe(server, answered(latency), 9, now) {
                    out.push((server, ejected.reason.to_string()));
                }
            }
        }
        out
    }

    #[test]
    fn a_server_much_slower_than_its_peers_is_taken_out() {
        let reason = "it answers after 50.0ms in the mean, the others after 10.0ms".to_owned();
        assert_eq!(slow(&[10, 12, 50, 9], 20), [(2, reason.clone())]);
        assert_eq!(slow(&[50, 10], 20), [(0, reason)]);
    }

    #[test]
    fn a_little_slower_or_slower_by_nothing_one_would_notice_is_no_reason() {
        assert!(slow(&[10, 12, 29, 9], 20).is_empty());
        assert!(slow(&[1, 1, 10, 1], 20).is_empty());
        assert!(slow(&[500], 20).is_empty());
        assert!(slow(&[10, 12, 50, 9], 4).is_empty(), "too few requests");
    }

    #[test]
    fn a_server_is_out_for_its_time_and_then_begins_anew() {
        let mut ejector = Ejector::new(IN_ROW, 2);
        let ejected = fail(&mut ejector, 1, 2, at(1000)).expect("it failed");
        assert_eq!(ejected.until, at(11_000));
        assert_eq!(ejector.next_return(at(1000)), Some(at(11_000)));
        assert!(ejector.is_out(1, at(10_999)) && !ejector.is_out(0, at(10_999)));
        // Requests that were on their way do not count.
        assert_eq!(fail(&mut ejector, 1, 1, at(5_000)), None);
        assert!(!ejector.is_out(1, at(11_000)));
        assert_eq!(ejector.next_return(at(11_000)), None);
        assert_eq!(ejector.observe(1, Outcome::Failed, 2, at(11_000)), None);
    }

    #[test]
    fn each_repeat_takes_longer_up_to_a_limit_and_good_service_is_rewarded() {
        let mut ejector = Ejector::new(IN_ROW, 2);
        let mut now = 0;
        let mut out_for = |serves: u64| {
            now += serves * 1000;
            let until = fail(&mut ejector, 0, 2, at(now)).expect("it failed").until;
            let seconds = until.since(at(now)).as_secs();
            now = until.nanoseconds() / 1_000_000;
            seconds
        };
        assert_eq!([0; 6].map(&mut out_for), [10, 20, 40, 80, 100, 100]);
        // It was out for 100 s, so 99 s are not enough to be forgiven anything.
        assert_eq!(out_for(99), 100);
        // Nor are they at the limit when there is more to forgive; after an hour all is.
        assert_eq!(out_for(3600), 10);
        assert_eq!(out_for(9), 20);
        assert_eq!(out_for(20), 20, "one step is forgiven");
        assert_eq!(out_for(30), 10, "both are");
    }

    #[test]
    fn no_more_than_the_share_is_out_at_once_but_one_may_always_go() {
        for (servers, percent, out_max) in [
            (10, 50, 5),
            (10, 0, 1),
            (3, 50, 1),
            (2, 100, 1),
            (1, 100, 0),
        ] {
            let rules = Rules {
                out_percent_max: percent,
                ..IN_ROW
            };
            let mut ejector = Ejector::new(rules, servers);
            let mut in_service = servers;
            for server in 0..servers as u32 {
                let ejected = fail(&mut ejector, server, in_service, at(1000));
                in_service -= usize::from(ejected.is_some());
            }
            assert_eq!(servers - in_service, out_max, "{percent} % of {servers}");
        }
    }

    #[test]
    fn the_last_one_in_service_stays_whatever_it_does() {
        let mut ejector = Ejector::new(IN_ROW, 5);
        assert_eq!(fail(&mut ejector, 0, 1, at(1000)), None);
        // When others are back it takes new evidence.
        assert_eq!(ejector.observe(0, Outcome::Failed, 2, at(1001)), None);
        assert!(fail(&mut ejector, 0, 2, at(1002)).is_some());
    }

    proptest! {
        #[test]
        fn whatever_happens_someone_is_left_and_the_limit_holds(
            events in prop::collection::vec((0..6_u32, any::<bool>(), 0..3_000_u64), 1..400),
            out_percent_max in 0..=100_u32,
        ) {
            let rules = Rules { out_percent_max, ..SHARE };
            let rules = Rules { failures_in_row: Some(2), latency: LATENCY.latency, ..rules };
            let mut ejector = Ejector::new(rules, 6);
            let mut now = 0;
            for (server, failed, pause) in events {
                now += pause;
                let out = |ejector: &Ejector| (0..6).filter(|&server| ejector.is_out(server, at(now))).count();
                let outcome = if failed { Outcome::Failed } else { answered(pause) };
                let in_service = 6 - out(&ejector);
                if let Some(ejected) = ejector.observe(server, outcome, in_service, at(now)) {
                    prop_assert!(ejected.until > at(now) && ejected.until <= at(now + 100_000));
                    prop_assert!(ejector.is_out(server, at(now)));
                }
                let out_max = (6 * out_percent_max as usize / 100).clamp(1, 5);
                prop_assert!(out(&ejector) <= out_max);
                prop_assert_eq!(ejector.next_return(at(now)).is_some(), out(&ejector) > 0);
            }
        }
    }
}
