//! One request: its settings and route, the state that outlives its head, and the record written at its end.

pub(crate) mod access;
pub(crate) mod client_abort;
pub(crate) mod downstream;
pub(crate) mod encoded_head;
pub(crate) mod encoding;
pub(crate) mod forward_body;
pub(crate) mod json;
pub(crate) mod output;
pub(crate) mod refuse;
pub(crate) mod rendered;
pub(crate) mod reply;
pub(crate) mod request_context;
pub(crate) mod settings;
pub(crate) mod stream_tunnel_end;
pub(crate) mod websocket;

mod observability;
pub(crate) mod rare_state;
mod request_trace;
mod route_options;

use std::mem;
use std::rc::Rc;

use onrush_config::plan::Timeouts;
use onrush_engine::{Error, Instant};
use onrush_http::Header;

use crate::exchange::access::password_verifier::Outcome;
use crate::exchange::settings::Settings;
use crate::observe::in_flight::{InFlight, Stage};
use crate::observe::record::{Record, RequestEnd, RequestKind};
use crate::observe::traffic::{EndedRequest, Traffic};
use crate::worker::Worker;
use crate::worker::admit::concurrency::Ticket;
use crate::worker::connection_fields::ConnectionFields;
use rare_state::{REQUEST_ID_BYTES, RareState};

/// The current request of a connection. Every connection holds one, so the state that few requests need is in [`RareState`].
#[derive(Default)]
pub(crate) struct Exchange {
    /// Settings in force when the request started; it keeps them to the end.
    settings: Option<Rc<Settings>>,
    /// Index of the route, or [`NONE`].
    route: Index,
    /// Index of the server group, or [`NONE`].
    group: Index,
    /// Number of the listener in the registry.
    listener: u16,
    record: Record,
    /// When the request, or the head being received, started; [`NOT_YET`] when there is neither.
    since: Since,
    rare_state: Option<Box<RareState>>,
}

/// A start time. An `Option<Instant>` would be twice as large.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Since(Instant);

impl Default for Since {
    fn default() -> Self {
        Since(NOT_YET)
    }
}

pub(crate) const NOT_YET: Instant = Instant::from_nanoseconds(u64::MAX);

/// An index, or [`NONE`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Index(u32);

impl Default for Index {
    fn default() -> Self {
        NONE
    }
}

const NONE: Index = Index(u32::MAX);

impl Exchange {
    /// An exchange for a connection accepted by this listener, whose first head has started to arrive.
    pub(crate) fn for_listener(listener: u16, now: Instant) -> Self {
        let mut exchange = Self::default();
        exchange.listener = listener;
        exchange.since = Since(now);
        exchange
    }

    #[inline]
    pub(crate) fn listener(&self) -> u16 {
        self.listener
    }

    /// Starts a request. A request that has already started keeps its settings.
    #[inline]
    pub(crate) fn start(&mut self, settings: &Rc<Settings>) {
        if self.settings.is_none() {
            let worker = &settings.worker;
            worker.registry.request_started();
            self.since = Since(worker.core.now());
            self.settings = Some(Rc::clone(settings));
        }
    }

    /// When the request, or the head being received, started; [`NOT_YET`] when there is neither.
    #[inline]
    pub(crate) fn since(&self) -> Instant {
        self.since.0
    }

    /// Records that a head has started to arrive, at `now` or earlier.
    pub(crate) fn head_started(&mut self, now: Instant) {
        self.since.0 = self.since.0.min(now);
    }

    /// Records that the response head is written; `written` is the number of bytes of the response so far.
    #[inline]
    pub(crate) fn record_response_head(&self, status: u16, written: u64, worker: &Worker) {
        self.record.respond(status);
        if let Some(entry) = self.log_entry() {
            entry.end_head(written);
        }
        if worker.core.now() > self.since.0 {
            self.record_first_byte(worker);
        }
    }

    #[inline]
    fn traffic_counters<'s>(
        &self,
        settings: &'s Settings,
    ) -> (Option<&'s Traffic>, Option<&'s Traffic>) {
        if self.route == NONE {
            return (None, None);
        }
        let route = &settings.routes[self.route.0 as usize].traffic;
        let group = (self.group != NONE).then(|| &*settings.groups[self.group.0 as usize]);
        (Some(route), group)
    }

    /// Timeouts of the current request, if there is one.
    #[inline]
    pub(crate) fn current_timeouts(&self) -> Option<&Timeouts> {
        let settings = self.settings.as_deref()?;
        Some(match self.route_options() {
            Some(treatment) => &treatment.timeouts,
            None => &settings.timeouts,
        })
    }

    #[inline]
    pub(crate) fn timeouts(&self) -> &Timeouts {
        self.current_timeouts().expect("a request is in progress")
    }

    #[inline]
    pub(crate) fn settings(&self) -> &Settings {
        self.settings.as_ref().expect("a request is in progress")
    }

    #[inline]
    pub(crate) fn set_route(&mut self, route: usize) {
        self.route = Index(route as u32);
        self.group = NONE;
    }

    #[inline]
    pub(crate) fn set_group(&mut self, group: usize) {
        self.group = Index(group as u32);
    }

    /// Index of the route, if the request has one.
    pub(crate) fn route(&self) -> Option<usize> {
        (self.route != NONE).then_some(self.route.0 as usize)
    }

    #[inline]
    pub(crate) fn group(&self) -> usize {
        self.group.0 as usize
    }

    /// Name of the group, or an empty string for a request that is not forwarded.
    pub(crate) fn group_name(&self) -> &str {
        let groups = &self.settings().groups;
        groups.get(self.group()).map_or("", |group| group.name())
    }

    /// The unique request ID, or an empty slice if none was needed.
    pub(crate) fn request_id(&self) -> &[u8] {
        self.rare_state
            .as_ref()
            .map_or(&[], |kept| &kept.request_id)
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Ends the current request, if there is one; `sent` is the number of bytes of its response. The only function that
    /// writes the record.
    #[inline]
    pub(crate) fn finish(&mut self, end: RequestEnd, sent: u64) {
        let since = mem::take(&mut self.since);
        let Some(settings) = self.settings.take() else {
            return;
        };
        let worker = &settings.worker;
        let record = mem::take(&mut self.record);
        let duration = worker.core.now_exact().since(since.0);
        let ended = EndedRequest::new(&record, (record.end(end), sent), duration);
        worker.meter.observe(&record, ended.end);
        let (route, group) = self.traffic_counters(&settings);
        let registry = &worker.registry;
        registry.observe(ended, self.listener, route, group);
        registry.request_ended();
        if let Some(log) = &settings.log {
            self.write_line(log, ended, (route, group), worker);
        }
        self.finish_trace((since.0, ended), (route, group), &settings);
        self.route = NONE;
        if let Some(kept) = self.rare_state.take() {
            RareState::put(kept, &worker.spare_kept);
        }
    }

    /// Turns the request into a tunnel, which still counts against the concurrency limit. If `Kept` holds nothing but
    /// the entry in the list of requests in flight, returns that entry and frees the rest: tunnels are many and
    /// long-lived.
    pub(crate) fn become_tunnel(&mut self) -> Option<InFlight> {
        self.record.tunnel();
        self.set_stage(Stage::Tunnel);
        let mut kept = self
            .rare_state
            .take_if(|kept| kept.is_only_in_flight_entry())?;
        let underway = kept.underway.take();
        RareState::put(kept, &self.settings().worker.spare_kept);
        underway
    }

    /// Ends the current request together with the client's connection.
    pub(crate) fn finish_with_client(&mut self, end: Result<(), Error>, sent: u64) {
        let has_left = |error: &Error| {
            error.is_end_of_connection() && self.record.kind() != RequestKind::Tunnel
        };
        let end = match end {
            Ok(()) => RequestEnd::Complete,
            Err(error) if has_left(&error) => RequestEnd::GivenUp,
            Err(_) => RequestEnd::Broken,
        };
        self.finish(end, sent);
    }

    /// Generates a unique request ID.
    pub(crate) fn generate_request_id(&mut self, worker: &Worker) {
        let kept = self
            .rare_state
            .get_or_insert_with(|| RareState::take(&worker.spare_kept));
        let (first, second) = kept.request_id.split_at_mut(REQUEST_ID_BYTES / 2);
        write_hexadecimal(worker.random.bits(), first);
        write_hexadecimal(worker.random.bits(), second);
    }

    /// Takes the fields that the route adds to the response and that depend on the request. Empty before
    /// [`Exchange::store_response_fields`].
    pub(crate) fn take_response_fields(&mut self) -> Vec<u8> {
        let kept = self.rare_state.as_mut();
        kept.map_or_else(Vec::new, |kept| mem::take(&mut kept.lines))
    }

    /// Stores these fields; the first `of_origins` bytes are CORS fields.
    pub(crate) fn store_response_fields(&mut self, lines: Vec<u8>, of_origins: usize) {
        if let Some(kept) = &mut self.rare_state {
            kept.lines_of_origins = of_origins.min(lines.len());
            kept.lines = lines;
        }
    }

    /// The CORS fields, which errors get, too.
    pub(crate) fn cors_fields(&self) -> &[u8] {
        let kept = self.rare_state.as_ref();
        kept.map_or(&[], |kept| &kept.lines[..kept.lines_of_origins])
    }

    /// Stores the names in the request's `Connection` field, which must not pass as trailers.
    pub(crate) fn store_connection_fields(&mut self, headers: &[Header<'_>], worker: &Worker) {
        let fields = ConnectionFields::of(headers);
        if !fields.is_empty() {
            let kept = self
                .rare_state
                .get_or_insert_with(|| RareState::take(&worker.spare_kept));
            kept.connection_fields = fields;
        }
    }

    /// Holds the request's slot of a concurrency limit until the response is complete.
    pub(crate) fn hold_ticket(&mut self, ticket: Option<Ticket>, worker: &Worker) {
        if let Some(ticket) = ticket {
            let kept = self
                .rare_state
                .get_or_insert_with(|| RareState::take(&worker.spare_kept));
            kept.ticket = Some(ticket);
        }
    }

    /// Stores the outcome of the password check.
    pub(crate) fn store_login_outcome(&mut self, outcome: Outcome, worker: &Worker) {
        let kept = self
            .rare_state
            .get_or_insert_with(|| RareState::take(&worker.spare_kept));
        kept.verified = Some(outcome);
    }

    /// Takes the outcome of the password check, if there was one.
    pub(crate) fn take_login_outcome(&mut self) -> Option<Outcome> {
        self.rare_state.as_mut()?.verified.take()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The task was dropped: the core is shutting down.
        self.finish(RequestEnd::CutOff, 0);
    }
}

fn write_hexadecimal(bits: u64, out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, digit) in out.iter_mut().enumerate() {
        *digit = DIGITS[(bits >> (4 * at) & 0xf) as usize];
    }
}
