//! One stream, shared by the tasks of client and connection: the unsent request, and the response not yet taken.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::Context;

use onrush_engine::Instant;
use onrush_http::Method;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::Sensitivity;
use onrush_http::http2::{Content, End, Stream};

use crate::limits::MULTIPLEXED_WINDOW;
use crate::proxy::failure::Failure;
use crate::worker::on_demand::OnDemand;
use crate::worker::waiter::Waiter;

#[derive(Default)]
pub(super) struct Flow {
    /// `None` while it waits for a stream and after the stream has ended.
    pub(super) stream: Cell<Option<Stream>>,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Start of its wait for a stream, while it waits.
    pub(super) queued_since: Cell<Option<Instant>>,
    /// Deadline of the next event.
    pub(super) deadline: Cell<Instant>,
    /// Why the response will not arrive or not be completed.
    pub(super) failure: Cell<Option<Failure>>,
    /// The client's request, while it waits.
    pub(super) waiter: Waiter,
}

/// The request direction of a stream.
#[derive(Default)]
pub(super) struct Outgoing {
    /// Method of the request; `None` without one.
    pub(super) method: Cell<Option<Method>>,
    pub(super) sensitivity: Cell<Sensitivity>,
    pub(super) state: Cell<Sending>,
    /// Allocated on demand: most requests have no body and get a stream at once.
    held: OnDemand<UnsentRequest>,
}

/// The unsent part of a request.
#[derive(Default)]
pub(super) struct UnsentRequest {
    /// The head as text, while the request waits for a stream.
    pub(super) head: RefCell<Vec<u8>>,
    /// The written body, and the number of its bytes already sent.
    pub(super) body: RefCell<Vec<u8>>,
    pub(super) sent: Cell<usize>,
    pub(super) trailers: RefCell<Vec<u8>>,
}

impl UnsentRequest {
    pub(super) fn unsent(&self) -> usize {
        self.body.borrow().len() - self.sent.get()
    }
}

impl Outgoing {
    pub(super) fn held(&self) -> &UnsentRequest {
        self.held.get_or_default()
    }

    /// Number of bytes of the body not yet sent.
    pub(super) fn unsent(&self) -> usize {
        self.held.get().map_or(0, UnsentRequest::unsent)
    }
}

/// State of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Sending {
    /// More of the body may be written.
    Open,
    /// The written part is the last one.
    Ends,
    /// The end has been sent, or the server accepts no more.
    #[default]
    Ended,
}

/// The response direction of a stream.
#[derive(Default)]
pub(super) struct Incoming {
    /// Interim heads and the final one.
    pub(super) heads: RefCell<VecDeque<(Box<FieldSection>, End)>>,
    pub(super) data: RefCell<Vec<u8>>,
    /// Lines of the trailers.
    pub(super) trailers: OnDemand<RefCell<Vec<u8>>>,
    pub(super) has_ended: Cell<bool>,
}

impl Incoming {
    /// Appends data. The capacity doubles up to one window, which also limits the data.
    pub(super) fn append(&self, bytes: &[u8]) {
        let mut data = self.data.borrow_mut();
        let needed = data.len() + bytes.len();
        if needed > data.capacity() {
            let room = (2 * data.capacity()).min(MULTIPLEXED_WINDOW as usize);
            let more = room.max(needed) - data.len();
            data.reserve_exact(more);
        }
        data.extend_from_slice(bytes);
    }
}

impl Flow {
    /// Resets a finished flow for reuse by another stream.
    pub(super) fn clear(&self) {
        let Flow {
            stream,
            outgoing,
            incoming,
            queued_since,
            deadline,
            failure,
            waiter,
        } = self;
        queued_since.set(None);
        stream.set(None);
        deadline.set(Instant::default());
        failure.set(None);
        waiter.clear();
        outgoing.state.set(Sending::Ended);
        if let Some(held) = outgoing.held.get() {
            held.head.take();
            held.body.take();
            held.sent.set(0);
            held.trailers.take();
        }
        incoming.heads.borrow_mut().clear();
        // The next response may be small.
        if incoming.data.borrow().capacity() > DATA_KEPT_MAX {
            incoming.data.take();
        }
        incoming.data.borrow_mut().clear();
        if let Some(lines) = incoming.trailers.get() {
            lines.take();
        }
        incoming.has_ended.set(false);
    }

    pub(super) fn content(&self) -> Content {
        match self.outgoing.method.get() {
            Some(Method::Head) => Content::None,
            Some(Method::Connect) => Content::Tunnel,
            Some(_) | None => Content::Any,
        }
    }

    pub(super) fn is_of(&self, stream: Stream) -> bool {
        self.stream.get() == Some(stream)
    }

    /// Fails the request, unless the response is complete.
    pub(super) fn fail(&self, failure: Failure) {
        self.outgoing.state.set(Sending::Ended);
        if !self.incoming.has_ended.get() && self.failure.get().is_none() {
            self.failure.set(Some(failure));
        }
        self.wake();
    }

    /// Wakes a request that waits for a stream to send its body on.
    pub(super) fn opened(&self) {
        if self.outgoing.state.get() == Sending::Open {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        self.waiter.wake();
    }

    /// Registers the client's task to be woken at the next event.
    pub(super) fn wait(&self, context: &Context<'_>) {
        self.waiter.wait(context);
    }

    /// Whether all that was written of the body has been sent or never will be.
    pub(super) fn has_sent(&self) -> bool {
        let is_over = self.outgoing.state.get() == Sending::Ended;
        is_over || self.outgoing.unsent() == 0
    }
}

/// Largest data buffer kept for the next stream, in bytes: enough for a typical API response.
const DATA_KEPT_MAX: usize = 4096;
