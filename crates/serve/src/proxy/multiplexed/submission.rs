//! A request on a multiplexed connection, as its client's task sees it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use onrush_engine::Instant;
use onrush_http::http2::End;
use onrush_http::http2::fields::FieldSection;

use super::Multiplexed;
use super::flow::{Flow, Sending};
use crate::proxy::failure::Failure;
use crate::worker::waiter::Parked;

/// A request that was submitted. Dropping it ends its stream: with a reset where its response is not whole.
pub(crate) struct Submission {
    pub(super) connection: Rc<Multiplexed>,
    pub(super) flow: Rc<Flow>,
}

/// What has come of a response's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrived {
    /// Some of it.
    Some,
    /// All of it.
    All,
}

impl Submission {
    pub(super) fn new(connection: Rc<Multiplexed>, flow: Rc<Flow>) -> Self {
        Self { connection, flow }
    }

    /// The next head of the response: of an interim one, or the final one.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn head(&self) -> impl Future<Output = Result<(Box<FieldSection>, End), Failure>> {
        poll_fn(|context| {
            if let Some(head) = self.flow.incoming.heads.borrow_mut().pop_front() {
                return Poll::Ready(Ok(head));
            }
            self.poll_failed(context).map(Err)
        })
    }

    /// Since when it has waited for a stream, where it has none yet.
    pub(crate) fn queued_since(&self) -> Option<Instant> {
        self.flow.queued_since.get()
    }

    /// Waits until the request has its stream on a connection that is made: from then on the server may have seen it.
    ///
    /// # Errors
    /// Why it gets none.
    pub(crate) fn opened(&self) -> impl Future<Output = Result<(), Failure>> {
        poll_fn(|context| {
            let is_made = self.connection.state.borrow().is_made;
            // One whose response is whole may have been reset behind it (RFC 9113 8.1).
            let is_over = self.flow.incoming.has_ended.get();
            match is_over || is_made && self.flow.stream.get().is_some() {
                true => Poll::Ready(Ok(())),
                false => self.poll_failed(context).map(Err),
            }
        })
    }

    /// Whether nothing of the response is there, and it may yet come.
    pub(crate) fn is_awaited(&self) -> bool {
        self.flow.failure.get().is_none() && self.flow.incoming.heads.borrow().is_empty()
    }

    /// Whether all of the response is there, of which nothing was taken: one head, the body, and trailers.
    pub(crate) fn is_whole(&self) -> bool {
        let incoming = &self.flow.incoming;
        self.flow.failure.get().is_none()
            && incoming.has_ended.get()
            && incoming.heads.borrow().len() == 1
    }

    /// The head of a response that [is whole](Submission::is_whole).
    pub(crate) fn take_head(&self) -> Option<(Box<FieldSection>, End)> {
        self.flow.incoming.heads.borrow_mut().pop_front()
    }

    /// What was taken of a response is none, for this reason, which is the next that is heard of it.
    pub(crate) fn fail(&self, failure: Failure) {
        self.flow.incoming.has_ended.set(false);
        self.flow.failure.set(Some(failure));
    }

    /// A request waits for the next head without a task.
    pub(crate) fn park(&self, parked: Rc<dyn Parked>) {
        self.flow.waiter.park(parked);
    }

    /// Waits until there is something of the body to be [taken](Submission::take), or its end.
    ///
    /// # Errors
    /// Why there is no more of it.
    pub(crate) fn data(&self) -> impl Future<Output = Result<Arrived, Failure>> {
        poll_fn(|context| match self.arrived() {
            Some(arrived) => Poll::Ready(Ok(arrived)),
            None => self.poll_failed(context).map(Err),
        })
    }

    /// What of the body there is to be taken.
    pub(crate) fn arrived(&self) -> Option<Arrived> {
        let incoming = &self.flow.incoming;
        match incoming.has_ended.get() {
            true => Some(Arrived::All),
            false => (!incoming.data.borrow().is_empty()).then_some(Arrived::Some),
        }
    }

    fn poll_failed(&self, context: &Context<'_>) -> Poll<Failure> {
        if let Some(failure) = self.flow.failure.get() {
            return Poll::Ready(failure);
        }
        self.flow.wait(context);
        Poll::Pending
    }

    /// Hands what has come of the body to `take`; and how many bytes that are, which are to be [released](Submission::release).
    pub(crate) fn take<T>(&self, take: impl FnOnce(&[u8]) -> T) -> (T, u32) {
        let data = self.flow.incoming.data.take();
        let taken = take(&data);
        let bytes = data.len() as u32; // within a window
        let mut data = data;
        data.clear();
        if self.flow.incoming.data.borrow().is_empty() {
            self.flow.incoming.data.replace(data);
        }
        (taken, bytes)
    }

    /// Frees the empty buffer of the body while its client is slow; it is allocated again when data arrives.
    pub(crate) fn give_up_room(&self) {
        let data = &mut *self.flow.incoming.data.borrow_mut();
        if data.is_empty() {
            *data = Vec::new();
        }
    }

    /// So many bytes are dealt with: the server may send as many more.
    pub(crate) fn release(&self, bytes: u32) {
        let Some(stream) = self.flow.stream.get().filter(|_| bytes > 0) else {
            return;
        };
        let state = &mut *self.connection.state.borrow_mut();
        let before = state.frames.len();
        state
            .http
            .release_of_stream(stream, bytes, &mut state.frames);
        if state.frames.len() > before {
            self.connection.call();
        }
    }

    /// Whether a response that is whole has trailers.
    pub(crate) fn has_trailers(&self) -> bool {
        let lines = self.flow.incoming.trailers.get();
        lines.is_some_and(|lines| !lines.borrow().is_empty())
    }

    /// The trailers of a response that is whole, as lines.
    pub(crate) fn trailers(&self) -> Vec<u8> {
        let lines = self.flow.incoming.trailers.get();
        lines.map(RefCell::take).unwrap_or_default()
    }

    /// Fields of a head that are not needed any more.
    pub(crate) fn give_fields(&self, fields: Box<FieldSection>) {
        self.connection.state.borrow_mut().give_fields(fields);
    }

    /// Something has to happen by `deadline`.
    pub(crate) fn set_deadline(&self, deadline: Instant) {
        let state = &mut *self.connection.state.borrow_mut();
        let before = state.late_at;
        state.late(&self.flow, deadline);
        if state.late_at < before {
            self.connection.call();
        }
    }

    /// Has `write` append to the body, and to the lines of its trailers.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> T) -> T {
        let held = self.flow.outgoing.held();
        let (mut body, mut trailers) = (held.body.borrow_mut(), held.trailers.borrow_mut());
        write(&mut body, &mut trailers)
    }

    /// Nothing follows what was written.
    pub(crate) fn end(&self) {
        let state = &self.flow.outgoing.state;
        if state.get() == Sending::Open {
            state.set(Sending::Ends);
        }
    }

    /// Waits until the windows of the server have taken all that was written.
    ///
    /// # Errors
    /// When the server takes no more: it may have responded all the same.
    pub(crate) fn flush(&self) -> impl Future<Output = Result<(), Refused>> {
        self.connection.state.borrow_mut().resume(&self.flow);
        self.connection.call();
        poll_fn(|context| {
            let is_refused =
                self.flow.outgoing.state.get() == Sending::Ended && self.flow.outgoing.unsent() > 0;
            if is_refused {
                return Poll::Ready(Err(Refused));
            }
            if self.flow.has_sent() {
                return Poll::Ready(Ok(()));
            }
            self.flow.wait(context);
            Poll::Pending
        })
    }
}

/// The server wants no more of a request.
#[derive(Debug)]
pub(crate) struct Refused;

impl Drop for Submission {
    fn drop(&mut self) {
        let state = &mut *self.connection.state.borrow_mut();
        let before = state.frames.len();
        state.drop_flow(&self.flow);
        let is_over = state.is_over();
        if state.frames.len() > before || is_over {
            self.connection.call();
        }
    }
}
