//! A stream used as a tunnel (RFC 8441 5): bytes in DATA frames both ways. The window reopens only after bytes have
//! been forwarded to the server, and the server is read only while the client's windows have room.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use onrush_engine::{Error, Input, Part};
use onrush_http::http2::code::Code;

use super::Stream;
use super::flow::Receiving;
use crate::exchange::stream_tunnel_end::StreamTunnelEnd;

impl Stream {
    /// Marks the stream as a tunnel, after the response that opens it is written.
    pub(crate) fn become_tunnel(&self) {
        self.flow.is_tunnel.set(true);
        self.session.wake();
    }
}

impl StreamTunnelEnd for Stream {
    fn poll_reset(&self, context: &Context<'_>) -> Poll<Error> {
        self.flow.poll_reset(context)
    }

    fn poll_bytes(&self, context: &Context<'_>) -> Poll<Result<Vec<u8>, Error>> {
        if let Poll::Ready(error) = self.flow.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        let incoming = &self.flow.incoming;
        let bytes = incoming.body().bytes.take();
        match bytes.is_empty() && incoming.state.get() == Receiving::Open {
            true => Poll::Pending,
            false => Poll::Ready(Ok(bytes)),
        }
    }

    fn release(&self, bytes: usize) {
        self.session.release(&self.flow, bytes);
    }

    /// Waits until the client's windows have room.
    fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.session.poll_room(&self.flow, context))?;
        Poll::Ready(Ok(()))
    }

    fn put(&self, input: &mut Input) {
        let bytes = input.bytes().len();
        let buffer = match bytes <= self.session.room_now(&self.flow) {
            true => input.take(),
            // Do not hold a core's buffer while the client is slow.
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

    fn put_bytes(&self, bytes: Vec<u8>) {
        self.session.data(&self.flow, &bytes);
        self.session.wake();
    }

    fn poll_put(&self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        if let Poll::Ready(error) = self.flow.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        match self.flow.outgoing.waiting.borrow().is_empty() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// A client that stops reading resets its stream.
    fn peer_still_reads(&self) -> bool {
        true
    }

    fn end(&self) {
        self.session.end(&self.flow);
        self.session.wake();
    }

    fn cancel(&self) {
        self.session.cancel(&self.flow, Code::CANCEL);
    }

    fn bytes_moved(&self) -> u64 {
        self.flow.written() + self.flow.incoming.body().received.get()
    }
}
