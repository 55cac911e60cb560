//! Sends request bodies as frames, in the order in which windows allow.

use onrush_http::http2::{End, Stream};

use super::flow::{Flow, Sending};
use super::state::State;
use crate::limits::MULTIPLEXED_UNSENT_MAX;

impl State {
    /// Continues to send the body of a request, after more was written.
    pub(super) fn resume(&mut self, flow: &Flow) {
        let Some(stream) = flow.stream.get() else {
            return;
        };
        match flow.has_sent() {
            false => self.http.ready(stream),
            true if flow.outgoing.state.get() == Sending::Ends => self.put_end(flow, stream),
            true => {}
        }
    }

    /// Ends a request whose body has been sent, with its trailers, if any.
    fn put_end(&mut self, flow: &Flow, stream: Stream) {
        let lines = flow.outgoing.held().trailers.take();
        // The server may have reset the stream; ignore the error.
        let _ = self.http.end_with(stream, &lines, &mut self.frames);
        flow.outgoing.state.set(Sending::Ended);
    }

    /// Writes frames of request bodies, within the windows and up to a limit of unsent bytes.
    pub(super) fn pump(&mut self) {
        while self.frames.len() < MULTIPLEXED_UNSENT_MAX
            && let Some(stream) = self.http.next_ready()
        {
            match self.flow(stream) {
                Some(flow) => self.put_body(&flow, stream),
                None => self.http.not_ready(stream),
            }
        }
    }

    fn put_body(&mut self, flow: &Flow, stream: Stream) {
        let outgoing = &flow.outgoing;
        let held = outgoing.held();
        let mut body = held.body.borrow_mut();
        let left = &body[held.sent.get()..];
        let ends = outgoing.state.get() == Sending::Ends;
        let end = match ends && held.trailers.borrow().is_empty() {
            true => End::Stream,
            false => End::Open,
        };
        let Ok(count) = self.http.send_body(stream, left, end, &mut self.frames) else {
            return self.http.not_ready(stream);
        };
        if count < left.len() {
            return held.sent.set(held.sent.get() + count);
        }
        body.clear();
        drop(body);
        held.sent.set(0);
        self.http.not_ready(stream);
        match end {
            End::Stream => outgoing.state.set(Sending::Ended),
            End::Open if ends => self.put_end(flow, stream),
            End::Open => {}
        }
        flow.wake();
    }
}
