//! The end of a connection, in good order.

use onrush_engine::Error;

use super::Connection;
use crate::ending::Behind;
use crate::limits::LINGER_BYTES;

impl Connection {
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
