//! For how long the requests of a core have waited that have no answer: those on their way, and those that were due and
//! not sent.

use onrush_engine::Instant;
use onrush_measure::histogram::Histogram;

use super::{Client, Source, Waiting};
use crate::backlog::PIECES;
use crate::pace::Schedule;
use crate::unanswered::Unanswered;

impl Client {
    /// Sets `sum` to what requests without an answer have waited so far, those for whose answer nobody waits any more among
    /// them. Costs a look at each connection.
    pub(crate) fn unanswered(&self, sum: &mut Unanswered) {
        let now = self.core.now_exact();
        sum.clear();
        sum.merge(&self.record.borrow().unanswered);
        for waiting in &self.waiting {
            waiting.get().add_to(sum, now);
        }
        if self.end.get().is_some() || !self.started.is_given() {
            // At the end they were missed, and are among the others.
            return;
        }
        match &self.source {
            Source::Open(dispatch) => dispatch.add_waits(now, &mut sum.response),
            Source::Closed | Source::Think(..) | Source::Own => {
                self.overdue(now, |wait, count| sum.response.record_many(wait, count));
            }
        }
    }

    /// Nobody waits for answers any more: what is known of those that have not come is how long they have not.
    pub(crate) fn give_up(&self) {
        let now = self.core.now_exact();
        let mut record = self.record.borrow_mut();
        for waiting in &self.waiting {
            waiting.take().add_to(&mut record.unanswered, now);
        }
    }

    /// All that was due before `over` and never sent is missed.
    pub(super) fn miss_all(&self, over: Instant) {
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
        if missed.count() > 0 {
            self.record.borrow_mut().unanswered.response.merge(&missed);
        }
    }

    /// Tells for how long requests have been due at `now`, in nanoseconds, that connections with their own time have not
    /// sent: of many at once the shortest of their times.
    fn overdue(&self, now: Instant, mut tell: impl FnMut(u64, u64)) {
        let mut left = self.budget.get().left().unwrap_or(u64::MAX);
        for schedule in &self.schedules {
            let mut schedule: Schedule = schedule.get();
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

impl Waiting {
    fn add_to(self, sum: &mut Unanswered, now: Instant) {
        if self.count > 0 {
            let [response, service] =
                [self.start, self.ready].map(|since| now.nanoseconds_since(since));
            sum.record(response, service, self.count);
        }
    }
}
