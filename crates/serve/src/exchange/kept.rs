//! What is needed of a request behind its head. Few requests need any of it, so it has memory of its own.

use crate::exchange::access::verify::Outcome;
use crate::limits::KEPT_SPARE_MAX;
use crate::observe::access_log::entry::Entry;
use crate::observe::live::Underway;
use crate::observe::trace::span::{Span, Trace};
use crate::worker::admit::concurrency::Ticket;
use crate::worker::hop::ConnectionFields;
use crate::worker::spare::Spare;

/// What is needed of a request behind its head.
pub(crate) struct Kept {
    pub(super) request_id: [u8; REQUEST_ID_BYTES],
    /// The fields that its route adds to the response, rendered.
    pub(super) lines: Vec<u8>,
    /// How many bytes at the start of those are about other origins.
    pub(super) lines_of_origins: usize,
    /// What of its trailers is for its connection only.
    pub(super) connection_fields: ConnectionFields,
    /// Counts for the request in a limit.
    pub(super) ticket: Option<Ticket>,
    /// What came of its password, between the moment that is known and the second look at the request.
    pub(super) verified: Option<Outcome>,
    /// What its line in the access log needs.
    pub(super) entry: Option<Box<Entry>>,
    pub(super) logged: Logged,
    /// Its place in the list of those under way.
    pub(super) underway: Option<Underway>,
    /// Its part of a trace.
    pub(super) trace: Option<Box<Trace>>,
}

impl Kept {
    /// Whether nothing of it is needed behind the response but its place in the list of those under way.
    pub(super) fn is_only_listed(&self) -> bool {
        self.ticket.is_none() && self.logged == Logged::No && self.span().is_none()
    }
}

impl Kept {
    /// What is recorded of it as part of a trace.
    pub(super) fn span(&self) -> Option<&Span> {
        self.trace.as_ref()?.span.as_deref()
    }
}

/// Whether a request has an entry: its memory goes from one to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Logged {
    No,
    Yes,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            request_id: [b'0'; REQUEST_ID_BYTES],
            lines: Vec::new(),
            lines_of_origins: 0,
            connection_fields: ConnectionFields::default(),
            ticket: None,
            verified: None,
            entry: None,
            logged: Logged::No,
            underway: None,
            trace: None,
        }
    }
}

impl Kept {
    /// Takes a box from the core's spare ones, or makes one.
    pub(super) fn take(spare: &Spare) -> Box<Kept> {
        spare.take().unwrap_or_default()
    }

    /// Keeps it for the next request that needs one.
    pub(super) fn put(mut kept: Box<Kept>, spare: &Spare) {
        kept.connection_fields = ConnectionFields::default();
        kept.ticket = None;
        kept.verified = None;
        kept.logged = Logged::No;
        kept.underway = None;
        kept.trace = None;
        kept.lines.clear();
        kept.lines_of_origins = 0;
        spare.give(kept, KEPT_SPARE_MAX);
    }
}

/// Two words in hexadecimal digits.
pub(super) const REQUEST_ID_BYTES: usize = 32;
