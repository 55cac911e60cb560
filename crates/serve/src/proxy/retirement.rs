//! The end of the tasks that maintain a group, when its configuration is replaced.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

#[derive(Debug, Default)]
pub(crate) struct Retirement {
    has_begun: Cell<bool>,
    /// Those whose work it ends.
    workers: RefCell<Vec<Waker>>,
}

/// Whether a call has begun the retirement, or it had begun before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Began {
    Now,
    Before,
}

impl Retirement {
    /// Ends the work of all, as soon as they are polled, which is soon.
    pub(crate) fn begin(&self) -> Began {
        self.workers.take().into_iter().for_each(Waker::wake);
        match self.has_begun.replace(true) {
            true => Began::Before,
            false => Began::Now,
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Does `work` until it ends or this begins, which drops it wherever it is. The task must be the same all the time.
    pub(crate) async fn ends(&self, work: impl Future<Output = ()>) {
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
