//! One stream as the client's task and the connection's see it: what of the request's body is still to be sent, and what of the
//! response has come and nobody has taken.

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

/// The two directions of a stream.
#[derive(Default)]
pub(super) struct Flow {
    /// Which one; none as long as it waits for one, and when it is over.
    pub(super) stream: Cell<Option<Stream>>,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Since when it has waited for a stream, while it does.
    pub(super) queued_since: Cell<Option<Instant>>,
    /// By when something has to happen.
    pub(super) deadline: Cell<Instant>,
    /// Why there will be no response, or no more of it.
    pub(super) failure: Cell<Option<Failure>>,
    /// The client's request, while it waits.
    pub(super) waiter: Waiter,
}

/// A request on its way out.
#[derive(Default)]
pub(super) struct Outgoing {
    /// That of its request; none before there is one.
    pub(super) method: Cell<Option<Method>>,
    pub(super) sensitivity: Cell<Sensitivity>,
    pub(super) state: Cell<Sending>,
    /// Most requests have no body, and a stream at once.
    held: OnDemand<Held>,
}

/// What of a request is not sent.
#[derive(Default)]
pub(super) struct Held {
    /// Its head as text, as long as it waits for a stream.
    pub(super) head: RefCell<Vec<u8>>,
    /// What of its body is to be sent, of which so many bytes are sent already.
    pub(super) body: RefCell<Vec<u8>>,
    pub(super) sent: Cell<usize>,
    /// Lines of trailers, which stand behind the body.
    pub(super) trailers: RefCell<Vec<u8>>,
}

impl Held {
    /// Bytes of the body.
    pub(super) fn unsent(&self) -> usize {
        self.body.borrow().len() - self.sent.get()
    }
}

impl Outgoing {
    /// What is not sent.
    pub(super) fn held(&self) -> &Held {
        self.held.used()
    }

    /// Bytes of the body that are not sent.
    pub(super) fn unsent(&self) -> usize {
        self.held.get().map_or(0, Held::unsent)
    }
}

/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Sending {
    /// More of its body may come.
    Open,
    /// Nothing comes behind what waits.
    Ends,
    /// Its end is written, or the server wants no more of it.
    #[default]
    Ended,
}

/// A response on its way in.
#[derive(Default)]
pub(super) struct Incoming {
    /// Heads: interim ones, and the final one.
    pub(super) heads: RefCell<VecDeque<(Box<FieldSection>, End)>>,
    pub(super) data: RefCell<Vec<u8>>,
    /// Lines of trailers.
    pub(super) trailers: OnDemand<RefCell<Vec<u8>>>,
    pub(super) has_ended: Cell<bool>,
}

impl Incoming {
    /// Appends data. The capacity doubles up to one window, which bounds what waits.
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
    /// What was of a stream that is over is forgotten, so that it may be used for another.
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
        // The next response may be a small one.
        if incoming.data.borrow().capacity() > DATA_KEPT_MAX {
            incoming.data.take();
        }
        incoming.data.borrow_mut().clear();
        if let Some(lines) = incoming.trailers.get() {
            lines.take();
        }
        incoming.has_ended.set(false);
    }

    /// What the response may have.
    pub(super) fn content(&self) -> Content {
        match self.outgoing.method.get() {
            Some(Method::Head) => Content::None,
            Some(Method::Connect) => Content::Tunnel,
            Some(_) | None => Content::Any,
        }
    }

    /// Whether it is this stream's.
    pub(super) fn is_of(&self, stream: Stream) -> bool {
        self.stream.get() == Some(stream)
    }

    /// There will be no more of the response, unless all of it is there.
    pub(super) fn fail(&self, failure: Failure) {
        self.outgoing.state.set(Sending::Ended);
        if !self.incoming.has_ended.get() && self.failure.get().is_none() {
            self.failure.set(Some(failure));
        }
        self.wake();
    }

    /// It has its stream, which a request waits for whose body follows.
    pub(super) fn opened(&self) {
        if self.outgoing.state.get() == Sending::Open {
            self.wake();
        }
    }

    /// Wakes the client's task.
    pub(super) fn wake(&self) {
        self.waiter.wake();
    }

    /// The client's task waits for what happens here next.
    pub(super) fn wait(&self, context: &Context<'_>) {
        self.waiter.wait(context);
    }

    /// Whether all of the body that was given has left, or never will.
    pub(super) fn has_sent(&self) -> bool {
        let is_over = self.outgoing.state.get() == Sending::Ended;
        is_over || self.outgoing.unsent() == 0
    }
}

/// Bytes of room for data that a stream leaves to the next one: a usual response of an API.
const DATA_KEPT_MAX: usize = 4096;
