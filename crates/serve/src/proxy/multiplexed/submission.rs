//! A request on a multiplexed connection: the interface for its client's task.

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

/// A submitted request. Dropping it ends its stream, with a reset if the response is incomplete.
pub(crate) struct Submission {
    pub(super) connection: Rc<Multiplexed>,
    pub(super) flow: Rc<Flow>,
}

/// How much of a response's body has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrived {
    Some,
    All,
}

impl Submission {
    pub(super) fn new(connection: Rc<Multiplexed>, flow: Rc<Flow>) -> Self {
        Self { connection, flow }
    }

    /// Returns the next head of the response, interim or final.
    ///
    /// # Errors
    /// The failure of the request.
    pub(crate) fn head(&self) -> impl Future<Output = Result<(Box<FieldSection>, End), Failure>> {
        poll_fn(|context| {
            if let Some(head) = self.flow.incoming.heads.borrow_mut().pop_front() {
                return Poll::Ready(Ok(head));
            }
            self.poll_failed(context).map(Err)
        })
    }

    /// Start of its wait for a stream, while it waits.
    pub(crate) fn queued_since(&self) -> Option<Instant> {
        self.flow.queued_since.get()
    }

    /// Waits until the request has a stream on an established connection: from then on the server may have seen it.
    ///
    /// # Errors
    /// The failure of the request.
    pub(crate) fn opened(&self) -> impl Future<Output = Result<(), Failure>> {
        poll_fn(|context| {
            let is_made = self.connection.state.borrow().is_connected;
            // After a complete response, the stream may already be reset (RFC 9113 8.1).
            let is_over = self.flow.incoming.has_ended.get();
            match is_over || is_made && self.flow.stream.get().is_some() {
                true => Poll::Ready(Ok(())),
                false => self.poll_failed(context).map(Err),
            }
        })
    }

    /// Whether nothing of the response has arrived and it has not failed.
    pub(crate) fn is_awaited(&self) -> bool {
        self.flow.failure.get().is_none() && self.flow.incoming.heads.borrow().is_empty()
    }

    /// Whether the complete response has arrived, with a single head, and nothing of it was taken.
    pub(crate) fn is_whole(&self) -> bool {
        let incoming = &self.flow.incoming;
        self.flow.failure.get().is_none()
            && incoming.has_ended.get()
            && incoming.heads.borrow().len() == 1
    }

    /// The head of a [whole](Submission::is_whole) response.
    pub(crate) fn take_head(&self) -> Option<(Box<FieldSection>, End)> {
        self.flow.incoming.heads.borrow_mut().pop_front()
    }

    /// Marks a response as malformed after parts of it were taken; the next read returns `failure`.
    pub(crate) fn fail(&self, failure: Failure) {
        self.flow.incoming.has_ended.set(false);
        self.flow.failure.set(Some(failure));
    }

    /// Parks the request, without a task, until the next head.
    pub(crate) fn park(&self, parked: Rc<dyn Parked>) {
        self.flow.waiter.park(parked);
    }

    /// Waits until a part of the body or its end can be [taken](Submission::take).
    ///
    /// # Errors
    /// The failure of the request.
    pub(crate) fn data(&self) -> impl Future<Output = Result<Arrived, Failure>> {
        poll_fn(|context| match self.arrived() {
            Some(arrived) => Poll::Ready(Ok(arrived)),
            None => self.poll_failed(context).map(Err),
        })
    }

    /// Whether a part of the body, or its end, can be taken.
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

    /// Passes the received part of the body to `take`. Its bytes, also returned, must be
    /// [released](Submission::release).
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
    pub(crate) fn free_buffer(&self) {
        let data = &mut *self.flow.incoming.data.borrow_mut();
        if data.is_empty() {
            *data = Vec::new();
        }
    }

    /// Updates the stream's window by the number of bytes processed.
    pub(crate) fn release(&self, bytes: u32) {
        let Some(stream) = self.flow.stream.get().filter(|_| bytes > 0) else {
            return;
        };
        let state = &mut *self.connection.state.borrow_mut();
        let before = state.frames.len();
        state
            .http
            .release_stream_window(stream, bytes, &mut state.frames);
        if state.frames.len() > before {
            self.connection.call();
        }
    }

    /// Whether a complete response has trailers.
    pub(crate) fn has_trailers(&self) -> bool {
        let lines = self.flow.incoming.trailers.get();
        lines.is_some_and(|lines| !lines.borrow().is_empty())
    }

    /// The trailers of a complete response, as lines.
    pub(crate) fn trailers(&self) -> Vec<u8> {
        let lines = self.flow.incoming.trailers.get();
        lines.map(RefCell::take).unwrap_or_default()
    }

    pub(crate) fn give_fields(&self, fields: Box<FieldSection>) {
        self.connection.state.borrow_mut().give_fields(fields);
    }

    /// Sets the deadline for the next event on the stream.
    pub(crate) fn set_deadline(&self, deadline: Instant) {
        let state = &mut *self.connection.state.borrow_mut();
        let before = state.next_deadline;
        state.late(&self.flow, deadline);
        if state.next_deadline < before {
            self.connection.call();
        }
    }

    /// Calls `write` to append to the body and to the lines of its trailers.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> T) -> T {
        let held = self.flow.outgoing.held();
        let (mut body, mut trailers) = (held.body.borrow_mut(), held.trailers.borrow_mut());
        write(&mut body, &mut trailers)
    }

    /// Ends the body after what was written.
    pub(crate) fn end(&self) {
        let state = &self.flow.outgoing.state;
        if state.get() == Sending::Open {
            state.set(Sending::Ends);
        }
    }

    /// Waits until everything written has been sent within the server's windows.
    ///
    /// # Errors
    /// [`SendRefused`] if the server accepts no more; it may have responded nevertheless.
    pub(crate) fn flush(&self) -> impl Future<Output = Result<(), SendRefused>> {
        self.connection.state.borrow_mut().resume(&self.flow);
        self.connection.call();
        poll_fn(|context| {
            let is_refused =
                self.flow.outgoing.state.get() == Sending::Ended && self.flow.outgoing.unsent() > 0;
            if is_refused {
                return Poll::Ready(Err(SendRefused));
            }
            if self.flow.has_sent() {
                return Poll::Ready(Ok(()));
            }
            self.flow.wait(context);
            Poll::Pending
        })
    }
}

/// The server accepts no more of a request.
#[derive(Debug)]
pub(crate) struct SendRefused;

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
