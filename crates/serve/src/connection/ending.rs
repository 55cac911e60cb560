//! Closing of connections while the server stops or is out of descriptors: with `Connection: close` if a response is
//! due, otherwise when no request is likely to cross the close.

use std::time::Duration;

use onrush_engine::{Error, Input, Instant, Kind, Stream};
use onrush_tls::Transport;

use crate::limits::{LINGER, LINGER_LAST, SHORTAGE_IDLE_MIN, STOP_IDLE};
use crate::worker::Worker;

impl Worker {
    /// Whether the core was asked to stop. A connection may notice this before the core notifies its tasks.
    pub(crate) fn check_stop(&self) -> bool {
        if !self.stopping.get() && self.core.is_stopping() {
            self.stop_started.set(self.core.now());
            self.stopping.set(true);
        }
        self.stopping.get()
    }

    /// Whether responses close their connections.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.stopping.get() || self.connection_budget.is_short()
    }

    /// Whether a response written now must close its connection; `is_followed` if bytes of another request are there.
    #[inline]
    pub(crate) fn closes_after_response(&self, is_followed: bool, stream: &Transport) -> bool {
        self.is_ending() && !self.waits_for_more(is_followed, stream)
    }

    /// Requests received before the stop get their responses, within a time limit for clients that keep sending.
    fn waits_for_more(&self, is_followed: bool, stream: &Transport) -> bool {
        let is_over = self.stopping.get() && self.core.now() >= self.stop_started.get() + STOP_IDLE;
        !is_over && (is_followed || stream.is_spent())
    }

    /// Time until which a closing connection, idle `since` then, waits for one last request.
    pub(crate) fn idle_until(&self, since: Instant) -> Instant {
        if !self.check_stop() {
            return since + SHORTAGE_IDLE_MIN;
        }
        let latest = self.stop_started.get() + self.drain.get() / 2;
        (since + STOP_IDLE).min(latest)
    }

    /// Time until which a connection is read after its sending side was closed.
    pub(crate) fn linger_until(&self, behind: LastEvent) -> Instant {
        let wish = match behind {
            LastEvent::Response if !self.connection_budget.is_short() => LINGER,
            LastEvent::Response | LastEvent::Nothing => LINGER_LAST,
        };
        let until = self.core.now() + wish;
        if !self.stopping.get() {
            return until;
        }
        // Early enough to end by itself before the drain timeout cuts it off.
        until.min(self.stop_started.get() + self.drain.get() / 8 * 7)
    }

    /// Receives the first bytes of a connection. Returns 0 at its end, and when a stopping server must close it.
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

/// The event before the close of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastEvent {
    /// A response, which must not be lost.
    Response,
    /// An idle period.
    Nothing,
}
