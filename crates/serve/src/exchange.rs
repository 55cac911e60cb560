//! One request on its way: the route it takes, what is still needed of it when its head is gone, and its record.

mod kept;

use std::mem;
use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::Header;
use onrush_http::request::RequestHead;
use onrush_tls::Transport;

use crate::access::Outcome;
use crate::admit::concurrency::Ticket;
use crate::asker::Asker;
use crate::client::Client;
use crate::compress::Offer;
use crate::edits::Applied;
use crate::hop::ConnectionFields;
use crate::limits::ANSWER_LINES_BYTES_MAX;
use crate::record::{End, Kind, Record};
use crate::service::Service;
use crate::site::Site;
use crate::site::target::Target;
use crate::variables::{Facts, SERVER_TO_COME};
use crate::worker::Worker;
use kept::{Kept, REQUEST_ID_BYTES};

pub(crate) use kept::SpareKept;

/// The request that a connection is busy with. Part of every connection's memory, so what few requests need is kept
/// elsewhere.
#[derive(Default)]
pub(crate) struct Exchange {
    /// The site that it began with, from then to its end.
    site: Option<Rc<Site>>,
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

/// Fields of an answer became longer than [`ANSWER_LINES_BYTES_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLong;

impl Exchange {
    /// A request begins, or goes on, on the site that is in force when it begins.
    #[inline]
    pub(crate) fn start(&mut self, service: &Service) -> Rc<Site> {
        Rc::clone(self.site.get_or_insert_with(|| service.site()))
    }

    /// The site of the request in hand, if there is one.
    #[inline]
    pub(crate) fn site_in_hand(&self) -> Option<&Rc<Site>> {
        self.site.as_ref()
    }

    /// The site of the request in hand.
    #[inline]
    pub(crate) fn site(&self) -> &Rc<Site> {
        self.site.as_ref().expect("a request is in hand")
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

    /// What its path begins with, as its route says.
    pub(crate) fn prefix(&self) -> &str {
        match self.route {
            NONE => "",
            Index(route) => self.site().routes.route(route as usize).prefix(),
        }
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
        let Some(site) = self.site.take() else {
            return;
        };
        let worker = &site.worker;
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

    /// Keeps what will be needed of the request: a number that no other has, and the fields that its answer gets, as far
    /// as they depend on it.
    ///
    /// # Errors
    /// When the fields are too long to be sent; then the answer gets none.
    pub(crate) fn keep(
        &mut self,
        head: &RequestHead<'_, '_>,
        worker: &Worker,
        client: &Client,
        stream: &Transport,
    ) -> Result<(), TooLong> {
        let kept = self.kept.get_or_insert_with(|| worker.spare_kept.take());
        let mut lines = mem::take(&mut kept.lines);
        lines.clear();
        let (first, second) = kept.request_id.split_at_mut(REQUEST_ID_BYTES / 2);
        write_hexadecimal(worker.chance.bits(), first);
        write_hexadecimal(worker.chance.bits(), second);
        if let Some(edits) = self
            .target()
            .and_then(|target| target.answer_edits.as_ref())
        {
            let asker = Asker {
                worker,
                client,
                stream,
                exchange: self,
            };
            let facts = Facts {
                asker,
                head,
                server: SERVER_TO_COME,
            };
            edits.render(&facts, &mut lines);
        }
        let too_long = lines.len() > ANSWER_LINES_BYTES_MAX;
        if too_long {
            lines.clear();
        }
        if let Some(kept) = &mut self.kept {
            kept.lines = lines;
        }
        if too_long { Err(TooLong) } else { Ok(()) }
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
    pub(crate) fn target(&self) -> Option<&Target> {
        let site = self.site.as_ref()?;
        (self.route != NONE).then(|| &site.routes.route(self.route.0 as usize).target)
    }

    /// Whether a trailer of this name passes to its server.
    pub(crate) fn request_keeps(&self, trailer: &[u8]) -> bool {
        let kept = self.kept.as_ref();
        !kept.is_some_and(|kept| kept.connection_fields.contain(trailer))
            && self
                .target()
                .is_none_or(|target| target.rules.pass_trailer(trailer))
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
        self.target()?.offer.as_deref()
    }

    /// The edits of the answer that `server` gives; its name is empty for an answer of our own.
    #[inline]
    pub(crate) fn answer_edits<'a>(&'a self, server: &'a str) -> Option<Applied<'a>> {
        let edits = self.target()?.answer_edits.as_ref()?;
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
