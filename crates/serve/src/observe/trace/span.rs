//! A request's trace context and, if it is sampled, the span with its attempts.

use std::cell::RefCell;
use std::num::{NonZeroU64, NonZeroU128};
use std::time::Duration;

use onrush_engine::{Address, Instant};
use onrush_http::Header;
use onrush_http::forwarded::Scheme;
use onrush_http::trace_context::{TraceParent, write_trace_state};
use onrush_http::write::HeadWriter;

use crate::observe::access_log::entry::Entry;
use crate::observe::record::{FailureClass, RequestEnd};
use crate::observe::trace::limits::ATTEMPTS_TRACED_MAX;

/// Trace context of a request.
pub(crate) struct Trace {
    /// Trace ID, and the span ID of the request itself.
    pub(super) own: TraceParent,
    /// The parent span, if the client's trace is continued.
    pub(super) parent: Option<NonZeroU64>,
    /// The recorded data, if the request is sampled.
    pub(crate) span: Option<Box<Span>>,
}

/// Recorded data of a sampled request.
pub(crate) struct Span {
    /// Data from its head.
    pub(crate) entry: Entry,
    pub(super) scheme: Scheme,
    /// The received tracestate value.
    pub(super) state: Vec<u8>,
    pub(super) attempts: RefCell<Vec<Attempt>>,
}

/// One attempt to send a request to a server.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) id: NonZeroU64,
    /// The server's configured name.
    pub(super) server: String,
    pub(super) address: Option<Address>,
    pub(super) began: Instant,
    /// Connection time; `None` on a reused connection.
    pub(super) connected: Option<Duration>,
    /// Time and status of the response head.
    pub(super) responded: Option<(Instant, u16)>,
    /// When it ended; `None` for the attempt with which the request ends.
    pub(super) ended: Option<Instant>,
    pub(super) failure: Option<FailureClass>,
}

/// An ended request, ready for export.
pub(super) struct Finished {
    pub(super) own: TraceParent,
    pub(super) parent: Option<NonZeroU64>,
    pub(super) span: Box<Span>,
    pub(super) route: Option<String>,
    pub(super) group: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) failure: Option<FailureClass>,
    pub(super) end: RequestEnd,
    pub(super) is_tunnel: bool,
    /// Start of the request on the core's clock.
    pub(super) began: Instant,
    pub(super) duration: Duration,
    /// Offset from the core's clock to the time since 1970.
    pub(super) clock: Duration,
}

impl Trace {
    pub(crate) fn trace_id(&self) -> NonZeroU128 {
        self.own.trace
    }

    pub(crate) fn span_id(&self) -> NonZeroU64 {
        self.own.span
    }

    /// Writes traceparent and tracestate for the server of the current attempt; `headers` are the client's.
    pub(crate) fn write(&self, headers: &[Header<'_>], writer: &mut HeadWriter<'_>) {
        let attempt = self.span.as_ref().and_then(|span| span.attempt_in_hand());
        let parent = TraceParent {
            span: attempt.unwrap_or(self.own.span),
            ..self.own
        };
        writer.header("traceparent", &parent.text());
        // The client's tracestate belongs to another trace unless that trace is continued.
        if self.parent.is_some() {
            write_trace_state(headers, writer);
        }
    }
}

impl Span {
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

    /// Starts an attempt at this server, unless it has started already.
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

    /// Records how long the connection of the current attempt took to succeed or fail.
    pub(crate) fn connect(&self, duration: Duration) {
        self.with_attempt(|attempt| attempt.connected = Some(duration));
    }

    /// Records the response head of the current attempt.
    pub(crate) fn respond(&self, status: u16, now: Instant) {
        self.with_attempt(|attempt| attempt.responded = Some((now, status)));
    }

    /// Ends the current attempt, which failed with `failure` or whose response is not used.
    pub(crate) fn fail_attempt(&self, failure: Option<FailureClass>, now: Instant) {
        self.with_attempt(|attempt| {
            attempt.failure = failure;
            attempt.ended = Some(now);
        });
    }

    /// Approximate memory use in bytes.
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

    /// Number of spans: one for the request and one for each attempt.
    pub(super) fn count(&self) -> u64 {
        1 + self.attempts.borrow().len() as u64
    }
}
