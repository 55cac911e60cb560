//! A connection's transport: the operations of [`Stream`], whatever the bytes look like on the wire.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Core, Error, File, Input, Instant, Part, Stream};

/// A connection over TCP or a Unix socket. Dropping it closes the connection.
///
/// Its operations are those of [`Stream`], with the same contracts.
pub struct Transport {
    stream: Stream,
}

impl Transport {
    /// A connection whose bytes are sent as they are.
    pub fn plain(stream: Stream) -> Self {
        Self { stream }
    }

    /// See [`Stream::set_deadline`].
    #[inline]
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.stream.set_deadline(deadline);
    }

    /// See [`Stream::set_send_patience`].
    #[inline]
    pub fn set_send_patience(&self, patience: Duration) {
        self.stream.set_send_patience(patience);
    }

    // Plain functions that return a future, as in the engine: an `async fn` would hold its arguments twice.

    /// See [`Stream::recv`].
    ///
    /// # Errors
    /// As there.
    pub fn recv(&self, input: &mut Input) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.stream.poll_recv(input))
    }

    /// See [`Stream::poll_recv`].
    pub fn poll_recv(&self, input: &mut Input) -> Poll<Result<usize, Error>> {
        self.stream.poll_recv(input)
    }

    /// See [`Stream::recv_unless_stopping`].
    ///
    /// # Errors
    /// As there.
    pub fn recv_unless_stopping(
        &self,
        input: &mut Input,
    ) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.stream.poll_recv_unless_stopping(input))
    }

    /// See [`Stream::queue`].
    #[inline]
    pub fn queue(&self, part: impl Into<Part>) {
        self.stream.queue(part);
    }

    /// See [`Stream::flush`].
    ///
    /// # Errors
    /// As there.
    pub fn flush(&self) -> impl Future<Output = Result<(), Error>> {
        poll_fn(|_| self.stream.poll_flush())
    }

    /// See [`Stream::poll_flush`].
    pub fn poll_flush(&self) -> Poll<Result<(), Error>> {
        self.stream.poll_flush()
    }

    /// See [`Stream::send_file`].
    ///
    /// # Errors
    /// As there.
    pub fn send_file(
        &self,
        file: &File,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = Result<u64, Error>> {
        self.stream.send_file(file, offset, length)
    }

    /// See [`Stream::shutdown`].
    ///
    /// # Errors
    /// As there.
    pub fn shutdown(&self) -> impl Future<Output = Result<(), Error>> {
        self.stream.shutdown()
    }

    /// See [`Stream::reset_when_dropped`].
    pub fn reset_when_dropped(&self) {
        self.stream.reset_when_dropped();
    }

    /// See [`Stream::peer`].
    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer()
    }

    /// See [`Stream::is_spent`].
    pub fn is_spent(&self) -> bool {
        self.stream.is_spent()
    }

    /// The core it belongs to.
    #[inline]
    pub fn core(&self) -> &Core {
        self.stream.core()
    }
}
