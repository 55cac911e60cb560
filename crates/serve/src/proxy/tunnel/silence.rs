//! Idle timeout of a tunnel whose ends are both streams, or that waits for a stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use onrush_engine::{Core, Error, Kind, Op, Sleep};

/// Timer of the current idle period.
#[derive(Default)]
pub(super) struct Silence {
    /// Byte counter at the start of the idle period.
    moved: u64,
    timer: Option<Sleep>,
}

impl Silence {
    pub(super) fn end(&mut self) {
        self.timer = None;
    }

    /// Completes with a timeout when `moved` has not changed for `idle_max`.
    pub(super) fn poll(
        &mut self,
        moved: u64,
        (core, idle_max): (&Core, Duration),
        context: &mut Context<'_>,
    ) -> Poll<Error> {
        if self.moved != moved {
            self.moved = moved;
            self.timer = None;
        }
        let begin = || core.sleep_until(core.now() + idle_max);
        ready!(Pin::new(self.timer.get_or_insert_with(begin)).poll(context));
        Poll::Ready(Error::new(Op::Send, Kind::TimedOut))
    }
}
