//! Send times of a flow's datagrams: without delay, limited by the outstanding ones, or at a rate.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::Instant;

use crate::pace::Pace;
use crate::pace::arrivals::{Arrivals, Share};
use crate::pace::stop::Budget;

/// Remaining budget of a core, shared by its flows.
pub(super) type SharedBudget = Rc<Cell<Budget>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Due {
    pub(super) count: u64,
    /// Intended send time of the first.
    pub(super) at: Instant,
}

/// Next action of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Send(Due),
    /// Wait until this moment.
    At(Instant),
    Over,
}

pub(super) struct Schedule {
    arrivals: Option<RefCell<Arrivals>>,
    /// Datagrams sent together.
    turn: u64,
    begin: Cell<Instant>,
    budget: SharedBudget,
}

impl Schedule {
    pub(super) fn new(pace: &Pace, share: Share, turn: u64, budget: &SharedBudget) -> Schedule {
        let arrivals = match pace {
            Pace::Open(plan) => Some(RefCell::new(Arrivals::new(plan, share, turn))),
            Pace::Closed | Pace::Think(_) | Pace::EachConnection(_) => None,
        };
        Schedule {
            arrivals,
            turn,
            begin: Cell::default(),
            budget: Rc::clone(budget),
        }
    }

    pub(super) fn begin(&self, begin: Instant) {
        self.begin.set(begin);
    }

    /// Whether datagrams are sent at a rate.
    pub(super) fn is_paced(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Returns the next action at `now`, with at most `most` datagrams.
    #[inline]
    pub(super) fn next(&self, now: Instant, most: u64) -> Next {
        let mut budget = self.budget.get();
        if budget.is_over(now) || budget.is_spent() {
            return Next::Over;
        }
        let (wanted, at) = match &self.arrivals {
            None => (most, now),
            Some(arrivals) => match self.take_due(&mut arrivals.borrow_mut(), now, most) {
                Ok(due) => due,
                // The run may end before the next datagram's due time.
                Err(Next::At(first)) => {
                    return Next::At(budget.end().map_or(first, |end| end.min(first)));
                }
                Err(next) => return next,
            },
        };
        let count = budget.take(now, wanted);
        self.budget.set(budget);
        Next::Send(Due { count, at })
    }

    /// Takes the datagrams due at `now`, at most `most` but at least one turn. Returns their number and the intended
    /// time of the first.
    fn take_due(
        &self,
        arrivals: &mut Arrivals,
        now: Instant,
        most: u64,
    ) -> Result<(u64, Instant), Next> {
        let begin = self.begin.get();
        let due = |arrivals: &Arrivals| Some(begin + Duration::from_nanos(arrivals.peek()?));
        let first = due(arrivals).ok_or(Next::Over)?;
        if first > now {
            return Err(Next::At(first));
        }
        let mut count = 0;
        loop {
            arrivals.skip(1);
            count += self.turn;
            let is_due = due(arrivals).is_some_and(|next| next <= now);
            if !is_due || count + self.turn > most {
                return Ok((count, first));
            }
        }
    }

    /// Returns the number of datagrams that were due before `end`, the end of the run, and were not sent.
    pub(super) fn skipped(&self, end: Instant) -> u64 {
        let Some(arrivals) = &self.arrivals else {
            return 0;
        };
        let turns = arrivals.borrow().turns_before(end.since(self.begin.get()));
        let due = turns * self.turn;
        self.budget.get().left().map_or(due, |left| due.min(left))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::pace::stop::Stop;

    const WHOLE: Share = Share {
        first: 0,
        stride: 1,
    };

    fn schedule(pace: &Pace, turn: u64, stop: Stop) -> Schedule {
        let begin = Instant::from_nanoseconds(1_000_000_000);
        let budget = Rc::new(Cell::new(stop.of_core(WHOLE, begin)));
        let schedule = Schedule::new(pace, WHOLE, turn, &budget);
        schedule.begin(begin);
        schedule
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanoseconds(1_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn closed_loop_sends_until_end() {
        let stop = Stop {
            after: Some(Duration::from_millis(10)),
            count: Some(40),
        };
        let schedule = schedule(&Pace::Closed, 1, stop);
        let send = |count, ms| Next::Send(Due { count, at: at(ms) });
        assert_eq!(schedule.next(at(1), 32), send(32, 1));
        assert_eq!(schedule.next(at(2), 32), send(8, 2));
        assert_eq!(schedule.next(at(3), 32), Next::Over);
        assert_eq!(schedule.skipped(at(10)), 0);
    }

    #[test]
    fn due_datagrams_are_sent_and_late_ones_skipped() {
        let stop = Stop {
            after: Some(Duration::from_millis(100)),
            count: None,
        };
        let rate = Pace::rate(NonZeroU64::new(1000).unwrap());
        let schedule = schedule(&rate, 1, stop);
        let send = |count, ms| Next::Send(Due { count, at: at(ms) });
        assert_eq!(schedule.next(at(0), 32), send(1, 0));
        assert_eq!(schedule.next(at(0), 32), Next::At(at(1)));
        assert_eq!(schedule.next(at(50), 32), send(32, 1));
        assert_eq!(schedule.next(at(50), 32), send(18, 33));
        assert_eq!(schedule.next(at(100), 32), Next::Over);
        // 0 to 50 were sent, 51 to 99 were not.
        assert_eq!(schedule.skipped(at(100)), 49);
    }

    #[test]
    fn datagrams_are_sent_in_whole_batches() {
        let stop = Stop {
            after: Some(Duration::from_millis(100)),
            count: None,
        };
        let rate = Pace::rate(NonZeroU64::new(1000).unwrap());
        let schedule = schedule(&rate, 10, stop);
        let send = |count, ms| Next::Send(Due { count, at: at(ms) });
        assert_eq!(schedule.next(at(0), 4), send(10, 0));
        assert_eq!(schedule.next(at(5), 4), Next::At(at(10)));
        assert_eq!(schedule.next(at(35), 25), send(20, 10));
        assert_eq!(schedule.skipped(at(100)), 70);
    }
}
