//! Requests whose connection ended or could not be established: recorded as failed, or sent again.

use onrush_engine::{Errno, Instant, Kind, Op};
use onrush_http::http2::code::Code;
use onrush_tls::Transport;

use super::CoreRun;
use super::supply::PendingRequests;
use crate::connection::http2::Untouched;
use crate::connection::work::Work;
use crate::limits::http2::GOAWAY_RETRIES_MAX;
use crate::protocol::failure::{Failure, NoResponse, NotConnected};
use crate::record::Record;

impl CoreRun {
    pub(crate) fn connect_failed(&self, error: &NotConnected) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().connect_failed(error);
        }
    }

    /// Counts the end of a connection and its requests without a response.
    pub(crate) fn closed(&self, stream: &Transport, work: &mut Work, end: Result<(), NoResponse>) {
        if self.is_over() {
            // A connection that ends after the run counts as open during the run, and its requests as unfinished.
            return self.supply.give_up(work);
        }
        self.recorder.disconnected(stream, work);
        let mut record = self.recorder.record.borrow_mut();
        let failure = match end {
            Ok(()) if work.due == 0 => return,
            // No request was sent.
            Err(NoResponse::Unwritten) => return,
            // No request was sent, and bytes followed the last response.
            Err(NoResponse::Unasked) => return record.excess_bytes(),
            _ if self.may_repeat(stream, work, &end) => {
                record.resent += work.due;
                return;
            }
            Ok(()) => Failure::ClosedBeforeResponse,
            Err(lost) => {
                if let NoResponse::Refused(reason) = lost {
                    record.protocol_error = Some(reason);
                }
                Failure::of_lost(lost)
            }
        };
        if work.due == 0 {
            return record.count(failure, 1);
        }
        drop(record);
        self.fail(work, failure);
    }

    /// Records the requests of `work` as failed with `failure`; they are no longer awaited.
    pub(crate) fn fail(&self, work: &mut Work, failure: Failure) {
        if self.is_over() {
            return self.supply.give_up(work);
        }
        let mut record = self.recorder.record.borrow_mut();
        record.failed(failure, work.due);
        self.note_unanswered(&mut record, work, work.due);
        drop(record);
        self.supply.completed(work, work.due);
    }

    /// Records the waits of `requests` requests of `work` that ended without a response.
    pub(super) fn note_unanswered(&self, record: &mut Record, work: &Work, requests: u64) {
        self.add_wait(
            record,
            PendingRequests::new(work, requests),
            self.core.now_exact(),
        );
    }

    /// Records a wait that ends at `now`, if a response to its requests would have been measured.
    pub(super) fn add_wait(&self, record: &mut Record, waiting: PendingRequests, now: Instant) {
        if waiting.start < self.recorder.measured_from() {
            return;
        }
        waiting.add_to(&mut record.unanswered, now);
        let response = now.nanoseconds_since(waiting.start);
        for number in waiting.numbers() {
            record.unanswered_kind(self.kind_of(number), response);
        }
    }

    /// Records an invalid response to the request of `work`.
    pub(crate) fn refused(&self, work: &mut Work, reason: &'static str) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().protocol_error = Some(reason);
        }
        self.fail(work, Failure::Protocol);
    }

    /// Handles a GOAWAY that excludes the request of `work` from processing. The request is sent again, even if it is
    /// not idempotent, unless the code is an error or it has happened too often or for too long.
    pub(crate) fn unprocessed(&self, work: &mut Work, untouched: Untouched) {
        let Untouched {
            code,
            failed_connections: vain,
            sent,
        } = untouched;
        if code != Code::NO_ERROR || vain >= GOAWAY_RETRIES_MAX {
            return self.cancelled(work, Failure::GoAway, code);
        }
        if self.core.now_exact() >= sent + self.timeout {
            return self.fail(work, Failure::Timeout);
        }
        self.count_resent(work);
    }

    /// Counts the request of `work`, which the server did not process and which is sent again.
    fn count_resent(&self, work: &mut Work) {
        if self.is_over() {
            return self.supply.give_up(work);
        }
        self.recorder.record.borrow_mut().resent += work.due;
    }

    /// Handles a refused stream (REFUSED_STREAM): the request was not processed and is sent again over the same
    /// connection.
    pub(crate) fn stream_refused(&self, work: &mut Work) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().refused += work.due;
        }
        self.count_resent(work);
    }

    /// Records the requests of `work` as failed with `failure` and the server's error code.
    pub(crate) fn cancelled(&self, work: &mut Work, failure: Failure, code: Code) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().cancelled = Some(code);
        }
        self.fail(work, failure);
    }

    /// Counts invalid bytes on a connection without outstanding requests.
    pub(crate) fn invalid_bytes(&self, reason: &'static str) {
        if !self.is_over() {
            let mut record = self.recorder.record.borrow_mut();
            record.protocol_error = Some(reason);
            record.count(Failure::Protocol, 1);
        }
    }

    /// Counts bytes after the response that was just recorded.
    pub(crate) fn unexpected_bytes(&self) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().excess_bytes();
        }
    }

    /// Whether the due requests may be sent again after `end`: the server cannot have read them, and they are
    /// idempotent.
    fn may_repeat(&self, stream: &Transport, work: &Work, end: &Result<(), NoResponse>) -> bool {
        let protocol = &self.plan.protocol;
        let mut numbers = work.number..work.number + work.due;
        self.was_not_received(stream, work, end)
            && numbers.all(|number| protocol.kind(protocol.kind_of(number)).is_repeatable)
    }

    /// Whether the server cannot have read the due requests.
    pub(super) fn was_not_received(
        &self,
        stream: &Transport,
        work: &Work,
        end: &Result<(), NoResponse>,
    ) -> bool {
        match end {
            // The server did not process requests pipelined after one whose response has `Connection: close` (RFC 9112
            // section 9.6).
            Ok(()) => true,
            // The kernel did not accept the batch; since it is small, no part of it was sent.
            Err(NoResponse::Failed(error))
                if error.op == Op::Send && !self.may_exceed_buffers() =>
            {
                work.is_kept() && error.kind == Kind::Os(Errno::PIPE)
            }
            Err(NoResponse::Ended) => work.is_kept() && work.was_not_received(stream),
            Err(NoResponse::Failed(error)) => {
                let has_ended = error.kind == Kind::Os(Errno::PIPE);
                work.is_kept() && has_ended && work.was_not_received(stream)
            }
            Err(
                NoResponse::Unwritten
                | NoResponse::Unasked
                | NoResponse::Broken(_)
                | NoResponse::Cut
                | NoResponse::Refused(_),
            ) => false,
        }
    }
}
