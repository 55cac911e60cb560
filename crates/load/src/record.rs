//! Counters and histograms of one core. They are updated at every response, so they allocate only when they are
//! created. They are read once a second and at the end of the run.

pub mod evidence;
pub mod figures;
pub mod history;
pub(crate) mod host;
pub mod incomplete_waits;
pub(crate) mod journeys;
pub(crate) mod kind;
pub(crate) mod live_counters;
pub(crate) mod provenance;
pub(crate) mod rows;
pub(crate) mod silence;
pub mod times;

pub(crate) mod class_times;
mod handshakes;
mod limits;
mod outcome_counts_by_name;
mod pending_times;
mod tcp;

use class_times::ClassTimes;
use onrush_engine::TcpInfo;
use onrush_measure::second::Tally;
use onrush_tls::Info;

use onrush_http::http2::code::Code;

use crate::limits::KINDS_SHOWN_MAX;
use crate::plan::Plan;
use crate::protocol::failure::{Failure, NotConnected};
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::journeys::JourneysRecord;
use crate::record::kind::KindRecord;
use crate::record::times::{ResponseTimes, Times};
use crate::requests::response::{ExpectationResult, Outcome, Outcomes};
pub(crate) use handshakes::{ConnectTime, Handshakes};
use pending_times::PendingTimes;
pub(crate) use tcp::TcpTotal;

/// Counters of one core, or the sum over several.
#[derive(Debug)]
pub(crate) struct Record {
    /// Counters shown in the rows. Invariant: `requests` = responses (`last_bytes`) + failed requests.
    pub(crate) tally: Tally,
    /// Response times of the current second; the collecting thread has the earlier ones. Boxed, to be swapped each
    /// second.
    pub(crate) times: Box<Times>,
    /// Response times not yet added to `times`.
    recent: PendingTimes,
    /// Response times by class of status, including late responses.
    pub(crate) classes: ClassTimes,
    /// Responses that no histogram contains because they belong to ramp or warm-up.
    pub(crate) unmeasured: u64,
    /// Requests taken to be sent; set at the end of the run. Invariant: = responses + failed + in flight.
    pub(crate) sent: u64,
    /// Responses received after the end of the run. Their times are in the histograms; no other counter includes them.
    pub(crate) late: u64,
    /// Late responses that no histogram contains.
    pub(crate) late_unmeasured: u64,
    pub(crate) unanswered: IncompleteWaits,
    pub(crate) connections_max: u64,
    /// TCP counters of the sampled connections; `None` before the first.
    pub(crate) tcp: Option<TcpTotal>,
    /// The possible outcomes of a response, and in `said` the number of responses with each.
    outcomes: &'static Outcomes,
    said: Box<[u64]>,
    /// See [`Evidence::unaccepted`](crate::record::evidence::Evidence::unaccepted).
    pub(crate) unaccepted: u64,
    /// In the order of [`Failure::ALL`]. Invariant: their sum is `tally.errors`.
    failures: [u64; Failure::ALL.len()],
    pub(crate) established: u64,
    /// Requests sent again because the server had not processed them: it closed a kept-alive connection before they
    /// arrived, excluded them in a GOAWAY, or refused their streams (REFUSED_STREAM).
    pub(crate) resent: u64,
    /// Resent requests whose streams the server refused on a connection that stayed open.
    pub(crate) refused: u64,
    /// Upper bound of the delay that the generator itself added to the connect times, in nanoseconds.
    pub(crate) connect_own_ns: u64,
    pub(crate) handshakes: Option<Handshakes>,
    /// The first failure to connect, for the message about it.
    pub(crate) connect_error: Option<String>,
    /// The last violation of the protocol in a response.
    pub(crate) protocol_error: Option<&'static str>,
    /// Error code with which the server last ended an HTTP/2 stream or connection.
    pub(crate) cancelled: Option<Code>,
    /// Description of the first unexpected response.
    pub(crate) unexpected: Option<String>,
    /// Counters of each kind of request; empty with one kind or more than `KINDS_SHOWN_MAX`.
    pub(crate) kinds: Box<[KindRecord]>,
    /// Requests, or journeys, that the pace started; set at the end of the run.
    pub(crate) begun: u64,
    /// Counters of journeys, in a run with users. Boxed, because most runs have none.
    pub(crate) journeys: Option<Box<JourneysRecord>>,
}

impl Record {
    pub(crate) fn new(outcomes: &'static Outcomes) -> Record {
        Record::of(outcomes, 1)
    }

    pub(crate) fn of_plan(plan: &Plan) -> Record {
        let outcomes = plan.protocol.outcomes();
        match &plan.journeys {
            None => Record::of(outcomes, plan.protocol.kinds()),
            Some((journeys, _)) => Record::of_journeys(outcomes, JourneysRecord::of(journeys)),
        }
    }

    pub(crate) fn of(outcomes: &'static Outcomes, kinds: usize) -> Record {
        let shown = if (2..=KINDS_SHOWN_MAX).contains(&kinds) {
            kinds
        } else {
            0
        };
        Record {
            tally: Tally::default(),
            times: Box::default(),
            recent: PendingTimes::default(),
            classes: ClassTimes::default(),
            unmeasured: 0,
            sent: 0,
            late: 0,
            late_unmeasured: 0,
            unanswered: IncompleteWaits::default(),
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

    pub(crate) fn of_journeys(outcomes: &'static Outcomes, journeys: JourneysRecord) -> Record {
        Record {
            journeys: Some(Box::new(journeys)),
            ..Record::new(outcomes)
        }
    }

    /// Counts responses with the same outcome and times.
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

    /// Moves all response times into `times`.
    pub(crate) fn flush_times(&mut self) {
        self.recent.move_to(&mut self.times);
    }

    /// Counts responses received after the end of the run.
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

    pub(crate) fn unanswered_kind(&mut self, kind: usize, waited: u64) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.unanswered.record(waited);
        }
    }

    /// Counts an unexpected response; `what` describes it.
    pub(crate) fn unexpected(
        &mut self,
        kind: usize,
        met: ExpectationResult,
        what: impl FnOnce() -> String,
    ) {
        let failure = match met {
            ExpectationResult::Yes => return,
            ExpectationResult::OtherOutcome => Failure::UnexpectedStatus,
            ExpectationResult::OtherBody => Failure::UnexpectedBody,
        };
        self.count(failure, 1);
        self.tally.unexpected += 1;
        self.unexpected.get_or_insert_with(what);
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.unexpected += 1;
        }
    }

    /// Counts bytes after a response that belong to no request. The response has been counted, and no request fails.
    pub(crate) fn excess_bytes(&mut self) {
        self.count(Failure::UnexpectedBytes, 1);
        self.tally.unexpected += 1;
        self.unexpected
            .get_or_insert_with(|| "unrequested bytes after it".to_owned());
    }

    /// Counts a connection that is ready for requests, and its connect time.
    pub(crate) fn connected(&mut self, took: ConnectTime) {
        self.opened();
        self.times.connect.record(took.all_ns);
        self.connect_own_ns += took.own_ns;
    }

    /// Counts a socket that is ready for requests.
    pub(crate) fn opened(&mut self) {
        self.established += 1;
        self.tally.connections_open += 1;
        self.connections_max = self.connections_max.max(self.tally.connections_open);
    }

    pub(crate) fn add_tcp(&mut self, info: TcpInfo) {
        *self.tcp.get_or_insert_default() += TcpTotal::of(info);
    }

    pub(crate) fn failed(&mut self, failure: Failure, requests: u64) {
        self.tally.requests += requests;
        self.count(failure, requests);
    }

    pub(crate) fn connect_failed(&mut self, error: &NotConnected) {
        self.connect_error.get_or_insert_with(|| error.to_string());
        self.count(Failure::of_not_connected(error), 1);
    }

    /// Counts a completed TLS handshake.
    pub(crate) fn handshake_done(&mut self, info: &Info, took: ConnectTime) {
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

    /// Counts an error that does not cost a request its response.
    pub(crate) fn count(&mut self, failure: Failure, times: u64) {
        self.tally.errors += times;
        self.failures[failure as usize] += times;
    }

    pub(crate) fn responses(&self) -> u64 {
        self.tally.last_bytes
    }

    pub(crate) fn connect_failures(&self) -> u64 {
        self.failures[..=Failure::Handshake as usize].iter().sum()
    }

    pub(crate) fn failures_of(&self, failure: Failure) -> u64 {
        self.failures[failure as usize]
    }

    /// Responses other than expected, except those with excess bytes, which the verdict judges separately.
    pub(crate) fn unexpected_responses(&self) -> u64 {
        let kinds = Failure::ALL.into_iter();
        kinds
            .filter(|kind| kind.has_response() && *kind != Failure::UnexpectedBytes)
            .map(|kind| self.failures_of(kind))
            .sum()
    }

    pub(crate) fn failures(&self) -> [u64; Failure::ALL.len()] {
        self.failures
    }

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

/// Whether a response is in the measured window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Measured {
    Yes,
    No,
}

#[cfg(test)]
mod tests;
