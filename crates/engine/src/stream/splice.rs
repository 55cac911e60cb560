//! Part of a body on its way from one stream to another through a pipe of the kernel, past our memory.
//!
//! Unlike a [`Relay`](crate::Relay), which moves whatever comes, it takes in no more bytes than its user says, who knows
//! where the body ends, and leaves receiving to that user where a pipe is of no use.

use std::fmt;
use std::future::{Future, poll_fn};
use std::task::Poll;

use crate::error::Error;
use crate::file::pipe::Pipe;
use crate::limits::BYTES_PER_OPERATION;
use crate::stream::Stream;

/// Bytes between two streams of the same core. It holds a pipe only while there are any.
#[derive(Default)]
pub struct Splice {
    pipe: Option<Pipe>,
}

impl Splice {
    /// Takes in what has come from `from`, or else comes first, `max` bytes at most, and returns how many those were. What
    /// was taken in before must have been given.
    ///
    /// 0 says that the next bytes are to be received: they have come into our memory already or are about to, the stream has
    /// ended, all pipes of the core are in use, or its sockets are simulated.
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
        if !inner.tasks.may_go_on() {
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

    /// Gives `to` all that was taken in, behind what was queued there.
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
