//! Outcomes of requests to the servers of a group: counters, latencies for the balancer, and evidence for ejection.

use std::time::Duration;

use onrush_config::plan::{Balance, Timeouts};
use onrush_engine::Instant;

use super::{Event, Group, Reservation};
use crate::observe::work::CHECK;
use crate::proxy::ejection::{Change, Ejection, EjectionPhase, Outcome, Purpose, bring_back};
use crate::proxy::failure::Failure;
use crate::worker::Worker;

impl Group {
    /// Whether latency and outcome of a request with this purpose are recorded if its response has `status`. Unless a
    /// rule needs all requests, responses are recorded only after a failure, and a status from 500 on may be the first.
    #[inline]
    pub(crate) fn records_outcomes(&self, purpose: Purpose, status: u16) -> bool {
        self.measures.get() || purpose != Purpose::Ordinary || status >= 500
    }

    pub(super) fn refresh_measures(&self) {
        let measures = self.plan.balance == Balance::PeakEwma
            || self.has_failing.get()
            || self.ejection().is_some_and(Ejection::wants_responses);
        self.measures.set(measures);
    }

    /// Records the head of a response with `status`, `latency` after the request. Returns the outcome to record if the
    /// rest of the response arrives, unless it is already recorded.
    pub(crate) fn responded(
        &self,
        at: (u32, Purpose),
        status: u16,
        latency: Duration,
        worker: &Worker,
    ) -> Option<Outcome> {
        let now = worker.core.now();
        if self.plan.balance == Balance::PeakEwma {
            let its = &self.server(at.0).latency;
            its.borrow_mut().observe(latency, now, self.decay);
        }
        let head = (status, latency);
        let (change, outcome) = self
            .ejection()?
            .observe_head(&self.endpoints, at, head, now);
        self.apply_change(at.0, change, worker);
        outcome
    }

    /// Records the `outcome` of a request whose response is complete.
    pub(crate) fn ended(&self, at: (u32, Purpose), outcome: Outcome, worker: &Worker) {
        if let Some(ejection) = self.ejection() {
            let now = worker.core.now();
            let change = ejection.observe(&self.endpoints, at, (outcome, None), now);
            self.apply_change(at.0, change, worker);
        }
    }

    /// Records the `outcome` of a head that was not relayed because of `failure`, unless the failure will count.
    pub(crate) fn not_relayed(
        &self,
        at: (u32, Purpose),
        (failure, outcome): (&Failure, Outcome),
        worker: &Worker,
    ) {
        let failed = (failure, &self.timeouts);
        let will_count = |ejection: &Ejection| ejection.outcome_of(failed, worker).is_some();
        if !self.ejection().is_some_and(will_count) {
            self.ended(at, outcome, worker);
        }
    }

    /// Records a request without a complete response. `outcome` is that of the head of its response, if not recorded yet.
    pub(crate) fn failed(
        &self,
        reservation: &Reservation,
        (failure, outcome): (&Failure, Option<Outcome>),
        timeouts: &Timeouts,
        worker: &Worker,
    ) {
        if !matches!(
            failure,
            Failure::Client(_)
                | Failure::BadRequest(_)
                | Failure::Intercepted(_)
                | Failure::RefusedField
        ) && !failure.is_local_shortage()
        {
            reservation.server().responses.fail();
        }
        if let Some(ejection) = self.ejection() {
            let at = (reservation.index(), reservation.purpose());
            let failed = (failure, timeouts);
            let change = match (ejection.outcome_of(failed, worker), outcome) {
                // The failure is not the server's: the client left, or the status was not relayed.
                (None, Some(outcome)) => return self.ended(at, outcome, worker),
                (None, None) => None,
                (Some(failed), _) => {
                    let (now, failed) = (worker.core.now(), (failed, Some(failure)));
                    ejection.observe(&self.endpoints, at, failed, now)
                }
            };
            self.apply_change(at.0, change, worker);
        }
    }

    /// Applies a change of a server's state: log, counters, and the task that brings the server back.
    fn apply_change(&self, server: u32, change: Option<Change>, worker: &Worker) {
        self.refresh_measures();
        match change {
            None => {}
            Some(Change::Back(how)) => self.log_event(server, Event::Back, &how),
            Some(Change::Failing(how)) => self.log_event(server, Event::Failing, &how),
            Some(Change::TakenOut(out, how)) => {
                self.server(server).responses.eject();
                self.log_event(server, Event::Ejected, &how);
                let group = self.myself.upgrade().expect("the caller has a reference");
                let returning = bring_back(group, server, out, worker.self_rc());
                worker.spawn_background(CHECK, returning);
            }
        }
    }

    pub(crate) fn is_out(&self, server: u32) -> bool {
        self.endpoints.all()[server as usize].presence() != EjectionPhase::In
    }

    /// Servers that have recently failed a request, if any.
    #[inline]
    pub(super) fn recently_failed(&self, now: Instant) -> Option<Vec<u32>> {
        self.ejection()?.recently_failed(now)
    }

    /// Closes the connections of an ejected server and resets its counts. The ejection may come from another core.
    pub(super) fn forget(&self, server: u32) {
        self.server(server).pool.drain();
        self.server(server).multiplexed.close();
        if let Some(ejection) = self.ejection() {
            ejection.forget(server);
        }
    }
}
