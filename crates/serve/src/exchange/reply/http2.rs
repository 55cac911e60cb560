//! A response on an HTTP/2 stream (RFC 9113 8.1).

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use onrush_engine::{Error, File, Input, Kind, Op, Part};
use onrush_http::Method;
use onrush_http::http2::hpack::Sensitivity;
use onrush_http::http2::message::write;
use onrush_http::response::ResponseHead;

use super::fields::{BodyLength, Fields, HeadInputs, Pair};
use super::outcome::{Interim, TooLarge};
use super::pairs;
use crate::exchange::downstream::http2::flow::Flow;
use crate::exchange::downstream::http2::session::Session;
use crate::exchange::output::COPY_MAX;
use crate::exchange::rendered::Rendered;
use crate::limits::http2::{HTTP2_FILE_PIECE, HTTP2_FILE_PIECES};
use crate::rules::response_edits::AppliedEdits;
use crate::worker::Worker;

/// Method passed for interim responses, which never have a body.
const ANY_METHOD: Method = Method::Get;

pub(crate) struct Reply<'a> {
    session: &'a Rc<Session>,
    flow: &'a Rc<Flow>,
}

impl<'a> Reply<'a> {
    #[inline]
    pub(crate) fn new(session: &'a Rc<Session>, flow: &'a Rc<Flow>) -> Self {
        Self { session, flow }
    }

    /// The body ends with an explicit end, not when its declared length is written.
    pub(super) fn ends_apart(&self) {
        self.flow.set_remaining(None);
    }

    /// The body ends after these bytes, which are written next.
    pub(super) fn ends_with(&self, bytes: usize) {
        self.flow.set_remaining(Some(bytes as u64));
    }

    #[inline]
    pub(super) fn head(
        &mut self,
        (status, method): (u16, Method),
        worker: &Worker,
        edits: Option<AppliedEdits<'_>>,
        fields: impl FnOnce(&mut Fields<'_>),
    ) {
        if edits.is_some() {
            let made = pairs::own(worker, edits, fields);
            return self.write_pairs((status, method), Sensitivity::Unmarked, made);
        }
        self.session
            .head(self.flow, (status, method), |encoder, out, _| {
                let mut to = Fields::http2(encoder, out);
                to.header("server", b"onrush").date(&worker.date());
                fields(&mut to);
                to.body_length()
            });
    }

    #[inline]
    pub(super) fn rendered(&mut self, status: u16, rendered: &Rendered, worker: &Worker) -> u64 {
        rendered.with(worker, |head, body| {
            self.session.rendered(self.flow, status, (head, body))
        })
    }

    fn write_pairs(
        &self,
        (status, method): (u16, Method),
        sensitivity: Sensitivity,
        (pairs, length): (Vec<Pair>, Option<BodyLength>),
    ) {
        self.session
            .head(self.flow, (status, method), |encoder, out, _| {
                encoder.set_sensitivity(sensitivity);
                for (name, value) in &pairs {
                    write::field(name, value, encoder, out);
                }
                length
            });
    }

    pub(super) fn written(&self) -> u64 {
        self.flow.written()
    }

    pub(super) fn forwarded_head(
        &mut self,
        (head, method): (&ResponseHead<'_, '_>, Method),
        (edits, made_of): (Option<AppliedEdits<'_>>, HeadInputs),
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), TooLarge> {
        let what = (head.status, method);
        if head.status == 101 {
            let (mut pairs, _) = pairs::forwarded(edits, fields);
            // The HTTP/2 client has sent no key, so it gets no accept field (RFC 8441 5).
            pairs.retain(|(name, _)| name != "sec-websocket-accept");
            self.write_pairs((200, method), head.sensitivity, (pairs, None));
        } else if edits.is_some() {
            let made = pairs::forwarded(edits, fields);
            self.write_pairs(what, head.sensitivity, made);
        } else {
            let of = (head, method, made_of);
            self.session.head(self.flow, what, |encoder, out, last| {
                encoder.set_sensitivity(head.sensitivity);
                last.forwarded(of, encoder, out, |encoder, out| {
                    let mut to = Fields::http2(encoder, out);
                    fields(&mut to);
                    to.body_length()
                })
            });
        }
        Ok(())
    }

    pub(super) fn interim(
        &mut self,
        (status, sensitivity): (u16, Sensitivity),
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Interim {
        self.session
            .head(self.flow, (status, ANY_METHOD), |encoder, out, _| {
                encoder.set_sensitivity(sensitivity);
                let mut to = Fields::http2(encoder, out);
                fields(&mut to);
                None
            });
        Interim::Written
    }

    #[inline]
    pub(super) fn data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.session.data(self.flow, bytes);
        Ok(())
    }

    pub(super) fn part(&mut self, part: Part) -> Result<(), Error> {
        self.session.part(self.flow, part);
        Ok(())
    }

    /// Appends the first `bytes` of `input`; without a copy if that is the whole input and more than [`COPY_MAX`].
    pub(super) fn data_from(&mut self, input: &mut Input, bytes: usize) -> Result<(), Error> {
        if bytes > COPY_MAX
            && bytes == input.bytes().len()
            && let Some(buffer) = input.take()
        {
            return self.part(buffer.into());
        }
        self.data(&input.bytes()[..bytes])?;
        if bytes > 0 {
            input.consume(bytes);
        }
        Ok(())
    }

    pub(super) fn fill(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Error> {
        let mut buffer = self.session.transport().core().buffer()?;
        let written = fill(buffer.spare());
        buffer.fill(written);
        self.part(buffer.into())
    }

    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.session.end(self.flow);
        Ok(())
    }

    pub(super) fn trailers(&mut self, lines: &[u8]) -> Result<(), Error> {
        self.session.trailers(self.flow, lines);
        Ok(())
    }

    pub(super) fn flush(&self) -> impl Future<Output = Result<(), Error>> + use<> {
        self.session.flush(self.flow)
    }

    /// [`Reply::flush`], with the time after which a stalled stream is reset.
    pub(super) fn flush_within(
        &self,
        patience: Duration,
    ) -> impl Future<Output = Result<(), Error>> + use<> {
        self.flow.set_patience(patience);
        self.flush()
    }

    /// Waits for room in the client's windows. Bytes written before are being sent.
    pub(super) fn room(&self) -> impl Future<Output = Result<(), Error>> + use<> {
        self.session.wake();
        let room = self.session.room(self.flow);
        async move { room.await.map(drop) }
    }

    pub(super) fn poll_reset(&self, context: &Context<'_>) -> Poll<Error> {
        self.flow.poll_reset(context)
    }

    /// Sends all written bytes, then a few frames of the file, which are read into memory.
    pub(super) async fn file(
        &mut self,
        file: &File,
        (offset, length): (u64, u64),
    ) -> Result<u64, Error> {
        self.flush().await?;
        // Read only what the windows take now: a client may have a hundred streams and never open their windows. And
        // only in turn: with 32 streams of 1 MiB each, the data would exceed the core's buffers.
        let (_turn, room) = loop {
            self.session.room(self.flow).await?;
            match self.session.turn(self.flow).await? {
                (_, 0) => {}
                turn => break turn,
            }
        };
        let most = room.min(HTTP2_FILE_PIECES * HTTP2_FILE_PIECE) as u64;
        let mut bytes = 0;
        while bytes < length.min(most) {
            let mut buffer = self.session.transport().core().buffer()?;
            let wanted = (length.min(most) - bytes).min(HTTP2_FILE_PIECE as u64) as usize;
            let wanted = wanted.min(buffer.room());
            let count = file.read(offset + bytes, &mut buffer.spare()[..wanted])?;
            if count == 0 {
                break;
            }
            buffer.fill(count);
            self.part(buffer.into())?;
            bytes += count as u64;
        }
        if bytes == 0 {
            return Err(Error::new(Op::SendFile, Kind::FileTooShort));
        }
        self.flush().await?;
        Ok(bytes)
    }
}
