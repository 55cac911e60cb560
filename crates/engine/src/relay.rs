//! One direction of a tunnel: bytes from one stream to another, whatever they are.
//!
//! Messages are received and sent as everywhere. A flow that turns out to be bulk goes through a pipe of the kernel and
//! never enters our memory, as long as it is one.
//!
//! A body of known length with 64 KiB or more to come takes the same way where both connections are plain. kTLS would
//! extend that to TLS connections; the kernels that this was developed on lack it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::task::{Poll, ready};

use crate::buffers::buffer::Buffer;
use crate::buffers::input::Input;
use crate::error::Error;
use crate::file::pipe::Pipe;
use crate::limits::{BULK_ENDS_AFTER, SPLICE_FROM};
use crate::stream::Stream;

/// Bytes on their way from one stream to another of the same core. It holds no buffer and no pipe while it waits for
/// bytes to come; while it waits for them to be taken, at most two buffers or one pipe.
#[derive(Default)]
pub struct Relay {
    /// Received and not yet given to the other stream.
    input: Input,
    pipe: Option<Pipe>,
    /// Small portions to come until the flow is no longer taken for bulk.
    bulk: u8,
    step: Step,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    /// Bytes of the source.
    #[default]
    Take,
    /// The other stream, to take so many bytes that are queued there.
    Flush(u32),
    /// The other stream, to take so many bytes that are in the pipe, or were.
    Drain(u32),
}

impl Relay {
    /// A relay whose source has sent `received` already, which goes first.
    pub fn new(received: Input) -> Self {
        Self {
            input: received,
            ..Self::default()
        }
    }

    /// Moves what has come from one stream, or else comes first, to the other, and returns how many bytes that were; 0
    /// is the end of the source. Waits for bytes until the source's deadline, and for them to be taken until the other
    /// stream's.
    ///
    /// When it is given up and called again with the same streams, no byte is lost.
    ///
    /// # Errors
    /// Those with [`crate::Op::Recv`] are the source's, those with [`crate::Op::Send`] the other's.
    pub fn transfer(
        &mut self,
        from: &Stream,
        to: &Stream,
    ) -> impl Future<Output = Result<u64, Error>> {
        poll_fn(move |_| self.poll_transfer(from, to))
    }

    /// [`Relay::transfer`] for those who wait for more than one thing at a time.
    pub fn poll_transfer(&mut self, from: &Stream, to: &Stream) -> Poll<Result<u64, Error>> {
        if self.step == Step::Take {
            if self.is_empty() && ready!(self.poll_take(from))? == 0 {
                return Poll::Ready(Ok(0));
            }
            self.step = self.give(to)?;
        }
        let given = ready!(self.poll_given(to));
        self.step = Step::Take;
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
        if !inner.tasks.may_go_on() {
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
            // The end; or an urgent byte before the end, which a splice takes for it. A receive knows.
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

    /// Hands the other stream what was taken; what has to be waited for then.
    fn give(&mut self, to: &Stream) -> Result<Step, Error> {
        if let Some(pipe) = self.pipe.as_ref().filter(|_| self.input.is_empty()) {
            return Ok(Step::Drain(pipe.held() as u32));
        }
        let buffer = self.take_buffer(to)?;
        let count = buffer.len() as u32;
        to.queue(buffer);
        Ok(Step::Flush(count))
    }

    /// How many bytes the other stream has taken, once it has.
    fn poll_given(&mut self, to: &Stream) -> Poll<Result<u64, Error>> {
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
            (Step::Take, _) | (Step::Drain(_), None) => unreachable!("nothing was taken"),
        }
    }

    /// What was received, in a buffer of its own; copied when it was parked.
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
