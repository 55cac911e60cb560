//! What one stream of a connection has waiting in both directions: the request's body until it is read, and the response's until
//! the windows and the connection take it.

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

/// The two directions of a stream.
#[derive(Default)]
pub(crate) struct Flow {
    /// Which one; none before it has begun.
    pub(super) stream: Cell<Option<Stream>>,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// It is closed before its time: by the client, or with its connection.
    pub(super) is_reset: Cell<bool>,
    /// It has become a tunnel, which has a time of its own for clients that take nothing.
    pub(super) is_tunnel: Cell<bool>,
    /// The request, while it waits.
    pub(super) waiter: Waiter,
}

/// A response on its way out.
#[derive(Default)]
pub(super) struct Outgoing {
    /// What is behind what has been written.
    pub(super) waiting: RefCell<VecDeque<Part>>,
    /// The current stall.
    pub(super) stalled: Cell<Option<Stall>>,
    /// Time after which a stall ends the stream; `client_send` of the configuration if none.
    pub(super) patience: Cell<Option<Duration>>,
    /// Bytes of the body that are still to be written by whoever makes it, where its head has said how many there are.
    pub(super) left: Cell<Option<u64>>,
    pub(super) state: Cell<Sending>,
    /// Whoever makes it waits for its windows before there is more.
    pub(super) awaits_room: Cell<bool>,
    /// Whoever makes it waits for its turn to read.
    pub(super) awaits_turn: Cell<bool>,
    /// Lines of trailers, which stand behind all that waits.
    pub(super) trailers: OnDemand<RefCell<Vec<u8>>>,
    /// Bytes of heads and bodies that were written.
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
    /// A stall that starts `now`, with so many bytes written.
    pub(super) fn new(now: Instant, written: u64) -> Self {
        Self {
            since: (now, written),
            slow_since: (now, written),
        }
    }

    /// The stall after a look at `now`, with so many bytes written.
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

/// How far a response is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Sending {
    /// Nothing of it is there.
    #[default]
    Nothing,
    /// More of it may come.
    Open,
    /// Nothing comes behind what waits.
    Ends,
    /// Nothing comes behind what waits, and it is not whole: its stream is reset with this code.
    Breaks(Code),
    /// The stream's end is written.
    Ended,
}

/// A request's body on its way in.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) state: Cell<Receiving>,
    /// Most requests have no body.
    body: OnDemand<Arriving>,
}

/// What has come of a body.
pub(super) struct Arriving {
    pub(super) bytes: RefCell<Vec<u8>>,
    /// Lines of trailers.
    pub(super) trailers: RefCell<Vec<u8>>,
    /// How many bytes it may have, where its head has not said how many it has.
    pub(super) bytes_max: Cell<u64>,
    /// Bytes that have come.
    pub(super) received: Cell<u64>,
    /// Bytes that are there, and that the window of the connection still counts.
    pub(super) owed: Cell<u32>,
    /// Bytes that nobody has released, and that it does not.
    pub(super) held: Cell<u32>,
}

impl Outgoing {
    /// Whether trailers stand behind what waits.
    pub(super) fn has_trailers(&self) -> bool {
        let lines = self.trailers.get();
        lines.is_some_and(|lines| !lines.borrow().is_empty())
    }
}

impl Default for Arriving {
    fn default() -> Self {
        Self {
            bytes: RefCell::default(),
            trailers: RefCell::default(),
            bytes_max: Cell::new(u64::MAX),
            received: Cell::default(),
            owed: Cell::default(),
            held: Cell::default(),
        }
    }
}

impl Arriving {
    /// What was of a body is forgotten.
    fn clear(&self) {
        let Arriving {
            bytes,
            trailers,
            bytes_max,
            received,
            owed,
            held,
        } = self;
        // The next may have none, or a small one.
        bytes.take();
        trailers.borrow_mut().clear();
        bytes_max.set(u64::MAX);
        received.set(0);
        owed.set(0);
        held.set(0);
    }

    /// Whether nothing is there that nobody has taken.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.borrow().is_empty()
    }
}

impl Incoming {
    /// What has come of the body.
    pub(super) fn body(&self) -> &Arriving {
        self.body.used()
    }

    /// The same, if anything ever was.
    pub(super) fn body_if_any(&self) -> Option<&Arriving> {
        self.body.get()
    }
}

/// How far a request's body is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Receiving {
    /// All of it has been dealt with, as far as there is one.
    #[default]
    Whole,
    /// More of it comes.
    Open,
    /// Its end has come, and was not dealt with.
    Ended,
    /// The request is over: the rest of its body is discarded.
    Unwanted,
}

impl Flow {
    /// A stream begins; `body` is what comes behind its head.
    pub(super) fn begin(&self, stream: Stream, body: Receiving) {
        self.stream.set(Some(stream));
        self.incoming.state.set(body);
    }

    /// What was of a stream that is over is forgotten, so that it may be used for another.
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
        outgoing.left.set(None);
        outgoing.state.set(Sending::Nothing);
        outgoing.written.set(0);
        outgoing.awaits_room.set(false);
        outgoing.awaits_turn.set(false);
        incoming.state.set(Receiving::Whole);
        if let Some(body) = incoming.body_if_any() {
            body.clear();
        }
    }

    /// A body that is framed so, if all of it is there, without trailers, and it is small. It still counts as unread.
    pub(super) fn take_whole(&self, framing: Framing) -> Option<Vec<u8>> {
        let has_body = matches!(framing, Framing::Length(_) | Framing::Chunked);
        if !has_body || self.incoming.state.get() != Receiving::Ended {
            return None;
        }
        let Arriving {
            bytes,
            trailers,
            owed,
            ..
        } = self.incoming.body();
        // One that counts against the connection's window leaves it as soon as it can.
        let may_stay = owed.get() == 0 && bytes.borrow().len() <= HTTP2_WHOLE_MAX;
        let is_whole = trailers.borrow().is_empty() && !bytes.borrow().is_empty();
        (may_stay && is_whole).then(|| bytes.take())
    }

    /// Whether nothing of the response waits for windows.
    pub(super) fn has_left(&self) -> bool {
        self.outgoing.waiting.borrow().is_empty()
    }

    /// Whether a part of the response, or its producer, waits for the client.
    pub(super) fn is_waiting(&self) -> bool {
        !self.has_left() || self.outgoing.awaits_room.get()
    }

    /// Whether it is this stream's.
    pub(super) fn is_of(&self, stream: Stream) -> bool {
        self.stream.get() == Some(stream)
    }

    /// Wakes the request's task.
    pub(super) fn wake(&self) {
        self.waiter.wake();
    }

    /// The request's task waits for what happens here next.
    pub(super) fn wait(&self, context: &Context<'_>) {
        self.waiter.wait(context);
    }

    /// Whether the stream is gone; the request's task waits for that, too.
    pub(crate) fn poll_reset(&self, context: &Context<'_>) -> Poll<Error> {
        if self.is_reset.get() {
            return Poll::Ready(gone());
        }
        self.wait(context);
        Poll::Pending
    }

    /// Sets the time after which a stall ends the stream.
    pub(crate) fn set_patience(&self, patience: Duration) {
        self.outgoing.patience.set(Some(patience));
    }

    /// So many bytes of the response's body are still to be written, where that is known.
    pub(crate) fn expect(&self, bytes: Option<u64>) {
        self.outgoing.left.set(bytes);
    }

    /// Bytes of heads and bodies that were written.
    pub(crate) fn written(&self) -> u64 {
        self.outgoing.written.get()
    }

    pub(super) fn count(&self, bytes: usize) {
        let written = &self.outgoing.written;
        written.set(written.get() + bytes as u64);
    }
}

/// How a stream ends before its time.
pub(crate) fn gone() -> Error {
    Error::new(Op::Recv, Kind::Os(Errno::CONNRESET))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_bytes_do_not_end_a_slow_stall() {
        let begun = Instant::default();
        let now = begun + Duration::from_secs(1);
        let slow = Stall::new(begun, 10).at(now, 11);
        assert_eq!((slow.since, slow.slow_since), ((now, 11), (begun, 10)));
        let enough = 10 + HTTP2_PROGRESS_MIN;
        assert_eq!(slow.at(now, enough).slow_since, (now, enough));
    }
}
