//! One direction of a tunnel: bytes of any protocol from one stream to another.
//!
//! Small messages are received and sent through buffers. A bulk flow is spliced through a kernel pipe as long as it
//! stays bulk. So is a body of known length with at least 64 KiB left when both connections are plain. kTLS would
//! extend that to TLS connections; the kernels used in development lack it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::task::{Poll, ready};

use crate::buffers::buffer::Buffer;
use crate::buffers::input::Input;
use crate::error::Error;
use crate::file::pipe::Pipe;
use crate::limits::{BULK_ENDS_AFTER, SPLICE_FROM};
use crate::stream::Stream;

/// Bytes on their way from one stream to another of the same core. Holds no buffer and no pipe while it waits for the
/// source, and at most two buffers or one pipe while it waits for the destination.
#[derive(Default)]
pub struct Relay {
    /// Received and not yet queued on the other stream.
    input: Input,
    pipe: Option<Pipe>,
    /// Number of small reads after which the flow no longer counts as bulk.
    bulk: u8,
    step: Step,
}

/// The event that the relay waits for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    /// Bytes from the source.
    #[default]
    Receive,
    /// The destination takes this many queued bytes.
    Flush(u32),
    /// The destination takes this many bytes from the pipe.
    Drain(u32),
}

impl Relay {
    /// A relay that first forwards `received`, which the source has already sent.
    pub fn new(received: Input) -> Self {
        Self {
            input: received,
            ..Self::default()
        }
    }

    /// Moves the bytes that have arrived, or the next that arrive, from one stream to the other, and returns their
    /// number; 0 is the end of the source. Each wait has its own stream's deadline.
    ///
    /// Cancellation loses no byte if the next call has the same streams.
    ///
    /// # Errors
    /// Errors with [`crate::Op::Recv`] belong to the source, errors with [`crate::Op::Send`] to the destination.
    pub fn transfer(
        &mut self,
        from: &Stream,
        to: &Stream,
    ) -> impl Future<Output = Result<u64, Error>> {
        poll_fn(move |_| self.poll_transfer(from, to))
    }

    /// [`Relay::transfer`] for tasks that wait for several things at once.
    pub fn poll_transfer(&mut self, from: &Stream, to: &Stream) -> Poll<Result<u64, Error>> {
        if self.step == Step::Receive {
            if self.is_empty() && ready!(self.poll_take(from))? == 0 {
                return Poll::Ready(Ok(0));
            }
            self.step = self.give(to)?;
        }
        let given = ready!(self.poll_transferred(to));
        self.step = Step::Receive;
        Poll::Ready(given)
    }

    fn is_empty(&self) -> bool {
        self.input.is_empty() && self.pipe.as_ref().is_none_or(|pipe| pipe.held() == 0)
    }

    fn poll_take(&mut self, from: &Stream) -> Poll<Result<usize, Error>> {
        let taken = self.poll_take_some(from);
        if taken.is_pending() {
            self.pipe = None;
        }
        taken
    }

    fn poll_take_some(&mut self, from: &Stream) -> Poll<Result<usize, Error>> {
        let inner = from.core().inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        let task = inner.tasks.current();
        let state = &mut *inner.state.borrow_mut();
        if self.bulk == 0 || !state.can_splice(from.key()) {
            self.pipe = None;
        } else if self.pipe.is_none() {
            self.pipe = inner.pipes.take();
        }
        let spliced = self
            .pipe
            .as_mut()
            .map(|pipe| state.poll_splice_in(from.key(), pipe, u64::MAX, task));
        let taken = match spliced {
            // Either the end or an urgent byte before it; a receive can tell them apart.
            Some(Poll::Ready(Ok(0))) | None => {
                self.pipe = None;
                state.poll_recv(from.key(), &mut self.input, task)
            }
            Some(taken) => taken,
        };
        if let Poll::Ready(Ok(count)) = taken {
            self.bulk = if count >= SPLICE_FROM {
                BULK_ENDS_AFTER
            } else {
                self.bulk.saturating_sub(1)
            };
        }
        taken
    }

    /// Gives the other stream the bytes that were read, and returns the next step.
    fn give(&mut self, to: &Stream) -> Result<Step, Error> {
        if let Some(pipe) = self.pipe.as_ref().filter(|_| self.input.is_empty()) {
            return Ok(Step::Drain(pipe.held() as u32));
        }
        let buffer = self.take_buffer(to)?;
        let count = buffer.len() as u32;
        to.queue(buffer);
        Ok(Step::Flush(count))
    }

    fn poll_transferred(&mut self, to: &Stream) -> Poll<Result<u64, Error>> {
        let inner = to.core().inner();
        match (self.step, &mut self.pipe) {
            (Step::Flush(count), _) => to.poll_flush().map_ok(|()| count.into()),
            (Step::Drain(count), Some(pipe)) => {
                let task = inner.tasks.current();
                let state = &mut *inner.state.borrow_mut();
                ready!(state.poll_sent(to.key(), task))?;
                let drained = state.poll_splice_out(to.key(), pipe, task);
                drained.map_ok(|()| count.into())
            }
            (Step::Receive, _) | (Step::Drain(_), None) => unreachable!("nothing was taken"),
        }
    }

    /// The received bytes in a buffer of their own; copied if they were parked.
    fn take_buffer(&mut self, to: &Stream) -> Result<Buffer, Error> {
        if let Some(buffer) = self.input.take() {
            return Ok(buffer);
        }
        let mut buffer = to.core().buffer()?;
        let count = buffer.put_some(self.input.bytes());
        self.input.consume(count);
        Ok(buffer)
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("input", &self.input)
            .field("piped", &self.pipe.as_ref().map(Pipe::held))
            .finish_non_exhaustive()
    }
}
