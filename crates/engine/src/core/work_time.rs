//! Time for which a core that busy-polls had work while its thread had a CPU. Work is measured by the core's clock,
//! which also runs while the thread has no CPU; at the end of each span the excess is subtracted.
//!
//! ```text
//!   core     | work | ask |   work, and no CPU   | ask | work | ask |
//!   thread's CPU time      |______|                                      a span: passed - had = lost
//! ```

use std::cell::Cell;
use std::time::Duration;

use crate::clock::{self, Instant};
use crate::limits::WORK_SPAN;

#[derive(Default)]
pub(super) struct WorkTime {
    /// Work up to the end of the last span.
    sum: Cell<Duration>,
    /// Start of the current span, and the thread's CPU time at that moment.
    begun: Cell<Instant>,
    cpu: Cell<Duration>,
    /// Work in the current span by the core's clock, and its longest piece. Invariant: `longest` <= `work`.
    work: Cell<Duration>,
    longest: Cell<Duration>,
}

impl WorkTime {
    /// Starts measuring at `now`, on the calling thread.
    pub(super) fn begin(&self, now: Instant) {
        self.begun.set(now);
        self.cpu.set(clock::thread_cpu());
    }

    /// Adds a piece of work that ended at `now` or earlier.
    #[inline]
    pub(super) fn add(&self, stretch: Duration, now: Instant) {
        self.work.set(self.work.get() + stretch);
        self.longest.set(self.longest.get().max(stretch));
        if now.since(self.begun.get()) >= WORK_SPAN {
            self.end_span(now);
        }
    }

    /// Returns all work up to `now`; never more than the thread's CPU time.
    pub(super) fn up_to(&self, now: Instant) -> Duration {
        self.end_span(now);
        self.sum.get()
    }

    /// Returns the work up to `now` since the last call, and resets the sum to zero.
    pub(super) fn take_up_to(&self, now: Instant) -> Duration {
        self.end_span(now);
        self.sum.take()
    }

    #[cold]
    fn end_span(&self, now: Instant) {
        let cpu = clock::thread_cpu();
        let passed = now.since(self.begun.replace(now));
        let had = cpu.saturating_sub(self.cpu.replace(cpu));
        let worked = of_span((passed, had), (self.work.take(), self.longest.take()));
        self.sum.set(self.sum.get() + worked);
    }
}

/// The part of a span's `work` for which the thread had a CPU, which it `had` for part of the time that has `passed`. A
/// piece of work in which the thread lost its CPU is longer than the lost time. So if no piece is that long, the CPU
/// was lost while the core was polling. Half the length suffices, since the thread may have lost its CPU twice.
fn of_span((passed, had): (Duration, Duration), (work, longest): (Duration, Duration)) -> Duration {
    let lost = passed.saturating_sub(had);
    let within = match longest >= lost / 2 {
        true => lost.min(longest),
        false => Duration::ZERO,
    };
    work.saturating_sub(within).min(had)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preempted_time_is_not_work_time() {
        for (passed, had, work, longest, expected, what) in [
            (4000, 4000, 1000, 20, 1000, "it had its CPU"),
            (4000, 4000, 3000, 3000, 3000, "one long piece of work"),
            (7000, 4000, 4000, 3010, 1000, "none within work"),
            (9000, 4000, 6000, 2510, 3490, "none within work twice"),
            (7000, 4000, 1000, 20, 1000, "none while it asked"),
            (
                7000,
                4000,
                1000,
                400,
                1000,
                "the same with some work at once",
            ),
            (7000, 500, 2000, 20, 500, "no more than the CPU time"),
            (
                4000,
                4010,
                4005,
                4005,
                4005,
                "clocks that are read one by one",
            ),
            (4000, 0, 4000, 4000, 0, "no CPU at all"),
        ] {
            let us = Duration::from_micros;
            let found = of_span((us(passed), us(had)), (us(work), us(longest)));
            assert_eq!(found, us(expected), "{what}");
        }
    }
}
