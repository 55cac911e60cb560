//! A connection that is told of the end of the other one.

use std::pin::Pin;

use onrush_engine::Error;
use onrush_tls::Transport;

/// The shutdown of a connection after the other one has ended.
pub(super) type End<'t> = Pin<Box<dyn Future<Output = Result<(), Error>> + 't>>;

/// A connection at one end of a tunnel. It is reset when the tunnel is over, be it that its core ends, unless it has been told of
/// the other's end: an orderly one would say that it has heard all.
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
