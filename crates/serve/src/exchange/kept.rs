//! State of a request after its head. Few requests need any, so it is allocated separately.

use crate::exchange::access::verify::Outcome;
use crate::limits::KEPT_SPARE_MAX;
use crate::observe::access_log::entry::Entry;
use crate::observe::live::Underway;
use crate::observe::trace::span::{Span, Trace};
use crate::worker::admit::concurrency::Ticket;
use crate::worker::hop::ConnectionFields;
use crate::worker::spare::Spare;

pub(crate) struct Kept {
    pub(super) request_id: [u8; REQUEST_ID_BYTES],
    /// Fields that the route adds to the response, rendered.
    pub(super) lines: Vec<u8>,
    /// Length of the CORS fields at the start of `lines`.
    pub(super) lines_of_origins: usize,
    /// Names that the request's `Connection` field lists: they must not pass as trailers.
    pub(super) connection_fields: ConnectionFields,
    /// Slot of a concurrency limit.
    pub(super) ticket: Option<Ticket>,
    /// Outcome of the password check, until the request is dispatched again.
    pub(super) verified: Option<Outcome>,
    /// Data for the access log.
    pub(super) entry: Option<Box<Entry>>,
    pub(super) logged: Logged,
    /// Entry in the list of requests in flight.
    pub(super) underway: Option<Underway>,
    /// Trace context and span.
    pub(super) trace: Option<Box<Trace>>,
}

impl Kept {
    /// Whether only the entry in the list of requests in flight is needed after the response.
    pub(super) fn is_only_listed(&self) -> bool {
        self.ticket.is_none() && self.logged == Logged::No && self.span().is_none()
    }
}

impl Kept {
    /// The recorded span, if the request is sampled.
    pub(super) fn span(&self) -> Option<&Span> {
        self.trace.as_ref()?.span.as_deref()
    }
}

/// Whether `entry` belongs to the current request: its memory is reused by later ones.
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
    /// Takes a box from the core's spare ones, or allocates one.
    pub(super) fn take(spare: &Spare) -> Box<Kept> {
        spare.take().unwrap_or_default()
    }

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

/// Two 64-bit words in hexadecimal digits.
pub(super) const REQUEST_ID_BYTES: usize = 32;
