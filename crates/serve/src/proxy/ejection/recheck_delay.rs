//! How long an ejected server stays out. Pure: computes a delay from the cause and the time.
//!
//! Connecting to an unreachable server is retried after short delays: it costs no request and shows whether the server
//! is back. A server that did not respond is out for longer, and then gets a single request.

use std::time::Duration;

use onrush_config::plan;
use onrush_engine::Instant;

use crate::limits::{EJECT_DOUBLINGS_MAX, EJECT_TIME_MAX, RECHECK_WAIT};

/// Why a server is out, as far as its return depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Connections failed: the first successful connection brings the server back.
    #[default]
    Unreachable,
    /// The server accepts connections but does not respond properly: a response brings it back.
    Unreliable,
}

/// Delays before each recheck, by cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecheckDelays {
    unreachable: DelayRange,
    unreliable: DelayRange,
}

#[derive(Clone, Copy, Debug)]
struct DelayRange {
    /// The first delay; each further one is twice as long.
    first: Duration,
    longest: Duration,
}

/// The history of one server's absences.
#[derive(Clone, Debug, Default)]
pub(crate) struct EjectionHistory {
    cause: Cause,
    /// Number of failed rechecks and absences, less one for each period of service as long as the last delay.
    repeats: u32,
    returned: Instant,
}

impl EjectionHistory {
    /// Takes the server out. Returns the time before the first recheck.
    pub(crate) fn begin(&mut self, cause: Cause, terms: &RecheckDelays, now: Instant) -> Duration {
        if cause == self.cause {
            self.reduce_repeats(terms.of(cause), now);
        }
        self.go_on(cause, terms)
    }

    /// Continues the absence after a failed recheck or trial. Returns the time before the next one.
    pub(crate) fn go_on(&mut self, cause: Cause, terms: &RecheckDelays) -> Duration {
        if std::mem::replace(&mut self.cause, cause) != cause {
            self.repeats = 0;
        }
        let wait = terms.of(cause).wait(self.repeats);
        self.repeats = (self.repeats + 1).min(EJECT_DOUBLINGS_MAX);
        wait
    }

    pub(crate) fn end(&mut self, now: Instant) {
        self.returned = now;
    }

    /// Undoes one doubling for each delay's worth of time in service.
    fn reduce_repeats(&mut self, term: DelayRange, now: Instant) {
        let mut served = now.since(self.returned);
        while let Some(before) = self.repeats.checked_sub(1) {
            let Some(rest) = served.checked_sub(term.wait(before)) else {
                return;
            };
            (served, self.repeats) = (rest, before);
        }
    }
}

impl From<&plan::Eject> for RecheckDelays {
    fn from(written: &plan::Eject) -> Self {
        Self {
            unreachable: DelayRange {
                first: RECHECK_WAIT.min(written.time),
                longest: written.time,
            },
            unreliable: DelayRange {
                first: written.time,
                longest: EJECT_TIME_MAX.max(written.time),
            },
        }
    }
}

impl RecheckDelays {
    fn of(&self, cause: Cause) -> DelayRange {
        match cause {
            Cause::Unreachable => self.unreachable,
            Cause::Unreliable => self.unreliable,
        }
    }
}

impl DelayRange {
    fn wait(self, repeats: u32) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << repeats.min(EJECT_DOUBLINGS_MAX));
        doubled.min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> RecheckDelays {
        RecheckDelays::from(&plan::Eject::default())
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanoseconds(milliseconds * 1_000_000)
    }

    #[test]
    fn unreachable_recheck_backs_off() {
        let mut absence = EjectionHistory::default();
        let first = absence.begin(Cause::Unreachable, &terms(), at(1000));
        let mut waits = vec![first.as_millis()];
        for _ in 0..7 {
            waits.push(absence.go_on(Cause::Unreachable, &terms()).as_millis());
        }
        assert_eq!(
            waits,
            [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]
        );
    }

    #[test]
    fn ejection_time_doubles_and_decays_in_service() {
        let mut absence = EjectionHistory::default();
        let mut now = 1_000_000;
        let mut out_for = |serves: u64| {
            now += serves * 1000;
            let wait = absence.begin(Cause::Unreliable, &terms(), at(now));
            now += wait.as_millis() as u64;
            absence.end(at(now));
            wait.as_secs()
        };
        assert_eq!([0; 7].map(&mut out_for), [10, 20, 40, 80, 160, 300, 300]);
        // 300 s out, so 299 s in service do not shorten the next absence.
        assert_eq!(out_for(299), 300);
        // An hour in service resets it.
        assert_eq!(out_for(3600), 10);
        assert_eq!(out_for(9), 20);
        assert_eq!(out_for(20), 20, "one step is forgiven");
        assert_eq!(out_for(30), 10, "both are");
    }

    #[test]
    fn different_cause_resets_recheck_delay() {
        let mut absence = EjectionHistory::default();
        for _ in 0..5 {
            absence.begin(Cause::Unreachable, &terms(), at(1));
        }
        let wait = absence.begin(Cause::Unreliable, &terms(), at(1));
        assert_eq!(wait, Duration::from_secs(10));
        let wait = absence.go_on(Cause::Unreachable, &terms());
        assert_eq!(wait, Duration::from_millis(250));
    }
}
