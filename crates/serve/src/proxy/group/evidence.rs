//! What came of requests to the servers of a group, and which servers are taken out for it.

use std::fmt;
use std::time::Duration;

use onrush_config::plan::{Balance, EjectOn, Timeouts};

use super::ejection::Ejection;
use super::{Event, Group, Purpose, Reservation};
use crate::observe::work::CHECK;
use crate::proxy::absence::Cause;
use crate::proxy::endpoints::Presence;
use crate::proxy::failure::Failure;
use crate::proxy::{eject, recheck};
use crate::worker::Worker;

impl Group {
    /// Whether latency and outcome of a request with this purpose are needed.
    #[inline]
    pub(crate) fn measures(&self, purpose: Purpose) -> bool {
        self.measures.get() || purpose != Purpose::Ordinary
    }

    pub(super) fn refresh_measures(&self) {
        let wants_responses = |ejection: &Ejection| ejection.ejector.borrow().wants_responses();
        let measures = self.plan.balance == Balance::PeakEwma
            || self.ejection.as_ref().is_some_and(wants_responses);
        self.measures.set(measures);
    }

    /// A server has begun to respond with `status`, `latency` after the request.
    pub(crate) fn responded(
        &self,
        (server, purpose): (u32, Purpose),
        status: u16,
        latency: Duration,
        worker: &Worker,
    ) {
        if self.plan.balance == Balance::PeakEwma {
            let its = &self.server(server).latency;
            its.borrow_mut()
                .observe(latency, worker.core.now(), self.decay);
        }
        let counts_statuses = self.ejects_on() == Some(EjectOn::Responses);
        let outcome = if counts_statuses && status >= 500 {
            eject::Outcome::Failed
        } else {
            eject::Outcome::Responded(latency)
        };
        self.observe((server, purpose), outcome, None, worker);
    }

    /// A server has not responded, or not to the end.
    pub(crate) fn failed(
        &self,
        reservation: &Reservation,
        failure: &Failure,
        timeouts: &Timeouts,
        worker: &Worker,
    ) {
        if !matches!(
            failure,
            Failure::Client(_)
                | Failure::BadRequest(_)
                | Failure::Intercepted(_)
                | Failure::Unwanted
        ) && !failure.is_local_shortage()
        {
            reservation.server().responses.fail();
        }
        if let Some(on) = self.ejects_on()
            && let Some(outcome) = failure.outcome(on)
            && !is_our_own(failure, timeouts, worker)
        {
            if outcome == eject::Outcome::Failed {
                self.suspects.add(reservation.index(), worker.core.now());
            }
            let at = (reservation.index(), reservation.purpose());
            self.observe(at, outcome, Some(failure), worker);
        }
    }

    /// What counts as a failure that may take a server out, if anything does.
    pub(crate) fn ejects_on(&self) -> Option<EjectOn> {
        self.ejection
            .as_ref()
            .and(self.plan.eject)
            .map(|eject| eject.on)
    }

    /// Whether requests have taken this server out.
    pub(crate) fn is_out(&self, server: u32) -> bool {
        self.endpoints.all()[server as usize].presence() != Presence::In
    }

    /// `failure` is what came of the request, where that is known.
    fn observe(
        &self,
        (server, purpose): (u32, Purpose),
        outcome: eject::Outcome,
        failure: Option<&Failure>,
        worker: &Worker,
    ) {
        let Some(ejection) = &self.ejection else {
            return;
        };
        let now = worker.core.now();
        let has_responded = matches!(outcome, eject::Outcome::Responded(_));
        match purpose {
            Purpose::Ordinary if self.is_out(server) => {
                // A request that was sent before that. Its outcome is known.
            }
            Purpose::Ordinary => {
                let mut ejector = ejection.ejector.borrow_mut();
                let reason = ejector.observe(server, outcome, now);
                let may_go = || ejector.rules().may_take_out(self.endpoints.census());
                let reason = reason.filter(|_| may_go());
                drop(ejector);
                self.refresh_measures();
                let Some(reason) = reason else { return };
                let cause = reason.cause();
                match failure {
                    Some(last) => {
                        let between = match cause {
                            Cause::Unreachable => ":",
                            Cause::Unreliable => ", at last:",
                        };
                        let why = format_args!("{reason}{between} {last}");
                        self.take_out(server, cause, &why, worker);
                    }
                    None => self.take_out(server, cause, &reason, worker),
                }
            }
            Purpose::Trial | Purpose::LastResort if has_responded => {
                if self.endpoints.bring_back(server, None, now) {
                    self.tell_return(server, "it responds");
                }
            }
            Purpose::Trial => {
                let reason = "the request that was to show whether it responds failed";
                self.take_out(server, Cause::Unreliable, &reason, worker);
            }
            // It is out already.
            Purpose::LastResort => {}
        }
    }

    fn take_out(&self, server: u32, cause: Cause, why: &dyn fmt::Display, worker: &Worker) {
        let Some(ejection) = &self.ejection else {
            return;
        };
        let now = worker.core.now();
        let Some(out) = self.endpoints.take_out(server, cause, &ejection.terms, now) else {
            return;
        };
        self.server(server).responses.eject();
        let until = match cause {
            Cause::Unreachable => "until it accepts connections".to_owned(),
            Cause::Unreliable => format!("for {:.0} s", out.wait.as_secs_f64()),
        };
        self.tell(
            server,
            Event::Ejected,
            &format_args!("is out {until}: {why}"),
        );
        let group = self.myself.upgrade().expect("whoever asks has one");
        let returning = recheck::bring_back(group, server, out, worker.myself());
        worker.spawn_aside(CHECK, returning);
    }

    /// A recheck in absence `term` could not connect to a server: how the absence goes on, unless it has ended.
    pub(crate) fn stays_out(&self, server: u32, term: u32) -> Option<(Cause, Duration)> {
        let terms = &self.ejection.as_ref()?.terms;
        let wait = self.endpoints.stays_out(server, term, terms)?;
        Some((Cause::Unreachable, wait))
    }

    pub(crate) fn tell_return(&self, server: u32, why: &str) {
        self.tell(server, Event::Back, &format_args!("is back: {why}"));
    }

    /// A server has been taken out, here or on another core: its connections are of no more use, and neither is what was
    /// known of it.
    pub(super) fn forget(&self, server: u32) {
        self.server(server).pool.drain();
        self.server(server).multiplexed.close();
        if let Some(ejection) = &self.ejection {
            ejection.ejector.borrow_mut().forget(server);
        }
    }
}

/// Whether a server had no time to respond since this core was held up for a good part of it.
fn is_our_own(failure: &Failure, timeouts: &Timeouts, worker: &Worker) -> bool {
    let patience = match failure {
        Failure::Connect(_) => timeouts.connect,
        _ => timeouts.upstream_first_byte,
    };
    failure.is_timeout() && worker.was_held_up(patience)
}
