//! One request on its way: the route it takes, what is still needed of it when its head is gone, and its record.

pub(crate) mod access;
pub(crate) mod downstream;
pub(crate) mod encoding;
pub(crate) mod encoding_head;
pub(crate) mod hangup;
pub(crate) mod json;
pub(crate) mod output;
pub(crate) mod portion;
pub(crate) mod refuse;
pub(crate) mod rendered;
pub(crate) mod reply;
pub(crate) mod request_context;
pub(crate) mod settings;
pub(crate) mod stream_end;
pub(crate) mod websocket;

pub(crate) mod kept;
mod observed;
mod traced;
mod treated;

use std::mem;
use std::rc::Rc;

use onrush_config::plan::Timeouts;
use onrush_engine::{Error, Instant};
use onrush_http::Header;

use crate::exchange::access::verify::Outcome;
use crate::exchange::settings::Settings;
use crate::observe::live::{Stage, Underway};
use crate::observe::record::{End, Kind, Record};
use crate::observe::traffic::{Ended, Traffic};
use crate::worker::Worker;
use crate::worker::admit::concurrency::Ticket;
use crate::worker::hop::ConnectionFields;
use kept::{Kept, REQUEST_ID_BYTES};

/// The request that a connection is busy with. Part of every connection's memory, so what few requests need is kept
/// elsewhere.
#[derive(Default)]
pub(crate) struct Exchange {
    /// Those that it began with, from then to its end.
    settings: Option<Rc<Settings>>,
    /// The index of its route; [`NONE`] without one.
    route: Index,
    /// The group that it is forwarded to.
    group: Index,
    /// The number of the place that it came by, in the registry.
    listener: u16,
    record: Record,
    /// When what is in hand began: the request, or the head that is arriving; [`NOT_YET`] while nothing is.
    since: Since,
    kept: Option<Box<Kept>>,
}

/// When something began. An `Option` would take twice the room.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Since(Instant);

impl Default for Since {
    fn default() -> Self {
        Since(NOT_YET)
    }
}

/// Later than any request.
pub(crate) const NOT_YET: Instant = Instant::from_nanoseconds(u64::MAX);

/// An index, or none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Index(u32);

impl Default for Index {
    fn default() -> Self {
        NONE
    }
}

const NONE: Index = Index(u32::MAX);

impl Exchange {
    /// Those of a connection that came by this listener; the first head has begun to arrive.
    pub(crate) fn of_listener(listener: u16, now: Instant) -> Self {
        let mut exchange = Self::default();
        exchange.listener = listener;
        exchange.since = Since(now);
        exchange
    }

    /// The number of the place that it came by.
    #[inline]
    pub(crate) fn listener(&self) -> u16 {
        self.listener
    }

    /// A request begins, or goes on with the settings that it began with.
    #[inline]
    pub(crate) fn start(&mut self, settings: &Rc<Settings>) {
        if self.settings.is_none() {
            let worker = &settings.worker;
            worker.registry.begins();
            self.since = Since(worker.core.now());
            self.settings = Some(Rc::clone(settings));
        }
    }

    /// When the head that is arriving, or the request in hand, began; [`NOT_YET`] while there is neither.
    #[inline]
    pub(crate) fn since(&self) -> Instant {
        self.since.0
    }

    /// The head of a request began to arrive, at the latest.
    pub(crate) fn head_arrives(&mut self, now: Instant) {
        self.since.0 = self.since.0.min(now);
    }

    /// Records that the response head is written; `written` is the bytes of the response up to there.
    #[inline]
    pub(crate) fn responds(&self, status: u16, written: u64, worker: &Worker) {
        self.record.respond(status);
        if let Some(entry) = self.entry() {
            entry.end_head(written);
        }
        if worker.core.now() > self.since.0 {
            self.tell_first_byte(worker);
        }
    }

    /// What counts the requests of its route and of its group.
    #[inline]
    fn way<'s>(&self, settings: &'s Settings) -> (Option<&'s Traffic>, Option<&'s Traffic>) {
        if self.route == NONE {
            return (None, None);
        }
        let route = &settings.treatments[self.route.0 as usize].traffic;
        let group = (self.group != NONE).then(|| &*settings.groups[self.group.0 as usize]);
        (Some(route), group)
    }

    /// How long the request in hand lets others wait, if there is one.
    #[inline]
    pub(crate) fn timeouts_in_hand(&self) -> Option<&Timeouts> {
        let settings = self.settings.as_deref()?;
        Some(match self.treatment() {
            Some(treatment) => &treatment.timeouts,
            None => &settings.timeouts,
        })
    }

    /// How long the request in hand lets others wait.
    #[inline]
    pub(crate) fn timeouts(&self) -> &Timeouts {
        self.timeouts_in_hand().expect("a request is in hand")
    }

    /// The settings of the request in hand.
    #[inline]
    pub(crate) fn settings(&self) -> &Settings {
        self.settings.as_ref().expect("a request is in hand")
    }

    /// A request takes the route with this index.
    #[inline]
    pub(crate) fn begin(&mut self, route: usize) {
        self.route = Index(route as u32);
        self.group = NONE;
    }

    /// The request goes to the group with this index.
    #[inline]
    pub(crate) fn forward_to(&mut self, group: usize) {
        self.group = Index(group as u32);
    }

    /// The index of its route, if it has one.
    pub(crate) fn route(&self) -> Option<usize> {
        (self.route != NONE).then_some(self.route.0 as usize)
    }

    /// The index of that group.
    #[inline]
    pub(crate) fn group(&self) -> usize {
        self.group.0 as usize
    }

    /// The name of that group, if it goes to one.
    pub(crate) fn group_name(&self) -> &str {
        let groups = &self.settings().groups;
        groups.get(self.group()).map_or("", |group| group.name())
    }

    /// The number that no other has, where it is needed.
    pub(crate) fn request_id(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |kept| &kept.request_id)
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// The request has ended, if one is in hand, with so many bytes of its response: this is where its record is written, and
    /// nowhere else.
    #[inline]
    pub(crate) fn finish(&mut self, end: End, sent: u64) {
        let since = mem::take(&mut self.since);
        let Some(settings) = self.settings.take() else {
            return;
        };
        let worker = &settings.worker;
        let record = mem::take(&mut self.record);
        let duration = worker.core.now_exact().since(since.0);
        let ended = Ended::new(&record, (record.end(end), sent), duration);
        worker.meter.observe(&record, ended.end);
        let (route, group) = self.way(&settings);
        let registry = &worker.registry;
        registry.observe(ended, self.listener, route, group);
        registry.ends();
        if let Some(log) = &settings.log {
            self.write_line(log, ended, (route, group), worker);
        }
        self.finish_trace((since.0, ended), (route, group), &settings);
        self.route = NONE;
        if let Some(kept) = self.kept.take() {
            Kept::put(kept, &worker.spare_kept);
        }
    }

    /// The request has its response, and goes on counting in its limit: as a tunnel. Its place in the list of those
    /// under way is the tunnel's, where nothing else has to be kept: tunnels are many, and last.
    pub(crate) fn become_tunnel(&mut self) -> Option<Underway> {
        self.record.tunnel();
        self.is_at(Stage::Tunnel);
        let mut kept = self.kept.take_if(|kept| kept.is_only_listed())?;
        let underway = kept.underway.take();
        Kept::put(kept, &self.settings().worker.spare_kept);
        underway
    }

    /// The client's connection has come to this end, and with it what is in hand.
    pub(crate) fn finish_with_client(&mut self, end: Result<(), Error>, sent: u64) {
        let has_left =
            |error: &Error| error.is_end_of_connection() && self.record.kind() != Kind::Tunnel;
        let end = match end {
            Ok(()) => End::Complete,
            Err(error) if has_left(&error) => End::GivenUp,
            Err(_) => End::Broken,
        };
        self.finish(end, sent);
    }

    /// Gives the request a number that no other has.
    pub(crate) fn number(&mut self, worker: &Worker) {
        let kept = self
            .kept
            .get_or_insert_with(|| Kept::take(&worker.spare_kept));
        let (first, second) = kept.request_id.split_at_mut(REQUEST_ID_BYTES / 2);
        write_hexadecimal(worker.chance.bits(), first);
        write_hexadecimal(worker.chance.bits(), second);
    }

    /// The fields that its response gets, as far as they depend on it: empty before [`Exchange::keep_lines`].
    pub(crate) fn take_lines(&mut self) -> Vec<u8> {
        let kept = self.kept.as_mut();
        kept.map_or_else(Vec::new, |kept| mem::take(&mut kept.lines))
    }

    /// Keeps them: the first `of_origins` bytes are about other origins.
    pub(crate) fn keep_lines(&mut self, lines: Vec<u8>, of_origins: usize) {
        if let Some(kept) = &mut self.kept {
            kept.lines_of_origins = of_origins.min(lines.len());
            kept.lines = lines;
        }
    }

    /// The lines about other origins, which errors get, too.
    pub(crate) fn lines_of_origins(&self) -> &[u8] {
        let kept = self.kept.as_ref();
        kept.map_or(&[], |kept| &kept.lines[..kept.lines_of_origins])
    }

    /// Keeps which of its trailers are for its connection only, if any can be.
    pub(crate) fn keep_connection_fields(&mut self, headers: &[Header<'_>], worker: &Worker) {
        let fields = ConnectionFields::of(headers);
        if !fields.is_empty() {
            let kept = self
                .kept
                .get_or_insert_with(|| Kept::take(&worker.spare_kept));
            kept.connection_fields = fields;
        }
    }

    /// Keeps what counts for the request in a limit until it has its response.
    pub(crate) fn hold(&mut self, ticket: Option<Ticket>, worker: &Worker) {
        if let Some(ticket) = ticket {
            let kept = self
                .kept
                .get_or_insert_with(|| Kept::take(&worker.spare_kept));
            kept.ticket = Some(ticket);
        }
    }

    /// The request's password has been checked.
    pub(crate) fn verified(&mut self, outcome: Outcome, worker: &Worker) {
        let kept = self
            .kept
            .get_or_insert_with(|| Kept::take(&worker.spare_kept));
        kept.verified = Some(outcome);
    }

    /// What came of its password, if it was checked.
    pub(crate) fn take_verified(&mut self) -> Option<Outcome> {
        self.kept.as_mut()?.verified.take()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Its task was dropped: the core has ended.
        self.finish(End::CutOff, 0);
    }
}

fn write_hexadecimal(bits: u64, out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, digit) in out.iter_mut().enumerate() {
        *digit = DIGITS[(bits >> (4 * at) & 0xf) as usize];
    }
}
