//! Servers that are taken out for the outcome of their requests, and how they are brought back.

use std::sync::Arc;
use std::time::Duration;

use onrush_engine::Instant;

use super::{Endpoints, Presence};
use crate::proxy::absence::{Cause, Terms};

/// A server has been taken out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    /// The number of this absence.
    pub(crate) term: u32,
    pub(crate) cause: Cause,
    /// How long it is left alone.
    pub(crate) wait: Duration,
}

impl Endpoints {
    /// Takes a server out for as long as `terms` say; `None` when it is out already. One on trial has failed it.
    pub(crate) fn take_out(
        &self,
        endpoint: u32,
        cause: Cause,
        terms: &Terms,
        now: Instant,
    ) -> Option<Out> {
        let state = &*self.all[endpoint as usize].state;
        let mut ejection = state.ejection();
        let wait = match state.presence() {
            Presence::In => ejection.absence.begin(cause, terms, now),
            Presence::Tried => ejection.absence.go_on(cause, terms),
            Presence::Out | Presence::OnTrial => return None,
        };
        ejection.term = ejection.term.wrapping_add(1);
        state.set_presence(Presence::Out);
        let term = ejection.term;
        drop(ejection);
        self.changed();
        Some(Out { term, cause, wait })
    }

    /// Whether absence `term` of a server lasts.
    pub(crate) fn is_out(&self, endpoint: u32, term: u32) -> bool {
        let state = &*self.all[endpoint as usize].state;
        state.ejection().term == term && state.presence() == Presence::Out
    }

    /// Whether no other configuration has this server.
    pub(crate) fn is_alone(&self, endpoint: u32) -> bool {
        Arc::strong_count(&self.all[endpoint as usize].state) == 1
    }

    /// A recheck could not connect to it: how long it is left alone now. `None` when absence `term` has ended.
    pub(crate) fn stays_out(&self, endpoint: u32, term: u32, terms: &Terms) -> Option<Duration> {
        let state = &*self.all[endpoint as usize].state;
        let mut ejection = state.ejection();
        let lasts = ejection.term == term && state.presence() == Presence::Out;
        lasts.then(|| ejection.absence.go_on(Cause::Unreachable, terms))
    }

    /// Gives a server one request to show whether it responds again, if absence `term` lasts.
    pub(crate) fn put_on_trial(&self, endpoint: u32, term: u32, now: Instant) {
        let state = &*self.all[endpoint as usize].state;
        let ejection = state.ejection();
        if ejection.term == term && state.presence() == Presence::Out {
            state.set_since(now);
            state.set_presence(Presence::OnTrial);
            drop(ejection);
            self.changed();
        }
    }

    /// Claims the request that a server on trial gets.
    pub(crate) fn claim_trial(&self, endpoint: u32) -> bool {
        self.transition(endpoint, Presence::OnTrial, Presence::Tried)
    }

    /// That request has shown nothing: another may be tried.
    pub(crate) fn give_trial_back(&self, endpoint: u32) {
        if self.transition(endpoint, Presence::Tried, Presence::OnTrial) {
            self.changed();
        }
    }

    fn transition(&self, endpoint: u32, from: Presence, to: Presence) -> bool {
        let state = &*self.all[endpoint as usize].state;
        let _ejection = state.ejection();
        let fits = state.presence() == from;
        if fits {
            state.set_presence(to);
        }
        fits
    }

    /// A server that was out gets requests again. Returns whether that is news; with `term`, only if that absence lasts.
    pub(crate) fn bring_back(&self, endpoint: u32, term: Option<u32>, now: Instant) -> bool {
        let state = &*self.all[endpoint as usize].state;
        let mut ejection = state.ejection();
        let lasts = term.is_none_or(|term| term == ejection.term);
        if !lasts || state.presence() == Presence::In {
            return false;
        }
        ejection.absence.end(now);
        ejection.term = ejection.term.wrapping_add(1);
        state.set_since(now);
        state.set_presence(Presence::In);
        drop(ejection);
        self.changed();
        true
    }
}
