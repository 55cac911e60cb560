//! Assigns the requests of a core's open loop to connections: to the longest idle connection or, if none is
//! idle, to the next that becomes idle. Arrivals belong to the core, so a slow response delays no request that another
//! connection could make.

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

pub(crate) struct Dispatch(RefCell<State>);

/// A batch of requests assigned to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Batch {
    pub(crate) start: Instant,
    pub(crate) number: u64,
    pub(crate) count: u64,
    /// Whether a connection was idle when the turn was due. A late start is then caused by the generator.
    pub(crate) had_idle_connection: bool,
}

struct State {
    backlog: Backlog,
    /// Arrivals due up to this moment were assigned late although connections were idle.
    late_until: Instant,
    /// Idle connections, the longest idle first.
    idle: VecDeque<(u32, Waker)>,
    /// For each connection, the turn that was assigned to it and not yet taken.
    given: Box<[Option<Batch>]>,
    /// Arrivals that are later than this are skipped.
    catch_up: Option<Duration>,
    /// Skipped requests.
    skipped: u64,
    /// Delays of skipped requests, in nanoseconds.
    waits: Histogram,
    /// Waker of the task that assigns due arrivals, while no connection is idle.
    runner: Option<Waker>,
    is_over: bool,
}

impl Dispatch {
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
            skipped: 0,
            waits: Histogram::new(),
            runner: None,
            is_over: false,
        }))
    }

    pub(crate) fn begin(&self, begin: Instant, budget: Budget) {
        self.0.borrow_mut().backlog.begin(begin, budget);
    }

    /// Waits until connection `index` has a turn, whose intended start may be in the past; `None` when the run is over.
    pub(crate) async fn take(&self, core: &Core, index: u32) -> Option<Batch> {
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
            state.skip_late(now);
            if state.backlog.due() <= now {
                return Poll::Ready(Some(state.next()));
            }
            if state.is_over {
                // The skipped turn was the last one.
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

    /// Assigns arrivals to idle connections at their due times, until the run is over.
    pub(crate) async fn run(&self, core: &Core) {
        while let Some(due) = self.next_due().await {
            if due > core.now_exact() {
                core.sleep_until(due).await;
            }
            self.0.borrow_mut().release(core.now_exact());
        }
    }

    /// Waits for an idle connection, then returns the due time of the next arrival. `None` when the run is over.
    async fn next_due(&self) -> Option<Instant> {
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

    /// Ends the run at `now`. Due arrivals that no connection has taken count as missed.
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

    /// Counts `turn` as missed: the run ended before the connection could start it.
    pub(crate) fn miss(&self, turn: Batch, now: Instant) {
        self.0.borrow_mut().miss(turn, now);
    }

    /// Adds the delays of missed requests, and of overdue requests without a connection at `now`, to `waits`, in
    /// nanoseconds.
    pub(crate) fn add_waits(&self, now: Instant, waits: &mut Histogram) {
        let state = self.0.borrow();
        if state.skipped > 0 {
            waits.merge(&state.waits);
        }
        if !state.is_over && state.backlog.due() < now {
            let mut backlog = state.backlog.clone();
            backlog.take_late(Duration::ZERO, now, |wait, count| {
                waits.record_many(wait.as_nanos() as u64, count);
            });
        }
    }

    /// Returns the number of due requests that were never made.
    pub(crate) fn skipped(&self) -> u64 {
        self.0.borrow().skipped
    }
}

impl State {
    /// Assigns due arrivals to idle connections.
    fn release(&mut self, now: Instant) {
        while !self.idle.is_empty() {
            self.skip_late(now);
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

    fn skip_late(&mut self, now: Instant) {
        let Some(catch_up) = self.catch_up else {
            return;
        };
        self.miss_late(catch_up, now);
        if self.backlog.is_spent() {
            self.close();
        }
    }

    /// Skips arrivals that have been due for longer than `late`.
    fn miss_late(&mut self, late: Duration, now: Instant) {
        let State {
            backlog,
            skipped: missed,
            waits,
            ..
        } = self;
        backlog.take_late(late, now, |wait, count| {
            *missed += count;
            waits.record_many(wait.as_nanos() as u64, count);
        });
    }

    fn miss(&mut self, turn: Batch, now: Instant) {
        self.skipped += turn.count;
        self.waits
            .record_many(now.nanoseconds_since(turn.start), turn.count);
    }

    fn next(&mut self) -> Batch {
        let taken = self.backlog.next();
        if self.backlog.is_spent() {
            self.close();
        }
        Batch {
            start: taken.start,
            number: taken.number,
            count: taken.count,
            had_idle_connection: taken.start <= self.late_until,
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

    /// Runs one request per millisecond on `connections` connections; requests take the times of `busy`.
    /// Returns the connection of each request and when it was due and taken, in milliseconds since the start, and the
    /// number of missed requests.
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
                while let Some(Batch { start, .. }) = dispatch.take(&own, index).await {
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
        (taken.take(), dispatch.skipped())
    }

    #[test]
    fn idle_connections_take_turns() {
        let (taken, missed) = play(3, &[], None, MILLISECOND * 6);
        // The first connection took request 0 at once and was idle again before the others.
        let expected: Vec<_> = (1..6).map(|at| (((at - 1) % 3) as u32, at, at)).collect();
        assert_eq!((&taken[1..], missed), (&expected[..], 0));
    }

    #[test]
    fn queued_request_keeps_intended_start() {
        let (taken, missed) = play(1, &[5], None, MILLISECOND * 8);
        let starts: Vec<u64> = taken.iter().map(|&(_, start, _)| start).collect();
        assert_eq!(starts, (0..8).collect::<Vec<_>>());
        let late: Vec<u64> = taken.iter().map(|&(_, start, at)| at - start).collect();
        assert_eq!(late, [0, 4, 3, 2, 1, 0, 0, 0]);
        assert_eq!(missed, 0);
    }

    #[test]
    fn slow_connection_does_not_delay_others() {
        let (taken, _) = play(2, &[20], None, MILLISECOND * 10);
        assert!(taken.iter().skip(2).all(|&(index, ..)| index == taken[2].0));
        assert!(taken.iter().all(|&(_, start, at)| start == at));
    }

    #[test]
    fn late_requests_are_skipped_and_counted() {
        let (taken, missed) = play(1, &[10], Some(MILLISECOND * 7 / 2), MILLISECOND * 15);
        assert_eq!(taken.len() as u64 + missed, 15);
        assert!(taken.iter().all(|&(_, start, at)| at - start <= 3));
        assert_eq!(missed, 6);
    }

    #[test]
    fn queued_requests_at_end_are_missed() {
        let (taken, missed) = play(1, &[100], None, MILLISECOND * 10);
        assert_eq!((taken.len(), missed), (1, 9));
    }
}
