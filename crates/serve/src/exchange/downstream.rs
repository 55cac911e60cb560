//! The client side of one request, over HTTP/1 or HTTP/2: reads the request, writes the response.
//!
//! The protocols are a closed enum, not a trait, which would make every function of the proxy generic. Code that
//! responds can read the exchange but cannot end it: only a connection ends a request.

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
use crate::exchange::client_abort::unless_hung_up;
use crate::exchange::reply::{Persistence, Reply};
use crate::exchange::request_context::{RequestContext, Source};
use crate::routing::client::{Client, ClientOrigin};
use crate::worker::Worker;
use http1::Http1;
use request_body::{ReceivedBody, RequestBody};

pub(crate) struct Downstream<'c> {
    pub(crate) worker: &'c Rc<Worker>,
    pub(crate) client: &'c Client,
    pub(crate) exchange: &'c mut Exchange,
    pub(crate) side: ClientProtocol<'c>,
    /// The client's address and scheme, determined on first use.
    pub(crate) origin: OnceCell<ClientOrigin>,
}

/// The client's protocol.
pub(crate) enum ClientProtocol<'c> {
    Http1(&'c mut Http1),
    Http2(&'c mut http2::Stream),
}

impl Downstream<'_> {
    /// The client and route of the request.
    pub(crate) fn context(&self) -> RequestContext<'_> {
        let source = Source {
            worker: self.worker,
            client: self.client,
            stream: self.stream(),
            origin: &self.origin,
        };
        source.of(self.exchange)
    }

    pub(crate) fn stream(&self) -> &Transport {
        match &self.side {
            ClientProtocol::Http1(side) => &side.stream,
            ClientProtocol::Http2(side) => side.transport(),
        }
    }

    /// The request head, until [`Downstream::release_head`].
    pub(crate) fn head<'h, 'b>(&'b self, slots: &'h mut HeaderSlots<'b>) -> RequestHead<'h, 'b> {
        match &self.side {
            ClientProtocol::Http1(side) => side.head(slots, &self.worker.limits),
            ClientProtocol::Http2(side) => side.head(slots, &self.worker.limits),
        }
    }

    /// The part of the body that has arrived with the head.
    pub(crate) fn received_body(&self) -> ReceivedBody<'_> {
        match &self.side {
            ClientProtocol::Http1(side) => side.arrived(),
            ClientProtocol::Http2(side) => side.arrived(),
        }
    }

    /// Releases the head after it was forwarded; the body follows.
    pub(crate) fn release_head(&mut self) {
        match &mut self.side {
            ClientProtocol::Http1(side) => side.take_head(),
            ClientProtocol::Http2(side) => side.take_head(),
        }
    }

    /// Releases the head and the whole body of `bytes` bytes, which had arrived with it.
    pub(crate) fn release_request(&mut self, bytes: u32) {
        match &mut self.side {
            ClientProtocol::Http1(side) => side.take_request(bytes as usize),
            ClientProtocol::Http2(side) => side.take_request(),
        }
    }

    /// Discards the rest of the body. If more than `bytes_max` bytes follow, the connection is closed.
    pub(crate) fn discard_body(&mut self, bytes_max: u32) {
        match &mut self.side {
            ClientProtocol::Http1(side) => side.unread_max = bytes_max,
            // The stream is reset.
            ClientProtocol::Http2(_) => {}
        }
    }

    /// Discards the received part of an unwanted body. Returns whether the body is complete.
    pub(crate) fn skip_body(&mut self) -> bool {
        match &mut self.side {
            ClientProtocol::Http1(side) => side.skip_unread(self.worker),
            ClientProtocol::Http2(_) => true,
        }
    }

    /// Whether responses to earlier requests are written but not sent.
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.side {
            ClientProtocol::Http1(side) => !side.output.is_empty(),
            ClientProtocol::Http2(_) => false,
        }
    }

    /// Sends all written bytes.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        let patience = self.exchange.timeouts().client_send;
        match &mut self.side {
            ClientProtocol::Http1(side) => side.flush(patience).await,
            ClientProtocol::Http2(side) => side.flush().await,
        }
    }

    /// Sends all written bytes and, on HTTP/1, waits up to `idle` for the next request.
    pub(crate) async fn wait_for_next(&mut self, idle: Duration) -> Result<(), Error> {
        self.flush().await?;
        match &mut self.side {
            ClientProtocol::Http1(side) => side.wait_for_next(idle, self.worker).await,
            ClientProtocol::Http2(_) => Ok(()),
        }
    }

    /// Cuts off a partly written response so that the client detects it. HTTP/2 clients get a reset with `code`.
    pub(crate) fn cut_off(&mut self, code: Code) {
        self.exchange.record().cut_off();
        match &mut self.side {
            ClientProtocol::Http1(side) => side.cut_off(),
            ClientProtocol::Http2(side) => side.cut_off(code),
        }
    }

    /// Whether a request can end with a stream reset (RFC 9113 6.4).
    pub(crate) fn has_streams(&self) -> bool {
        match &self.side {
            ClientProtocol::Http2(_) => true,
            ClientProtocol::Http1(_) => false,
        }
    }

    /// The writer of the response; `persistence` applies to the connection after it.
    pub(crate) fn reply(&mut self, method: Method, persistence: Persistence) -> Reply<'_> {
        let mut reply = self.split(method).1;
        reply.set_persistence(persistence);
        reply
    }

    /// The reader of the body and the writer of the response, for use at the same time.
    pub(crate) fn split(&mut self, method: Method) -> (RequestBody<'_>, Reply<'_>) {
        let (body, to) = match &mut self.side {
            ClientProtocol::Http1(side) => side.split(),
            ClientProtocol::Http2(side) => side.split(),
        };
        (body, Reply::new(self.worker, self.exchange, method, to))
    }

    /// Runs `work` until it completes or the client hangs up.
    ///
    /// # Errors
    /// How the client's connection ended. The work is dropped.
    #[inline]
    pub(crate) fn unless_hung_up<F: Future + Unpin>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Error>> {
        unless_hung_up(|context| self.poll_hung_up(context), work)
    }

    fn poll_hung_up(&self, context: &Context<'_>) -> Poll<Error> {
        match &self.side {
            ClientProtocol::Http1(side) => side.stream.poll_hung_up(),
            ClientProtocol::Http2(side) => side.poll_reset(context),
        }
    }
}
