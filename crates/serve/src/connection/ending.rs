//! How connections end while the server stops or has no room for more: with a response that says so wherever one is due,
//! and else in a moment in which no request can be expected to cross the end.
//!
//! A client whose connection is idle may send its next request just when the server ends it, and nobody can tell it from
//! one that was never read (RFC 9112 9.3.1). So a connection is not ended by us before it has been idle for a while: who
//! asks again and again has done so by then, and was told of the end by a response. Whether nothing has come is asked of
//! the kernel in the same moment, and the end is one of our side only: what crosses it meets no reset.

use std::time::Duration;

use onrush_engine::{Error, Input, Instant, Kind, Stream};
use onrush_tls::Transport;

use crate::limits::{CROWD_IDLE, LINGER, LINGER_LAST, STOP_IDLE};
use crate::worker::Worker;

impl Worker {
    /// Whether the core was asked to stop. A connection may hear of it before everybody is told.
    pub(crate) fn has_to_stop(&self) -> bool {
        if !self.stopping.get() && self.core.is_stopping() {
            self.stop_began.set(self.core.now());
            self.stopping.set(true);
        }
        self.stopping.get()
    }

    /// Whether responses end their connections.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.stopping.get() || self.crowd.is_short()
    }

    /// Whether a response that is written now has to end its connection. `is_followed` says that bytes of another request
    /// have come already.
    #[inline]
    pub(crate) fn ends_with_this(&self, is_followed: bool, stream: &Transport) -> bool {
        self.is_ending() && !self.waits_for_more(is_followed, stream)
    }

    /// Requests that were received before the end get their responses; who sends more and more of them does not put it
    /// off.
    fn waits_for_more(&self, is_followed: bool, stream: &Transport) -> bool {
        let is_over = self.stopping.get() && self.core.now() >= self.stop_began.get() + STOP_IDLE;
        !is_over && (is_followed || stream.is_spent())
    }

    /// Until when a connection that is idle `since` then and has to end is kept for one last request.
    pub(crate) fn idle_until(&self, since: Instant) -> Instant {
        if !self.has_to_stop() {
            return since + CROWD_IDLE;
        }
        let latest = self.stop_began.get() + self.drain.get() / 2;
        (since + STOP_IDLE).min(latest)
    }

    /// Until when a connection is read that has been told of its end, `behind` its last response or without one.
    pub(crate) fn linger_until(&self, behind: Behind) -> Instant {
        let wish = match behind {
            Behind::Response if !self.crowd.is_short() => LINGER,
            Behind::Response | Behind::Nothing => LINGER_LAST,
        };
        let until = self.core.now() + wish;
        if !self.stopping.get() {
            return until;
        }
        // By itself, and not cut off at the end of everything.
        until.min(self.stop_began.get() + self.drain.get() / 8 * 7)
    }

    /// The first bytes of a connection. 0 when it ends before, or stays silent until a stopping server has to end it.
    pub(crate) async fn first_bytes(
        &self,
        stream: &Stream,
        input: &mut Input,
        within: Duration,
    ) -> Result<usize, Error> {
        let since = self.core.now();
        stream.set_deadline(Some(since + within));
        match stream.recv_unless_stopping(input).await {
            Err(error) if error.kind == Kind::Stopping => {}
            received => return received,
        }
        stream.set_deadline(Some(self.idle_until(since)));
        match stream.recv(input).await {
            Err(error) if error.kind == Kind::TimedOut => {}
            received => return received,
        }
        match stream.recv_arrived(input).await {
            Err(error) if error.kind == Kind::TimedOut => Ok(0),
            received => received,
        }
    }
}

/// What a connection that ends has had last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Behind {
    /// A response, which must not be lost.
    Response,
    /// Nothing: it was idle.
    Nothing,
}
