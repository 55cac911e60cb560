//! The core's event loop: run tasks, poll the kernel, wake tasks for events and due timers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::timer_delay::TimerDelay;
use super::{Core, Inner};
use crate::clock::{Clock, Instant};
use crate::driver::Driver;
use crate::driver::event::{Event, PollOutcome};
use crate::driver::simulated::Simulated;
use crate::limits::{STALL_MIN, TASKS_PER_TURN, WAIT_MAX};
use crate::state::{SleepState, State, Timer};
use crate::task::Tasks;
use crate::task::profile::Work;

impl Core {
    /// Runs the core until all tasks have ended or the time after a stop is over; returns the number of tasks cut off.
    pub fn run(&self) -> usize {
        let mut drained_by = None;
        self.0.is_running.set(true);
        self.prepare();
        self.0.tasks.begin();
        loop {
            self.0.tasks.run(TASKS_PER_TURN);
            let has_work = self.0.tasks.count() > 0 || self.0.notifier.is_filled();
            if (!has_work && !self.is_sending())
                || drained_by.is_some_and(|deadline| self.0.now.get() >= deadline)
            {
                break;
            }
            self.turn(drained_by);
            if self.has_mail() {
                self.run_mail();
            }
            if self.0.busy_polls.get() && !self.0.tasks.has_ready() {
                self.busy_poll_once();
            }
            let Some(drain) = self.asked_to_stop() else {
                continue;
            };
            if drained_by.is_none() {
                self.wake_interruptible();
            }
            // A later stop with a shorter time shortens the deadline; reading the same request again changes nothing.
            let deadline = self.0.now.get() + drain;
            drained_by =
                Some(drained_by.map_or(deadline, |earlier: Instant| earlier.min(deadline)));
        }
        let cut_off = self.0.tasks.count();
        self.0.tasks.clear();
        self.0.is_running.set(false);
        self.0.state.borrow_mut().abort_last_sends();
        cut_off
    }

    /// Prepares the driver for its first poll of the kernel. After the first tasks it would delay the I/O that they
    /// have started and count towards every latency that they measure.
    fn prepare(&self) {
        let State { driver, pool, .. } = &mut *self.0.state.borrow_mut();
        match driver {
            Driver::Uring(driver) => driver.prepare(pool),
            Driver::Epoll(_) | Driver::Simulated(_) => {}
        }
    }

    /// Whether last sends of closed streams are in progress.
    fn is_sending(&self) -> bool {
        let state = &mut *self.0.state.borrow_mut();
        state
            .sockets
            .iter_mut()
            .any(|socket| socket.closing && socket.is_sending())
    }

    /// Performs the deferred sends of this iteration's tasks, then polls the kernel and reads the clock once.
    fn turn(&self, drained_by: Option<Instant>) {
        let Inner { tasks, state, .. } = &*self.0;
        let state = &mut *state.borrow_mut();
        let sends = !state.due.is_empty();
        state.send_due(tasks);
        if self.0.busy_polls.get() {
            state.restore_reports();
        }
        let until = earlier(state.timers.next(), drained_by);
        let now = self.0.clock.now();
        if sends {
            tasks.profiler.end_interval_at(Work::SENDS, now);
        }
        let busy = now.since(self.0.now.get());
        let timeout = if tasks.has_ready() || self.0.busy_polls.get() {
            Some(Duration::ZERO)
        } else {
            until.map(|until| until.since(now).min(WAIT_MAX))
        };
        let due = until.map(|until| until.max(now));
        let mut events = std::mem::take(&mut state.events);
        let ready = tasks.ready();
        let look = match &mut state.driver {
            Driver::Epoll(driver) => driver.wait(timeout, &mut events),
            Driver::Uring(driver) => driver.turn(
                now,
                timeout,
                &mut state.sockets,
                tasks,
                &state.pool,
                &mut events,
            ),
            Driver::Simulated(driver) => {
                let until = if tasks.has_ready() {
                    // Running the tasks took time.
                    Some(self.0.clock.now() + Duration::from_micros(1))
                } else {
                    until
                };
                let until = earlier(until, self.mail_due(driver));
                // A simulated core is stopped by one of its own tasks.
                let stops = self.0.shared.stop.load(Ordering::Acquire) != 0 && drained_by.is_none();
                if stops {
                    events.push(Event::Wake);
                    PollOutcome::Complete
                } else {
                    driver.wait(until, &mut state.sockets, &mut events)
                }
            }
        };
        state.now = self.0.clock.now();
        self.0.now.set(state.now);
        tasks.profiler.end_interval_at(Work::WAIT, state.now);
        tasks.set_wake_time(ready);
        let overslept = match look {
            // The start of the stop is unknown, so events may have waited for the whole time.
            PollOutcome::Interrupted => state.now.since(now),
            PollOutcome::Complete | PollOutcome::LimitReached => {
                due.map_or(Duration::ZERO, |due| state.now.since(due))
            }
        };
        self.note_lateness(busy + overslept);
        state.act_on(events, tasks);
        if !self.must_delay_timers(look, (busy, overslept), state) && state.expire(tasks) {
            tasks.profiler.end_interval(Work::TIMERS);
        }
        if self.0.busy_polls.get() {
            self.note_work(busy, state.now.since(now), &state.driver);
        }
    }

    pub(super) fn note_lateness(&self, lateness: Duration) {
        let before = match self.0.behind.get() {
            TimerDelay::Nothing => Duration::ZERO,
            // Events of this turn may have been there at the previous look.
            TimerDelay::Events { .. } | TimerDelay::Tasks => self.0.lateness.get(),
        };
        self.0.lateness.set(before + lateness);
        self.0.busy_max.set(self.0.busy_max.get().max(lateness));
        if lateness > STALL_MIN {
            self.0.stalled.set(self.0.stalled.get() + lateness);
            let mut stalls = self.0.stalls.borrow_mut();
            stalls.note(self.0.now.get(), lateness);
        }
    }

    /// Whether mail has arrived; on a virtual clock, whether its time has come.
    fn has_mail(&self) -> bool {
        if !self.0.notifier.is_filled() {
            return false;
        }
        match &self.0.clock {
            Clock::Real => true,
            Clock::Virtual(..) => self
                .0
                .mail_due
                .get()
                .is_some_and(|due| self.0.now.get() >= due),
        }
    }

    /// When pending mail of a simulated core is delivered: the seed decides the delay. First waits, in real time, for
    /// the promises of real threads, so that the run depends only on the seed.
    fn mail_due(&self, driver: &Simulated) -> Option<Instant> {
        self.0.shared.mailbox.await_promised();
        if !self.0.notifier.is_filled() {
            return None;
        }
        if self.0.mail_due.get().is_none() {
            self.0
                .mail_due
                .set(Some(self.0.clock.now() + driver.delay()));
        }
        self.0.mail_due.get()
    }

    /// Runs posted mail, and wakes the tasks that other threads have woken.
    fn run_mail(&self) {
        let tasks = &self.0.tasks;
        self.0.mail_due.set(None);
        self.0.has_work.set(true);
        let _here = tasks.enter_thread();
        tasks.wake_from_other_threads(self.0.notifier.take());
        for mail in self.0.shared.mailbox.take() {
            mail(self);
        }
        tasks.wake_from_wakers();
        tasks.profiler.end_interval(Work::MAIL);
    }

    /// Accounts for an iteration that was `busy` for one duration and in the kernel for `asked`.
    fn note_work(&self, busy: Duration, asked: Duration, driver: &Driver) {
        let mut stretch = Duration::ZERO;
        if self.0.has_work.replace(self.0.tasks.has_ready()) {
            stretch += busy;
        }
        // Time in the kernel counts as work if it returned events or did work for this core.
        if self.0.has_work.get() || driver.has_worked() {
            stretch += asked;
        }
        self.0.worked.add(stretch, self.0.now.get());
    }

    fn asked_to_stop(&self) -> Option<Duration> {
        match self.0.shared.stop.load(Ordering::Acquire) {
            0 => None,
            nanoseconds => Some(Duration::from_nanos(nanoseconds - 1)),
        }
    }

    /// Wakes all interruptible waits, because the core is stopping.
    fn wake_interruptible(&self) {
        let Inner { tasks, state, .. } = &*self.0;
        let state = &mut *state.borrow_mut();
        state.stopping = true;
        for task in std::mem::take(&mut state.stop_waiters) {
            tasks.wake(task);
        }
        for socket in state
            .sockets
            .iter_mut()
            .filter(|socket| socket.interruptible)
        {
            tasks.wake_once(&mut socket.recv_waiter);
        }
    }
}

impl State {
    fn act_on(&mut self, mut events: Vec<Event>, tasks: &Tasks) {
        if !events.is_empty() {
            for event in events.drain(..) {
                self.act(event, tasks);
            }
            tasks.profiler.end_interval(Work::EVENTS);
        }
        self.events = events;
    }

    fn act(&mut self, event: Event, tasks: &Tasks) {
        let Event::Ready(ready) = event else {
            return;
        };
        let socket = &mut self.sockets[ready.key];
        socket.note_end(ready.ended, tasks);
        socket.urgent |= ready.urgent;
        if ready.readable {
            socket.readable = true;
            tasks.wake_once(&mut socket.recv_waiter);
        }
        if ready.writable {
            self.note_writable(ready.key, tasks);
        }
    }

    /// Handles the due timers; returns whether there were any.
    fn expire(&mut self, tasks: &Tasks) -> bool {
        let mut expired = std::mem::take(&mut self.expired);
        self.timers.expire(self.now, &mut expired);
        let was_due = !expired.is_empty();
        for timer in expired.drain(..) {
            match timer {
                Timer::Socket(key) => self.socket_timer_expired(key, tasks),
                Timer::Sleep(index) => {
                    let state = &mut self.sleeps[index as usize];
                    if let SleepState::Waiting(task) = *state {
                        tasks.wake(task);
                    }
                    *state = SleepState::Over;
                }
            }
        }
        self.expired = expired;
        was_due
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::choice::Io;

    #[test]
    fn driver_is_prepared_before_first_task() {
        let Ok(core) = Core::new(0, Io::IoUring) else {
            return;
        };
        let own = core.clone();
        core.spawn(async move {
            let state = own.inner().state.borrow();
            let Driver::Uring(driver) = &state.driver else {
                unreachable!("a ring was asked for");
            };
            assert!(driver.is_prepared());
        });
        assert_eq!(core.run(), 0);
    }
}
