//! Interface to a client's connection, implemented by the server that accepts it.

use onrush_engine::{Error, Input};
use onrush_tls::Transport;

/// Outcome of a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Bytes were appended to the input.
    Bytes,
    /// The client closed its side.
    End,
    /// The idle timeout passed, or the server is stopping.
    Nothing,
}

/// An accepted connection. Dropping it closes it.
pub trait Client {
    /// The connection.
    fn stream(&self) -> &Transport;

    /// The connection, and the bytes received and not yet consumed.
    fn parts(&mut self) -> (&Transport, &mut Input);

    /// Receives more bytes. Waits for at most the idle timeout.
    ///
    /// # Errors
    /// If the connection fails.
    fn receive(&mut self) -> impl Future<Output = Result<Received, Error>>;

    /// Starts the send timeout: the next flush fails if the client reads nothing for that long.
    fn limit_send(&self);

    /// Shuts down the sending side, so that everything sent arrives, and reads until the client closes its side.
    ///
    /// # Errors
    /// If the connection fails first.
    fn end(self) -> impl Future<Output = Result<(), Error>>;
}
