//! The response to one request on its way to its client: what it is, not how it is written. Each protocol that clients
//! speak has a file of its own for that.
//!
//! ```text
//!   head ──> data, data, … ──> end        at any time: flush
//! ```

pub(crate) mod fields;
pub(crate) mod http1;
pub(crate) mod http2;
mod length;
mod outcome;
mod pairs;
mod verbatim;
mod waits;

use std::time::Duration;

use onrush_engine::{Error, File, Input, Part};
use onrush_http::Method;
use onrush_http::http2::hpack::Sensitivity;
use onrush_http::response::ResponseHead;

use crate::exchange::Exchange;
use crate::exchange::rendered::Rendered;
use crate::rules::response_edits::Applied;
use crate::worker::Worker;
use fields::{Fields, MadeOf};
pub(crate) use outcome::{Interim, Passage, Persistence, TooLarge};

/// Where the response to one request is written.
pub(crate) struct Reply<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) exchange: &'a Exchange,
    pub(crate) method: Method,
    /// What the route changes in responses of our own.
    edits: Option<Applied<'a>>,
    to: To<'a>,
}

/// One for each protocol.
pub(crate) enum To<'a> {
    Http1(http1::Reply<'a>),
    Http2(http2::Reply<'a>),
}

impl To<'_> {
    /// Bytes of the response written so far.
    fn written(&self) -> u64 {
        match self {
            To::Http1(to) => to.written(),
            To::Http2(to) => to.written(),
            // This variant does not count bytes.
        }
    }
}

impl<'a> Reply<'a> {
    #[inline]
    pub(crate) fn new(
        worker: &'a Worker,
        exchange: &'a Exchange,
        method: Method,
        to: To<'a>,
    ) -> Self {
        Self {
            worker,
            exchange,
            method,
            edits: exchange.response_edits(""),
            to,
        }
    }

    /// Decides what becomes of the connection behind the response.
    #[inline]
    pub(crate) fn persist(&mut self, persistence: Persistence) {
        match &mut self.to {
            To::Http1(to) => to.persist(persistence, self.worker),
            // The connection outlives it.
            To::Http2(_) => {}
        }
    }

    /// What is written next is an error of our own, and no response of the route: the lines that it gets all the same.
    pub(crate) fn says_error(&mut self) -> &'a [u8] {
        self.edits = self.edits.and_then(Applied::for_errors);
        match self.edits.is_some_and(|edits| edits.change_fields()) {
            true => &[],
            false => self.exchange.lines_of_origins(),
        }
    }

    /// What the route changes in a response of our own with this status.
    #[inline]
    fn edits_of(&self, status: u16) -> Option<Applied<'a>> {
        self.edits.and_then(|edits| edits.for_status(status, None))
    }

    /// Writes the head of a response of our own, of at most a buffer; `fields` writes all but what every response has.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn head(
        &mut self,
        status: u16,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), Error> {
        self.edited_head(status, self.edits_of(status), fields)
    }

    /// [`Reply::head`] of a response that stands for one of the type `media`, which its fields do not say.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn head_of_type(
        &mut self,
        status: u16,
        media: &str,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), Error> {
        let edits = self.edits;
        let edits = edits.and_then(|edits| edits.for_status(status, Some(media)));
        self.edited_head(status, edits, fields)
    }

    fn edited_head(
        &mut self,
        status: u16,
        edits: Option<Applied<'_>>,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.head((status, self.method), self.worker, edits, fields)?,
            To::Http2(to) => to.head((status, self.method), self.worker, edits, fields),
        }
        self.exchange
            .responds(status, self.to.written(), self.worker);
        Ok(())
    }

    /// Whether [`Reply::rendered`] writes what this client gets: a protocol without a form of its own for what is rendered
    /// writes a head instead.
    #[inline]
    pub(crate) fn takes_rendered(&self) -> bool {
        match &self.to {
            To::Http1(to) => to.is_usual(),
            To::Http2(_) => self.edits.is_none(),
        }
    }

    /// Writes a response that has been rendered, where [`Reply::takes_rendered`].
    ///
    /// # Errors
    /// When the core is out of buffers.
    #[inline]
    pub(crate) fn rendered(&mut self, status: u16, rendered: &Rendered) -> Result<(), Error> {
        let edits = match self.edits.is_some() {
            true => self.edits_of(status),
            false => None,
        };
        self.exchange.record().respond(status);
        match &mut self.to {
            To::Http1(to) => {
                to.rendered(rendered, self.worker, edits)?;
                if let Some(entry) = self.exchange.entry() {
                    entry.end_head(to.written() - rendered.body_length() as u64);
                }
            }
            To::Http2(to) => {
                debug_assert!(edits.is_none(), "it takes none that are edited");
                let head_end = to.rendered(status, rendered, self.worker);
                self.exchange.responds(status, head_end, self.worker);
            }
        }
        Ok(())
    }

    /// Writes the head of a server's response; `fields` writes what passes and what is added, in `room` bytes at most beside
    /// what `edits` add.
    ///
    /// # Errors
    /// When the core is out of buffers; within, when the room is not enough, and nothing is written.
    pub(crate) fn forwarded_head(
        &mut self,
        head: &ResponseHead<'_, '_>,
        (edits, made_of): (Option<Applied<'_>>, MadeOf),
        room: usize,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<Result<(), TooLarge>, Error> {
        let written = match &mut self.to {
            To::Http1(to) => to.forwarded_head(head, edits, room, fields)?,
            To::Http2(to) => to.forwarded_head((head, self.method), (edits, made_of), fields),
        };
        if written.is_ok() {
            self.exchange
                .responds(head.status, self.to.written(), self.worker);
        }
        Ok(written)
    }

    /// Writes the head of an interim response (1xx), if the client understands any; whether it does.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn interim(
        &mut self,
        head: &ResponseHead<'_, '_>,
        room: usize,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<Interim, Error> {
        match &mut self.to {
            To::Http1(to) => to.interim(head, room, fields),
            To::Http2(to) => Ok(to.interim((head.status, head.sensitivity), fields)),
        }
    }

    /// Asks the client for the body that it holds back (RFC 9110 10.1.1).
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn proceed(&mut self) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.raw(b"HTTP/1.1 100 Continue\r\n\r\n"),
            To::Http2(to) => {
                to.interim((100, Sensitivity::Usual), |_| {});
                Ok(())
            }
        }
    }

    /// Appends bytes of the body.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.data(bytes),
            To::Http2(to) => to.data(bytes),
        }
    }

    /// Appends a part of the body without copying it.
    pub(crate) fn part(&mut self, part: Part) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.part(part),
            To::Http2(to) => to.part(part),
        }
    }

    /// Moves the first `bytes` of `input` into the body, without a copy when that is all of it and it is worth it.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn data_from(&mut self, input: &mut Input, bytes: usize) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.data_from(input, bytes),
            To::Http2(to) => to.data_from(input, bytes),
        }
    }

    /// Has `fill` write bytes of the body into room of at least `room_min` bytes, and say how many.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn fill(
        &mut self,
        room_min: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.fill(room_min, fill),
            To::Http2(to) => to.fill(fill),
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    /// When the core is out of buffers.
    #[inline]
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.end(),
            To::Http2(to) => to.end(),
        }
    }

    /// Ends the data of the body: what follows are its trailers, by [`Reply::trailers`].
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn end_data(&mut self) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.end_data(),
            To::Http2(_) => Ok(()),
        }
    }

    /// Appends lines of trailers, the last of which is empty and ends the body. Who cannot get any gets none.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn trailers(&mut self, lines: &[u8]) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.trailers(lines),
            To::Http2(to) => to.trailers(lines),
        }
    }

    /// Sends what is written, to a client that may take `patience` for each of its bytes.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) async fn flush(&mut self, patience: Duration) -> Result<(), Error> {
        match &mut self.to {
            To::Http1(to) => to.flush(patience).await,
            To::Http2(to) => to.flush_within(patience).await,
        }
    }

    /// Sends what is written, and behind it some of `length` bytes of `file` from `offset` on; how many.
    ///
    /// # Errors
    /// Those of the file and of the connection.
    pub(crate) async fn file(
        &mut self,
        file: &File,
        (offset, length): (u64, u64),
        patience: Duration,
    ) -> Result<u64, Error> {
        match &mut self.to {
            To::Http1(to) => to.file(file, (offset, length), patience, self.worker).await,
            To::Http2(to) => to.file(file, (offset, length)).await,
        }
    }
}
