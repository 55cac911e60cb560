//! Buffered data of one stream: the request body until it is read, the response until windows and connection take it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use onrush_engine::{Errno, Error, Instant, Kind, Op, Part};
use onrush_http::Framing;
use onrush_http::http2::Stream;
use onrush_http::http2::code::Code;

use crate::limits::http2::{HTTP2_PROGRESS_MIN, HTTP2_WHOLE_MAX};
use crate::worker::on_demand::OnDemand;
use crate::worker::waiter::Waiter;

/// Both directions of a stream.
#[derive(Default)]
pub(crate) struct Flow {
    /// The stream; `None` before it is opened.
    pub(super) stream: Cell<Option<Stream>>,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Whether the stream was reset or its connection lost.
    pub(super) is_reset: Cell<bool>,
    /// Whether it is a tunnel, which has its own timeout for a stalled client.
    pub(super) is_tunnel: Cell<bool>,
    /// The waiting request task.
    pub(super) waiter: Waiter,
}

/// The response.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) waiting: RefCell<VecDeque<Part>>,
    pub(super) stalled: Cell<Option<Stall>>,
    /// Time after which a stall ends the stream; `client_send` of the configuration if `None`.
    pub(super) patience: Cell<Option<Duration>>,
    /// Body bytes still to be written, if the head declared the length.
    pub(super) remaining: Cell<Option<u64>>,
    pub(super) state: Cell<Sending>,
    /// Whether the producer of the response waits for room in the windows.
    pub(super) awaits_room: Cell<bool>,
    /// Whether the producer of the response waits for its turn to read a file.
    pub(super) awaits_turn: Cell<bool>,
    /// Lines of trailers, sent after all waiting parts.
    pub(super) trailers: OnDemand<RefCell<Vec<u8>>>,
    /// Bytes of heads and bodies written so far.
    pub(super) written: Cell<u64>,
}

/// A wait for the window of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    /// Time of the last progress, and the bytes written by then.
    pub(super) since: (Instant, u64),
    /// Time of the last progress by [`HTTP2_PROGRESS_MIN`] bytes, and the bytes written by then.
    pub(super) slow_since: (Instant, u64),
}

impl Stall {
    pub(super) fn new(now: Instant, written: u64) -> Self {
        Self {
            since: (now, written),
            slow_since: (now, written),
        }
    }

    /// Updates the stall to `now`, with `written` bytes.
    pub(super) fn at(mut self, now: Instant, written: u64) -> Self {
        if written > self.since.1 {
            self.since = (now, written);
        }
        if written - self.slow_since.1 >= HTTP2_PROGRESS_MIN {
            self.slow_since = (now, written);
        }
        self
    }
}

/// State of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Sending {
    /// Not started.
    #[default]
    Nothing,
    /// More may be written.
    Open,
    /// The stream ends after the waiting parts.
    Ends,
    /// The response is incomplete: the stream is reset with this code after the waiting parts.
    Breaks(Code),
    /// The end of the stream is written.
    Ended,
}

/// The request body.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) state: Cell<Receiving>,
    /// Allocated on demand: most requests have no body.
    body: OnDemand<BodyBuffer>,
}

/// The received part of a body.
pub(super) struct BodyBuffer {
    pub(super) bytes: RefCell<Vec<u8>>,
    pub(super) trailers: RefCell<Vec<u8>>,
    /// Maximum size of the body in bytes if its head declared no length.
    pub(super) bytes_max: Cell<u64>,
    /// Number of bytes received so far.
    pub(super) received: Cell<u64>,
    /// Unread bytes that still count against the connection's window.
    pub(super) in_connection_window: Cell<u32>,
    /// Unread bytes that no longer count against the connection's window, but against the core's budget for held
    /// uploads.
    pub(super) in_core_budget: Cell<u32>,
}

impl Outgoing {
    /// Whether trailers follow the waiting parts.
    pub(super) fn has_trailers(&self) -> bool {
        let lines = self.trailers.get();
        lines.is_some_and(|lines| !lines.borrow().is_empty())
    }
}

impl Default for BodyBuffer {
    fn default() -> Self {
        Self {
            bytes: RefCell::default(),
            trailers: RefCell::default(),
            bytes_max: Cell::new(u64::MAX),
            received: Cell::default(),
            in_connection_window: Cell::default(),
            in_core_budget: Cell::default(),
        }
    }
}

impl BodyBuffer {
    /// Resets the state for the next stream.
    fn clear(&self) {
        let BodyBuffer {
            bytes,
            trailers,
            bytes_max,
            received,
            in_connection_window: owed,
            in_core_budget: held,
        } = self;
        // Free the memory: the next request may have no body, or a small one.
        bytes.take();
        trailers.borrow_mut().clear();
        bytes_max.set(u64::MAX);
        received.set(0);
        owed.set(0);
        held.set(0);
    }

    /// Whether no received bytes are unread.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.borrow().is_empty()
    }
}

impl Incoming {
    /// The received part of the body, allocated if needed.
    pub(super) fn body(&self) -> &BodyBuffer {
        self.body.get_or_default()
    }

    /// The received part of the body, if it was ever allocated.
    pub(super) fn body_if_any(&self) -> Option<&BodyBuffer> {
        self.body.get()
    }
}

/// State of a request body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Receiving {
    /// Read completely, or absent.
    #[default]
    Whole,
    /// More may arrive.
    Open,
    /// The end has arrived but is not handled yet.
    Ended,
    /// The request is over: the rest of the body is discarded.
    Unwanted,
}

impl Flow {
    /// Opens the flow for `stream`; `body` is the initial state of the request body.
    pub(super) fn begin(&self, stream: Stream, body: Receiving) {
        self.stream.set(Some(stream));
        self.incoming.state.set(body);
    }

    pub(super) fn clear(&self) {
        let Flow {
            stream,
            outgoing,
            incoming,
            is_reset,
            is_tunnel,
            waiter,
        } = self;
        stream.set(None);
        is_reset.set(false);
        is_tunnel.set(false);
        waiter.clear();
        outgoing.waiting.borrow_mut().clear();
        if let Some(lines) = outgoing.trailers.get() {
            lines.borrow_mut().clear();
        }
        outgoing.stalled.set(None);
        outgoing.patience.set(None);
        outgoing.remaining.set(None);
        outgoing.state.set(Sending::Nothing);
        outgoing.written.set(0);
        outgoing.awaits_room.set(false);
        outgoing.awaits_turn.set(false);
        incoming.state.set(Receiving::Whole);
        if let Some(body) = incoming.body_if_any() {
            body.clear();
        }
    }

    /// Takes a small, complete body without trailers. It still counts as unread.
    pub(super) fn take_complete_body(&self, framing: Framing) -> Option<Vec<u8>> {
        let has_body = matches!(framing, Framing::Length(_) | Framing::Chunked);
        if !has_body || self.incoming.state.get() != Receiving::Ended {
            return None;
        }
        let BodyBuffer {
            bytes,
            trailers,
            in_connection_window: owed,
            ..
        } = self.incoming.body();
        // A body that counts against the connection's window must be read as soon as possible.
        let may_stay = owed.get() == 0 && bytes.borrow().len() <= HTTP2_WHOLE_MAX;
        let is_whole = trailers.borrow().is_empty() && !bytes.borrow().is_empty();
        (may_stay && is_whole).then(|| bytes.take())
    }

    /// Whether no part of the response waits for windows.
    pub(super) fn is_flushed(&self) -> bool {
        self.outgoing.waiting.borrow().is_empty()
    }

    /// Whether a part of the response, or its producer, waits for the client.
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_flushed() || self.outgoing.awaits_room.get()
    }

    pub(super) fn is_of(&self, stream: Stream) -> bool {
        self.stream.get() == Some(stream)
    }

    pub(super) fn wake(&self) {
        self.waiter.wake();
    }

    /// Registers the request's task for the next event of this stream.
    pub(super) fn wait(&self, context: &Context<'_>) {
        self.waiter.wait(context);
    }

    /// Returns the error if the stream was reset; otherwise registers the request's task.
    pub(crate) fn poll_reset(&self, context: &Context<'_>) -> Poll<Error> {
        if self.is_reset.get() {
            return Poll::Ready(stream_reset_error());
        }
        self.wait(context);
        Poll::Pending
    }

    /// Sets the time after which a stall ends the stream.
    pub(crate) fn set_patience(&self, patience: Duration) {
        self.outgoing.patience.set(Some(patience));
    }

    /// Sets the number of body bytes still to be written, if known.
    pub(crate) fn set_remaining(&self, bytes: Option<u64>) {
        self.outgoing.remaining.set(bytes);
    }

    /// Bytes of heads and bodies written so far.
    pub(crate) fn written(&self) -> u64 {
        self.outgoing.written.get()
    }

    pub(super) fn count(&self, bytes: usize) {
        let written = &self.outgoing.written;
        written.set(written.get() + bytes as u64);
    }
}

/// The error of a stream that was reset.
pub(crate) fn stream_reset_error() -> Error {
    Error::new(Op::Recv, Kind::Os(Errno::CONNRESET))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_byte_progress_does_not_end_stall() {
        let begun = Instant::default();
        let now = begun + Duration::from_secs(1);
        let slow = Stall::new(begun, 10).at(now, 11);
        assert_eq!((slow.since, slow.slow_since), ((now, 11), (begun, 10)));
        let enough = 10 + HTTP2_PROGRESS_MIN;
        assert_eq!(slow.at(now, enough).slow_since, (now, enough));
    }
}
