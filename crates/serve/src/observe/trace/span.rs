//! What a request has of a trace: whose part it is, and, where it is recorded, what became of it and of its attempts.

use std::cell::RefCell;
use std::num::{NonZeroU64, NonZeroU128};
use std::time::Duration;

use onrush_engine::{Address, Instant};
use onrush_http::Header;
use onrush_http::forwarded::Scheme;
use onrush_http::trace_context::{TraceParent, write_trace_state};
use onrush_http::write::HeadWriter;

use crate::observe::access_log::entry::Entry;
use crate::observe::record::{Class, End};
use crate::observe::trace::limits::ATTEMPTS_TRACED_MAX;

/// A request's part of a trace.
pub(crate) struct Trace {
    /// The trace, and the span that the request itself is.
    pub(super) own: TraceParent,
    /// The span that asks, where its trace is gone on with.
    pub(super) parent: Option<NonZeroU64>,
    /// What is recorded of it, if anything is.
    pub(crate) span: Option<Box<Span>>,
}

/// What is recorded of a request.
pub(crate) struct Span {
    /// Of its head.
    pub(crate) entry: Entry,
    pub(super) scheme: Scheme,
    /// What other systems say of the trace, as it was received: a field.
    pub(super) state: Vec<u8>,
    pub(super) attempts: RefCell<Vec<Attempt>>,
}

/// One time that a request was sent to a server, or was to be.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) id: NonZeroU64,
    /// As it is configured.
    pub(super) server: String,
    pub(super) address: Option<Address>,
    pub(super) began: Instant,
    /// How long a connection took to be made; none for one that was there.
    pub(super) connected: Option<Duration>,
    /// When the head of the response had come, and its status.
    pub(super) responded: Option<(Instant, u16)>,
    /// When it was over; none for the one that the request ends with.
    pub(super) ended: Option<Instant>,
    pub(super) failure: Option<Class>,
}

/// A request that has ended, for the collector.
pub(super) struct Finished {
    pub(super) own: TraceParent,
    pub(super) parent: Option<NonZeroU64>,
    pub(super) span: Box<Span>,
    pub(super) route: Option<String>,
    pub(super) group: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) failure: Option<Class>,
    pub(super) end: End,
    pub(super) is_tunnel: bool,
    /// When it began, by the core's clock.
    pub(super) began: Instant,
    pub(super) duration: Duration,
    /// What has to be added to the core's clock for the time since 1970.
    pub(super) clock: Duration,
}

impl Trace {
    /// The number of the trace.
    pub(crate) fn trace_id(&self) -> NonZeroU128 {
        self.own.trace
    }

    /// The number of the request's span.
    pub(crate) fn span_id(&self) -> NonZeroU64 {
        self.own.span
    }

    /// Writes the fields that a server gets, which asks as part of the attempt in hand; `headers` are the client's.
    pub(crate) fn write(&self, headers: &[Header<'_>], writer: &mut HeadWriter<'_>) {
        let attempt = self.span.as_ref().and_then(|span| span.attempt_in_hand());
        let parent = TraceParent {
            span: attempt.unwrap_or(self.own.span),
            ..self.own
        };
        writer.header("traceparent", &parent.text());
        // What others say of a trace that is not gone on with is about another one.
        if self.parent.is_some() {
            write_trace_state(headers, writer);
        }
    }
}

impl Span {
    /// Of a request with this head, and those of its fields that are called as in `names`.
    pub(super) fn new(entry: Entry, scheme: Scheme, state: Vec<u8>) -> Box<Self> {
        Box::new(Self {
            entry,
            scheme,
            state,
            attempts: RefCell::default(),
        })
    }

    fn attempt_in_hand(&self) -> Option<NonZeroU64> {
        let attempts = self.attempts.borrow();
        let last = attempts.last().filter(|last| last.ended.is_none());
        last.map(|last| last.id)
    }

    /// It is to be sent to this server, unless that has begun already.
    pub(crate) fn begin_attempt(
        &self,
        id: impl FnOnce() -> NonZeroU64,
        (server, address): (&str, impl FnOnce() -> Option<Address>),
        now: Instant,
    ) {
        let mut attempts = self.attempts.borrow_mut();
        if attempts.last().is_some_and(|last| last.ended.is_none())
            || attempts.len() == ATTEMPTS_TRACED_MAX
        {
            return;
        }
        attempts.push(Attempt {
            id: id(),
            server: server.to_owned(),
            address: address(),
            began: now,
            connected: None,
            responded: None,
            ended: None,
            failure: None,
        });
    }

    fn with_attempt(&self, change: impl FnOnce(&mut Attempt)) {
        let mut attempts = self.attempts.borrow_mut();
        attempts
            .last_mut()
            .filter(|last| last.ended.is_none())
            .map(change);
    }

    /// The connection for the attempt in hand took so long to be made, or to fail.
    pub(crate) fn connect(&self, duration: Duration) {
        self.with_attempt(|attempt| attempt.connected = Some(duration));
    }

    /// The head of its response has come.
    pub(crate) fn respond(&self, status: u16, now: Instant) {
        self.with_attempt(|attempt| attempt.responded = Some((now, status)));
    }

    /// The attempt in hand is over, and for this reason not what the client gets.
    pub(crate) fn fail_attempt(&self, failure: Option<Class>, now: Instant) {
        self.with_attempt(|attempt| {
            attempt.failure = failure;
            attempt.ended = Some(now);
        });
    }

    /// Bytes that it holds, about.
    pub(super) fn bytes(&self) -> usize {
        let attempts = self.attempts.borrow();
        let names: usize = attempts.iter().map(|attempt| attempt.server.len()).sum();
        size_of::<Finished>()
            + size_of::<Span>()
            + self.entry.bytes()
            + self.state.len()
            + attempts.len() * size_of::<Attempt>()
            + names
    }

    /// How many spans there are of it: its own, and one for each attempt.
    pub(super) fn count(&self) -> u64 {
        1 + self.attempts.borrow().len() as u64
    }
}
