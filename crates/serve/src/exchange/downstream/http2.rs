//! The client side of one HTTP/2 stream (RFC 9113): a request with decoded fields, and the received part of its body.

mod body;
pub(crate) mod flow;
pub(crate) mod last_heads;
pub(crate) mod output;
mod receive;
mod rendered;
pub(crate) mod session;
pub(crate) mod stalled;
mod tunnel;
mod turn;

use std::rc::Rc;
use std::task::{Context, Poll};

use onrush_engine::Error;
use onrush_engine::random::Random;
use onrush_http::body::BodyReader;
use onrush_http::http2::code::Code;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::message::{self, ExtendedConnect, MoreFrames, Rejection, RequestKind};
use onrush_http::http2::{self, End};
use onrush_http::request::RequestHead;
use onrush_http::{Framing, HeaderSlots, Limits};
use onrush_tls::Transport;

use super::request_body::{ReceivedBody, RequestBody};
use crate::exchange::reply;
use crate::exchange::reply::http2::Reply;
use crate::exchange::websocket;
use crate::limits::http2::HTTP2_WHOLE_MAX;
use crate::worker::waiter::Parked;
pub(crate) use body::Body;
use flow::{Flow, Receiving};
use session::Session;

/// One request of a connection. Dropping it ends the stream, with a reset if the response is incomplete.
pub(crate) struct Stream {
    session: Rc<Session>,
    flow: Rc<Flow>,
    /// `None` only during drop.
    fields: Option<Box<FieldSection>>,
    follows: MoreFrames,
    framing: Framing,
    /// A small body that arrived with its head. Kept while the request may have to be sent again.
    complete_body: Vec<u8>,
}

impl Stream {
    /// A request with these fields on a newly opened `stream`.
    pub(crate) fn new(
        session: &Rc<Session>,
        (stream, end): (http2::Stream, End),
        fields: Box<FieldSection>,
    ) -> Self {
        let body = match end {
            End::Stream => Receiving::Whole,
            End::Open => Receiving::Open,
        };
        Self {
            flow: session.open(stream, body),
            session: Rc::clone(session),
            fields: Some(fields),
            follows: end.into(),
            framing: Framing::None,
            complete_body: Vec::new(),
        }
    }

    /// The stream, if more of a small body may still arrive together with the head.
    pub(crate) fn awaiting_body(&self) -> Option<http2::Stream> {
        let incoming = &self.flow.incoming;
        if incoming.state.get() != Receiving::Open || self.flow.is_reset.get() {
            return None;
        }
        let is_small = incoming.body().bytes.borrow().len() <= HTTP2_WHOLE_MAX;
        self.flow.stream.get().filter(|_| is_small)
    }

    /// Validates the head and returns the request.
    ///
    /// # Errors
    /// Why the fields are not a valid request.
    #[inline]
    pub(crate) fn validate<'h, 'b>(
        &'b mut self,
        slots: &'h mut HeaderSlots<'b>,
        limits: &Limits,
        chance: &Random,
    ) -> Result<
        (
            RequestHead<'h, 'b>,
            ReceivedBody<'b>,
            reply::ReplyWriter<'b>,
        ),
        Rejection,
    > {
        let key = || websocket::key(chance);
        let Some(fields) = &mut self.fields else {
            unreachable!("it is not dropped");
        };
        if message::as_upgrade(fields, key, limits)? == RequestKind::Tunnel {
            self.follows = MoreFrames::Nothing;
        }
        let unknown = ExtendedConnect::Unknown;
        let request = message::request(fields, slots, self.follows, unknown, limits)?;
        self.framing = request.head.framing;
        if let Some(whole) = self.flow.take_complete_body(self.framing) {
            self.complete_body = whole;
        }
        let arrived = arrived(self.framing, &self.complete_body);
        let to = Reply::new(&self.session, &self.flow);
        Ok((request.head, arrived, reply::ReplyWriter::Http2(to)))
    }

    pub(crate) fn transport(&self) -> &Transport {
        self.session.transport()
    }

    pub(crate) fn head<'h, 'b>(
        &'b self,
        slots: &'h mut HeaderSlots<'b>,
        limits: &Limits,
    ) -> RequestHead<'h, 'b> {
        let unknown = ExtendedConnect::Unknown;
        let Some(fields) = &self.fields else {
            unreachable!("it is not dropped");
        };
        match message::request(fields, slots, self.follows, unknown, limits) {
            Ok(request) => request.head,
            Err(_) => unreachable!("it was a request when its route was chosen"),
        }
    }

    pub(super) fn arrived(&self) -> ReceivedBody<'_> {
        arrived(self.framing, &self.complete_body)
    }

    /// Releases the head; a body that arrived with it is then read like any other.
    pub(crate) fn take_head(&mut self) {
        if !self.complete_body.is_empty() {
            let whole = std::mem::take(&mut self.complete_body);
            self.flow.incoming.body().bytes.replace(whole);
        }
    }

    /// Releases the head and the body that arrived with it.
    pub(super) fn take_request(&mut self) {
        if self.complete_body.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.complete_body).len() as u32; // at most HTTP2_WHOLE_MAX
        self.flow.incoming.state.set(Receiving::Whole);
        self.session.release_quietly(&self.flow, bytes);
    }

    pub(super) fn cut_off(&mut self, code: Code) {
        self.session.cut_off(&self.flow, code);
    }

    pub(crate) fn limit_body(&mut self, bytes_max: u64) {
        if self.framing == Framing::Chunked {
            self.flow.incoming.body().bytes_max.set(bytes_max);
        }
    }

    /// Whether no written bytes wait for the client's windows.
    pub(crate) fn is_flushed(&self) -> bool {
        self.flow.is_flushed()
    }

    /// Waits without a task, for the server or the end of the stream.
    pub(crate) fn park(&self, parked: Rc<dyn Parked>) {
        self.flow.waiter.park(parked);
    }

    /// Rejects the stream because its fields are not a valid request.
    pub(crate) fn reject(&mut self, reason: &'static str) {
        if let Some(stream) = self.flow.stream.get() {
            self.session.reject(stream, reason);
        }
    }

    pub(crate) fn split(&mut self) -> (RequestBody<'_>, reply::ReplyWriter<'_>) {
        let body = Body::new(&self.session, &self.flow, self.framing);
        let to = Reply::new(&self.session, &self.flow);
        (RequestBody::Http2(body), reply::ReplyWriter::Http2(to))
    }

    /// Writer of a response that is not from a route.
    pub(crate) fn reply_writer(&self) -> reply::ReplyWriter<'_> {
        reply::ReplyWriter::Http2(Reply::new(&self.session, &self.flow))
    }

    /// Bytes of the response written so far.
    pub(crate) fn written(&self) -> u64 {
        self.flow.written()
    }

    /// Waits until the windows have taken all written bytes.
    pub(crate) fn flush(&self) -> impl Future<Output = Result<(), Error>> + use<> {
        self.session.flush(&self.flow)
    }

    pub(crate) fn is_reset(&self) -> bool {
        self.flow.is_reset.get()
    }

    pub(crate) fn poll_reset(&self, context: &Context<'_>) -> Poll<Error> {
        self.flow.poll_reset(context)
    }
}

/// The part of a body that arrived with its head: all of it (`whole`) or nothing.
fn arrived(framing: Framing, whole: &[u8]) -> ReceivedBody<'_> {
    match whole {
        b"" => ReceivedBody::Framed(BodyReader::new(framing), b""),
        whole => ReceivedBody::Whole(framing, whole),
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.take_head();
        if let Some(fields) = self.fields.take() {
            self.session.end_request(&self.flow, fields);
        }
    }
}
