//! A request body on a stream: DATA in order of arrival, within the stream's window (RFC 9113 6.9).

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use onrush_engine::{Error, Instant, Kind, Op};
use onrush_http::write::{CHUNK_END, LAST_CHUNK};
use onrush_http::{Framing, Refusal};
use onrush_tls::Transport;

use super::flow::{Flow, Receiving, stream_reset_error};
use super::session::Session;
use crate::exchange::forward_body::TrailerFilter;
use crate::exchange::output::Output;

pub(crate) struct Body<'a> {
    session: &'a Rc<Session>,
    flow: &'a Rc<Flow>,
    framing: Framing,
}

impl<'a> Body<'a> {
    pub(super) fn new(session: &'a Rc<Session>, flow: &'a Rc<Flow>, framing: Framing) -> Self {
        Self {
            session,
            flow,
            framing,
        }
    }

    fn has_ended(&self) -> bool {
        self.flow.incoming.state.get() != Receiving::Open
    }

    pub(crate) fn has_arrived(&self) -> bool {
        let body = self.flow.incoming.body_if_any();
        body.is_some_and(|body| !body.is_empty())
    }

    /// Whether the whole body has been read. Without a `Content-Length` this includes the end, which is forwarded as a
    /// last chunk.
    pub(crate) fn is_complete(&self) -> bool {
        let is_whole = match self.flow.incoming.state.get() {
            Receiving::Whole | Receiving::Unwanted => true,
            Receiving::Ended => self.framing != Framing::Chunked,
            Receiving::Open => false,
        };
        is_whole && !self.has_arrived()
    }

    fn check(&self) -> Result<(), Refusal> {
        let body = self.flow.incoming.body_if_any();
        match body.is_some_and(|body| body.received.get() > body.bytes_max.get()) {
            true => Err(Refusal::new(413, "the body is too large")),
            false => Ok(()),
        }
    }

    /// Takes all received bytes, and the end if it has arrived.
    fn take_all(&mut self) -> Vec<u8> {
        let data = self.flow.incoming.body().bytes.take();
        self.session.release(self.flow, data.len());
        if self.has_ended() {
            self.flow.incoming.state.set(Receiving::Whole);
        }
        data
    }

    pub(crate) fn left(&self) -> Option<u64> {
        let body = self.flow.incoming.body_if_any();
        let bytes = body.map_or(0, |body| body.bytes.borrow().len());
        self.has_ended().then_some(bytes as u64)
    }

    /// Reads and discards the received bytes; returns their number.
    pub(crate) fn take(&mut self) -> Result<u64, Refusal> {
        self.check()?;
        Ok(self.take_all().len() as u64)
    }

    pub(crate) fn pass(
        &mut self,
        (output, server): (&mut Output, &Transport),
        keeps: TrailerFilter<'_>,
    ) -> Result<Result<(), Error>, Refusal> {
        self.check()?;
        Ok(self.put((output, server), keeps))
    }

    fn put(
        &mut self,
        (output, server): (&mut Output, &Transport),
        keeps: TrailerFilter<'_>,
    ) -> Result<(), Error> {
        let data = self.take_all();
        if self.framing != Framing::Chunked {
            return output.put(server, &data);
        }
        if !data.is_empty() {
            output.put(server, format!("{:x}\r\n", data.len()).as_bytes())?;
            output.put(server, &data)?;
            output.put(server, CHUNK_END)?;
        }
        if !self.has_ended() {
            return Ok(());
        }
        let lines = self.flow.incoming.body().trailers.take();
        output.put(server, &LAST_CHUNK[..LAST_CHUNK.len() - CHUNK_END.len()])?;
        for line in kept_lines(&lines, keeps) {
            output.put(server, line)?;
        }
        output.put(server, CHUNK_END)
    }

    /// Whether it had trailers that its framing cannot carry.
    pub(crate) fn has_dropped_trailers(&self) -> bool {
        let body = self.flow.incoming.body_if_any();
        self.framing != Framing::Chunked && body.is_some_and(|it| !it.trailers.borrow().is_empty())
    }

    /// Appends the received bytes to `data`, and the trailers that pass `keeps` to `trailers` as lines.
    pub(crate) fn append_to(
        &mut self,
        (data, trailers): (&mut Vec<u8>, &mut Vec<u8>),
        keeps: TrailerFilter<'_>,
    ) -> Result<(), Refusal> {
        self.check()?;
        let has_ended = self.has_ended();
        let come = self.take_all();
        match data.is_empty() {
            true => *data = come,
            false => data.extend_from_slice(&come),
        }
        if has_ended {
            let lines = self.flow.incoming.body().trailers.take();
            trailers.extend(kept_lines(&lines, keeps).flatten());
        }
        Ok(())
    }

    /// Waits for more until `deadline`; fails if the stream is reset.
    pub(crate) async fn receive(&mut self, deadline: Instant) -> Result<usize, Error> {
        let core = self.session.transport().core();
        let mut late = pin!(core.sleep_until(deadline));
        poll_fn(|context| {
            if self.flow.is_reset.get() {
                return Poll::Ready(Err(stream_reset_error()));
            }
            if self.has_arrived() || self.has_ended() {
                return Poll::Ready(Ok(1));
            }
            self.flow.wait(context);
            let late = late.as_mut().poll(context);
            late.map(|()| Err(Error::new(Op::Recv, Kind::TimedOut)))
        })
        .await
    }
}

/// The lines whose names pass `keeps`.
fn kept_lines<'l>(lines: &'l [u8], keeps: TrailerFilter<'l>) -> impl Iterator<Item = &'l [u8]> {
    lines
        .split_inclusive(|&byte| byte == b'\n')
        .filter(move |line| {
            let name = line.split(|&byte| byte == b':').next();
            name.is_some_and(keeps)
        })
}
