//! Transitions of a server between the states of ejection, and the notice of them to other cores.

use std::time::Duration;

use onrush_engine::Instant;

use super::absence::{Cause, Terms};
use super::presence::Presence;
use crate::proxy::endpoints::Endpoints;

/// The beginning of an absence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    /// Number of the absence.
    pub(crate) term: u32,
    pub(crate) cause: Cause,
    /// Time before the first recheck.
    pub(crate) wait: Duration,
}

impl Endpoints {
    /// Takes a server out for as long as `terms` say; `None` when it is out already or waits for its trial. A server
    /// that has been `Tried` fails its trial.
    pub(in crate::proxy) fn take_out(
        &self,
        endpoint: u32,
        cause: Cause,
        terms: &Terms,
        now: Instant,
    ) -> Option<Out> {
        let state = self.all()[endpoint as usize].ejection();
        let mut record = state.record();
        let wait = match state.presence() {
            Presence::In => record.absence.begin(cause, terms, now),
            Presence::Tried => record.absence.go_on(cause, terms),
            Presence::Out | Presence::OnTrial => return None,
        };
        record.term = record.term.wrapping_add(1);
        state.set_presence(Presence::Out);
        let term = record.term;
        drop(record);
        self.changed();
        Some(Out { term, cause, wait })
    }

    /// Whether absence `term` of a server lasts.
    pub(in crate::proxy) fn is_out(&self, endpoint: u32, term: u32) -> bool {
        let state = self.all()[endpoint as usize].ejection();
        state.record().term == term && state.presence() == Presence::Out
    }

    /// A recheck could not connect to a server. Returns the time before the next one; `None` when absence `term` has ended.
    pub(super) fn stays_out(&self, endpoint: u32, term: u32, terms: &Terms) -> Option<Duration> {
        let state = self.all()[endpoint as usize].ejection();
        let mut record = state.record();
        let lasts = record.term == term && state.presence() == Presence::Out;
        lasts.then(|| record.absence.go_on(Cause::Unreachable, terms))
    }

    /// Gives a server one request to show whether it responds again, if absence `term` lasts.
    pub(in crate::proxy) fn put_on_trial(&self, endpoint: u32, term: u32, now: Instant) {
        let endpoint = &self.all()[endpoint as usize];
        let state = endpoint.ejection();
        let record = state.record();
        if record.term == term && state.presence() == Presence::Out {
            endpoint.set_since(now);
            state.set_presence(Presence::OnTrial);
            drop(record);
            self.changed();
        }
    }

    /// Claims the request that a server on trial gets.
    pub(crate) fn claim_trial(&self, endpoint: u32) -> bool {
        self.transition(endpoint, Presence::OnTrial, Presence::Tried)
    }

    /// The trial ended without an outcome: another request may be tried.
    pub(crate) fn give_trial_back(&self, endpoint: u32) {
        if self.transition(endpoint, Presence::Tried, Presence::OnTrial) {
            self.changed();
        }
    }

    fn transition(&self, endpoint: u32, from: Presence, to: Presence) -> bool {
        let state = self.all()[endpoint as usize].ejection();
        let _record = state.record();
        let fits = state.presence() == from;
        if fits {
            state.set_presence(to);
        }
        fits
    }

    /// A server that was out gets requests again. Returns whether it was out; with `term`, only if that absence lasts.
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
        if !lasts || state.presence() == Presence::In {
            return false;
        }
        record.absence.end(now);
        record.term = record.term.wrapping_add(1);
        endpoint.set_since(now);
        state.set_presence(Presence::In);
        drop(record);
        self.changed();
        true
    }
}
