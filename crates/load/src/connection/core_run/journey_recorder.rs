//! Records the requests of users on journeys, which take the place of connections that send a mix.

use onrush_engine::Instant;
use onrush_tls::Transport;

use super::CoreRun;
use super::recorder::Received;
use crate::connection::work::Work;
use crate::protocol::failure::{Failure, NoResponse, NotConnected};
use crate::record::journeys::JourneysRecord;
use crate::requests::response::Outcome;

/// Whether a request counts as part of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    Yes,
    /// It belongs to a user's setup.
    No,
}

impl CoreRun {
    /// Changes the journeys' counters, unless the run is over.
    pub(crate) fn journeys(&self, change: impl FnOnce(&mut JourneysRecord)) {
        if self.is_over() {
            return;
        }
        let mut record = self.recorder.record.borrow_mut();
        change(
            record
                .journeys
                .as_mut()
                .expect("a step of a journey was recorded in a run without journeys"),
        );
    }

    /// Starts a request of `work` with the intended start `due`. From `now` on only the generator delays it.
    pub(crate) fn step_begins(&self, work: &mut Work, due: Instant, now: Instant) {
        work.start = due;
        work.ready = now;
        work.written = Instant::default();
    }

    /// Records that the request is sent. From now on a response is pending.
    pub(crate) fn step_sends(
        &self,
        stream: &Transport,
        work: &mut Work,
        bytes: u64,
        counted: Counted,
    ) {
        work.queued(bytes);
        self.extend_deadline(stream, self.core.now_exact());
        if counted == Counted::Yes {
            self.supply.note_waiting(work);
            self.journeys(|record| {
                record.requests_sent += 1;
                record.in_flight += 1;
            });
        }
    }

    /// Counts received bytes and extends the deadline. Returns the time of the receive.
    pub(crate) fn step_received(
        &self,
        stream: &Transport,
        bytes: usize,
        counted: Counted,
    ) -> Instant {
        match counted {
            Counted::Yes => self.received(stream, bytes),
            Counted::No => {
                let now = self.core.now_exact();
                self.extend_deadline(stream, now);
                now
            }
        }
    }

    /// Records the response to the request of `work`, received at `now` over `stream`.
    pub(crate) fn step_responded(
        &self,
        stream: &Transport,
        work: &mut Work,
        received: Received,
        now: Instant,
    ) {
        self.supply.note_no_wait(work.index);
        let written = stream.written().unwrap_or(work.start);
        let took = self.times(work, &received, written, now);
        let measured = self.recorder.measured(work.start, &received);
        if self.is_over() {
            let mut record = self.recorder.record.borrow_mut();
            record.responded_late((received.response.outcome, 1), &took, measured);
            return;
        }
        self.recorder.note_responses(work.index, 1, now);
        self.recorder.record.borrow_mut().responded(
            (received.response.outcome, 1),
            &took,
            measured,
        );
        self.journeys(|record| record.in_flight -= 1);
        self.recorder.sample_once(stream, work);
    }

    /// Counts the last response of a step that does not check the status.
    pub(crate) fn step_unlisted(&self, outcome: Outcome, counted: Counted) {
        if counted == Counted::Yes && !self.is_over() {
            self.recorder
                .record
                .borrow_mut()
                .count_unaccepted((outcome, 1));
        }
    }

    /// Handles the loss of a connection before the response to the request of `work`. Returns the failure, or `None` if
    /// the request is to be sent again.
    pub(crate) fn step_lost(
        &self,
        stream: &Transport,
        work: &Work,
        lost: NoResponse,
        (counted, repeatable): (Counted, Repeatable),
    ) -> Option<Failure> {
        let is_again =
            repeatable == Repeatable::Yes && self.was_not_received(stream, work, &Err(lost));
        let failure = Failure::of_lost(lost);
        if counted == Counted::No {
            return (!is_again).then_some(failure);
        }
        self.supply.note_no_wait(work.index);
        self.journeys(|record| record.in_flight -= 1);
        if self.is_over() {
            return Some(failure);
        }
        let mut record = self.recorder.record.borrow_mut();
        if is_again {
            record.resent += 1;
            // A request counts once, however often it is sent.
            if let Some(journeys) = &mut record.journeys {
                journeys.requests_sent -= 1;
            }
            return None;
        }
        if let NoResponse::Refused(reason) = lost {
            record.protocol_error = Some(reason);
        }
        record.failed(failure, 1);
        self.note_unanswered(&mut record, work, 1);
        Some(failure)
    }

    /// Counts a response with a failed check; `what` describes it.
    pub(crate) fn step_wrong(&self, failure: Failure, what: impl FnOnce() -> String) {
        if self.is_over() {
            return;
        }
        let mut record = self.recorder.record.borrow_mut();
        record.count(failure, 1);
        record.tally.unexpected += 1;
        record.unexpected.get_or_insert_with(what);
    }

    /// Counts the failure of a user's setup, whose requests are not part of the run.
    pub(crate) fn setup_failed(&self, failure: Failure) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().count(failure, 1);
        }
    }

    /// Counts a failure to connect for a user; returns its classification.
    pub(crate) fn link_failed(&self, error: &NotConnected) -> Failure {
        self.connect_failed(error);
        Failure::of_not_connected(error)
    }

    pub(crate) fn link_ended(&self, stream: &Transport, work: &Work) {
        if !self.is_over() {
            self.recorder.disconnected(stream, work);
        }
    }

    /// Counts unexpected bytes on a user's connection.
    pub(crate) fn link_unasked(&self) {
        if !self.is_over() {
            self.recorder.record.borrow_mut().excess_bytes();
        }
    }
}

/// Whether a request is idempotent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeatable {
    Yes,
    No,
}
