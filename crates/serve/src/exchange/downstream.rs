//! The client of one request, whatever the protocol that it speaks: its request is read from it, and its response is
//! written to it.
//!
//! The protocols are a closed enum, not a trait, which would make every function of the proxy generic. Responses get
//! a `Downstream` or a `Reply` with the exchange to read, not to end: only a connection ends a request.

pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod request_body;

use std::cell::OnceCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use onrush_engine::Error;
use onrush_http::http2::code::Code;
use onrush_http::request::RequestHead;
use onrush_http::{HeaderSlots, Method};
use onrush_tls::Transport;

use crate::exchange::Exchange;
use crate::exchange::hangup::unless_hung_up;
use crate::exchange::reply::{Persistence, Reply};
use crate::exchange::request_context::{RequestContext, Source};
use crate::routing::client::{Client, ClientOrigin};
use crate::worker::Worker;
use http1::Http1;
use request_body::{Arrived, RequestBody};

/// The client of the request in `exchange`.
pub(crate) struct Downstream<'c> {
    pub(crate) worker: &'c Rc<Worker>,
    pub(crate) client: &'c Client,
    pub(crate) exchange: &'c mut Exchange,
    pub(crate) side: Side<'c>,
    /// Where the request comes from, once somebody has asked.
    pub(crate) origin: OnceCell<ClientOrigin>,
}

/// One for each protocol.
pub(crate) enum Side<'c> {
    Http1(&'c mut Http1),
    Http2(&'c mut http2::Stream),
}

impl Downstream<'_> {
    /// Who asks, and which way the request goes.
    pub(crate) fn context(&self) -> RequestContext<'_> {
        let source = Source {
            worker: self.worker,
            client: self.client,
            stream: self.stream(),
            origin: &self.origin,
        };
        source.of(self.exchange)
    }

    /// The client's connection.
    pub(crate) fn stream(&self) -> &Transport {
        match &self.side {
            Side::Http1(side) => &side.stream,
            Side::Http2(side) => side.transport(),
        }
    }

    /// The request's head, until [`Downstream::head_is_sent`].
    pub(crate) fn head<'h, 'b>(&'b self, slots: &'h mut HeaderSlots<'b>) -> RequestHead<'h, 'b> {
        match &self.side {
            Side::Http1(side) => side.head(slots, &self.worker.limits),
            Side::Http2(side) => side.head(slots, &self.worker.limits),
        }
    }

    /// What has come of the body, while the head is there.
    pub(crate) fn arrived(&self) -> Arrived<'_> {
        match &self.side {
            Side::Http1(side) => side.arrived(),
            Side::Http2(side) => side.arrived(),
        }
    }

    /// The head is not needed any more; the body follows.
    pub(crate) fn head_is_sent(&mut self) {
        match &mut self.side {
            Side::Http1(side) => side.take_head(),
            Side::Http2(side) => side.take_head(),
        }
    }

    /// Neither the head is needed any more nor the first `bytes` of what had arrived behind it, which are the whole body.
    pub(crate) fn request_is_sent(&mut self, bytes: u32) {
        match &mut self.side {
            Side::Http1(side) => side.take_request(bytes as usize),
            Side::Http2(side) => side.take_request(),
        }
    }

    /// Nobody wants the rest of the body, which is so many bytes at most if its connection is to go on.
    pub(crate) fn leave_body(&mut self, bytes_max: u32) {
        match &mut self.side {
            Side::Http1(side) => side.unread_max = bytes_max,
            // Its stream is reset.
            Side::Http2(_) => {}
        }
    }

    /// Throws away what has arrived of a body that nobody wants; whether all of it has.
    pub(crate) fn skip_body(&mut self) -> bool {
        match &mut self.side {
            Side::Http1(side) => side.skip_unread(self.worker),
            Side::Http2(_) => true,
        }
    }

    /// Whether responses to requests before this one are written and not sent.
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.side {
            Side::Http1(side) => !side.output.is_empty(),
            Side::Http2(_) => false,
        }
    }

    /// Sends what is written.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        let patience = self.exchange.timeouts().client_send;
        match &mut self.side {
            Side::Http1(side) => side.flush(patience).await,
            Side::Http2(side) => side.flush().await,
        }
    }

    /// Waits for the next request for `idle` where requests follow each other on a connection.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) async fn wait_for_next(&mut self, idle: Duration) -> Result<(), Error> {
        self.flush().await?;
        match &mut self.side {
            Side::Http1(side) => side.wait_for_next(idle, self.worker).await,
            Side::Http2(_) => Ok(()),
        }
    }

    /// The response is cut off in its middle: the client must see that it is not whole. Clients of HTTP/2 see it by a reset with this
    /// code.
    pub(crate) fn cut_off(&mut self, code: Code) {
        self.exchange.record().cut_off();
        match &mut self.side {
            Side::Http1(side) => side.cut_off(),
            Side::Http2(side) => side.cut_off(code),
        }
    }

    /// Whether a request can end by a reset of its stream (RFC 9113 6.4).
    pub(crate) fn has_streams(&self) -> bool {
        match &self.side {
            Side::Http2(_) => true,
            Side::Http1(_) => false,
        }
    }

    /// Where a response is written that leaves the connection so.
    pub(crate) fn reply(&mut self, method: Method, persistence: Persistence) -> Reply<'_> {
        let mut reply = self.split(method).1;
        reply.persist(persistence);
        reply
    }

    /// Where the body is read, and where the response is written: both at once.
    pub(crate) fn split(&mut self, method: Method) -> (RequestBody<'_>, Reply<'_>) {
        let (body, to) = match &mut self.side {
            Side::Http1(side) => side.split(),
            Side::Http2(side) => side.split(),
        };
        (body, Reply::new(self.worker, self.exchange, method, to))
    }

    /// What comes of `work`, unless the client hangs up before.
    ///
    /// # Errors
    /// How the client has ended. The work is dropped then.
    #[inline]
    pub(crate) fn unless_hung_up<F: Future + Unpin>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Error>> {
        unless_hung_up(|context| self.poll_hung_up(context), work)
    }

    fn poll_hung_up(&self, context: &Context<'_>) -> Poll<Error> {
        match &self.side {
            Side::Http1(side) => side.stream.poll_hung_up(),
            Side::Http2(side) => side.poll_reset(context),
        }
    }
}
