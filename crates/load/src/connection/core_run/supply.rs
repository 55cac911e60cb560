//! Provides the connections of a core with requests: due time of the next, limits of the run, and outstanding requests.

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
use crate::requests::request::LastRequest;
pub(super) use outstanding::PendingRequests;
use source::Source;

pub(crate) struct Supply {
    core: Core,
    /// Requests per turn (batch).
    turn: u64,
    per_connection: u64,
    source: Source,
    /// Share of the run's turns, and the number of turns taken, for paces without arrivals.
    share: Share,
    turns: Cell<u64>,
    budget: Cell<Budget>,
    /// Schedule of each connection, if each has its own rate.
    schedules: Box<[Cell<Schedule>]>,
    /// Requests taken. Invariant: equals responses + failed requests + `in_flight`.
    sent: Cell<u64>,
    /// Requests taken without a response or failure.
    in_flight: Cell<u64>,
    /// The same of each connection.
    waiting: Box<[Cell<PendingRequests>]>,
    /// Requests that were due and never sent, of connections with their own rate.
    missed: Cell<u64>,
    /// No request is started any more.
    is_over: Cell<bool>,
}

impl Supply {
    pub(super) fn new(core: &Core, plan: &Plan, connections: usize) -> Supply {
        let options = &plan.options;
        let per_connection = options.requests_per_connection.unwrap_or(u64::MAX);
        let turn = plan.batch_size();
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

    /// Starts the run with this budget.
    pub(super) fn begin(&self, begin: Instant, budget: Budget) {
        self.budget.set(budget);
        if let Source::Open(dispatch) = &self.source {
            dispatch.begin(begin, budget);
        }
        for schedule in &self.schedules {
            schedule.set(schedule.get().from(begin));
        }
    }

    /// In an open loop, assigns arrivals to waiting connections until the run is over.
    pub(super) async fn release(&self) {
        if let Source::Open(dispatch) = &self.source {
            dispatch.run(&self.core).await;
        }
    }

    /// Whether [`release`](Self::release) must run.
    pub(super) fn is_released(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    pub(crate) fn end(&self) -> Option<Instant> {
        self.budget.get().end()
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    pub(crate) fn missed(&self) -> u64 {
        match &self.source {
            Source::Open(dispatch) => dispatch.skipped(),
            Source::Closed | Source::Think(..) | Source::PerConnection => self.missed.get(),
        }
    }

    /// Takes requests unless some are still due. Waits for their intended start and advances `now`. `responses` is the
    /// number of responses of the connection so far. Returns false if no request is left.
    pub(crate) async fn take(&self, work: &mut Work, now: &mut Instant, responses: u64) -> bool {
        if self.is_over.get() {
            return false;
        }
        if work.due > 0 {
            // They were sent without success before, and keep their intended start.
            return true;
        }
        if work.remaining > 0 {
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
                // Until now the turn was delayed by the lack of an idle connection, or by the generator.
                work.own_delay = match turn.had_idle_connection {
                    true => now.nanoseconds_since(turn.start),
                    false => 0,
                };
                work.ready = *now;
                turn.count
            }
            Source::PerConnection => {
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
                work.own_delay = now.nanoseconds_since(work.start.max(before));
                work.ready = *now;
                self.turn
            }
        };
        self.grant(work, *now, wanted, responses)
    }

    /// Takes the rest of a turn that exceeded the limit on requests per connection.
    fn take_rest(&self, work: &mut Work, responses: u64) {
        work.due = work.remaining.min(self.per_connection - responses);
        work.remaining -= work.due;
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
            (work.own_delay, work.ready) = (now.nanoseconds_since(work.start), now);
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
        work.remaining = granted - work.due;
        self.note_waiting(work);
        granted > 0
    }

    /// Sets the start of `work` when a connection is available at `now`: in a closed loop, a request starts with its
    /// connection.
    pub(crate) fn start(&self, work: &mut Work, now: Instant) {
        work.connected();
        work.ready = work.ready.max(now);
        match self.source {
            Source::Closed | Source::Think(..) if !work.is_sent => work.start = now,
            Source::Closed | Source::Think(..) | Source::Open(_) | Source::PerConnection => {}
        }
        self.note_waiting(work);
    }

    /// Returns whether the request with this number on its connection is the last request of the connection.
    pub(crate) fn is_last(&self, requests_of_connection: u64) -> LastRequest {
        if requests_of_connection >= self.per_connection {
            LastRequest::Yes
        } else {
            LastRequest::No
        }
    }

    /// Records that `requests` requests of `work` have a response or have failed.
    pub(crate) fn completed(&self, work: &mut Work, requests: u64) {
        work.due -= requests;
        self.note_waiting(work);
        let in_flight = self.in_flight.get() - requests;
        self.in_flight.set(in_flight);
        // Stops the core, so that idle connections need not find out one by one.
        if in_flight == 0 && (self.budget.get().is_spent() || self.is_over.get()) {
            self.core.stop(Duration::ZERO);
        }
    }

    /// Gives up the due requests of `work`; their waits remain recorded.
    pub(super) fn give_up(&self, work: &mut Work) {
        let left = std::mem::take(&mut work.due) + std::mem::take(&mut work.remaining);
        self.in_flight.set(self.in_flight.get() - left);
        if self.in_flight.get() == 0 && self.is_over.get() {
            self.core.stop(Duration::ZERO);
        }
    }
}

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
