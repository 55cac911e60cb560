//! One connection of a tunnel. It is shut down after the other connection has ended.

use std::pin::Pin;

use onrush_engine::Error;
use onrush_tls::Transport;

/// The shutdown of a connection after the other one has ended.
pub(super) type End<'t> = Pin<Box<dyn Future<Output = Result<(), Error>> + 't>>;

/// A connection at one end of a tunnel. Dropping it resets the connection, also when its core ends, unless the other end's
/// shutdown was passed on (`has_all`): an orderly close would claim that all bytes were delivered.
pub(super) struct Hearer<'t> {
    connection: &'t Transport,
    pub(super) has_all: bool,
}

impl<'t> Hearer<'t> {
    pub(super) fn new(connection: &'t Transport) -> Self {
        Self {
            connection,
            has_all: false,
        }
    }
}

impl Drop for Hearer<'_> {
    fn drop(&mut self) {
        if !self.has_all {
            self.connection.reset_when_dropped();
        }
    }
}
