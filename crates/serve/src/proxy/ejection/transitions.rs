//! Transitions of a server between the states of ejection, and their announcement to other cores.

use std::time::Duration;

use onrush_engine::Instant;

use super::presence::EjectionPhase;
use super::recheck_delay::{Cause, RecheckDelays};
use crate::proxy::endpoints::Endpoints;

/// A new ejection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EjectionStart {
    /// Number of the absence, which identifies it.
    pub(crate) term: u32,
    pub(crate) cause: Cause,
    /// Time before the first recheck.
    pub(crate) wait: Duration,
}

impl Endpoints {
    /// Takes a server out for the time given by `terms`. Returns `None` if it is already out or waits for its trial. A
    /// `Tried` server fails its trial.
    pub(in crate::proxy) fn eject_server(
        &self,
        endpoint: u32,
        cause: Cause,
        terms: &RecheckDelays,
        now: Instant,
    ) -> Option<EjectionStart> {
        let state = self.all()[endpoint as usize].ejection();
        let mut record = state.record();
        let wait = match state.presence() {
            EjectionPhase::In => record.absence.begin(cause, terms, now),
            EjectionPhase::Tried => record.absence.go_on(cause, terms),
            EjectionPhase::Out | EjectionPhase::OnTrial => return None,
        };
        record.term = record.term.wrapping_add(1);
        state.set_presence(EjectionPhase::Out);
        let term = record.term;
        drop(record);
        self.changed();
        Some(EjectionStart { term, cause, wait })
    }

    /// Marks a server in service as failing, for at least the time that it would be out. Returns whether that is new.
    pub(super) fn begin_failing(
        &self,
        endpoint: u32,
        cause: Cause,
        terms: &RecheckDelays,
        now: Instant,
    ) -> bool {
        let state = self.all()[endpoint as usize].ejection();
        let mut record = state.record();
        if state.is_failing() || state.presence() != EjectionPhase::In {
            return false;
        }
        record.failing_until = now + record.absence.begin(cause, terms, now);
        state.set_failing();
        drop(record);
        self.changed();
        true
    }

    /// A failing server has responded. Returns whether it is failing no more.
    pub(super) fn end_failing(&self, endpoint: u32, now: Instant) -> bool {
        let state = self.all()[endpoint as usize].ejection();
        let mut record = state.record();
        if !state.is_failing() || now < record.failing_until {
            return false;
        }
        record.absence.end(now);
        state.clear_failing();
        drop(record);
        self.changed();
        true
    }

    /// Whether the server is still in absence `term`.
    pub(in crate::proxy) fn is_out(&self, endpoint: u32, term: u32) -> bool {
        let state = self.all()[endpoint as usize].ejection();
        state.record().term == term && state.presence() == EjectionPhase::Out
    }

    /// A recheck could not connect to a server. Returns the time before the next one; `None` when absence `term` has ended.
    pub(super) fn extend_absence(
        &self,
        endpoint: u32,
        term: u32,
        terms: &RecheckDelays,
    ) -> Option<Duration> {
        let state = self.all()[endpoint as usize].ejection();
        let mut record = state.record();
        let lasts = record.term == term && state.presence() == EjectionPhase::Out;
        lasts.then(|| record.absence.go_on(Cause::Unreachable, terms))
    }

    /// Puts a server on trial, unless absence `term` has ended: its next request shows whether it responds again.
    pub(in crate::proxy) fn put_on_trial(&self, endpoint: u32, term: u32, now: Instant) {
        let endpoint = &self.all()[endpoint as usize];
        let state = endpoint.ejection();
        let record = state.record();
        if record.term == term && state.presence() == EjectionPhase::Out {
            endpoint.set_since(now);
            state.set_presence(EjectionPhase::OnTrial);
            drop(record);
            self.changed();
        }
    }

    /// Claims the trial request of a server. Returns `false` if another request has it.
    pub(crate) fn claim_trial(&self, endpoint: u32) -> bool {
        self.transition(endpoint, EjectionPhase::OnTrial, EjectionPhase::Tried)
    }

    /// Releases a trial that ended without an outcome, so that another request can be the trial.
    pub(crate) fn release_trial(&self, endpoint: u32) {
        if self.transition(endpoint, EjectionPhase::Tried, EjectionPhase::OnTrial) {
            self.changed();
        }
    }

    fn transition(&self, endpoint: u32, from: EjectionPhase, to: EjectionPhase) -> bool {
        let state = self.all()[endpoint as usize].ejection();
        let _record = state.record();
        let fits = state.presence() == from;
        if fits {
            state.set_presence(to);
        }
        fits
    }

    /// Puts a server back into service. Returns whether it was out; with `term`, only if that absence still lasts.
    pub(in crate::proxy) fn bring_back(
        &self,
        endpoint: u32,
        term: Option<u32>,
        now: Instant,
    ) -> bool {
        let endpoint = &self.all()[endpoint as usize];
        let state = endpoint.ejection();
        let mut record = state.record();
        let lasts = term.is_none_or(|term| term == record.term);
        if !lasts || state.presence() == EjectionPhase::In {
            return false;
        }
        record.absence.end(now);
        record.term = record.term.wrapping_add(1);
        endpoint.set_since(now);
        state.set_presence(EjectionPhase::In);
        drop(record);
        self.changed();
        true
    }
}
