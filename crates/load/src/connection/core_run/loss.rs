//! What becomes of requests whose connection ended, or could not be made.

use onrush_engine::{Errno, Instant, Kind, Op};
use onrush_http::http2::code::Code;
use onrush_tls::Transport;

use super::CoreRun;
use super::supply::Waiting;
use crate::connection::http2::Untouched;
use crate::connection::work::Work;
use crate::limits::http2::VAIN_CONNECTIONS_MAX;
use crate::protocol::failure::{Failure, Lost, NotConnected};
use crate::record::Record;

impl CoreRun {
    /// A connection could not be made.
    pub(crate) fn connect_failed(&self, error: &NotConnected) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().connect_failed(error);
        }
    }

    /// Counts how a connection ended, and what became of the requests still due.
    pub(crate) fn closed(&self, stream: &Transport, work: &mut Work, end: Result<(), Lost>) {
        if self.is_over() {
            // What ends behind the end was open for the whole run, is shown so, and whatever it did not do is unfinished.
            return self.supply.leave(work);
        }
        self.recorder.disconnected(stream, work);
        let mut record = self.recorder.record.borrow_mut();
        let failure = match end {
            Ok(()) if work.due == 0 => return,
            // Nothing had been written that could be lost.
            Err(Lost::Unwritten) => return,
            // The same, and the response before had more bytes than it should have.
            Err(Lost::Unasked) => return record.unasked(),
            _ if self.may_repeat(stream, work, &end) => {
                record.resent += work.due;
                return;
            }
            Ok(()) => Failure::ClosedUnanswered,
            Err(lost) => {
                if let Lost::Refused(reason) = lost {
                    record.protocol_error = Some(reason);
                }
                Failure::of_lost(lost)
            }
        };
        if work.due == 0 {
            return record.count(failure, 1);
        }
        drop(record);
        self.unanswered_for(work, failure);
    }

    /// The requests of `work` have no response, because of `failure`, and nobody waits for one any more.
    pub(crate) fn unanswered_for(&self, work: &mut Work, failure: Failure) {
        if self.is_over() {
            return self.supply.leave(work);
        }
        let mut record = self.recorder.record.borrow_mut();
        record.failed(failure, work.due);
        self.note_unanswered(&mut record, work, work.due);
        drop(record);
        self.supply.landed(work, work.due);
    }

    /// Records how long `requests` requests of `work` had waited when they ended without a response.
    pub(super) fn note_unanswered(&self, record: &mut Record, work: &Work, requests: u64) {
        self.add_wait(record, Waiting::new(work, requests), self.core.now_exact());
    }

    /// Records a wait that ends at `now`, if a response to its requests would have been measured.
    pub(super) fn add_wait(&self, record: &mut Record, waiting: Waiting, now: Instant) {
        if waiting.start < self.recorder.measured_from() {
            return;
        }
        waiting.add_to(&mut record.unanswered, now);
        let response = now.nanoseconds_since(waiting.start);
        for number in waiting.numbers() {
            record.unanswered_kind(self.kind_of(number), response);
        }
    }

    /// What came is no response to the request of `work`, for this reason.
    pub(crate) fn refused(&self, work: &mut Work, reason: &'static str) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().protocol_error = Some(reason);
        }
        self.unanswered_for(work, Failure::Protocol);
    }

    /// The server goes away and has said that it did nothing for the request of `work`: it is sent again, whatever it asks for, unless
    /// something is wrong with what is asked, or that has happened too often or for too long.
    pub(crate) fn untouched(&self, work: &mut Work, untouched: Untouched) {
        let Untouched { code, vain, sent } = untouched;
        if code != Code::NO_ERROR || vain >= VAIN_CONNECTIONS_MAX {
            return self.cancelled(work, Failure::GoneAway, code);
        }
        if self.core.now_exact() >= sent + self.timeout {
            return self.unanswered_for(work, Failure::Timeout);
        }
        self.sent_in_vain(work);
    }

    /// The server did nothing for the request of `work`, which is sent again.
    fn sent_in_vain(&self, work: &mut Work) {
        if self.is_over() {
            return self.supply.leave(work);
        }
        self.recorder.record.borrow_mut().resent += work.due;
    }

    /// The server has no stream yet for the request of `work`, and did nothing for it: it is sent again over the same connection.
    pub(crate) fn stream_refused(&self, work: &mut Work) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().refused += work.due;
        }
        self.sent_in_vain(work);
    }

    /// The requests of `work` have no response: the server has ended them, and has said why.
    pub(crate) fn cancelled(&self, work: &mut Work, failure: Failure, code: Code) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().cancelled = Some(code);
        }
        self.unanswered_for(work, failure);
    }

    /// What came over a connection on which nothing was due is not what its protocol has.
    pub(crate) fn broke(&self, reason: &'static str) {
        if !self.is_over() {
            let mut record = self.recorder.record.borrow_mut();
            record.protocol_error = Some(reason);
            record.count(Failure::Protocol, 1);
        }
    }

    /// More came than the response that was just recorded has.
    pub(crate) fn unasked(&self) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().unasked();
        }
    }

    /// Whether what is due may be sent again after `end`: the server cannot have read it, and nothing changes if it is
    /// done twice.
    fn may_repeat(&self, stream: &Transport, work: &Work, end: &Result<(), Lost>) -> bool {
        let protocol = &self.plan.protocol;
        let mut numbers = work.number..work.number + work.due;
        self.is_unread(stream, work, end)
            && numbers.all(|number| protocol.kind(protocol.kind_of(number)).is_repeatable)
    }

    /// Whether the server cannot have read what is due.
    pub(super) fn is_unread(
        &self,
        stream: &Transport,
        work: &Work,
        end: &Result<(), Lost>,
    ) -> bool {
        match end {
            // What was pipelined behind a response with `Connection: close` has not been looked at (RFC 9112 9.6).
            Ok(()) => true,
            // The kernel did not take it, which with a small batch means all of it.
            Err(Lost::Failed(error)) if error.op == Op::Send && !self.sends_much() => {
                work.is_kept() && error.kind == Kind::Os(Errno::PIPE)
            }
            Err(Lost::Ended) => work.is_kept() && work.is_unread(stream),
            Err(Lost::Failed(error)) => {
                let has_ended = error.kind == Kind::Os(Errno::PIPE);
                work.is_kept() && has_ended && work.is_unread(stream)
            }
            Err(
                Lost::Unwritten | Lost::Unasked | Lost::Broken(_) | Lost::Cut | Lost::Refused(_),
            ) => false,
        }
    }
}
