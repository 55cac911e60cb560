//! Stops the tasks that maintain a group when its configuration is replaced.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

#[derive(Debug, Default)]
pub(crate) struct Retirement {
    has_begun: Cell<bool>,
    /// Wakers of the tasks to stop.
    workers: RefCell<Vec<Waker>>,
}

/// Whether this call started the retirement or an earlier one did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RetirementStart {
    Now,
    Before,
}

impl Retirement {
    /// Wakes all tasks; each of them ends as soon as it is polled.
    pub(crate) fn begin(&self) -> RetirementStart {
        self.workers.take().into_iter().for_each(Waker::wake);
        match self.has_begun.replace(true) {
            true => RetirementStart::Before,
            false => RetirementStart::Now,
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Runs `work` until it ends or the retirement begins; `work` is then dropped where it is. The waker is stored at
    /// the first poll only, so the future must stay in one task.
    pub(crate) async fn run_until_retired(&self, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        let mut is_known = false;
        poll_fn(|context| {
            if self.has_begun() {
                return Poll::Ready(());
            }
            if !is_known {
                is_known = true;
                self.workers.borrow_mut().push(context.waker().clone());
            }
            work.as_mut().poll(context)
        })
        .await;
    }
}
