//! The profile of a core's time: each interval between two reads of its clock is attributed to one kind of work.
//!
//! One read ends an interval and begins the next one, so a poll of a task costs one read, and the sum of all intervals
//! is the time since the core began to run:
//!
//! ```text
//!   tasks run            | sends | look at the kernel      | events wake tasks             | timers | mail |
//!   ---------^-----^-----^-------^-------------------------^-------------------------------^--------^------^
//! ```
//!
//! Times are clock times, as in `show profiling tasks` of HAProxy: while the thread has no CPU, the interrupted work is
//! charged.
//!
//! The time of a task in the queue counts from the last read before its wake-up; wakers read no clock. The kind of work
//! is a byte of the task: `Core::spawn_as` sets it and `Core::works_as` changes it from the next poll on. The engine
//! does not know the names of kinds.

use std::cell::Cell;
use std::time::Duration;

use crate::clock::{Clock, Instant};
use crate::limits::WORKS_MAX;

/// A kind of work, as a number: below [`Work::TASK`] the core's own, above it the kinds of tasks of the engine's users.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Work(u8);

impl Work {
    /// A poll of the kernel: submitting, waiting and sleeping.
    pub const WAIT: Work = Work(0);
    /// Handling events, which wakes tasks.
    pub const EVENTS: Work = Work(1);
    /// Handling due timers.
    pub const TIMERS: Work = Work(2);
    /// Mail of other threads, and the tasks that they have woken.
    pub const MAIL: Work = Work(3);
    /// Deferred sends, which are made just before the next poll of the kernel.
    pub const SENDS: Work = Work(4);
    /// Tasks without a kind.
    pub const TASK: Work = Work(5);

    /// The `number`th kind of tasks, from 0.
    ///
    /// # Panics
    /// When `number` is too large; in a constant it does not compile.
    pub const fn task(number: u8) -> Work {
        assert!((number as usize) < WORKS_MAX - Work::TASK.index() - 1);
        Work(Work::TASK.0 + 1 + number)
    }

    /// Index of its figures in a [`Profile`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Figures of one kind of work since the core began to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkFigures {
    /// Number of calls: polls of tasks; for the core's own work, turns in which it was done.
    pub calls: u64,
    /// Total time.
    pub time: Duration,
    /// Longest call.
    pub time_max: Duration,
    /// Total time from wake-up to poll. For a task that has yielded it starts when the task is queued again.
    pub latency: Duration,
    /// Longest time from wake-up to poll.
    pub latency_max: Duration,
}

/// The figures of each kind of work, by [`Work::index`].
pub type Profile = [WorkFigures; WORKS_MAX];

pub(crate) struct Profiler {
    clock: Clock,
    begun: Cell<Instant>,
    counts: [Counts; WORKS_MAX],
}

/// In nanoseconds.
#[derive(Default)]
struct Counts {
    calls: Cell<u64>,
    time: Cell<u64>,
    time_max: Cell<u64>,
    latency: Cell<u64>,
    latency_max: Cell<u64>,
}

impl Profiler {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            begun: Cell::new(clock.now()),
            clock,
            counts: std::array::from_fn(|_| Counts::default()),
        }
    }

    /// Discards the time up to now.
    pub(crate) fn begin(&self) {
        self.begun.set(self.clock.now());
    }

    /// The last read of the clock, which serves as the time of later events.
    #[inline]
    pub(crate) fn begun(&self) -> Instant {
        self.begun.get()
    }

    /// Ends the interval as a poll of a task of this kind, which was woken at `woken`.
    #[inline]
    pub(crate) fn end_poll(&self, work: Work, woken: Instant) {
        let counts = &self.counts[work.index()];
        let latency = self.begun.get().nanoseconds_since(woken);
        counts.latency.set(counts.latency.get() + latency);
        counts
            .latency_max
            .set(counts.latency_max.get().max(latency));
        self.end_interval(work);
    }

    /// Ends the interval as work of this kind.
    #[inline]
    pub(crate) fn end_interval(&self, work: Work) {
        self.end_interval_at(work, self.clock.now());
    }

    /// [`Profiler::did`] with a clock that was just read.
    #[inline]
    pub(crate) fn end_interval_at(&self, work: Work, now: Instant) {
        let time = now.nanoseconds_since(self.begun.replace(now));
        let counts = &self.counts[work.index()];
        counts.calls.set(counts.calls.get() + 1);
        counts.time.set(counts.time.get() + time);
        counts.time_max.set(counts.time_max.get().max(time));
    }

    pub(crate) fn profile(&self) -> Profile {
        let nanoseconds = |cell: &Cell<u64>| Duration::from_nanos(cell.get());
        std::array::from_fn(|index| {
            let counts = &self.counts[index];
            WorkFigures {
                calls: counts.calls.get(),
                time: nanoseconds(&counts.time),
                time_max: nanoseconds(&counts.time_max),
                latency: nanoseconds(&counts.latency),
                latency_max: nanoseconds(&counts.latency_max),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Core;
    use crate::driver::choice::Io;
    use crate::driver::simulation::Simulation;

    const ONE: Work = Work::task(0);
    const OTHER: Work = Work::task(1);

    fn core(io: Option<Io>) -> Option<Core> {
        match io {
            None => Some(Core::simulated(Simulation::with_seed(1))),
            Some(io) => Core::new(0, io).ok(),
        }
    }

    fn cores() -> impl Iterator<Item = Core> {
        let all = [None, Some(Io::Epoll), Some(Io::IoUring)];
        all.into_iter().filter_map(core)
    }

    #[test]
    fn polls_are_counted_by_work_kind() {
        for core in cores() {
            let task = core.clone();
            core.spawn_as(ONE, async move {
                task.yield_now().await;
                task.set_work(OTHER);
                for _ in 0..3 {
                    task.yield_now().await;
                }
            });
            core.spawn(async {});
            core.run();
            let profile = core.profile();
            let calls = |work: Work| profile[work.index()].calls;
            assert_eq!([ONE, OTHER, Work::TASK].map(calls), [2, 3, 1]);
            assert_eq!(calls(Work::SENDS), 0);
            assert!(calls(Work::WAIT) >= 4);
        }
    }

    #[test]
    fn profile_accounts_for_all_time() {
        for core in cores() {
            let task = core.clone();
            let begun = core.now_exact();
            core.spawn_as(ONE, async move {
                for _ in 0..20 {
                    task.sleep(Duration::from_millis(1)).await;
                }
            });
            core.run();
            let elapsed = core.now_exact() - begun;
            let profile = core.profile();
            let time: Duration = profile.iter().map(|figures| figures.time).sum();
            // The time before the core ran and after its last interval is missing.
            assert!(
                time <= elapsed && time >= Duration::from_millis(20),
                "{time:?} of {elapsed:?}"
            );
            let wait = profile[Work::WAIT.index()];
            assert!(wait.time_max <= wait.time);
            assert_eq!(profile[Work::TIMERS.index()].calls, 20);
            // Tasks that became ready during a look at the kernel count as woken at its end.
            assert!(profile[ONE.index()].latency <= time - wait.time);
        }
    }

    #[test]
    fn task_latency_includes_earlier_tasks() {
        let core = Core::simulated(Simulation::with_seed(1));
        let Clock::Virtual(time, _) = core.clock() else {
            panic!("it is simulated");
        };
        let hold_up = move |milliseconds: u64| time.set(time.get() + milliseconds * 1_000_000);
        let (first, second) = (hold_up.clone(), hold_up);
        core.spawn_as(ONE, async move { first(30) });
        core.spawn_as(OTHER, async move { second(5) });
        core.run();
        let profile = core.profile();
        let milliseconds = |time: Duration| time.as_millis();
        let one = profile[ONE.index()];
        assert_eq!((milliseconds(one.time), milliseconds(one.latency)), (30, 0));
        let other = profile[OTHER.index()];
        let times = [other.time, other.time_max, other.latency, other.latency_max];
        assert_eq!(times.map(milliseconds), [5, 5, 30, 30]);
    }
}
