//! What gives a core's connections their requests: when the next is due by the pace, whether the run's end allows it, and
//! which of those that were given have neither got a response nor failed.

mod outstanding;
mod source;

use std::cell::Cell;
use std::time::Duration;

use onrush_engine::{Core, Instant};

use crate::connection::work::Work;
use crate::pace::arrivals::Share;
use crate::pace::stop::Budget;
use crate::pace::{self, Pace, Schedule};
use crate::plan::Plan;
use crate::requests::request::Last;
pub(super) use outstanding::Waiting;
use source::Source;

/// The requests of one core.
pub(crate) struct Supply {
    core: Core,
    /// Requests taken at a time.
    turn: u64,
    per_connection: u64,
    source: Source,
    /// Which of the run's turns are the core's, and how many of them it has taken, where no arrival says so.
    share: Share,
    turns: Cell<u64>,
    budget: Cell<Budget>,
    /// Of connections that keep their own time, when the next request of each is due.
    schedules: Box<[Cell<Schedule>]>,
    /// Requests that were taken to be sent. Invariant: = responses + failed + `in_flight`.
    sent: Cell<u64>,
    /// Requests taken that have neither got a response nor failed.
    in_flight: Cell<u64>,
    /// The same of each connection: what it would leave behind.
    waiting: Box<[Cell<Waiting>]>,
    /// Requests of connections with their own time that were due and never sent.
    missed: Cell<u64>,
    /// Nothing starts any more.
    is_over: Cell<bool>,
}

impl Supply {
    pub(super) fn new(core: &Core, plan: &Plan, connections: usize) -> Supply {
        let options = &plan.options;
        let per_connection = options.requests_per_connection.unwrap_or(u64::MAX);
        let turn = plan.turn();
        let now = core.now_exact();
        Supply {
            core: core.clone(),
            turn,
            per_connection,
            source: Source::new(plan, core.id(), connections, turn),
            share: plan.share_of(core.id()),
            turns: Cell::new(0),
            budget: Cell::new(plan.budget_of(core.id(), now)),
            schedules: schedules(plan, core.id(), turn, now),
            sent: Cell::new(0),
            in_flight: Cell::new(0),
            waiting: vec![Cell::default(); connections].into(),
            missed: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// The run begins, and the core has this budget.
    pub(super) fn begin(&self, begin: Instant, budget: Budget) {
        self.budget.set(budget);
        if let Source::Open(dispatch) = &self.source {
            dispatch.begin(begin, budget);
        }
        for schedule in &self.schedules {
            schedule.set(schedule.get().from(begin));
        }
    }

    /// In an open loop, gives arrivals to connections that wait for them, until the run is over.
    pub(super) async fn release(&self) {
        if let Source::Open(dispatch) = &self.source {
            dispatch.run(&self.core).await;
        }
    }

    /// Whether somebody must [`release`](Self::release) what is due.
    pub(super) fn is_released(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    /// When the run ends by the clock.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.budget.get().end()
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    /// Requests that were due and never sent.
    pub(crate) fn missed(&self) -> u64 {
        match &self.source {
            Source::Open(dispatch) => dispatch.missed(),
            Source::Closed | Source::Think(..) | Source::Own => self.missed.get(),
        }
    }

    /// Whether requests are due on a connection that had so many `responses`, after more were taken if none were. Waits
    /// for the moment they are to start, and moves `now` on to it.
    pub(crate) async fn take(&self, work: &mut Work, now: &mut Instant, responses: u64) -> bool {
        if self.is_over.get() {
            return false;
        }
        if work.due > 0 {
            // Sent in vain before: they keep their first start.
            return true;
        }
        if work.rest > 0 {
            self.take_rest(work, responses);
            return true;
        }
        let wanted = match &self.source {
            Source::Closed => {
                work.start = *now;
                self.turn.min(self.per_connection - responses)
            }
            Source::Think(time, random) => {
                work.start = *now;
                if !work.is_first {
                    work.start = *now + pace::think(*time, random);
                }
                self.wait_until(work.start, now).await;
                self.turn.min(self.per_connection - responses)
            }
            Source::Open(dispatch) => {
                let Some(turn) = dispatch.take(&self.core, work.index).await else {
                    return false;
                };
                *now = self.core.now_exact();
                if self.budget.get().is_over(*now) {
                    dispatch.miss(turn, *now);
                    return false;
                }
                work.start = turn.start;
                work.number = turn.number * self.turn;
                // Until now it was late for want of a connection, or for want of the generator.
                work.own = match turn.was_awaited {
                    true => now.nanoseconds_since(turn.start),
                    false => 0,
                };
                work.ready = *now;
                turn.count
            }
            Source::Own => {
                let schedule = &self.schedules[work.index as usize];
                let before = *now;
                work.start = schedule.get().peek();
                self.wait_until(work.start, now).await;
                if self.is_over.get() || self.budget.get().is_over(*now) {
                    return false;
                }
                let mut next = schedule.get();
                next.next();
                schedule.set(next);
                work.own = now.nanoseconds_since(work.start.max(before));
                work.ready = *now;
                self.turn
            }
        };
        self.grant(work, *now, wanted, responses)
    }

    /// What is left of a turn of which a connection has carried as much as it may.
    fn take_rest(&self, work: &mut Work, responses: u64) {
        work.due = work.rest.min(self.per_connection - responses);
        work.rest -= work.due;
        work.written = Instant::default();
        work.is_sent = false;
    }

    async fn wait_until(&self, start: Instant, now: &mut Instant) {
        if start > *now {
            self.core.sleep_until(start).await;
            *now = self.core.now_exact();
        }
    }

    fn grant(&self, work: &mut Work, now: Instant, wanted: u64, responses: u64) -> bool {
        if !matches!(self.source, Source::Open(_)) {
            let taken = self.turns.get();
            self.turns.set(taken + 1);
            work.number = (self.share.first + taken * self.share.stride) * self.turn;
        }
        if matches!(self.source, Source::Closed | Source::Think(..)) {
            (work.own, work.ready) = (now.nanoseconds_since(work.start), now);
        }
        (work.is_first, work.is_sent) = (false, false);
        work.written = Instant::default();
        if self.is_over.get() {
            return false;
        }
        let mut budget = self.budget.get();
        let granted = budget.take(now, wanted);
        self.budget.set(budget);
        self.in_flight.set(self.in_flight.get() + granted);
        self.sent.set(self.sent.get() + granted);
        work.due = granted.min(self.per_connection - responses);
        work.rest = granted - work.due;
        self.note_waiting(work);
        granted > 0
    }

    /// A connection is there for `work` since `now`. In a closed loop a request starts when there is a connection for it.
    pub(crate) fn starts(&self, work: &mut Work, now: Instant) {
        work.connected();
        work.ready = work.ready.max(now);
        match self.source {
            Source::Closed | Source::Think(..) if !work.is_sent => work.start = now,
            Source::Closed | Source::Think(..) | Source::Open(_) | Source::Own => {}
        }
        self.note_waiting(work);
    }

    /// Whether the last of so many requests of a connection is the last that it may carry.
    pub(crate) fn is_last(&self, requests_of_connection: u64) -> Last {
        if requests_of_connection >= self.per_connection {
            Last::Yes
        } else {
            Last::No
        }
    }

    /// So many of the requests of `work` have had a response or have failed.
    pub(crate) fn landed(&self, work: &mut Work, requests: u64) {
        work.due -= requests;
        self.note_waiting(work);
        let in_flight = self.in_flight.get() - requests;
        self.in_flight.set(in_flight);
        // Connections that wait for their next turn need not find out one by one.
        if in_flight == 0 && (self.budget.get().is_spent() || self.is_over.get()) {
            self.core.stop(Duration::ZERO);
        }
    }

    /// Nobody waits for these any more; what they leave behind stays noted.
    pub(super) fn leave(&self, work: &mut Work) {
        let left = std::mem::take(&mut work.due) + std::mem::take(&mut work.rest);
        self.in_flight.set(self.in_flight.get() - left);
        if self.in_flight.get() == 0 && self.is_over.get() {
            self.core.stop(Duration::ZERO);
        }
    }
}

/// When the connections' first requests are due, where each keeps its own time.
fn schedules(plan: &Plan, core: usize, turn: u64, begin: Instant) -> Box<[Cell<Schedule>]> {
    let options = &plan.options;
    let Pace::EachConnection(rate) = options.pace else {
        return Box::default();
    };
    let all = options.connections as u64;
    plan.connections_of(core)
        .map(|number| Cell::new(Schedule::new(number, all, rate, turn, begin)))
        .collect()
}
