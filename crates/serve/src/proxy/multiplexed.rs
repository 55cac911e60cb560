//! Multiplexed connections to a server: HTTP/2 (RFC 9113), whose streams carry requests of many clients.
//!
//! ```text
//!   clients' tasks              task of the connection                 server
//!   submit ── head, body ──> State ── frames of all streams in one send ──>
//!   head, data, trailers <── Flow <──────── frames, each to its stream <──
//! ```
//! One send and one receive serve many requests, and responses arrive in any order. A client that reads slowly exhausts
//! the window of its own stream and blocks no other stream: the window of the connection is updated as bytes arrive.
//!
//! This file has the set of connections to a server, `state.rs` one connection, `flow.rs` one stream, `submission.rs`
//! the interface for a client's task, and `carrier.rs` the connection's task. `unsettled.rs` has requests for tunnels
//! that wait for the server's settings, and `tunnel.rs` established tunnels.
//!
//! Dropping a `Submission` resets its stream. An HTTP/2 request that has been sent completely has no task while it
//! waits; it is parked at its two streams (`worker/waiter.rs`), and if its response arrives in one receive, it is
//! relayed at once (`forward/complete_response.rs`). It becomes a task if only part of the response arrives, on a failure, at a
//! deadline, or at the end of its stream. With thousands of requests, tasks would exceed the CPU caches; a stream that
//! waits for its server takes 1.5 KB.
//!
//! The head of a request is text, as for HTTP/1, until its stream is opened: edits and variables are applied in one
//! place, and a waiting request keeps its text. Deadlines belong to streams (`stream_deadlines.rs`), but each connection has
//! one timer, set for the earliest of them. Streams are capacity: a group chooses another server while that one has a
//! free stream (`group/select.rs`). Until a server has announced how many streams it allows, its connection opens one.

pub(crate) mod carrier;
mod flow;
mod receive;
mod request;
mod send;
mod state;
mod stream_deadlines;
mod submission;
mod tunnel;
mod unsettled;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Waker};

use onrush_config::plan::Multiplexing;
use onrush_engine::Instant;

use super::failure::Failure;
pub(crate) use request::{Body, Request, RequestTimeouts};
use state::{AnnouncedStreams, State};
pub(crate) use submission::{Arrived, Submission};
pub(crate) use tunnel::TunnelStream;

/// The multiplexed connections of one core to one server.
#[derive(Default)]
pub(crate) struct MultiplexedSet {
    all: RefCell<Vec<Rc<Multiplexed>>>,
    said: AnnouncedStreams,
    /// Index of the connection chosen last.
    last: Cell<usize>,
    /// No more requests are expected: each connection, including new ones, finishes its requests and closes.
    closed: Cell<bool>,
}

pub(crate) struct Multiplexed {
    state: RefCell<State>,
    task: RefCell<Option<Waker>>,
    /// Whether the task was woken and has not run yet.
    is_called: Cell<bool>,
}

impl MultiplexedSet {
    /// Chooses the connection for a request: the first one with a free stream, because few busy connections batch
    /// better than many idle ones. `None` if the caller should open a new connection; at the limit of connections, the
    /// one with the fewest requests, where the request waits.
    pub(crate) fn choose(&self, bounds: Multiplexing) -> Option<Rc<Multiplexed>> {
        let all = self.all.borrow();
        let mut least: Option<(u32, &Rc<Multiplexed>)> = None;
        let mut taking = 0;
        for (place, connection) in all.iter().enumerate() {
            let Some(load) = connection.load() else {
                continue;
            };
            if load.has_room {
                self.last.set(place);
                return Some(Rc::clone(connection));
            }
            taking += 1;
            if least.is_none_or(|(requests, _)| load.requests < requests) {
                least = Some((load.requests, connection));
            }
        }
        let may_be_more = taking < bounds.connections_shared_max;
        least
            .filter(|_| !may_be_more)
            .map(|(_, connection)| Rc::clone(connection))
    }

    /// Whether one more request would not have to wait for a stream.
    pub(crate) fn has_room(&self, bounds: Multiplexing) -> bool {
        let all = self.all.borrow();
        // Usually the connection of the last request.
        let last = all.get(self.last.get());
        if last
            .and_then(|it| it.load())
            .is_some_and(|load| load.has_room)
        {
            return true;
        }
        let mut taking = 0;
        let has_room = all
            .iter()
            .filter_map(|connection| connection.load())
            .any(|load| {
                taking += 1;
                load.has_room
            });
        has_room || taking < bounds.connections_shared_max
    }

    /// Number of free streams, on existing and on permitted further connections.
    pub(crate) fn free(&self, bounds: Multiplexing) -> u32 {
        let of_new = self.said.get().unwrap_or(u32::MAX).min(bounds.streams_max);
        let all = self.all.borrow();
        let taking = all.iter().filter_map(|connection| connection.free());
        let (connections, free) = taking.fold((0, 0), |(count, sum), free| (count + 1, sum + free));
        let new = bounds.connections_shared_max.saturating_sub(connections);
        free + new * of_new
    }

    pub(crate) fn waiting(&self) -> usize {
        let all = self.all.borrow();
        let waiting = all
            .iter()
            .map(|connection| connection.state.borrow().waiting.len());
        waiting.sum()
    }

    /// Adds a connection. The caller starts its task (see `carrier.rs`), which removes it at its end.
    pub(crate) fn add(&self, bounds: Multiplexing, scheme: &'static str) -> Rc<Multiplexed> {
        let state = State::new(bounds, scheme, Rc::clone(&self.said));
        let connection = Rc::new(Multiplexed {
            state: RefCell::new(state),
            task: RefCell::default(),
            is_called: Cell::new(false),
        });
        if self.closed.get() {
            connection.close();
        }
        self.all.borrow_mut().push(Rc::clone(&connection));
        connection
    }

    pub(crate) fn remove(&self, connection: &Rc<Multiplexed>) {
        self.all
            .borrow_mut()
            .retain(|other| !Rc::ptr_eq(other, connection));
    }

    /// Accepts no more requests on the existing connections; those in flight are finished.
    pub(crate) fn close(&self) {
        let all = self.all.borrow();
        all.iter().for_each(|connection| connection.close());
    }

    /// As `close`, also for connections added later: each finishes the requests it was opened for.
    pub(crate) fn clear(&self) {
        self.closed.set(true);
        self.close();
    }

    /// Closes the connections without requests and returns their number.
    pub(crate) fn close_idle(&self) -> usize {
        let all = self.all.borrow();
        let idle = all.iter().filter(|connection| connection.is_idle());
        idle.inspect(|connection| connection.close()).count()
    }

    /// Frees the objects that connections keep for reuse and returns their number.
    pub(crate) fn free_spare(&self) -> usize {
        let all = self.all.borrow();
        let freed = all
            .iter()
            .map(|connection| connection.state.borrow_mut().free_spare());
        freed.sum()
    }
}

impl fmt::Debug for MultiplexedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MultiplexedSet({})", self.all.borrow().len())
    }
}

struct Load {
    requests: u32,
    has_room: bool,
}

impl Multiplexed {
    /// `None` if it accepts no more requests.
    fn load(&self) -> Option<Load> {
        let state = self.state.borrow();
        state.takes_requests().then(|| Load {
            requests: state.requests(),
            has_room: state.has_room(),
        })
    }

    /// Number of free streams; `None` if it accepts no more requests.
    fn free(&self) -> Option<u32> {
        let state = self.state.borrow();
        state.takes_requests().then(|| state.free())
    }

    fn is_idle(&self) -> bool {
        self.state.borrow().requests() == 0
    }

    fn close(&self) {
        self.state.borrow_mut().stop_accepting();
        self.call();
    }

    /// Sends a request on a stream, at once or when one is free.
    pub(crate) fn submit(self: Rc<Self>, request: Request<'_>, now: Instant) -> Submission {
        let flow = self.state.borrow_mut().submit(request, now);
        self.call();
        Submission::new(self, flow)
    }

    pub(crate) fn fail(&self, failure: Failure) {
        self.state.borrow_mut().fail(failure);
    }

    /// Registers the connection's task to be woken when streams have something to send.
    fn wait(&self, context: &Context<'_>) {
        self.is_called.set(false);
        match &mut *self.task.borrow_mut() {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }

    fn call(&self) {
        if self.is_called.replace(true) {
            return;
        }
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }
}
