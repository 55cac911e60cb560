//! An end of a tunnel that is a stream of HTTP/2: a client's (RFC 8441), or that of a server.

use std::task::{Context, Poll};

use onrush_engine::{Errno, Error, Input, Kind, Op};

/// One of them. All that waits does so for the task that has asked [`StreamEnd::poll_reset`] last, which is asked first.
pub(crate) trait StreamEnd {
    /// Waits until the stream is over before its time.
    fn poll_reset(&self, context: &Context<'_>) -> Poll<Error>;

    /// What has come, and nothing at its end. It counts against the window until it is [released](StreamEnd::release).
    ///
    /// # Errors
    /// When the stream is reset.
    fn poll_bytes(&self, context: &Context<'_>) -> Poll<Result<Vec<u8>, Error>>;

    /// So many bytes of it are on their way.
    fn release(&self, bytes: usize);

    /// Waits until it is worth it to have more for the stream.
    ///
    /// # Errors
    /// When the stream is reset.
    fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Error>>;

    /// Sends what `input` has.
    fn put(&self, input: &mut Input);

    /// Sends these bytes.
    fn put_bytes(&self, bytes: Vec<u8>);

    /// Waits until the windows have taken all that was put.
    ///
    /// # Errors
    /// When the stream is reset.
    fn poll_put(&self, context: &Context<'_>) -> Poll<Result<(), Error>>;

    /// Whether the other side takes anything; one that has ended its own may have said that it does not (RFC 9113 8.1).
    fn takes_more(&self) -> bool;

    /// Nothing follows what was put.
    fn end(&self);

    /// The tunnel has broken: what waits is not sent (RFC 8441 5).
    fn cancel(&self);

    /// Bytes that have come through it and gone, so that two calls can be compared.
    fn moved(&self) -> u64;
}

/// How one ends before its time.
pub(crate) fn reset() -> Error {
    Error::new(Op::Recv, Kind::Os(Errno::CONNRESET))
}
