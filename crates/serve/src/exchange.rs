//! One request on its way: the route it takes, what is still needed of it when its head is gone, and its record.

pub(crate) mod kept;

use std::mem;
use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::Header;

use crate::access::verify::Outcome;
use crate::admit::concurrency::Ticket;
use crate::compress::Offer;
use crate::edits::Applied;
use crate::hop::ConnectionFields;
use crate::record::{End, Kind, Record};
use crate::settings::{Settings, Treatment};
use crate::worker::Worker;
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
    record: Record,
    kept: Option<Box<Kept>>,
}

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
    /// A request begins, or goes on with the settings that it began with.
    #[inline]
    pub(crate) fn start(&mut self, settings: &Rc<Settings>) {
        self.settings.get_or_insert_with(|| Rc::clone(settings));
    }

    /// The settings of the request in hand, if there is one.
    #[inline]
    pub(crate) fn settings_in_hand(&self) -> Option<&Settings> {
        self.settings.as_deref()
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

    /// The index of that group.
    #[inline]
    pub(crate) fn group(&self) -> usize {
        self.group.0 as usize
    }

    /// The name of that group, if it goes to one.
    pub(crate) fn group_name(&self) -> &str {
        let groups = &self.settings().group_names;
        groups.get(self.group()).map_or("", |name| name)
    }

    /// The number that no other has, where it is needed.
    pub(crate) fn request_id(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |kept| &kept.request_id)
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// The request has ended, if one is in hand: this is where its record is written, and nowhere else.
    #[inline]
    pub(crate) fn finish(&mut self, end: End) {
        let Some(settings) = self.settings.take() else {
            return;
        };
        let worker = &settings.worker;
        self.route = NONE;
        let record = mem::take(&mut self.record);
        record.ends(end);
        worker.meter.observe(&record);
        if let Some(kept) = self.kept.take() {
            worker.spare_kept.put(kept);
        }
    }

    /// The request is answered, and goes on counting in its limit: as a tunnel.
    pub(crate) fn become_tunnel(&mut self) {
        self.route = NONE;
        self.record.tunnel();
    }

    /// The client's connection has come to this end, and with it what is in hand.
    pub(crate) fn finish_with_client(&mut self, end: Result<(), Error>) {
        let has_left =
            |error: &Error| error.is_end_of_connection() && self.record.kind() != Kind::Tunnel;
        self.finish(match end {
            Ok(()) => End::Complete,
            Err(error) if has_left(&error) => End::GivenUp,
            Err(_) => End::Broken,
        });
    }

    /// Gives the request a number that no other has.
    pub(crate) fn number(&mut self, worker: &Worker) {
        let kept = self.kept.get_or_insert_with(|| worker.spare_kept.take());
        let (first, second) = kept.request_id.split_at_mut(REQUEST_ID_BYTES / 2);
        write_hexadecimal(worker.chance.bits(), first);
        write_hexadecimal(worker.chance.bits(), second);
    }

    /// The fields that its answer gets, as far as they depend on it: empty before [`Exchange::keep_lines`].
    pub(crate) fn take_lines(&mut self) -> Vec<u8> {
        let kept = self.kept.as_mut();
        kept.map_or_else(Vec::new, |kept| mem::take(&mut kept.lines))
    }

    /// Keeps them.
    pub(crate) fn keep_lines(&mut self, lines: Vec<u8>) {
        if let Some(kept) = &mut self.kept {
            kept.lines = lines;
        }
    }

    /// Keeps which of its trailers are for its connection only, if any can be.
    pub(crate) fn keep_connection_fields(&mut self, headers: &[Header<'_>], worker: &Worker) {
        let fields = ConnectionFields::of(headers);
        if !fields.is_empty() {
            let kept = self.kept.get_or_insert_with(|| worker.spare_kept.take());
            kept.connection_fields = fields;
        }
    }

    /// Keeps what counts for the request in a limit until it is answered.
    pub(crate) fn hold(&mut self, ticket: Option<Ticket>, worker: &Worker) {
        if let Some(ticket) = ticket {
            let kept = self.kept.get_or_insert_with(|| worker.spare_kept.take());
            kept.ticket = Some(ticket);
        }
    }

    /// The request's password has been checked.
    pub(crate) fn verified(&mut self, outcome: Outcome, worker: &Worker) {
        let kept = self.kept.get_or_insert_with(|| worker.spare_kept.take());
        kept.verified = Some(outcome);
    }

    /// What came of its password, if it was checked.
    pub(crate) fn take_verified(&mut self) -> Option<Outcome> {
        self.kept.as_mut()?.verified.take()
    }

    /// How its route treats it.
    #[inline]
    pub(crate) fn treatment(&self) -> Option<&Treatment> {
        let settings = self.settings.as_ref()?;
        (self.route != NONE).then(|| &settings.treatments[self.route.0 as usize])
    }

    /// Whether a trailer of this name passes to its server.
    pub(crate) fn request_keeps(&self, trailer: &[u8]) -> bool {
        let kept = self.kept.as_ref();
        !kept.is_some_and(|kept| kept.connection_fields.contain(trailer))
            && self
                .treatment()
                .is_none_or(|treatment| treatment.rules.pass_trailer(trailer))
    }

    /// Whether a trailer of this name passes to the client, where the route's edits are applied.
    pub(crate) fn answer_keeps(&self, trailer: &[u8]) -> bool {
        let edits = self.answer_edits("");
        let name = str::from_utf8(trailer).unwrap_or("");
        edits.is_none_or(|edits| !edits.drops(name))
    }

    /// Whether and how its route encodes answers.
    #[inline]
    pub(crate) fn offer(&self) -> Option<&Offer> {
        self.treatment()?.offer.as_deref()
    }

    /// The edits of the answer that `server` gives; its name is empty for an answer of our own.
    #[inline]
    pub(crate) fn answer_edits<'a>(&'a self, server: &'a str) -> Option<Applied<'a>> {
        let edits = self.treatment()?.answer_edits.as_ref()?;
        let lines = self.kept.as_ref().map_or(&[][..], |kept| &kept.lines);
        Some(edits.of_answer(lines, server))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Its task was dropped: the core has ended.
        self.finish(End::CutOff);
    }
}

fn write_hexadecimal(bits: u64, out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, digit) in out.iter_mut().enumerate() {
        *digit = DIGITS[(bits >> (4 * at) & 0xf) as usize];
    }
}
