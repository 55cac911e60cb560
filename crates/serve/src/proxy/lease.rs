//! The carrier of a request to a server: an exclusive connection, or a stream of a multiplexed one.

use std::rc::Rc;

use onrush_config::plan::Multiplexing;
use onrush_engine::{Input, Instant};
use onrush_tls::Transport;

use super::group::{Group, Server};
use super::multiplexed;
use crate::observe::work::SERVER;
use crate::worker::Worker;

/// The carrier of a request to a server. A request without a lease waits for a new connection.
pub(crate) enum Lease {
    /// An idle connection, now used by this request alone, and the part of the request already queued on it.
    Exclusive(Transport, Queued),
    /// A stream of a shared connection, and the part of the request already written to it.
    Stream(multiplexed::Submission, Queued),
}

/// The part of a request that has been queued on its connection.
#[derive(Clone, Copy)]
pub(crate) enum Queued {
    /// The whole request, with this number of body bytes.
    Whole {
        body_bytes: u32,
    },
    Head,
}

/// A connection to a server that carries a single request.
pub(crate) struct Exclusive {
    pub(crate) transport: Transport,
    /// Bytes received and not yet relayed.
    pub(crate) input: Input,
}

impl Lease {
    /// Submits a request on a stream to a server of an HTTP/2 group, opening a connection within `bounds` if necessary.
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
            let task = multiplexed::carrier::run(carried, group, server, worker.self_rc());
            worker.spawn_background(SERVER, task);
            connection
        });
        connection.submit(request, worker.core.now())
    }
}

impl Exclusive {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            input: Input::default(),
        }
    }

    /// Returns the connection to the pool, unless the server has sent more than its response.
    pub(crate) fn return_to_pool(self, server: &Server, now: Instant) {
        if self.input.is_empty() {
            server.pool.put(self.transport, now);
        }
    }
}
