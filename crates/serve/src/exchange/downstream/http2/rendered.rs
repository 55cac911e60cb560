//! Sends responses that are rendered as HTTP/1.

use std::rc::Rc;

use onrush_engine::Part;
use onrush_http::http2::hpack::Encoder;
use onrush_http::http2::{End, Stream};

use super::flow::{Flow, Sending};
use super::output::State;
use super::session::Session;
use crate::exchange::reply::fields::Fields;
use crate::limits::http2::HTTP2_CACHED_HEAD_MAX;

impl Session {
    /// Writes a complete rendered response. Returns the bytes written up to the end of its head.
    #[inline]
    pub(crate) fn rendered(&self, flow: &Flow, status: u16, (head, body): (&[u8], &[u8])) -> u64 {
        let state = &mut *self.state.borrow_mut();
        let Some(stream) = flow.stream.get() else {
            return flow.written();
        };
        let is_written = state.put_rendered_head(flow, stream, (status, head, body.len()));
        let head_end = flow.written();
        if !is_written || body.is_empty() {
            return head_end;
        }
        match state.room_for(flow, stream, body.len()) {
            Some(end) => state.put_data(flow, stream, (body, end)),
            None => state.hold(flow, stream, Part::Shared(Rc::from(body), 0)),
        }
        head_end
    }
}

impl State {
    /// Writes the head of a rendered response and sets the length of its body. Returns false if the stream does not
    /// allow it.
    #[inline]
    fn put_rendered_head(
        &mut self,
        flow: &Flow,
        stream: Stream,
        (status, head, body): (u16, &[u8], usize),
    ) -> bool {
        let State {
            http,
            frames,
            last_heads,
            ..
        } = self;
        let (end, sending) = match body {
            0 => (End::Stream, Sending::Ended),
            _ => (End::Open, Sending::Open),
        };
        let last = &mut last_heads.get_or_insert_default().rendered;
        let before = frames.len();
        let written = http.head(stream, end, frames, |encoder, out| {
            last.write(
                (head, HTTP2_CACHED_HEAD_MAX),
                encoder,
                out,
                |encoder, out| {
                    put_rendered(status, head, encoder, out);
                },
            );
        });
        if written.is_err() {
            return false;
        }
        flow.count(frames.len() - before);
        flow.outgoing.state.set(sending);
        flow.outgoing.remaining.set(Some(body as u64));
        true
    }
}

/// Encodes a head that is rendered as HTTP/1 lines, without its status line.
#[cold]
fn put_rendered(status: u16, head: &[u8], encoder: &mut Encoder, out: &mut Vec<u8>) {
    let fields = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    encoder.status(status, out);
    Fields::http2(encoder, out).lines(&head[fields..]);
}
