//! Events of the streams of a connection after their heads: DATA, trailers, resets.

use onrush_http::http2::{End, Stream};

use super::flow::{BodyBuffer, Flow, Receiving, Sending};
use super::output::State;
use super::session::Session;
use crate::limits::http2::HTTP2_STREAM_BYTES;

impl Session {
    pub(crate) fn receive_data(&self, stream: Stream, bytes: &[u8], end: End) {
        let state = &mut *self.state.borrow_mut();
        let flow = state.flow(stream);
        if let Some(flow) = &flow {
            let received = &flow.incoming.body().received;
            received.set(received.get() + bytes.len() as u64);
        }
        let Some(flow) = flow.filter(|it| it.incoming.state.get() == Receiving::Open) else {
            return state.discard(stream, bytes.len() as u32);
        };
        let body = flow.incoming.body();
        body.bytes.borrow_mut().extend_from_slice(bytes);
        let count = bytes.len() as u32; // within a window
        match self.carrier.uploads_held().take(count) {
            // Release it to the connection's window at once: the request's task may not read it for long, and the
            // bodies of other streams must go on.
            true => {
                let held = &body.in_core_budget;
                held.set(held.get() + count);
                state
                    .http
                    .release_connection_window(count, &mut state.frames);
            }
            false => {
                let owed = &body.in_connection_window;
                owed.set(owed.get() + count);
            }
        }
        if end == End::Stream {
            flow.incoming.state.set(Receiving::Ended);
        }
        flow.wake();
    }

    /// Releases bytes of a request body that have been handled.
    pub(super) fn release(&self, flow: &Flow, bytes: usize) {
        self.release_quietly(flow, bytes as u32); // within a window
        self.wake();
    }

    /// Returns bytes of a stream to the core's budget for uploads held outside the connection's window.
    pub(super) fn give_back_held(&self, body: &BodyBuffer, bytes: u32) {
        let held = &body.in_core_budget;
        held.set(held.get() - bytes);
        self.carrier.uploads_held().give(bytes);
    }

    /// Releases bytes of a request body without waking the connection's task, which runs anyway.
    pub(super) fn release_quietly(&self, flow: &Flow, bytes: u32) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        let body = flow.incoming.body();
        let owed = body.in_connection_window.get().min(bytes);
        body.in_connection_window
            .set(body.in_connection_window.get() - owed);
        self.give_back_held(body, bytes - owed);
        if let Some(stream) = flow.stream.get() {
            http.release_connection_window(owed, frames);
            http.release_stream_window(stream, bytes, frames);
        }
    }

    pub(crate) fn receive_trailers(&self, stream: Stream, lines: &[u8]) {
        if let Some(flow) = self.flow(stream) {
            let trailers = &flow.incoming.body().trailers;
            trailers.borrow_mut().extend_from_slice(lines);
        }
        self.receive_data(stream, b"", End::Stream);
    }

    /// Handles a reset of a stream, sent by the client or caused by its error.
    pub(crate) fn was_reset(&self, stream: Stream) {
        if let Some(flow) = self.flow(stream) {
            flow.is_reset.set(true);
            flow.outgoing.state.set(Sending::Ended);
            let has_left = flow.incoming.state.get() == Receiving::Unwanted;
            let state = &mut *self.state.borrow_mut();
            state.drop_held(&flow);
            state.forget(&flow, stream);
            match has_left {
                true => state.recycle(&flow),
                false => flow.wake(),
            }
        }
    }

    /// Ends all streams because the connection is gone, except those whose responses have been sent.
    pub(crate) fn end_all(&self) {
        let state = &mut *self.state.borrow_mut();
        let is_sent = state.is_sent();
        for flow in state.take_flows().into_iter().flatten() {
            let is_over = flow.outgoing.state.get() == Sending::Ended
                && flow.incoming.state.get() != Receiving::Open;
            if is_sent && is_over && flow.is_flushed() {
                // Its task has not seen the end yet: wake it.
                flow.wake();
                continue;
            }
            flow.is_reset.set(true);
            flow.outgoing.state.set(Sending::Ended);
            state.drop_held(&flow);
            state.dropped += HTTP2_STREAM_BYTES;
            flow.wake();
        }
    }

    /// Drops requests that wait without tasks, because nothing can be sent or received any more.
    pub(crate) fn abandon(&self) {
        let flows = self.state.borrow_mut().take_flows();
        flows
            .iter()
            .flatten()
            .for_each(|flow| flow.waiter.abandon());
    }
}
