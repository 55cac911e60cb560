//! Heads of responses that are rendered as those of HTTP/1.

use onrush_http::http2::hpack::Encoder;
use onrush_http::http2::{End, Stream};

use super::flow::{Flow, Sending};
use super::limits::HTTP2_REPEATED_MAX;
use super::output::State;
use crate::reply::fields::Fields;

impl State {
    /// Writes the head of a response as it was rendered, and says how much follows; whether it may be written.
    #[inline]
    pub(super) fn put_rendered_head(
        &mut self,
        flow: &Flow,
        stream: Stream,
        (status, head, body): (u16, &[u8], usize),
    ) -> bool {
        let State {
            http,
            frames,
            repeated,
            ..
        } = self;
        let (end, sending) = match body {
            0 => (End::Stream, Sending::Ended),
            _ => (End::Open, Sending::Open),
        };
        let before = frames.len();
        let written = http.head(stream, end, frames, |encoder, out| {
            repeated.write((head, HTTP2_REPEATED_MAX), encoder, out, |encoder, out| {
                put_rendered(status, head, encoder, out);
            });
        });
        if written.is_err() {
            return false;
        }
        flow.count(frames.len() - before);
        flow.outgoing.state.set(sending);
        flow.outgoing.left.set(Some(body as u64));
        true
    }
}

/// Appends the block of a response whose `head` is rendered as lines of HTTP/1, its status line first.
#[cold]
fn put_rendered(status: u16, head: &[u8], encoder: &mut Encoder, out: &mut Vec<u8>) {
    let fields = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    encoder.status(status, out);
    Fields::http2(encoder, out).lines(&head[fields..]);
}
