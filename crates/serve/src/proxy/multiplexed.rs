//! Connections to a server whose streams carry requests of many clients: HTTP/2 (RFC 9113).
//!
//! ```text
//!   clients' tasks              task of the connection                 server
//!   submit ── head, body ──> State ── frames of all streams in one send ──>
//!   head, data, trailers <── Flow <──────── frames, each to its stream <──
//! ```
//! One send and one receive serve many requests, and responses arrive in any order. A client that reads slowly exhausts the
//! window of its own stream and blocks no other stream: the window of the connection is updated as bytes arrive.
//!
//! Here is the set of connections to a server; `state.rs` is one of them, `flow.rs` one stream, `submission.rs` what a
//! client's task has of it, and `carrier.rs` the connection's own task. `unsettled.rs` has requests for tunnels, and `tunnel.rs` what of
//! them becomes one.
//!
//! A connection is a task (`carrier.rs`) that sends the frames of all streams in one call. A client's task holds a
//! `Submission`: dropping it resets the stream. A request of HTTP/2 that is sent whole has no task while it waits; it
//! is parked at its two streams (`waiter.rs` of `worker`), and if its response arrives in one receive, it is passed
//! on at once (`forward/whole.rs`). It becomes a task if less of the response arrives, on a failure, at a deadline,
//! or at the end of its stream. Thousands of tasks took more memory than the CPU's caches hold; a stream that waits
//! for its server takes 1.5 KB.
//!
//! The head of a request is text, as for HTTP/1, until its stream is opened: edits and variables are applied in one
//! place, and a waiting request keeps its text. Times belong to streams (`lateness.rs`), but each connection has one
//! timer, set for the earliest of them. Streams are capacity: a group asks another server while that one has a free
//! stream (`group/select.rs`). Until a server has announced how many streams it allows, its connection opens one.

pub(crate) mod carrier;
mod flow;
mod lateness;
mod receive;
mod request;
mod send;
mod state;
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
pub(crate) use request::{Body, Patience, Request};
use state::{Said, State};
pub(crate) use submission::{Arrived, Submission};
pub(crate) use tunnel::TunnelStream;

/// The multiplexed connections of one core to one server.
#[derive(Default)]
pub(crate) struct MultiplexedSet {
    all: RefCell<Vec<Rc<Multiplexed>>>,
    said: Said,
    /// The place of the one that was chosen last.
    last: Cell<usize>,
    /// No more requests are expected: from now on each connection serves those that it has, and ends.
    closed: Cell<bool>,
}

/// One of them.
pub(crate) struct Multiplexed {
    state: RefCell<State>,
    task: RefCell<Option<Waker>>,
    /// The task was woken and has not run.
    is_called: Cell<bool>,
}

impl MultiplexedSet {
    /// The connection for one more request: the first with room for a stream, since a few full ones batch better than many
    /// that are not. Where there is none, a new one is due, for which this is `None`; where there may be no more, the
    /// request waits on the one with the fewest.
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

    /// Whether one more request would not wait for a stream that is in use.
    pub(crate) fn has_room(&self, bounds: Multiplexing) -> bool {
        let all = self.all.borrow();
        // Mostly it is the one that the last request went to.
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

    /// Number of streams that requests can still get, with connections that can still be made.
    pub(crate) fn free(&self, bounds: Multiplexing) -> u32 {
        let of_new = self.said.get().unwrap_or(u32::MAX).min(bounds.streams_max);
        let all = self.all.borrow();
        let taking = all.iter().filter_map(|connection| connection.free());
        let (connections, free) = taking.fold((0, 0), |(count, sum), free| (count + 1, sum + free));
        let new = bounds.connections_shared_max.saturating_sub(connections);
        free + new * of_new
    }

    /// How many requests wait for a stream.
    pub(crate) fn waiting(&self) -> usize {
        let all = self.all.borrow();
        let waiting = all
            .iter()
            .map(|connection| connection.state.borrow().waiting.len());
        waiting.sum()
    }

    /// One more connection. The caller has it carried (see `carrier.rs`) and removes it at its end.
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

    /// Takes no more requests on the connections that there are; those in flight get their responses.
    pub(crate) fn close(&self) {
        let all = self.all.borrow();
        all.iter().for_each(|connection| connection.close());
    }

    /// The same, also for connections that are added later: each of those serves what it was made for.
    pub(crate) fn clear(&self) {
        self.closed.set(true);
        self.close();
    }

    /// Closes the connections that have no requests; how many.
    pub(crate) fn give_up_idle(&self) -> usize {
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

/// What a connection has to do.
struct Load {
    requests: u32,
    has_room: bool,
}

impl Multiplexed {
    /// `None` where it takes no more requests.
    fn load(&self) -> Option<Load> {
        let state = self.state.borrow();
        state.takes_requests().then(|| Load {
            requests: state.requests(),
            has_room: state.has_room(),
        })
    }

    /// Number of its free streams; `None` where it takes no more requests.
    fn free(&self) -> Option<u32> {
        let state = self.state.borrow();
        state.takes_requests().then(|| state.free())
    }

    fn is_idle(&self) -> bool {
        self.state.borrow().requests() == 0
    }

    fn close(&self) {
        self.state.borrow_mut().leave();
        self.call();
    }

    /// Sends the request on a stream, at once or when one is free, and `now` is when.
    pub(crate) fn submit(self: Rc<Self>, request: Request<'_>, now: Instant) -> Submission {
        let flow = self.state.borrow_mut().submit(request, now);
        self.call();
        Submission::new(self, flow)
    }

    /// Ends all requests by `failure`.
    pub(crate) fn fail(&self, failure: Failure) {
        self.state.borrow_mut().fail(failure);
    }

    /// The connection's task waits for what its streams write.
    fn wait(&self, context: &Context<'_>) {
        self.is_called.set(false);
        match &mut *self.task.borrow_mut() {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }

    /// Wakes the connection's task.
    fn call(&self) {
        if self.is_called.replace(true) {
            return;
        }
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }
}
