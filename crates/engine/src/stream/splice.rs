//! Moves part of a body from one stream to another through a kernel pipe, without a copy to user space.
//!
//! Unlike a [`Relay`](crate::Relay), it reads no more bytes than the caller allows, who knows where the body ends, and
//! leaves receiving to the caller where a pipe cannot be used.

use std::fmt;
use std::future::{Future, poll_fn};
use std::task::Poll;

use crate::error::Error;
use crate::file::pipe::Pipe;
use crate::limits::BYTES_PER_OPERATION;
use crate::stream::Stream;

/// Bytes between two streams of the same core. Holds a pipe only while it holds bytes.
#[derive(Default)]
pub struct Splice {
    pipe: Option<Pipe>,
}

impl Splice {
    /// Reads at most `max` bytes that have arrived, or the next that arrive, from `from`, and returns their number.
    /// Bytes read before must have been given.
    ///
    /// 0 means that the caller should receive the next bytes: the driver has received them or has a receive armed, the
    /// stream has ended, all pipes of the core are in use, or its sockets are simulated.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn take(&mut self, from: &Stream, max: u64) -> impl Future<Output = Result<u64, Error>> {
        poll_fn(move |_| {
            let taken = self.poll_take(from, max);
            if !matches!(taken, Poll::Ready(Ok(1..))) {
                self.pipe = None;
            }
            taken
        })
    }

    fn poll_take(&mut self, from: &Stream, max: u64) -> Poll<Result<u64, Error>> {
        let inner = from.core().inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        let state = &mut *inner.state.borrow_mut();
        if !state.can_splice_now(from.key()) {
            return Poll::Ready(Ok(0));
        }
        if self.pipe.is_none() {
            self.pipe = inner.pipes.take();
        }
        let Some(pipe) = &mut self.pipe else {
            return Poll::Ready(Ok(0));
        };
        let taken = state.poll_splice_in(from.key(), pipe, max, inner.tasks.current());
        if let Poll::Ready(Ok(count)) = taken {
            let operations = count / BYTES_PER_OPERATION;
            inner.tasks.charge(operations as u32);
        }
        taken.map_ok(|count| count as u64)
    }

    /// Sends the pipe's bytes to `to`, after the bytes queued there.
    ///
    /// # Errors
    /// As [`Stream::flush`].
    pub async fn give(&mut self, to: &Stream) -> Result<(), Error> {
        to.sent().await?;
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        poll_fn(|_| {
            let inner = to.core().inner();
            let state = &mut *inner.state.borrow_mut();
            state.poll_splice_out(to.key(), pipe, inner.tasks.current())
        })
        .await
    }
}

impl fmt::Debug for Splice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Splice")
            .field("piped", &self.pipe.as_ref().map(Pipe::held))
            .finish()
    }
}
