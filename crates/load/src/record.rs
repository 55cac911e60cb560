//! What one core has counted. Written at every response, so it allocates nothing after its making; read once a second
//! and at the end.

pub mod evidence;
pub mod figures;
pub mod history;
pub(crate) mod host;
pub(crate) mod journeys;
pub(crate) mod kind;
pub(crate) mod provenance;
pub(crate) mod rows;
pub(crate) mod silence;
pub(crate) mod standing;
pub mod times;
pub mod unanswered;

pub(crate) mod class_times;
mod handshakes;
mod limits;
mod recent;
mod said;
mod tcp;

use class_times::ClassTimes;
use onrush_engine::TcpInfo;
use onrush_measure::second::Tally;
use onrush_tls::Info;

use onrush_http::http2::code::Code;

use crate::limits::KINDS_SHOWN_MAX;
use crate::plan::Plan;
use crate::protocol::failure::{Failure, NotConnected};
use crate::record::journeys::JourneysRecord;
use crate::record::kind::KindRecord;
use crate::record::times::{ResponseTimes, Times};
use crate::record::unanswered::Unanswered;
use crate::requests::response::{Met, Outcome, Outcomes};
pub(crate) use handshakes::{Handshakes, Took};
use recent::Recent;
pub(crate) use tcp::TcpTotal;

/// The counters of one core, or the sum over several.
#[derive(Debug)]
pub(crate) struct Record {
    /// What the rows show. Invariant: `requests` = responses (`last_bytes`) + failed requests.
    pub(crate) tally: Tally,
    /// What responses took in the present second; what they took before is with the thread that waits. Boxed, to be
    /// swapped for an empty one at the second's end.
    pub(crate) times: Box<Times>,
    /// Responses that are not in `times` yet.
    recent: Recent,
    /// Response times by class of status, including late responses.
    pub(crate) classes: ClassTimes,
    /// Responses that are not in any histogram: they were to be before the measurement began.
    pub(crate) unmeasured: u64,
    /// Requests that were taken to be sent, as is known at the end. Invariant: = responses + failed + in flight.
    pub(crate) sent: u64,
    /// Responses that came after the end, whose times are measured as those of others are; they are counted nowhere else.
    pub(crate) late: u64,
    /// Of these, those that are in no histogram.
    pub(crate) late_unmeasured: u64,
    /// How long requests without a response had waited, at least.
    pub(crate) unanswered: Unanswered,
    /// The most connections that were open at once.
    pub(crate) connections_max: u64,
    /// What TCP counted on the connections that were looked at; `None` before the first.
    pub(crate) tcp: Option<TcpTotal>,
    /// What they can say, and how often each was said.
    outcomes: &'static Outcomes,
    said: Box<[u64]>,
    /// See [`Evidence::unaccepted`](crate::record::evidence::Evidence::unaccepted).
    pub(crate) unaccepted: u64,
    /// In the order of [`Failure::ALL`]. Invariant: their sum is `tally.errors`.
    failures: [u64; Failure::ALL.len()],
    /// Connections that were made.
    pub(crate) established: u64,
    /// Requests sent again because the server did nothing for them: it had closed a kept-alive connection before they reached it,
    /// has said so as it went away, or has refused their streams.
    pub(crate) resent: u64,
    /// Of these, those whose streams it has refused, on a connection that goes on.
    pub(crate) refused: u64,
    /// For how long, in nanoseconds, the generator itself kept them from being seen, at most.
    pub(crate) connect_own_ns: u64,
    /// The TLS handshakes among them; `None` before the first.
    pub(crate) handshakes: Option<Handshakes>,
    /// A failure to connect, for the sentence about it.
    pub(crate) connect_error: Option<String>,
    /// What was wrong with the last response that was none.
    pub(crate) protocol_error: Option<&'static str>,
    /// Why the server has ended a stream or a connection of HTTP/2, the last time.
    pub(crate) cancelled: Option<Code>,
    /// The first response that was another than expected.
    pub(crate) unexpected: Option<String>,
    /// Of each kind of request, where there are several and not too many.
    pub(crate) kinds: Box<[KindRecord]>,
    /// What the pace asked for and was begun, as is known at the end: requests, or journeys.
    pub(crate) begun: u64,
    /// Of journeys, where users go them. Boxed: most runs have none.
    pub(crate) journeys: Option<Box<JourneysRecord>>,
}

impl Record {
    /// For a run with one kind of request, whose responses can be these.
    pub(crate) fn new(outcomes: &'static Outcomes) -> Record {
        Record::of(outcomes, 1)
    }

    /// Empty counters of a core for this plan.
    pub(crate) fn of_plan(plan: &Plan) -> Record {
        let outcomes = plan.protocol.outcomes();
        match &plan.journeys {
            None => Record::of(outcomes, plan.protocol.kinds()),
            Some((journeys, _)) => Record::of_journeys(outcomes, JourneysRecord::of(journeys)),
        }
    }

    /// For a run with so many kinds of requests.
    pub(crate) fn of(outcomes: &'static Outcomes, kinds: usize) -> Record {
        let shown = if (2..=KINDS_SHOWN_MAX).contains(&kinds) {
            kinds
        } else {
            0
        };
        Record {
            tally: Tally::default(),
            times: Box::default(),
            recent: Recent::default(),
            classes: ClassTimes::default(),
            unmeasured: 0,
            sent: 0,
            late: 0,
            late_unmeasured: 0,
            unanswered: Unanswered::default(),
            connections_max: 0,
            tcp: None,
            outcomes,
            said: vec![0; outcomes.count.into()].into(),
            unaccepted: 0,
            failures: [0; Failure::ALL.len()],
            established: 0,
            connect_own_ns: 0,
            resent: 0,
            refused: 0,
            handshakes: None,
            connect_error: None,
            protocol_error: None,
            cancelled: None,
            unexpected: None,
            kinds: vec![KindRecord::default(); shown].into(),
            begun: 0,
            journeys: None,
        }
    }

    /// For a run of journeys.
    pub(crate) fn of_journeys(outcomes: &'static Outcomes, journeys: JourneysRecord) -> Record {
        Record {
            journeys: Some(Box::new(journeys)),
            ..Record::new(outcomes)
        }
    }

    /// So many responses came that say the same.
    #[inline]
    pub(crate) fn responded(
        &mut self,
        (outcome, count): (Outcome, u64),
        took: &ResponseTimes,
        measured: Measured,
    ) {
        let tally = &mut self.tally;
        tally.requests += count;
        tally.first_bytes += count;
        tally.first_byte_sum_ns += count * (took.send_lag + took.first_byte);
        tally.last_bytes += count;
        tally.last_byte_sum_ns += count * took.response;
        tally.send_lag_sum_ns += count * took.send_lag;
        if let Some(class) = tally.statuses.get_mut(usize::from(outcome.class)) {
            *class += count;
        }
        self.said[usize::from(outcome.number)] += count;
        match measured {
            Measured::Yes => self.measure((outcome, count), took),
            Measured::No => self.unmeasured += count,
        }
    }

    #[inline]
    fn measure(&mut self, (outcome, count): (Outcome, u64), took: &ResponseTimes) {
        self.recent.add(count, took, &mut self.times);
        self.classes.record(outcome.class, took.response, count);
    }

    /// Puts everything that was measured into `times`, for whoever takes them.
    pub(crate) fn settle(&mut self) {
        self.recent.move_to(&mut self.times);
    }

    /// So many responses came behind the end.
    pub(crate) fn responded_late(
        &mut self,
        (outcome, count): (Outcome, u64),
        took: &ResponseTimes,
        measured: Measured,
    ) {
        self.late += count;
        match measured {
            Measured::Yes => self.measure((outcome, count), took),
            Measured::No => self.late_unmeasured += count,
        }
    }

    /// So many responses were to requests of this kind.
    #[inline]
    pub(crate) fn responded_kind(
        &mut self,
        (kind, count): (usize, u64),
        response: u64,
        measured: Measured,
    ) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.responses += count;
            if measured == Measured::Yes {
                kind.response.record_many(response, count);
            }
        }
    }

    /// A request of this kind got no response; it had waited for so long.
    pub(crate) fn unanswered_kind(&mut self, kind: usize, waited: u64) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.unanswered.record(waited);
        }
    }

    /// The response was another than expected; `what` it was.
    pub(crate) fn unexpected(&mut self, kind: usize, met: Met, what: impl FnOnce() -> String) {
        let failure = match met {
            Met::Yes => return,
            Met::OtherOutcome => Failure::UnexpectedStatus,
            Met::OtherBody => Failure::UnexpectedBody,
        };
        self.count(failure, 1);
        self.tally.unexpected += 1;
        self.unexpected.get_or_insert_with(what);
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.unexpected += 1;
        }
    }

    /// Bytes came behind a response that nobody had asked for. The response has been counted, and no request is lost by it.
    pub(crate) fn unasked(&mut self) {
        self.count(Failure::UnexpectedBytes, 1);
        self.tally.unexpected += 1;
        self.unexpected
            .get_or_insert_with(|| "bytes behind it that nobody had asked for".to_owned());
    }

    /// A connection is ready for requests, so long after its first packet.
    pub(crate) fn connected(&mut self, took: Took) {
        self.opened();
        self.times.connect.record(took.all_ns);
        self.connect_own_ns += took.own_ns;
    }

    /// A socket is ready for requests.
    pub(crate) fn opened(&mut self) {
        self.established += 1;
        self.tally.connections_open += 1;
        self.connections_max = self.connections_max.max(self.tally.connections_open);
    }

    /// What TCP counted on a connection that has ended.
    pub(crate) fn add_tcp(&mut self, info: TcpInfo) {
        *self.tcp.get_or_insert_default() += TcpTotal::of(info);
    }

    /// So many requests got no response.
    pub(crate) fn failed(&mut self, failure: Failure, requests: u64) {
        self.tally.requests += requests;
        self.count(failure, requests);
    }

    /// A connection could not be made.
    pub(crate) fn connect_failed(&mut self, error: &NotConnected) {
        self.connect_error.get_or_insert_with(|| error.to_string());
        self.count(Failure::of_not_connected(error), 1);
    }

    /// A TLS handshake was done, within so long.
    pub(crate) fn shaken(&mut self, info: &Info, took: Took) {
        let handshakes = self.handshakes.get_or_insert(Handshakes {
            count: 0,
            resumed: 0,
            sum_ns: 0,
            own_ns: 0,
            version: info.version,
            cipher: info.cipher,
        });
        handshakes.count += 1;
        handshakes.resumed += u64::from(info.is_resumed);
        handshakes.sum_ns += took.all_ns;
        handshakes.own_ns += took.own_ns;
        self.times.tls.record(took.all_ns);
    }

    /// Something is wrong that costs no request its response.
    pub(crate) fn count(&mut self, failure: Failure, times: u64) {
        self.tally.errors += times;
        self.failures[failure as usize] += times;
    }

    /// Responses received.
    pub(crate) fn responses(&self) -> u64 {
        self.tally.last_bytes
    }

    /// Failures to connect, of all kinds.
    pub(crate) fn connect_failures(&self) -> u64 {
        self.failures[..=Failure::Handshake as usize].iter().sum()
    }

    /// How often `failure` happened.
    pub(crate) fn failures_of(&self, failure: Failure) -> u64 {
        self.failures[failure as usize]
    }

    /// Responses other than the run expects. The verdict judges those with more bytes than they should have on their own.
    pub(crate) fn unexpected_responses(&self) -> u64 {
        let kinds = Failure::ALL.into_iter();
        kinds
            .filter(|kind| kind.has_response() && *kind != Failure::UnexpectedBytes)
            .map(|kind| self.failures_of(kind))
            .sum()
    }

    /// How often each happened, in the order of [`Failure::ALL`].
    pub(crate) fn failures(&self) -> [u64; Failure::ALL.len()] {
        self.failures
    }

    /// Adds what another core has counted.
    pub(crate) fn merge(&mut self, other: &Record) {
        self.tally += other.tally;
        self.times.merge(&other.times);
        other.recent.add_to(&mut self.times);
        self.classes.merge(&other.classes);
        self.unmeasured += other.unmeasured;
        self.unaccepted += other.unaccepted;
        self.sent += other.sent;
        self.late += other.late;
        self.late_unmeasured += other.late_unmeasured;
        self.unanswered.merge(&other.unanswered);
        self.connections_max += other.connections_max;
        if let Some(other) = other.tcp {
            *self.tcp.get_or_insert_default() += other;
        }
        let counters = self.said.iter_mut().chain(&mut self.failures);
        let others = other.said.iter().chain(&other.failures);
        counters.zip(others).for_each(|(sum, more)| *sum += more);
        self.established += other.established;
        self.connect_own_ns += other.connect_own_ns;
        self.resent += other.resent;
        self.refused += other.refused;
        self.handshakes = Handshakes::sum(self.handshakes, other.handshakes);
        if self.connect_error.is_none() {
            self.connect_error.clone_from(&other.connect_error);
        }
        self.cancelled = other.cancelled.or(self.cancelled);
        self.protocol_error = other.protocol_error.or(self.protocol_error);
        if self.unexpected.is_none() {
            self.unexpected.clone_from(&other.unexpected);
        }
        if self.kinds.is_empty() {
            self.kinds.clone_from(&other.kinds);
        } else {
            for (sum, more) in self.kinds.iter_mut().zip(&other.kinds) {
                sum.merge(more);
            }
        }
        self.begun += other.begun;
        match (&mut self.journeys, &other.journeys) {
            (Some(sum), Some(more)) => sum.merge(more),
            (sum @ None, more) => sum.clone_from(more),
            (Some(_), None) => {}
        }
    }
}

/// Whether a response belongs to what is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Measured {
    Yes,
    No,
}

#[cfg(test)]
mod tests;
