//! State of a request after its head. Few requests need any, so it is allocated separately.

use crate::exchange::access::password_verifier::Outcome;
use crate::limits::KEPT_SPARE_MAX;
use crate::observe::access_log::entry::Entry;
use crate::observe::in_flight::InFlight;
use crate::observe::trace::span::{Span, Trace};
use crate::worker::admit::concurrency::Ticket;
use crate::worker::connection_fields::ConnectionFields;
use crate::worker::spare::Spare;

pub(crate) struct RareState {
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
    pub(super) logged: EntryState,
    /// Entry in the list of requests in flight.
    pub(super) underway: Option<InFlight>,
    /// Trace context and span.
    pub(super) trace: Option<Box<Trace>>,
}

impl RareState {
    /// Whether only the entry in the list of requests in flight is needed after the response.
    pub(super) fn is_only_in_flight_entry(&self) -> bool {
        self.ticket.is_none() && self.logged == EntryState::No && self.span().is_none()
    }
}

impl RareState {
    /// The recorded span, if the request is sampled.
    pub(super) fn span(&self) -> Option<&Span> {
        self.trace.as_ref()?.span.as_deref()
    }
}

/// Whether `entry` belongs to the current request: its memory is reused by later ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    No,
    Yes,
}

impl Default for RareState {
    fn default() -> Self {
        Self {
            request_id: [b'0'; REQUEST_ID_BYTES],
            lines: Vec::new(),
            lines_of_origins: 0,
            connection_fields: ConnectionFields::default(),
            ticket: None,
            verified: None,
            entry: None,
            logged: EntryState::No,
            underway: None,
            trace: None,
        }
    }
}

impl RareState {
    /// Takes a box from the core's spare ones, or allocates one.
    pub(super) fn take(spare: &Spare) -> Box<RareState> {
        spare.take().unwrap_or_default()
    }

    pub(super) fn put(mut kept: Box<RareState>, spare: &Spare) {
        kept.connection_fields = ConnectionFields::default();
        kept.ticket = None;
        kept.verified = None;
        kept.logged = EntryState::No;
        kept.underway = None;
        kept.trace = None;
        kept.lines.clear();
        kept.lines_of_origins = 0;
        spare.give(kept, KEPT_SPARE_MAX);
    }
}

/// Two 64-bit words in hexadecimal digits.
pub(super) const REQUEST_ID_BYTES: usize = 32;
