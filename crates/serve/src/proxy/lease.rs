//! The carrier of a request to a server: a connection of its own, or a stream of a multiplexed one.

use std::rc::Rc;

use onrush_config::plan::Multiplexing;
use onrush_engine::{Input, Instant};
use onrush_tls::Transport;

use super::group::{Group, Server};
use super::multiplexed;
use crate::observe::work::SERVER;
use crate::worker::Worker;

/// The carrier of a request to a server. Without a lease, the request waits for a new connection.
pub(crate) enum Lease {
    /// An idle connection, now used by this request alone, and what part of the request is queued there.
    Exclusive(Transport, Queued),
    /// A stream of a connection that other requests use too, and what part of the request is written there.
    Stream(multiplexed::Submission, Queued),
}

/// What of a request has been queued on its connection.
#[derive(Clone, Copy)]
pub(crate) enum Queued {
    /// All of it, with so many bytes that came behind its head.
    Whole { body_bytes: u32 },
    /// Its head; the body is still to be sent.
    Head,
}

/// A connection to a server while it carries one request and nothing else.
pub(crate) struct Exclusive {
    pub(crate) transport: Transport,
    /// What has been received and not relayed.
    pub(crate) input: Input,
}

impl Lease {
    /// Submits a request on a stream to a server whose group has those, within `bounds`.
    pub(crate) fn stream(
        (group, server): (&Rc<Group>, u32),
        bounds: Multiplexing,
        request: multiplexed::Request<'_>,
        worker: &Worker,
    ) -> multiplexed::Submission {
        let set = &group.server(server).multiplexed;
        let connection = set.choose(bounds).unwrap_or_else(|| {
            let connection = set.add(bounds, group.scheme());
            let (carried, group) = (Rc::clone(&connection), Rc::clone(group));
            let task = multiplexed::carrier::run(carried, group, server, worker.myself());
            worker.spawn_aside(SERVER, task);
            connection
        });
        connection.submit(request, worker.core.now())
    }
}

impl Exclusive {
    /// Of which nothing has been received.
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            input: Input::default(),
        }
    }

    /// Keeps the connection for other requests to its server, unless more has been received than a response.
    pub(crate) fn give_back(self, server: &Server, now: Instant) {
        if self.input.is_empty() {
            server.pool.put(self.transport, now);
        }
    }
}
