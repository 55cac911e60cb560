//! Connections to a server that many clients' requests share: pipelining (RFC 9112 9.3.2).
//!
//! ```text
//!  client tasks         task of the connection              server
//!   submit ── head ─┐
//!   submit ── head ─┼─> requests, in one send per turn ────>
//!   submit ── head ─┘
//!   response <─┬─ Whole ── responses, separated, in order <─
//!              └─ Handed ─ the connection itself
//! ```
//! One send and one receive serve many requests. Only requests that may be repeated are sent like this, since all that are
//! in flight have to be sent again when the connection ends early. A response that is not short (or that is interim, or
//! ends with the connection) must not delay those behind it because its client reads slowly: its client gets the
//! connection, and the requests behind it are sent again elsewhere.
//!
//! Only the oldest request has a deadline. A server responds in order, so the time before a request is the oldest says
//! nothing about it: the wait for its head is counted from then. All requests of a core may take equally long as a whole,
//! so the oldest is also the first whose time is over. When its deadline passes, it is the one that fails.
//!
//! Here is the state of a connection, and what clients' tasks do with it. Its own task is in `carrier.rs`.

pub(crate) mod carrier;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use onrush_config::plan::Timeouts;
use onrush_engine::{Buffer, Error, Input, Instant};
use onrush_http::request::RequestHead;
use onrush_http::{Framing, Method};
use onrush_tls::Transport;

use super::failure::Failure;
use super::upgrade;
use crate::worker::Worker;

/// The pipelined connections of one core to one server.
#[derive(Default)]
pub(crate) struct PipelinedSet {
    all: RefCell<Vec<Rc<Pipelined>>>,
    /// No more requests are expected: from now on each connection serves those that it has, and ends.
    closed: Cell<bool>,
}

/// One of them.
pub(crate) struct Pipelined {
    state: RefCell<State>,
}

struct State {
    timeouts: Timeouts,
    /// Requests that are written and not handed to the transport.
    written: VecDeque<Buffer>,
    /// Those that wait for their responses, the oldest first.
    waiting: VecDeque<u32>,
    requests: Vec<Request>,
    unused: Vec<u32>,
    /// The connection's next deadline, until it is set there. Setting one forgets that the last has passed, so it is set
    /// when it changes and not before.
    deadline: Option<Instant>,
    /// The connection's own task, while it waits.
    task: Option<Waker>,
    /// No more requests are taken.
    closed: bool,
    /// Whether it has had a response, in its pool or here.
    is_used: bool,
}

/// One request on a pipelined connection.
struct Request {
    method: Method,
    /// When the whole exchange has to be over.
    until: Instant,
    waiter: Option<Waker>,
    outcome: Outcome,
}

enum Outcome {
    Awaited,
    Arrived(Result<Response, Failure>),
    /// Its client is gone, or has been told something else.
    Abandoned,
}

/// What a client gets of a pipelined connection.
pub(crate) enum Response {
    /// A whole response and nothing else.
    Whole(Input),
    /// The connection, on which the rest of the response is still to come, and what has come of it.
    Handed(Transport, Input, Behind),
}

/// Whose responses follow on a connection that was handed to a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Behind {
    Nobody,
    /// They are sent again elsewhere.
    Others,
}

/// A request that was submitted. Dropping it abandons the response.
pub(crate) struct Submission {
    connection: Rc<Pipelined>,
    request: u32,
}

/// Whether a request may share a connection: it may be repeated, and is nothing but a head.
pub(crate) fn fits(head: &RequestHead<'_, '_>) -> bool {
    head.method.is_idempotent()
        && head.framing == Framing::None
        && !head.expect_continue
        && !upgrade::is_asked(head)
}

impl PipelinedSet {
    /// The first connection with fewer than `depth` requests: a few full ones batch better than many that are not.
    pub(crate) fn with_room(&self, depth: u32) -> Option<Rc<Pipelined>> {
        let all = self.all.borrow();
        let with_room = all.iter().find(|connection| connection.has_room(depth));
        with_room.map(Rc::clone)
    }

    /// One more connection. The caller has it carried (see `carrier.rs`) and removes it at its end.
    pub(crate) fn add(&self, timeouts: Timeouts) -> Rc<Pipelined> {
        let mut state = State::new(timeouts);
        state.closed = self.closed.get();
        let state = RefCell::new(state);
        let connection = Rc::new(Pipelined { state });
        self.all.borrow_mut().push(Rc::clone(&connection));
        connection
    }

    pub(crate) fn remove(&self, connection: &Rc<Pipelined>) {
        self.all
            .borrow_mut()
            .retain(|other| !Rc::ptr_eq(other, connection));
    }

    /// Takes no more requests; those in flight get their responses.
    pub(crate) fn close(&self) {
        let all = self.all.borrow();
        all.iter().for_each(|connection| connection.close());
    }

    /// The same, also for connections that are added later.
    pub(crate) fn clear(&self) {
        self.closed.set(true);
        self.close();
    }
}

impl fmt::Debug for PipelinedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PipelinedSet({})", self.all.borrow().len())
    }
}

impl Pipelined {
    /// Queues a request behind the others: `write` renders its head behind what stands in a buffer, and says whether there was
    /// room for it, which an empty buffer has. The whole exchange has to be over at `until`.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn submit(
        self: Rc<Self>,
        method: Method,
        until: Instant,
        worker: &Worker,
        write: impl Fn(&mut Buffer) -> bool,
    ) -> Result<Submission, Error> {
        let mut state = self.state.borrow_mut();
        if !state.written.back_mut().is_some_and(&write) {
            let mut buffer = worker.core.buffer()?;
            assert!(write(&mut buffer), "its size was seen before");
            state.written.push_back(buffer);
        }
        let request = state.add(Request {
            method,
            until,
            waiter: None,
            outcome: Outcome::Awaited,
        });
        state.waiting.push_back(request);
        if state.waiting.len() == 1 {
            state.oldest_has_changed(worker);
        }
        state.wake_task();
        drop(state);
        Ok(Submission {
            connection: self,
            request,
        })
    }

    /// When the whole exchange of its oldest request has to be over, if it has any.
    pub(crate) fn oldest_until(&self) -> Option<Instant> {
        self.state.borrow().oldest_until()
    }

    /// The connection comes from the pool.
    pub(crate) fn was_idle(&self) {
        self.state.borrow_mut().is_used = true;
    }

    fn has_room(&self, depth: u32) -> bool {
        let state = self.state.borrow();
        !state.closed && state.waiting.len() < depth as usize
    }

    fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.closed = true;
        state.wake_task();
    }

    /// Ends all requests: the first by `failure`, the later ones as if the server had closed an idle connection. On a connection
    /// that has had a response, bytes that are not a response also count as a closed idle connection: they may belong to the
    /// previous response, such as the body of a 304.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut state = self.state.borrow_mut();
        state.closed = true;
        state.written.clear();
        let is_leftover = state.is_used && matches!(failure, Failure::BadResponse(_));
        let mut failure = Some(failure).filter(|_| !is_leftover);
        while let Some(number) = state.waiting.pop_front() {
            let failure = failure.take().unwrap_or(Failure::Closed);
            state.finish(number, Err(failure));
        }
    }
}

impl Submission {
    /// The response, or why there is none.
    pub(crate) fn response(&self) -> impl Future<Output = Result<Response, Failure>> {
        poll_fn(|context| {
            let mut state = self.connection.state.borrow_mut();
            let request = &mut state.requests[self.request as usize];
            match std::mem::replace(&mut request.outcome, Outcome::Awaited) {
                Outcome::Arrived(response) => Poll::Ready(response),
                Outcome::Awaited | Outcome::Abandoned => {
                    request.waiter = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        let mut state = self.connection.state.borrow_mut();
        if state.waiting.contains(&self.request) {
            // Its response will still come, and has to be distinguished from the others.
            state.requests[self.request as usize].outcome = Outcome::Abandoned;
        } else {
            state.unused.push(self.request);
        }
    }
}

impl State {
    fn new(timeouts: Timeouts) -> Self {
        Self {
            timeouts,
            written: VecDeque::new(),
            waiting: VecDeque::new(),
            requests: Vec::new(),
            unused: Vec::new(),
            deadline: None,
            task: None,
            closed: false,
            is_used: false,
        }
    }

    /// Gives a request a number.
    fn add(&mut self, request: Request) -> u32 {
        match self.unused.pop() {
            Some(number) => {
                self.requests[number as usize] = request;
                number
            }
            None => {
                self.requests.push(request);
                (self.requests.len() - 1) as u32
            }
        }
    }

    /// Sets when the head of the oldest request's response has to have arrived, counted from now; without requests, when the
    /// connection has been idle for too long.
    fn oldest_has_changed(&mut self, worker: &Worker) {
        let wait = match self.waiting.is_empty() {
            true => self.timeouts.upstream_idle,
            false => self.timeouts.upstream_first_byte,
        };
        self.wait_for(wait, worker);
    }

    /// Sets the deadline to `wait` from now, but not later than the oldest request as a whole has to be over.
    fn wait_for(&mut self, wait: Duration, worker: &Worker) {
        let deadline = worker.core.now() + wait;
        let until = self.oldest_until();
        self.deadline = Some(until.map_or(deadline, |until| deadline.min(until)));
    }

    /// Sets it at the connection, if it is not set there yet.
    fn set_deadline(&mut self, transport: &Transport) {
        if let Some(deadline) = self.deadline.take() {
            transport.set_deadline(Some(deadline));
        }
    }

    fn oldest_until(&self) -> Option<Instant> {
        let oldest = *self.waiting.front()?;
        Some(self.requests[oldest as usize].until)
    }

    fn wake_task(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Hands the outcome to the client's task that waits for it.
    fn finish(&mut self, number: u32, outcome: Result<Response, Failure>) {
        let request = &mut self.requests[number as usize];
        if matches!(request.outcome, Outcome::Abandoned) {
            self.unused.push(number);
            return;
        }
        request.outcome = Outcome::Arrived(outcome);
        if let Some(waiter) = request.waiter.take() {
            waiter.wake();
        }
    }
}
