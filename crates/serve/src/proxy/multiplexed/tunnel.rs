//! A stream to a server that has become a tunnel (RFC 8441 5), with bytes in DATA frames in both directions. The
//! stream's window is updated after the client has taken the bytes.

use std::cell::Cell;
use std::task::{Context, Poll};

use onrush_engine::{Error, Input};

use super::flow::Sending;
use super::state::NEVER;
use super::submission::Submission;
use crate::exchange::stream_tunnel_end::{StreamTunnelEnd, tunnel_reset_error};
use crate::proxy::failure::Failure;

/// The server's end of a tunnel. Dropping it ends the stream, with a reset (CANCEL) if either side is still open.
pub(crate) struct TunnelStream {
    submission: Submission,
    /// Number of bytes put to be sent.
    put: Cell<u64>,
    /// Number of received bytes passed on.
    taken: Cell<u64>,
    /// Number of bytes passed on but not yet released to the window.
    held: Cell<usize>,
}

impl TunnelStream {
    /// Converts the stream of an accepted request. Its deadline is removed, because the tunnel has an idle timeout.
    pub(crate) fn new(submission: Submission) -> Self {
        submission.set_deadline(NEVER);
        Self {
            submission,
            put: Cell::new(0),
            taken: Cell::new(0),
            held: Cell::new(0),
        }
    }

    /// Bytes that wait for the server's windows.
    fn unsent(&self) -> usize {
        self.submission.flow.outgoing.unsent()
    }

    fn go_on(&self) {
        let Submission { connection, flow } = &self.submission;
        connection.state.borrow_mut().resume(flow);
        connection.call();
    }

    fn append(&self, bytes: &[u8]) {
        self.put.set(self.put.get() + bytes.len() as u64);
        let held = self.submission.flow.outgoing.held();
        held.body.borrow_mut().extend_from_slice(bytes);
        self.go_on();
    }
}

impl StreamTunnelEnd for TunnelStream {
    fn poll_reset(&self, context: &Context<'_>) -> Poll<Error> {
        let flow = &self.submission.flow;
        flow.wait(context);
        match flow.failure.get() {
            Some(failure) => Poll::Ready(error_of(failure)),
            None => Poll::Pending,
        }
    }

    fn poll_bytes(&self, context: &Context<'_>) -> Poll<Result<Vec<u8>, Error>> {
        if let Poll::Ready(error) = self.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        let incoming = &self.submission.flow.incoming;
        let bytes = incoming.data.take();
        if bytes.is_empty() && !incoming.has_ended.get() {
            return Poll::Pending;
        }
        self.taken.set(self.taken.get() + bytes.len() as u64);
        self.held.set(self.held.get() + bytes.len());
        Poll::Ready(Ok(bytes))
    }

    fn release(&self, bytes: usize) {
        self.held.set(self.held.get() - bytes);
        self.submission.release(bytes as u32); // within a window
    }

    /// Always ready: at most one portion from the client waits for the windows.
    fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        match self.poll_reset(context) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    fn put(&self, input: &mut Input) {
        let bytes = input.bytes().len();
        self.append(input.bytes());
        input.consume(bytes);
    }

    fn put_bytes(&self, bytes: Vec<u8>) {
        self.append(&bytes);
    }

    fn poll_put(&self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        if let Poll::Ready(error) = self.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        let is_over = self.submission.flow.outgoing.state.get() == Sending::Ended;
        match (self.unsent(), is_over) {
            (0, _) => Poll::Ready(Ok(())),
            (_, true) => Poll::Ready(Err(tunnel_reset_error())),
            (_, false) => Poll::Pending,
        }
    }

    fn peer_still_reads(&self) -> bool {
        self.submission.flow.outgoing.state.get() != Sending::Ended
    }

    fn end(&self) {
        self.submission.end();
        self.go_on();
    }

    /// Dropping it resets the stream.
    fn cancel(&self) {}

    fn bytes_moved(&self) -> u64 {
        let waiting = self.submission.flow.incoming.data.borrow().len();
        let received = self.taken.get() + waiting as u64;
        received + self.put.get() - self.unsent() as u64
    }
}

impl Drop for TunnelStream {
    fn drop(&mut self) {
        // Releases the bytes to the window of the connection, which other streams share.
        self.release(self.held.get());
    }
}

/// Converts the failure of a stream to the error of a tunnel.
fn error_of(failure: Failure) -> Error {
    match failure {
        Failure::NoResponse(error) | Failure::Connect(error) => error,
        _ => tunnel_reset_error(),
    }
}
