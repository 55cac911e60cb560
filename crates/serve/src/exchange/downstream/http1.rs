//! The client's side of a connection that speaks HTTP/1: one request at a time, at the start of what has been received.

use std::time::Duration;

use onrush_engine::{Error, Input, Kind};
use onrush_http::body::BodyReader;
use onrush_http::request::{self, RequestHead};
use onrush_http::{Framing, HeaderSlots, Limits, Parsed, Version};
use onrush_tls::Transport;

use super::request_body::{Arrived, RequestBody};
use crate::exchange::output::{BodyFraming, Output};
use crate::exchange::reply;
use crate::exchange::reply::http1::{Asked, Ending, Reply};
use crate::worker::Worker;

pub(crate) struct Http1 {
    pub(crate) stream: Transport,
    /// Received, not consumed: at its start stands the next head, or the rest of `unread`.
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// The body of the request in hand, or of the last one as far as nobody wanted it.
    pub(crate) unread: BodyReader,
    /// How much of it is read at most when nobody wants it; then the connection ends.
    pub(crate) unread_max: u32,
    /// Length of the head of the request in hand, while it stands in the input.
    head_bytes: u32,
    version: Version,
    /// Whether the request in hand wants the connection to live on.
    asks_to_keep: bool,
    /// What becomes of the connection behind what is written.
    pub(crate) ending: Ending,
}

/// A request that has arrived, as far as it has.
pub(crate) struct Request<'h, 'b> {
    pub(crate) head: RequestHead<'h, 'b>,
    pub(crate) arrived: Arrived<'b>,
    /// Its connection.
    pub(crate) stream: &'b Transport,
    /// Where its response is written.
    pub(crate) to: reply::To<'b>,
}

/// No bound on what is read of a body that nobody wants.
pub(crate) const ALL_OF_IT: u32 = u32::MAX;

impl Http1 {
    /// The side of `stream`, of which `input` has come already.
    pub(crate) fn new(stream: Transport, input: Input) -> Self {
        Self {
            stream,
            input,
            output: Output::default(),
            unread: BodyReader::new(Framing::None),
            unread_max: ALL_OF_IT,
            head_bytes: 0,
            version: Version::Http11,
            asks_to_keep: false,
            ending: Ending::Open,
        }
    }

    /// The request at the start of the input, which is in hand then.
    #[inline]
    pub(crate) fn next<'h, 'b>(
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
        self.asks_to_keep = head.keep_alive;
        self.head_bytes = head.bytes as u32;
        self.unread = BodyReader::new(head.framing);
        self.unread_max = ALL_OF_IT;
        self.output.begin_response();
        let asked = Asked {
            version: head.version,
            keep_alive: head.keep_alive,
            is_followed: head.framing == Framing::None && self.input.bytes().len() > head.bytes,
        };
        Parsed::Complete(Request {
            arrived: Arrived::Framed(self.unread, &self.input.bytes()[head.bytes..]),
            head,
            stream: &self.stream,
            to: reply::To::Http1(Reply::new(
                &self.stream,
                &mut self.output,
                &mut self.ending,
                asked,
            )),
        })
    }

    /// What stands at the start of the input is no request: the response to it is in HTTP/1.1.
    pub(crate) fn begin_refusal(&mut self) {
        self.version = Version::Http11;
        self.asks_to_keep = false;
        self.output.begin_response();
    }

    /// What the request in hand says of the connection.
    #[inline]
    fn asked(&self) -> Asked {
        Asked {
            version: self.version,
            keep_alive: self.asks_to_keep,
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

    pub(super) fn arrived(&self) -> Arrived<'_> {
        Arrived::Framed(self.unread, &self.input.bytes()[self.head_bytes as usize..])
    }

    /// The head of the request in hand is dealt with.
    pub(crate) fn take_head(&mut self) {
        self.input.consume(self.head_bytes as usize);
        self.head_bytes = 0;
    }

    /// So is all of the request, whose body had these `bytes`.
    pub(super) fn take_request(&mut self, bytes: usize) {
        self.input.consume(self.head_bytes as usize + bytes);
        self.head_bytes = 0;
        self.unread = BodyReader::new(Framing::None);
    }

    /// Throws away what has arrived of a body that nobody wants; whether all of it has.
    pub(crate) fn skip_unread(&mut self, worker: &Worker) -> bool {
        let bytes = match self.unread.skip(self.input.bytes(), &worker.limits) {
            Ok(bytes) => bytes,
            // Its response is written already; all that is left is to end.
            Err(refusal) => {
                if refusal.status != 413 {
                    worker.meter.garbage();
                }
                self.close();
                return false;
            }
        };
        self.input.consume(bytes);
        if self.unread_max != ALL_OF_IT {
            self.unread_max = self.unread_max.saturating_sub(bytes as u32);
        }
        let is_complete = self.unread.is_complete();
        if !is_complete && self.unread_max == 0 {
            self.close();
        }
        is_complete
    }

    /// The connection ends behind what is written.
    pub(crate) fn close(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Close;
        }
    }

    /// The last response is half written: when an orderly end would say that it is whole, only a reset says that it is not.
    pub(super) fn cut_off(&mut self) {
        self.ending = match self.output.body {
            BodyFraming::UntilClose => Ending::Reset,
            BodyFraming::Plain | BodyFraming::Chunked => Ending::Close,
        };
    }

    /// Sends what is written, to a client that may take `patience` for each byte.
    pub(crate) fn flush(&mut self, patience: Duration) -> impl Future<Output = Result<(), Error>> {
        self.stream.set_send_patience(patience);
        self.output.flush(&self.stream)
    }

    pub(super) fn split(&mut self) -> (RequestBody<'_>, reply::To<'_>) {
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
        (body, reply::To::Http1(to))
    }

    /// Waits for the next request for `idle`, and not for the usual time.
    ///
    /// # Errors
    /// Those of the connection.
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
            // Who ends the others that are idle ends this one, too.
            Err(error) if error.kind == Kind::Stopping => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
