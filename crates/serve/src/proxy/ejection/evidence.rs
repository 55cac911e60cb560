//! Evidence from requests: each outcome is counted, and may take a server out or bring it back.

use std::time::Duration;

use onrush_config::plan::Timeouts;
use onrush_engine::Instant;

use super::Ejection;
use super::absence::Cause;
use super::outcome::{Outcome, is_our_own};
use super::presence::Presence;
use super::transitions::Out;
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
    TakenOut(Out, String),
    Back(&'static str),
}

impl Ejection {
    /// Counts a response with `status`, whose head came after `latency`. Returns a change of the server's state, if
    /// any.
    pub(crate) fn observe_response(
        &self,
        endpoints: &Endpoints,
        at: (u32, Purpose),
        (status, latency): (u16, Duration),
        now: Instant,
    ) -> Option<Change> {
        let outcome = Outcome::of_response(status, latency, self.on());
        self.observe(endpoints, at, (outcome, None), now)
    }

    /// Counts a failure, unless the server did not cause it. Returns a change of the server's state, if any.
    pub(crate) fn observe_failure(
        &self,
        endpoints: &Endpoints,
        at: (u32, Purpose),
        (failure, timeouts): (&Failure, &Timeouts),
        worker: &Worker,
    ) -> Option<Change> {
        let outcome = Outcome::of_failure(failure, self.on())?;
        if is_our_own(failure, timeouts, worker) {
            return None;
        }
        self.observe(endpoints, at, (outcome, Some(failure)), worker.core.now())
    }

    pub(in crate::proxy) fn observe(
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
        let presence = endpoints.all()[server as usize].presence();
        match purpose {
            // The request was sent before the server was taken out.
            Purpose::Ordinary if presence != Presence::In => None,
            Purpose::Ordinary => {
                let mut ejector = self.ejector.borrow_mut();
                let reason = ejector.observe(server, outcome, now)?;
                if !ejector.rules().may_take_out(endpoints.census()) {
                    return None;
                }
                drop(ejector);
                let cause = reason.cause();
                let why = match (failure, cause) {
                    (None, _) => reason.to_string(),
                    (Some(last), Cause::Unreachable) => format!("{reason}: {last}"),
                    (Some(last), Cause::Unreliable) => format!("{reason}, at last: {last}"),
                };
                self.take_out(endpoints, server, (cause, &why), now)
            }
            Purpose::Trial | Purpose::LastResort if has_responded => endpoints
                .bring_back(server, None, now)
                .then_some(Change::Back("is back: it responds")),
            Purpose::Trial => {
                let why = "the request that was to show whether it responds failed";
                self.take_out(endpoints, server, (Cause::Unreliable, why), now)
            }
            // It is out already.
            Purpose::LastResort => None,
        }
    }

    fn take_out(
        &self,
        endpoints: &Endpoints,
        server: u32,
        (cause, why): (Cause, &str),
        now: Instant,
    ) -> Option<Change> {
        let out = endpoints.take_out(server, cause, &self.terms, now)?;
        let how = match cause {
            Cause::Unreachable => format!("is out until it accepts connections: {why}"),
            Cause::Unreliable => format!("is out for {:.0} s: {why}", out.wait.as_secs_f64()),
        };
        Some(Change::TakenOut(out, how))
    }
}
