//! What comes on the streams of a connection behind their heads.

use onrush_http::http2::{End, Stream};

use super::flow::{Arriving, Flow, Receiving, Sending};
use super::output::State;
use super::session::Session;
use crate::limits::http2::HTTP2_STREAM_BYTES;

impl Session {
    /// DATA of a stream, or its end, has come.
    pub(crate) fn arrive(&self, stream: Stream, bytes: &[u8], end: End) {
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
            // Nobody may read it for long, while others' bodies are read.
            true => {
                let held = &body.held;
                held.set(held.get() + count);
                state.http.release_of_connection(count, &mut state.frames);
            }
            false => {
                let owed = &body.owed;
                owed.set(owed.get() + count);
            }
        }
        if end == End::Stream {
            flow.incoming.state.set(Receiving::Ended);
        }
        flow.wake();
    }

    /// So many bytes of a request's body are dealt with.
    pub(super) fn release(&self, flow: &Flow, bytes: usize) {
        self.release_quietly(flow, bytes as u32); // within a window
        self.wake();
    }

    /// So many bytes of a stream are not held any more that did not count against the connection's window.
    pub(super) fn give_back_held(&self, body: &Arriving, bytes: u32) {
        let held = &body.held;
        held.set(held.get() - bytes);
        self.carrier.uploads_held().give(bytes);
    }

    /// Releases bytes of a request's body where the connection's task is woken anyway.
    pub(super) fn release_quietly(&self, flow: &Flow, bytes: u32) {
        let State { http, frames, .. } = &mut *self.state.borrow_mut();
        let body = flow.incoming.body();
        let owed = body.owed.get().min(bytes);
        body.owed.set(body.owed.get() - owed);
        self.give_back_held(body, bytes - owed);
        if let Some(stream) = flow.stream.get() {
            http.release_of_connection(owed, frames);
            http.release_of_stream(stream, bytes, frames);
        }
    }

    /// Trailers have come, which are these lines.
    pub(crate) fn arrive_trailers(&self, stream: Stream, lines: &[u8]) {
        if let Some(flow) = self.flow(stream) {
            let trailers = &flow.incoming.body().trailers;
            trailers.borrow_mut().extend_from_slice(lines);
        }
        self.arrive(stream, b"", End::Stream);
    }

    /// A stream was reset, by the client or because of it.
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

    /// The connection is gone: so are its streams, but for those whose responses have left.
    pub(crate) fn end_all(&self) {
        let state = &mut *self.state.borrow_mut();
        let is_sent = state.is_sent();
        for flow in state.take_flows().into_iter().flatten() {
            let is_over = flow.outgoing.state.get() == Sending::Ended
                && flow.incoming.state.get() != Receiving::Open;
            if is_sent && is_over && flow.has_left() {
                // Who has not heard of that yet is about to run.
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

    /// Nobody is there to send or to receive any more, not even an end: requests that wait without tasks are given up.
    pub(crate) fn abandon(&self) {
        let flows = self.state.borrow_mut().take_flows();
        flows
            .iter()
            .flatten()
            .for_each(|flow| flow.waiter.abandon());
    }
}
