//! For how long the requests of a core have waited that have no response: those on their way, and those that were due and
//! not sent.

use std::cell::Cell;
use std::ops::Range;

use onrush_engine::Instant;
use onrush_measure::histogram::Histogram;

use super::{Source, Supply};
use crate::connection::work::Work;
use crate::pace::backlog::PIECES;
use crate::record::unanswered::Unanswered;

/// Requests of one connection that have no response.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connection::core_run) struct Waiting {
    /// Their intended start.
    pub(in crate::connection::core_run) start: Instant,
    ready: Instant,
    /// Number, in the whole run, of the first.
    number: u64,
    count: u64,
}

impl Waiting {
    /// The first `count` requests of `work`.
    pub(in crate::connection::core_run) fn new(work: &Work, count: u64) -> Waiting {
        Waiting {
            start: work.start,
            ready: work.ready,
            number: work.number,
            count,
        }
    }

    /// Their numbers in the whole run.
    pub(in crate::connection::core_run) fn numbers(self) -> Range<u64> {
        self.number..self.number + self.count
    }

    /// Adds what they have waited until `now`.
    pub(in crate::connection::core_run) fn add_to(self, sum: &mut Unanswered, now: Instant) {
        if self.count > 0 {
            let [response, service] =
                [self.start, self.ready].map(|since| now.nanoseconds_since(since));
            sum.record(response, service, self.count);
        }
    }
}

impl Supply {
    /// The requests of `work` wait for their responses.
    pub(in crate::connection::core_run) fn note_waiting(&self, work: &Work) {
        self.waiting[work.index as usize].set(Waiting::new(work, work.due + work.rest));
    }

    /// Connection `index` of the core waits for no response.
    pub(in crate::connection::core_run) fn note_no_wait(&self, index: u32) {
        self.waiting[index as usize].take();
    }

    /// Requests that wait on each connection.
    pub(in crate::connection::core_run) fn waits(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.waiting.iter().map(Cell::get)
    }

    /// The same at the end of the run; none wait afterwards.
    pub(in crate::connection::core_run) fn take_waits(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.waiting.iter().map(Cell::take)
    }

    /// Adds to `waits` for how long requests have been due at `now` that were not sent, in nanoseconds.
    pub(in crate::connection::core_run) fn add_due(&self, waits: &mut Histogram, now: Instant) {
        match &self.source {
            Source::Open(dispatch) => dispatch.add_waits(now, waits),
            Source::Closed | Source::Think(..) | Source::Own => {
                self.overdue(now, |wait, count| waits.record_many(wait, count));
            }
        }
    }

    /// The run is over. All that was due before `over` and never sent is missed; returns for how long it had been due.
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

    /// Tells for how long requests have been due at `now`, in nanoseconds, that connections with their own time have not
    /// sent: of many at once the shortest of their times.
    fn overdue(&self, now: Instant, mut tell: impl FnMut(u64, u64)) {
        let mut left = self.budget.get().left().unwrap_or(u64::MAX);
        for schedule in &self.schedules {
            let mut schedule = schedule.get();
            let mut turns = schedule.turns_before(now);
            while turns > 0 && left > 0 {
                let piece = (turns / PIECES).max(1);
                schedule.skip(piece - 1);
                let count = (piece * self.turn).min(left);
                tell(now.nanoseconds_since(schedule.next()), count);
                turns -= piece;
                left -= count;
            }
        }
    }
}
