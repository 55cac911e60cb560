//! Waiting for the stop of a core.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Core;
use crate::task::id::TaskId;

impl Core {
    /// Waits until the core is asked to stop.
    pub fn stopped(&self) -> Stopped<'_> {
        Stopped {
            core: self,
            waits: None,
        }
    }
}

/// A wait for the stop of a core. Dropping it removes the task from the core's list.
pub struct Stopped<'a> {
    core: &'a Core,
    /// The task in the core's list for this wait.
    waits: Option<TaskId>,
}

impl Stopped<'_> {
    fn leave(&mut self) {
        let Some(task) = self.waits.take() else {
            return;
        };
        let waiters = &mut self.core.0.state.borrow_mut().stop_waiters;
        // Empty once all tasks were woken. The last entry is often the first to leave, so the search starts there.
        if let Some(at) = waiters.iter().rposition(|&waiter| waiter == task) {
            waiters.swap_remove(at);
        }
    }
}

impl Future for Stopped<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.core.is_stopping() {
            return Poll::Ready(());
        }
        let task = self.core.0.tasks.current();
        if self.waits != Some(task) {
            self.leave();
            self.core.0.state.borrow_mut().stop_waiters.push(task);
            self.waits = Some(task);
        }
        Poll::Pending
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
