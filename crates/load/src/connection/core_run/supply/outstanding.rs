//! Waits of a core's requests without a response: those outstanding, and those due and not sent.

use std::cell::Cell;
use std::ops::Range;

use onrush_engine::Instant;
use onrush_measure::histogram::Histogram;

use super::{Source, Supply};
use crate::connection::work::Work;
use crate::pace::backlog::BLOCKS;
use crate::record::incomplete_waits::IncompleteWaits;

/// Requests of one connection without a response.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connection::core_run) struct PendingRequests {
    pub(in crate::connection::core_run) start: Instant,
    ready: Instant,
    /// Run-wide number of the first.
    number: u64,
    count: u64,
}

impl PendingRequests {
    /// The first `count` requests of `work`.
    pub(in crate::connection::core_run) fn new(work: &Work, count: u64) -> PendingRequests {
        PendingRequests {
            start: work.start,
            ready: work.ready,
            number: work.number,
            count,
        }
    }

    pub(in crate::connection::core_run) fn numbers(self) -> Range<u64> {
        self.number..self.number + self.count
    }

    /// Adds their waits until `now`.
    pub(in crate::connection::core_run) fn add_to(self, sum: &mut IncompleteWaits, now: Instant) {
        if self.count > 0 {
            let [response, service] =
                [self.start, self.ready].map(|since| now.nanoseconds_since(since));
            sum.record(response, service, self.count);
        }
    }
}

impl Supply {
    /// Records that the requests of `work` are outstanding.
    pub(in crate::connection::core_run) fn note_waiting(&self, work: &Work) {
        self.waiting[work.index as usize]
            .set(PendingRequests::new(work, work.due + work.remaining));
    }

    /// Records that connection `index` of the core has no outstanding request.
    pub(in crate::connection::core_run) fn note_no_wait(&self, index: u32) {
        self.waiting[index as usize].take();
    }

    /// Returns the outstanding requests of each connection.
    pub(in crate::connection::core_run) fn waits(
        &self,
    ) -> impl Iterator<Item = PendingRequests> + '_ {
        self.waiting.iter().map(Cell::get)
    }

    /// The same at the end of the run; afterwards there are none.
    pub(in crate::connection::core_run) fn take_waits(
        &self,
    ) -> impl Iterator<Item = PendingRequests> + '_ {
        self.waiting.iter().map(Cell::take)
    }

    /// Adds the delays at `now` of due requests that were not sent to `waits`, in nanoseconds.
    pub(in crate::connection::core_run) fn add_due(&self, waits: &mut Histogram, now: Instant) {
        match &self.source {
            Source::Open(dispatch) => dispatch.add_waits(now, waits),
            Source::Closed | Source::Think(..) | Source::PerConnection => {
                self.overdue(now, |wait, count| waits.record_many(wait, count));
            }
        }
    }

    /// Ends the run. Requests that were due before `over` and not sent are missed; returns their delays.
    pub(in crate::connection::core_run) fn close(&self, over: Instant) -> Histogram {
        let mut missed = Histogram::new();
        if let Source::Open(dispatch) = &self.source {
            dispatch.end(over);
            dispatch.add_waits(over, &mut missed);
        } else {
            self.overdue(over, |wait, count| {
                self.missed.set(self.missed.get() + count);
                missed.record_many(wait, count);
            });
        }
        self.is_over.set(true);
        missed
    }

    /// Calls `tell` with the delay, in nanoseconds, and the number of requests overdue at `now`, for connections with
    /// their own rate. For a block of requests the delay is the shortest.
    fn overdue(&self, now: Instant, mut tell: impl FnMut(u64, u64)) {
        let mut left = self.budget.get().left().unwrap_or(u64::MAX);
        for schedule in &self.schedules {
            let mut schedule = schedule.get();
            let mut turns = schedule.turns_before(now);
            while turns > 0 && left > 0 {
                let piece = (turns / BLOCKS).max(1);
                schedule.skip(piece - 1);
                let count = (piece * self.turn).min(left);
                tell(now.nanoseconds_since(schedule.next()), count);
                turns -= piece;
                left -= count;
            }
        }
    }
}
