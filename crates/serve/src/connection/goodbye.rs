//! The end of a connection, in good order.

use onrush_engine::{Error, Kind};

use super::Connection;
use crate::connection::ending::Behind;
use crate::exchange::NOT_YET;
use crate::limits::LINGER_BYTES;
use crate::worker::connections::ConnectionState;

impl Connection {
    /// Receives from a client whose connection is idle and is to end: a last request may still come, and after that it is told
    /// of the end.
    pub(super) async fn receive_last(&mut self) -> Result<usize, Error> {
        // Asked of the deadline: remembered while it waits, it would cost memory of every idle connection.
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
        // Others wait for the descriptor of one that makes room.
        if self.worker().stopping.get() {
            self.say_goodbye(Behind::Nothing).await?;
        }
        Ok(0)
    }

    /// Ends the connection so that its last response arrives: closing with bytes unread would reset it (RFC 9112 9.6).
    pub(super) async fn linger(&mut self) -> Result<(), Error> {
        // As far as one can know. While the server stops, clients that it did not expect to end are still sending.
        let all_read = self.side.input.is_empty()
            && self.side.unread.is_complete()
            && !self.side.stream.is_spent()
            && !self.worker().is_ending();
        if all_read {
            return Ok(());
        }
        self.say_goodbye(Behind::Response).await
    }

    /// Ends our side, and reads on until the client ends its own, or has had enough time to.
    pub(super) async fn say_goodbye(&mut self, behind: Behind) -> Result<(), Error> {
        self.is_at(ConnectionState::Closing);
        // What is on its way has the time of the flush; only what comes after it is hurried.
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
