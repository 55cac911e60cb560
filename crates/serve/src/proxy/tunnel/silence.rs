//! The time in which nothing moves in a tunnel, where no connection of its own measures it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use onrush_engine::{Core, Error, Kind, Op, Sleep};

/// How long it has been silent.
#[derive(Default)]
pub(super) struct Silence {
    /// What had moved when it began.
    moved: u64,
    timer: Option<Sleep>,
}

impl Silence {
    pub(super) fn end(&mut self) {
        self.timer = None;
    }

    /// Waits until it has been `idle_max` since `moved` was another number.
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
