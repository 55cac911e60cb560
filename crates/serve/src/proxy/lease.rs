//! What carries a request to a server: a connection of its own, a place on a pipelined one, or a stream of a multiplexed one.

use std::rc::Rc;

use onrush_config::plan::{Multiplexing, Reuse};
use onrush_engine::{Buffer, Error, Input, Instant};
use onrush_http::proxy_protocol::Origin;
use onrush_http::request::RequestHead;
use onrush_tls::Transport;

use super::failure::Failure;
use super::group::{FOREVER, Group, Server};
use super::multiplexed;
use super::pipelined::carrier::carry;
use super::pipelined::{Pipelined, Submission, fits};
use crate::observe::work::SERVER;
use crate::worker::Worker;

/// What carries a request to a server. Where there is neither, it waits for a new connection.
pub(crate) enum Lease {
    /// An idle connection, which is its own now, and what of it is queued there.
    Exclusive(Transport, Queued),
    /// A pipelined connection, which it shares with others.
    Pipelined(Submission),
    /// A stream of a connection that it shares with others, and what of it is written there.
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
    /// Takes an idle connection of a server, if there is one, and queues the request there as `queue` does.
    ///
    /// # Errors
    /// Those of `queue`.
    pub(crate) fn idle(
        server: &Server,
        queue: impl FnOnce(&Transport) -> Result<Queued, Error>,
    ) -> Result<Option<Self>, Error> {
        let Some(transport) = server.pool.take() else {
            return Ok(None);
        };
        let queued = queue(&transport)?;
        Ok(Some(Lease::Exclusive(transport, queued)))
    }

    /// Submits a request on a pipelined connection to a server, where its group has those and the request may share one.
    /// `write` renders its head, as [`Pipelined::submit`] says. The whole exchange has to be over at `until`.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn pipelined(
        (group, server): (&Rc<Group>, u32),
        head: &RequestHead<'_, '_>,
        until: Instant,
        worker: &Worker,
        write: impl Fn(&mut Buffer) -> bool,
    ) -> Result<Option<Self>, Error> {
        let Some(depth) = group.plan.pipeline.filter(|_| fits(head)) else {
            return Ok(None);
        };
        let set = &group.server(server).pipelined;
        let connection = set.with_room(depth.get()).unwrap_or_else(|| {
            let connection = set.add(group.timeouts);
            let (carried, group) = (Rc::clone(&connection), Rc::clone(group));
            worker.spawn_aside(SERVER, run(carried, group, server, worker.myself()));
            connection
        });
        let request = connection.submit(head.method, until, worker, write)?;
        Ok(Some(Lease::Pipelined(request)))
    }

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

/// The task of a pipelined connection, from connecting to its end.
async fn run(connection: Rc<Pipelined>, group: Rc<Group>, server: u32, worker: Rc<Worker>) {
    let server = Rc::clone(&group.servers()[server as usize]);
    let until = connection.oldest_until().unwrap_or(FOREVER);
    let idle = match group.plan.reuse {
        Reuse::Never => None,
        Reuse::Safe | Reuse::Always => server.pool.take(),
    };
    let connected = match idle {
        Some(transport) => {
            connection.was_idle();
            Ok(transport)
        }
        None => group.connect(&server, &Origin::Local, &worker, until).await,
    };
    // It may outlive its group's configuration by as long as there are requests.
    drop(group);
    match connected {
        Ok(transport) => carry(&connection, transport, &worker).await,
        Err(error) => connection.fail(Failure::Connect(error)),
    }
    server.pipelined.remove(&connection);
}
