//! Deadlines on a connection: for responses, for streams, and for the connection itself.

use std::time::Duration;

use onrush_engine::{Error, Instant, Kind, Op};

use super::flow::Flow;
use super::state::{NEVER, State};
use crate::proxy::failure::Failure;
use crate::proxy::unavailable::Unavailable;

impl State {
    /// Marks the connection as established; from `now` on its requests have the response timeout.
    pub(super) fn make(&mut self, now: Instant) {
        self.is_connected = true;
        for (flow, patience) in std::mem::take(&mut self.early) {
            if flow.stream.get().is_some() {
                self.late(&flow, patience.response_by(now));
            }
        }
        self.flows.iter().flatten().for_each(|flow| flow.opened());
    }

    /// Sets the deadline of a stream.
    pub(super) fn late(&mut self, flow: &Flow, deadline: Instant) {
        flow.deadline.set(deadline);
        self.next_deadline = self.next_deadline.min(deadline);
    }

    /// Fails the requests whose deadline has passed at `now`.
    pub(super) fn expire(&mut self, now: Instant) {
        self.next_deadline = NEVER;
        let mut next = NEVER;
        let mut was_silent = false;
        let failure = self.lateness();
        for flow in self.flows.iter().flatten() {
            let deadline = flow.deadline.get();
            if flow.stream.get().is_none() || flow.incoming.has_ended.get() {
                continue;
            }
            match deadline <= now {
                true => {
                    was_silent = self.is_connected;
                    flow.fail(failure);
                    flow.deadline.set(NEVER);
                }
                false => next = next.min(deadline),
            }
        }
        for (flow, _) in &self.waiting {
            match flow.deadline.get() <= now {
                true => flow.fail(Failure::Unavailable(Unavailable::QueuedTooLong)),
                false => next = next.min(flow.deadline.get()),
            }
        }
        self.waiting
            .retain(|(flow, _)| flow.failure.get().is_none());
        self.next_deadline = next.min(self.expire_tunnels(now));
        let is_deaf = now.since(self.received_at) >= DEAD_AFTER;
        if was_silent && is_deaf {
            // The server may be gone: send no more requests on this connection.
            self.stop_accepting();
        }
    }

    /// The failure for a missed deadline: no response, or no connection.
    fn lateness(&self) -> Failure {
        match self.is_connected {
            true => Failure::NoResponse(Error::new(Op::Recv, Kind::TimedOut)),
            false => Failure::Connect(Error::new(Op::Connect, Kind::TimedOut)),
        }
    }
}

/// If nothing was received for this long when a response is overdue, the connection may be dead.
const DEAD_AFTER: Duration = Duration::from_secs(1);
