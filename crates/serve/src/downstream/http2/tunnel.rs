//! A stream that has become a tunnel (RFC 8441 5): bytes in DATA both ways. What comes is given back to the stream's window when it
//! has left for the server, and nothing is made that the client's windows do not take.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use onrush_engine::{Error, Input, Part};
use onrush_http::http2::code::Code;

use super::Stream;
use super::flow::Receiving;

impl Stream {
    /// It is a tunnel from now on; the response that says so is written.
    pub(crate) fn become_tunnel(&self) {
        self.flow.is_tunnel.set(true);
        self.session.wake();
    }

    /// Bytes that have come through it and gone, so that two calls can be compared.
    pub(crate) fn moved(&self) -> u64 {
        self.flow.written() + self.flow.incoming.received.get()
    }

    /// What has come, and nothing at its end. It counts against the window until it is [released](Stream::release).
    ///
    /// # Errors
    /// When the stream is reset.
    pub(crate) fn poll_bytes(&self, context: &Context<'_>) -> Poll<Result<Vec<u8>, Error>> {
        if let Poll::Ready(error) = self.flow.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        let incoming = &self.flow.incoming;
        let bytes = incoming.bytes.take();
        match bytes.is_empty() && incoming.state.get() == Receiving::Open {
            true => Poll::Pending,
            false => Poll::Ready(Ok(bytes)),
        }
    }

    /// So many bytes of it are on their way.
    pub(crate) fn release(&self, bytes: usize) {
        self.session.release(&self.flow, bytes);
    }

    /// Waits until the client takes something.
    ///
    /// # Errors
    /// When the stream is reset.
    pub(crate) fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.session.poll_room(&self.flow, context))?;
        Poll::Ready(Ok(()))
    }

    /// Sends what `input` has.
    pub(crate) fn put(&self, input: &mut Input) {
        let bytes = input.bytes().len();
        let buffer = match bytes <= self.session.room_now(&self.flow) {
            true => input.take(),
            // Not in a buffer of the core while the client takes its time.
            false => None,
        };
        match buffer {
            Some(buffer) => self.session.part(&self.flow, buffer.into()),
            None => {
                let part = Part::Shared(Rc::from(input.bytes()), 0);
                self.session.part(&self.flow, part);
                input.consume(bytes);
            }
        }
        self.session.wake();
    }

    /// Waits until the windows have taken all that was put.
    ///
    /// # Errors
    /// When the stream is reset.
    pub(crate) fn poll_put(&self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        if let Poll::Ready(error) = self.flow.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        match self.flow.outgoing.waiting.borrow().is_empty() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// The server has ended its side.
    pub(crate) fn end(&self) {
        self.session.end(&self.flow);
        self.session.wake();
    }

    /// The tunnel has broken: what waits is not sent (RFC 8441 5).
    pub(crate) fn cancel(&self) {
        self.session.cancel(&self.flow, Code::CANCEL);
    }
}
