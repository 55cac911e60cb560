//! Orderly close of a connection.

use onrush_engine::{Error, Kind};

use super::Connection;
use crate::connection::ending::LastEvent;
use crate::exchange::NOT_YET;
use crate::limits::LINGER_BYTES;
use crate::worker::connections::ConnectionState;

impl Connection {
    /// Receives from an idle connection that must close: waits briefly for a last request, then closes.
    pub(super) async fn receive_last(&mut self) -> Result<usize, Error> {
        // Derived from the deadline: storing the time would take memory in every idle connection.
        let since = match (self.exchange.since(), self.side.stream.deadline()) {
            (NOT_YET, Some(deadline)) => {
                deadline.before(self.service.site().settings.timeouts.client_idle)
            }
            (NOT_YET, None) => self.worker().core.now(),
            (since, _) => since,
        };
        self.side
            .stream
            .set_deadline(Some(self.worker().idle_until(since)));
        match self.side.stream.recv(&mut self.side.input).await {
            Err(error) if error.kind == Kind::TimedOut => {}
            received => return received,
        }
        match self.side.stream.recv_arrived(&mut self.side.input).await {
            Err(error) if error.kind == Kind::TimedOut => {}
            received => return received,
        }
        // When out of descriptors, other connections wait for this one, so close without lingering.
        if self.worker().stopping.get() {
            self.close_gracefully(LastEvent::Nothing).await?;
        }
        Ok(0)
    }

    /// Closes the connection without losing its last response: closing with unread bytes would reset it (RFC 9112 9.6).
    pub(super) async fn linger(&mut self) -> Result<(), Error> {
        // As far as known. While the server stops, clients may still be sending because they do not expect the close.
        let all_read = self.side.input.is_empty()
            && self.side.unread.is_complete()
            && !self.side.stream.is_spent()
            && !self.worker().is_ending();
        if all_read {
            return Ok(());
        }
        self.close_gracefully(LastEvent::Response).await
    }

    /// Closes the sending side, and reads until the client closes its side or the time is over.
    pub(super) async fn close_gracefully(&mut self, behind: LastEvent) -> Result<(), Error> {
        self.set_stage(ConnectionState::Closing);
        // The flush has its own deadline; the shorter one applies afterwards only.
        self.side.stream.shutdown().await?;
        self.side
            .stream
            .set_deadline(Some(self.worker().linger_until(behind)));
        let mut discarded = 0;
        while discarded < LINGER_BYTES {
            self.side.input.consume(self.side.input.bytes().len());
            match self.side.stream.recv(&mut self.side.input).await? {
                0 => return Ok(()),
                bytes => discarded += bytes,
            }
        }
        Ok(())
    }
}
