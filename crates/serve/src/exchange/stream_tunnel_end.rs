//! An HTTP/2 stream used as one end of a tunnel: a client's (RFC 8441) or a server's.

use std::task::{Context, Poll};

use onrush_engine::{Errno, Error, Input, Kind, Op};

/// One end of a tunnel. All waits wake the task that polled [`StreamTunnelEnd::poll_reset`] last; poll it first. Waits fail
/// if the stream is reset.
pub(crate) trait StreamTunnelEnd {
    /// Waits until the stream is reset.
    fn poll_reset(&self, context: &Context<'_>) -> Poll<Error>;

    /// Returns received bytes, or none at the end of the stream. They count against the window until
    /// [released](StreamTunnelEnd::release).
    fn poll_bytes(&self, context: &Context<'_>) -> Poll<Result<Vec<u8>, Error>>;

    /// Opens the window again by `bytes` that have been forwarded.
    fn release(&self, bytes: usize);

    /// Waits until the stream can send more.
    fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Error>>;

    fn put(&self, input: &mut Input);

    fn put_bytes(&self, bytes: Vec<u8>);

    /// Waits until the windows have taken all bytes sent.
    fn poll_put(&self, context: &Context<'_>) -> Poll<Result<(), Error>>;

    /// Whether the peer still reads. A peer that has ended its side may have declared that it does not (RFC 9113 8.1).
    fn peer_still_reads(&self) -> bool;

    /// Ends the stream after the bytes sent.
    fn end(&self);

    /// Aborts the stream because the tunnel broke; unsent bytes are dropped (RFC 8441 5).
    fn cancel(&self);

    /// Bytes received and sent so far, to detect activity between two calls.
    fn bytes_moved(&self) -> u64;
}

pub(crate) fn tunnel_reset_error() -> Error {
    Error::new(Op::Recv, Kind::Os(Errno::CONNRESET))
}
