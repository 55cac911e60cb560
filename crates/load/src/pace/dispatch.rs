//! Who makes the next request of a core's open loop: the connection that has waited longest, and when none is free, the
//! first that will be. Arrivals belong to the core, so that one slow response delays no request that another connection
//! could make.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use onrush_engine::{Core, Instant};
use onrush_measure::histogram::Histogram;

use crate::pace::arrivals::Arrivals;
use crate::pace::backlog::{Backlog, NEVER};
use crate::pace::stop::Budget;

/// One core's arrivals and the connections that wait for them.
pub(crate) struct Dispatch(RefCell<State>);

/// What a connection is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    /// When it is intended to start.
    pub(crate) start: Instant,
    /// The number of the turn in the whole run.
    pub(crate) number: u64,
    /// Its requests.
    pub(crate) count: u64,
    /// Whether a connection was free for it when it was due, so that it is the generator's own doing when it is late.
    pub(crate) was_awaited: bool,
}

struct State {
    backlog: Backlog,
    /// What was due until then was released late, though connections were free.
    late_until: Instant,
    /// Connections that wait, the one that has waited longest first.
    idle: VecDeque<(u32, Waker)>,
    /// For each connection, the turn it was given and has not taken.
    given: Box<[Option<Turn>]>,
    /// What is further behind than this is left out.
    catch_up: Option<Duration>,
    /// Requests that were left out.
    missed: u64,
    /// For how long they had been due then, in nanoseconds.
    waits: Histogram,
    /// Releases what is due, and waits for somebody to release it to.
    runner: Option<Waker>,
    is_over: bool,
}

impl Dispatch {
    /// For `connections` connections of a core, in turns of `turn` requests.
    pub(crate) fn new(
        arrivals: Arrivals,
        turn: u64,
        connections: usize,
        catch_up: Option<Duration>,
    ) -> Dispatch {
        Dispatch(RefCell::new(State {
            backlog: Backlog::new(arrivals, turn),
            late_until: Instant::default(),
            idle: VecDeque::with_capacity(connections),
            given: vec![None; connections].into(),
            catch_up,
            missed: 0,
            waits: Histogram::new(),
            runner: None,
            is_over: false,
        }))
    }

    /// The run begins, and has this budget.
    pub(crate) fn begin(&self, begin: Instant, budget: Budget) {
        self.0.borrow_mut().backlog.begin(begin, budget);
    }

    /// Waits until connection `index` has requests to make, whose intended start may have passed; `None` when the run is
    /// over.
    pub(crate) async fn take(&self, core: &Core, index: u32) -> Option<Turn> {
        let mut is_waiting = false;
        poll_fn(|context| {
            let state = &mut *self.0.borrow_mut();
            if let Some(turn) = state.given[index as usize].take() {
                return Poll::Ready(Some(turn));
            }
            if state.is_over {
                return Poll::Ready(None);
            }
            if is_waiting {
                return Poll::Pending;
            }
            let now = core.now_exact();
            state.release(now);
            state.leave_out(now);
            if state.backlog.due() <= now {
                return Poll::Ready(Some(state.next()));
            }
            if state.is_over {
                // What was left out was the last.
                return Poll::Ready(None);
            }
            is_waiting = true;
            state.idle.push_back((index, context.waker().clone()));
            if let Some(runner) = state.runner.take() {
                runner.wake();
            }
            Poll::Pending
        })
        .await
    }

    /// Releases arrivals when they are due, to whoever waits, until the run is over.
    pub(crate) async fn run(&self, core: &Core) {
        while let Some(due) = self.wanted().await {
            if due > core.now_exact() {
                core.sleep_until(due).await;
            }
            self.0.borrow_mut().release(core.now_exact());
        }
    }

    /// When the next arrival is due that somebody waits for; waits for somebody. `None` when the run is over.
    async fn wanted(&self) -> Option<Instant> {
        poll_fn(|context| {
            let state = &mut *self.0.borrow_mut();
            if state.is_over {
                return Poll::Ready(None);
            }
            let due = state.backlog.due();
            if !state.idle.is_empty() && due != NEVER {
                return Poll::Ready(Some(due));
            }
            state.runner = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Time is over. What was due at `now` and nobody was free for, or has not taken yet, is missed, too.
    pub(crate) fn end(&self, now: Instant) {
        let state = &mut *self.0.borrow_mut();
        for index in 0..state.given.len() {
            if let Some(turn) = state.given[index].take() {
                state.miss(turn, now);
            }
        }
        state.miss_late(Duration::ZERO, now);
        state.close();
    }

    /// The time was over when `turn` was taken.
    pub(crate) fn miss(&self, turn: Turn, now: Instant) {
        self.0.borrow_mut().miss(turn, now);
    }

    /// Adds to `waits` for how long what was missed had been due, and what is due at `now` has been, in nanoseconds.
    pub(crate) fn add_waits(&self, now: Instant, waits: &mut Histogram) {
        let state = self.0.borrow();
        if state.missed > 0 {
            waits.merge(&state.waits);
        }
        if !state.is_over && state.backlog.due() < now {
            let mut backlog = state.backlog.clone();
            backlog.take_late(Duration::ZERO, now, |wait, count| {
                waits.record_many(wait.as_nanos() as u64, count);
            });
        }
    }

    /// Requests that were due and nobody made.
    pub(crate) fn missed(&self) -> u64 {
        self.0.borrow().missed
    }
}

impl State {
    /// Gives what is due to those who wait.
    fn release(&mut self, now: Instant) {
        while !self.idle.is_empty() {
            self.leave_out(now);
            if self.backlog.due() > now {
                return;
            }
            self.late_until = now;
            if let Some((index, waker)) = self.idle.pop_front() {
                self.given[index as usize] = Some(self.next());
                waker.wake();
            }
        }
    }

    fn leave_out(&mut self, now: Instant) {
        let Some(catch_up) = self.catch_up else {
            return;
        };
        self.miss_late(catch_up, now);
        if self.backlog.is_spent() {
            self.close();
        }
    }

    /// Leaves out what has been due for longer than `late`.
    fn miss_late(&mut self, late: Duration, now: Instant) {
        let State {
            backlog,
            missed,
            waits,
            ..
        } = self;
        backlog.take_late(late, now, |wait, count| {
            *missed += count;
            waits.record_many(wait.as_nanos() as u64, count);
        });
    }

    fn miss(&mut self, turn: Turn, now: Instant) {
        self.missed += turn.count;
        self.waits
            .record_many(now.nanoseconds_since(turn.start), turn.count);
    }

    /// Takes the next arrival, whenever it is due.
    fn next(&mut self) -> Turn {
        let taken = self.backlog.next();
        if self.backlog.is_spent() {
            self.close();
        }
        Turn {
            start: taken.start,
            number: taken.number,
            count: taken.count,
            was_awaited: taken.start <= self.late_until,
        }
    }

    fn close(&mut self) {
        self.is_over = true;
        self.runner.take().into_iter().for_each(Waker::wake);
        self.idle.drain(..).for_each(|(_, waker)| waker.wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::arrivals::{ArrivalPlan, Share};
    use crate::pace::stop::Stop;
    use onrush_engine::Simulation;
    use std::rc::Rc;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// One request per millisecond, for `connections` connections that each hold a request for `busy`. Returns for each
    /// request the connection, when it was due and when it was taken, in milliseconds since the start, and how many were
    /// missed.
    fn play(
        connections: u32,
        busy: &'static [u32],
        catch_up: Option<Duration>,
        run: Duration,
    ) -> (Vec<(u32, u64, u64)>, u64) {
        let core = Core::simulated(Simulation::with_seed(1));
        let plan = ArrivalPlan::Bursts {
            size: 1,
            every: MILLISECOND,
        };
        let alone = Share::of_core(0, 1, 0, 1);
        let dispatch = Rc::new(Dispatch::new(
            Arrivals::new(&plan, alone, 1),
            1,
            connections as usize,
            catch_up,
        ));
        let begin = core.now_exact();
        let stop = Stop {
            after: Some(run),
            count: None,
        };
        dispatch.begin(begin, stop.of_core(alone, begin));
        let taken = Rc::new(RefCell::new(Vec::new()));
        for index in 0..connections {
            let (own, dispatch, taken) = (core.clone(), Rc::clone(&dispatch), Rc::clone(&taken));
            core.spawn(async move {
                let mut pauses = busy.iter();
                while let Some(Turn { start, .. }) = dispatch.take(&own, index).await {
                    let since = |at: Instant| at.since(begin).as_millis() as u64;
                    taken
                        .borrow_mut()
                        .push((index, since(start), since(own.now_exact())));
                    own.sleep(MILLISECOND * *pauses.next().unwrap_or(&0)).await;
                }
            });
        }
        let (own, runner) = (core.clone(), Rc::clone(&dispatch));
        core.spawn(async move { runner.run(&own).await });
        let (own, ender) = (core.clone(), Rc::clone(&dispatch));
        core.spawn(async move {
            own.sleep_until(begin + run).await;
            ender.end(own.now_exact());
        });
        core.run();
        (taken.take(), dispatch.missed())
    }

    #[test]
    fn idle_connections_take_turns() {
        let (taken, missed) = play(3, &[], None, MILLISECOND * 6);
        // The first has taken the request that was due at once, and waits again before the others do.
        let expected: Vec<_> = (1..6).map(|at| (((at - 1) % 3) as u32, at, at)).collect();
        assert_eq!((&taken[1..], missed), (&expected[..], 0));
    }

    #[test]
    fn what_nobody_is_free_for_waits_and_keeps_its_intended_start() {
        let (taken, missed) = play(1, &[5], None, MILLISECOND * 8);
        let starts: Vec<u64> = taken.iter().map(|&(_, start, _)| start).collect();
        assert_eq!(starts, (0..8).collect::<Vec<_>>());
        let late: Vec<u64> = taken.iter().map(|&(_, start, at)| at - start).collect();
        assert_eq!(late, [0, 4, 3, 2, 1, 0, 0, 0]);
        assert_eq!(missed, 0);
    }

    #[test]
    fn another_connection_makes_what_a_slow_one_cannot() {
        let (taken, _) = play(2, &[20], None, MILLISECOND * 10);
        assert!(taken.iter().skip(2).all(|&(index, ..)| index == taken[2].0));
        assert!(taken.iter().all(|&(_, start, at)| start == at));
    }

    #[test]
    fn what_is_too_far_behind_is_left_out_and_counted() {
        let (taken, missed) = play(1, &[10], Some(MILLISECOND * 7 / 2), MILLISECOND * 15);
        assert_eq!(taken.len() as u64 + missed, 15);
        assert!(taken.iter().all(|&(_, start, at)| at - start <= 3));
        assert_eq!(missed, 6);
    }

    #[test]
    fn what_still_waits_at_the_end_is_missed() {
        let (taken, missed) = play(1, &[100], None, MILLISECOND * 10);
        assert_eq!((taken.len(), missed), (1, 9));
    }
}
