//! Guard of a tunnel's connection that resets it unless the tunnel has ended properly.

use std::pin::Pin;

use onrush_engine::Error;
use onrush_tls::Transport;

/// The shutdown of a connection after the other end has closed its side.
pub(super) type End<'t> = Pin<Box<dyn Future<Output = Result<(), Error>> + 't>>;

/// A connection at one end of a tunnel. Dropped before the other end's shutdown was passed on (`has_all`), also when
/// the core ends, it resets the connection: an orderly close would mean that all bytes were delivered.
pub(super) struct TunnelEndGuard<'t> {
    connection: &'t Transport,
    pub(super) has_all: bool,
}

impl<'t> TunnelEndGuard<'t> {
    pub(super) fn new(connection: &'t Transport) -> Self {
        Self {
            connection,
            has_all: false,
        }
    }
}

impl Drop for TunnelEndGuard<'_> {
    fn drop(&mut self) {
        if !self.has_all {
            self.connection.reset_when_dropped();
        }
    }
}
