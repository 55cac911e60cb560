//! Requests for tunnels that wait for the server's settings: an extended CONNECT must not be sent before
//! SETTINGS_ENABLE_CONNECT_PROTOCOL has been received (RFC 8441 3). Other requests do not wait for them.

use std::rc::Rc;

use onrush_engine::{Error, Instant, Kind, Op};
use onrush_http::http2::message::ExtendedConnect;

use super::flow::Flow;
use super::request::RequestTimeouts;
use super::state::{NEVER, State};
use crate::proxy::failure::Failure;

/// A waiting request; its head is in the flow.
pub(super) struct Unsettled {
    flow: Rc<Flow>,
    patience: RequestTimeouts,
}

impl State {
    /// Accepts a request for a tunnel.
    #[cold]
    pub(super) fn submit_tunnel(
        &mut self,
        flow: &Rc<Flow>,
        head: &[u8],
        patience: RequestTimeouts,
        now: Instant,
    ) {
        if self.http.has_peer_settings() {
            return match self.takes_tunnels() {
                true => self.enter(flow, head, patience, now),
                false => flow.fail(Failure::NoWebSocket),
            };
        }
        flow.outgoing.held().head.replace(head.to_vec());
        self.late(flow, patience.settings_by(now));
        self.pending_tunnels.push(Unsettled {
            flow: Rc::clone(flow),
            patience,
        });
    }

    fn takes_tunnels(&self) -> bool {
        self.http.peer().extended_connect == ExtendedConnect::Allowed
    }

    /// The server's settings have arrived: opens or fails the waiting requests.
    pub(super) fn settle_tunnels(&mut self, now: Instant) {
        let takes_them = self.takes_tunnels();
        for Unsettled { flow, patience } in std::mem::take(&mut self.pending_tunnels) {
            match takes_them {
                true => {
                    let head = flow.outgoing.held().head.take();
                    self.enter(&flow, &head, patience, now);
                }
                false => flow.fail(Failure::NoWebSocket),
            }
        }
    }

    /// Fails the requests whose deadline has passed; returns the next deadline.
    pub(super) fn expire_tunnels(&mut self, now: Instant) -> Instant {
        let mut next = NEVER;
        self.pending_tunnels.retain(|Unsettled { flow, .. }| {
            let deadline = flow.deadline.get();
            let is_late = deadline <= now;
            match is_late {
                true => flow.fail(Failure::Connect(Error::new(Op::Recv, Kind::TimedOut))),
                false => next = next.min(deadline),
            }
            !is_late
        });
        next
    }

    pub(super) fn fail_tunnels(&mut self, failure: Failure) {
        for Unsettled { flow, .. } in self.pending_tunnels.drain(..) {
            flow.fail(failure);
        }
    }

    /// Removes a request whose client has left.
    pub(super) fn drop_tunnel(&mut self, flow: &Rc<Flow>) {
        self.pending_tunnels
            .retain(|other| !Rc::ptr_eq(&other.flow, flow));
    }
}
