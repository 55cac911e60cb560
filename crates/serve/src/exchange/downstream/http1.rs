//! The client side of an HTTP/1 connection. One request at a time; its head stays at the start of the input buffer.

use std::time::Duration;

use onrush_engine::{Error, Input, Kind};
use onrush_http::body::BodyReader;
use onrush_http::request::{self, RequestHead};
use onrush_http::{Framing, HeaderSlots, Limits, Parsed, Version};
use onrush_tls::Transport;

use super::request_body::{ReceivedBody, RequestBody};
use crate::exchange::output::{BodyFraming, Output};
use crate::exchange::reply;
use crate::exchange::reply::http1::{Ending, Reply, RequestConnection};
use crate::worker::Worker;

pub(crate) struct Http1 {
    pub(crate) stream: Transport,
    /// Received bytes not yet consumed. They start with the next head, or with the rest of `unread`.
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// Reader of the current request body, or of the unread rest of the previous one.
    pub(crate) unread: BodyReader,
    /// How many bytes of an unwanted body are read before the connection is closed.
    pub(crate) unread_max: u32,
    /// Length of the current head while it is in the input; else 0.
    head_bytes: u32,
    version: Version,
    /// Whether the current request wants a persistent connection.
    keep_alive: bool,
    /// Fate of the connection after all output is sent.
    pub(crate) ending: Ending,
}

/// A request whose head is complete.
pub(crate) struct Request<'h, 'b> {
    pub(crate) head: RequestHead<'h, 'b>,
    pub(crate) arrived: ReceivedBody<'b>,
    pub(crate) stream: &'b Transport,
    /// Writer of the response.
    pub(crate) to: reply::ReplyWriter<'b>,
}

/// No limit for reading an unwanted body.
pub(crate) const UNREAD_UNLIMITED: u32 = u32::MAX;

impl Http1 {
    pub(crate) fn new(stream: Transport, input: Input) -> Self {
        Self {
            stream,
            input,
            output: Output::default(),
            unread: BodyReader::new(Framing::None),
            unread_max: UNREAD_UNLIMITED,
            head_bytes: 0,
            version: Version::Http11,
            keep_alive: false,
            ending: Ending::Open,
        }
    }

    /// Parses the next head at the start of the input and makes its request the current one.
    #[inline]
    pub(crate) fn next_request<'h, 'b>(
        &'b mut self,
        slots: &'h mut HeaderSlots<'b>,
        limits: &Limits,
    ) -> Parsed<Request<'h, 'b>> {
        let head = match request::parse(self.input.bytes(), slots, limits) {
            Parsed::Complete(head) => head,
            Parsed::Partial => return Parsed::Partial,
            Parsed::Refused(refusal) => return Parsed::Refused(refusal),
        };
        self.version = head.version;
        self.keep_alive = head.keep_alive;
        self.head_bytes = head.bytes as u32;
        self.unread = BodyReader::new(head.framing);
        self.unread_max = UNREAD_UNLIMITED;
        self.output.begin_response();
        let asked = RequestConnection {
            version: head.version,
            keep_alive: head.keep_alive,
            is_followed: head.framing == Framing::None && self.input.bytes().len() > head.bytes,
        };
        Parsed::Complete(Request {
            arrived: ReceivedBody::Framed(self.unread, &self.input.bytes()[head.bytes..]),
            head,
            stream: &self.stream,
            to: reply::ReplyWriter::Http1(Reply::new(
                &self.stream,
                &mut self.output,
                &mut self.ending,
                asked,
            )),
        })
    }

    /// Prepares a response in HTTP/1.1 to input that is not a request.
    pub(crate) fn begin_refusal(&mut self) {
        self.version = Version::Http11;
        self.keep_alive = false;
        self.output.begin_response();
    }

    /// Facts about the connection from the current request.
    #[inline]
    fn asked(&self) -> RequestConnection {
        RequestConnection {
            version: self.version,
            keep_alive: self.keep_alive,
            is_followed: self.unread.is_complete()
                && self.input.bytes().len() > self.head_bytes as usize,
        }
    }

    pub(super) fn head<'h, 'b>(
        &'b self,
        slots: &'h mut HeaderSlots<'b>,
        limits: &Limits,
    ) -> RequestHead<'h, 'b> {
        match request::parse(self.input.bytes(), slots, limits) {
            Parsed::Complete(head) => head,
            Parsed::Partial | Parsed::Refused(_) => {
                unreachable!("it was complete when its route was chosen, and is still there")
            }
        }
    }

    pub(super) fn arrived(&self) -> ReceivedBody<'_> {
        ReceivedBody::Framed(self.unread, &self.input.bytes()[self.head_bytes as usize..])
    }

    /// Releases the head of the current request.
    pub(crate) fn take_head(&mut self) {
        self.input.consume(self.head_bytes as usize);
        self.head_bytes = 0;
    }

    /// Releases the head of the current request and its body of `bytes` bytes.
    pub(super) fn take_request(&mut self, bytes: usize) {
        self.input.consume(self.head_bytes as usize + bytes);
        self.head_bytes = 0;
        self.unread = BodyReader::new(Framing::None);
    }

    /// Discards the received part of an unwanted body. Returns whether the body is complete.
    pub(crate) fn skip_unread(&mut self, worker: &Worker) -> bool {
        let bytes = match self.unread.skip(self.input.bytes(), &worker.limits) {
            Ok(bytes) => bytes,
            // The response is already written, so only close.
            Err(refusal) => {
                if refusal.status != 413 {
                    worker.meter.invalid_input();
                }
                self.close();
                return false;
            }
        };
        self.input.consume(bytes);
        if self.unread_max != UNREAD_UNLIMITED {
            self.unread_max = self.unread_max.saturating_sub(bytes as u32);
        }
        let is_complete = self.unread.is_complete();
        if !is_complete && self.unread_max == 0 {
            self.close();
        }
        is_complete
    }

    /// Closes the connection after the output is sent.
    pub(crate) fn close(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Close;
        }
    }

    /// Cuts off a partly written response. Needs a reset if an orderly close would mark the body as complete.
    pub(super) fn cut_off(&mut self) {
        self.ending = match self.output.body {
            BodyFraming::UntilClose => Ending::Reset,
            BodyFraming::Plain | BodyFraming::Chunked => Ending::Close,
        };
    }

    /// Sends all written bytes. Times out if the client accepts nothing for `patience`.
    pub(crate) fn flush(&mut self, patience: Duration) -> impl Future<Output = Result<(), Error>> {
        self.stream.set_send_patience(patience);
        self.output.flush(&self.stream)
    }

    pub(super) fn split(&mut self) -> (RequestBody<'_>, reply::ReplyWriter<'_>) {
        let asked = self.asked();
        let Self {
            stream,
            input,
            output,
            unread,
            ending,
            ..
        } = self;
        let body = RequestBody::Http1 {
            stream,
            input,
            reader: unread,
        };
        let to = Reply::new(stream, output, ending, asked);
        (body, reply::ReplyWriter::Http1(to))
    }

    /// Waits up to `idle` for the next request instead of the usual time.
    pub(super) async fn wait_for_next(
        &mut self,
        idle: Duration,
        worker: &Worker,
    ) -> Result<(), Error> {
        if self.ending != Ending::Open || !self.input.is_empty() || !self.unread.is_complete() {
            return Ok(());
        }
        self.stream.set_deadline(Some(worker.core.now() + idle));
        match self.stream.recv_unless_stopping(&mut self.input).await {
            Ok(0) => self.close(),
            Ok(_) => {}
            Err(error) if error.kind == Kind::TimedOut => self.close(),
            // The code that closes idle connections on shutdown also closes this one.
            Err(error) if error.kind == Kind::Stopping => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
