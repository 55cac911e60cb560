//! Evidence from requests: each outcome is counted, and may take a server out or bring it back.

use std::time::Duration;

use onrush_config::plan::{EjectOn, Timeouts};
use onrush_engine::Instant;

use super::Ejection;
use super::outcome::{Outcome, is_caused_locally};
use super::presence::EjectionPhase;
use super::recheck_delay::Cause;
use super::transitions::EjectionStart;
use crate::proxy::endpoints::Endpoints;
use crate::proxy::failure::Failure;
use crate::worker::Worker;

/// Why a server was chosen for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The server is in service.
    Ordinary,
    /// The server is on trial: the request shows whether it responds again.
    Trial,
    /// The server is out, and no other is available.
    LastResort,
}

/// A change of a server's state, with the text that follows the server's name in the log.
pub(crate) enum Change {
    /// The server has been taken out; the caller starts the task that brings it back.
    TakenOut(EjectionStart, String),
    Back(&'static str),
    /// The server fails and stays in service.
    Failing(String),
}

impl Ejection {
    /// Classifies a response with `status`, whose head came after `latency`. Returns a change of the server's state, if
    /// any, and the outcome to count at the end of the response: a request counts once, and the rest may not arrive.
    pub(crate) fn observe_head(
        &self,
        endpoints: &Endpoints,
        at: (u32, Purpose),
        (status, latency): (u16, Duration),
        now: Instant,
    ) -> (Option<Change>, Option<Outcome>) {
        let outcome = Outcome::of_response(status, latency, self.on());
        let is_tunnel = status < 200;
        let counts_at_end = self.on() == EjectOn::Responses && !is_tunnel;
        if counts_at_end && at.1 == Purpose::Ordinary {
            return (None, Some(outcome));
        }
        let change = self.observe(endpoints, at, (outcome, None), now);
        let has_responded = matches!(outcome, Outcome::Responded(_));
        (change, (counts_at_end && has_responded).then_some(outcome))
    }

    /// Classifies a failed request; `None` if the server did not cause the failure.
    pub(crate) fn outcome_of(
        &self,
        (failure, timeouts): (&Failure, &Timeouts),
        worker: &Worker,
    ) -> Option<Outcome> {
        let outcome = Outcome::of_failure(failure, self.on())?;
        (!is_caused_locally(failure, timeouts, worker)).then_some(outcome)
    }

    /// Counts an outcome, with the failure that it was. Returns a change of the server's state, if any.
    pub(crate) fn observe(
        &self,
        endpoints: &Endpoints,
        (server, purpose): (u32, Purpose),
        (outcome, failure): (Outcome, Option<&Failure>),
        now: Instant,
    ) -> Option<Change> {
        if outcome == Outcome::Failed && failure.is_some() {
            self.recent_failures.add(server, now);
        }
        let has_responded = matches!(outcome, Outcome::Responded(_));
        let is_in = endpoints.all()[server as usize].presence() == EjectionPhase::In;
        match purpose {
            Purpose::Trial if !has_responded => {
                let why = "the trial request failed";
                let because = (Cause::Unreliable, why);
                match is_in {
                    // The head of its response has brought the server back, and the rest did not arrive.
                    true => self.condemn(endpoints, server, because, now),
                    false => self.take_out(endpoints, server, because, now),
                }
            }
            _ if is_in => self.judge(endpoints, server, (outcome, failure), now),
            Purpose::Trial | Purpose::LastResort if has_responded => endpoints
                .bring_back(server, None, now)
                .then_some(Change::Back("is back: it responds")),
            // It is out already; an ordinary request was sent before.
            Purpose::Ordinary | Purpose::Trial | Purpose::LastResort => None,
        }
    }

    /// Counts an outcome of a server in service, which may take it out.
    fn judge(
        &self,
        endpoints: &Endpoints,
        server: u32,
        (outcome, failure): (Outcome, Option<&Failure>),
        now: Instant,
    ) -> Option<Change> {
        let reason = self.ejector.borrow_mut().observe(server, outcome, now);
        let Some(reason) = reason else {
            let is_failing = endpoints.all()[server as usize].is_failing();
            let works = is_failing && matches!(outcome, Outcome::Responded(_));
            return (works && endpoints.end_failing(server, now))
                .then_some(Change::Back("is no longer failing: it responds"));
        };
        let cause = reason.cause();
        let why = match (failure, cause) {
            (None, _) => reason.to_string(),
            (Some(last), Cause::Unreachable) => format!("{reason}: {last}"),
            (Some(last), Cause::Unreliable) => format!("{reason}, the last one: {last}"),
        };
        self.condemn(endpoints, server, (cause, &why), now)
    }

    /// Takes a server in service out, or marks it as failing if it has to stay.
    fn condemn(
        &self,
        endpoints: &Endpoints,
        server: u32,
        (cause, why): (Cause, &str),
        now: Instant,
    ) -> Option<Change> {
        let census = endpoints.snapshot();
        if self.ejector.borrow().rules().may_take_out(census) {
            return self.take_out(endpoints, server, (cause, why), now);
        }
        let stays = match census.in_service {
            0 | 1 => "no other server is in service",
            _ => "as many servers are out as share_max allows",
        };
        let is_new = endpoints.begin_failing(server, cause, &self.terms, now);
        is_new.then(|| {
            Change::Failing(format!(
                "is failing and still gets requests, as {stays}: {why}"
            ))
        })
    }

    fn take_out(
        &self,
        endpoints: &Endpoints,
        server: u32,
        (cause, why): (Cause, &str),
        now: Instant,
    ) -> Option<Change> {
        let out = endpoints.eject_server(server, cause, &self.terms, now)?;
        let how = match cause {
            Cause::Unreachable => format!("is out until it accepts connections: {why}"),
            Cause::Unreliable => format!("is out for {:.0} s: {why}", out.wait.as_secs_f64()),
        };
        Some(Change::TakenOut(out, how))
    }
}
