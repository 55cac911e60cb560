//! A waiter for the next event of a stream: a task, or a parked request without a task.
//!
//! A waiting task keeps the memory of its whole future. With many requests waiting for servers, that would exceed the
//! CPU caches and the allocator's fast lists.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::limits::PARKED_SPARE_MAX;

/// A request that waits without a task.
pub(crate) trait Parked {
    /// Continues in a task after an event. Only the first call has an effect.
    fn resume_in_task(&self);

    /// Continues after an event, called outside of borrows. Does at once what needs no waiting, and spawns a task only
    /// for the rest.
    fn resume(self: Rc<Self>);

    /// Records the time spent waiting for capacity of a server, which is available now.
    fn queued(&self, _duration: Duration) {}

    /// Drops the request.
    fn abandon(&self);

    /// For downcasting.
    fn as_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// Memory of parked requests that have continued, for reuse.
#[derive(Default)]
pub(crate) struct SpareParked(RefCell<Vec<Rc<dyn Parked>>>);

impl SpareParked {
    /// Takes an object of this type, if there is one.
    pub(crate) fn take<T: Parked + 'static>(&self) -> Option<Rc<T>> {
        let parked = self.0.borrow_mut().pop()?;
        parked.as_any().downcast().ok()
    }

    /// Keeps an object for reuse unless it is referenced elsewhere: the other owner could continue a later request by
    /// mistake.
    pub(crate) fn give(&self, parked: Rc<dyn Parked>) {
        let mut all = self.0.borrow_mut();
        if Rc::strong_count(&parked) == 1 && all.len() < PARKED_SPARE_MAX {
            all.push(parked);
        }
    }

    /// Frees all objects and returns their number.
    pub(crate) fn clear(&self) -> usize {
        self.0.take().len()
    }
}

/// The waiting task or request, if any.
#[derive(Default)]
pub(crate) struct Waiter(RefCell<Waiting>);

#[derive(Default)]
enum Waiting {
    #[default]
    Nobody,
    Task(Waker),
    Parked(Rc<dyn Parked>),
}

impl Waiter {
    pub(crate) fn wake(&self) {
        match self.0.take() {
            Waiting::Nobody => {}
            Waiting::Task(waker) => waker.wake(),
            Waiting::Parked(parked) => parked.resume_in_task(),
        }
    }

    /// Takes the parked request, so that the caller can [continue](Parked::resume) it.
    pub(crate) fn take_parked(&self) -> Option<Rc<dyn Parked>> {
        match self.0.take() {
            Waiting::Parked(parked) => Some(parked),
            others => {
                self.0.replace(others);
                None
            }
        }
    }

    /// Reports the time spent waiting for capacity: calls [`Parked::queued`] or wakes the task.
    pub(crate) fn queued(&self, duration: Duration) {
        match &*self.0.borrow() {
            Waiting::Nobody => {}
            Waiting::Task(waker) => waker.wake_by_ref(),
            Waiting::Parked(parked) => parked.queued(duration),
        }
    }

    /// Registers the running task.
    pub(crate) fn wait(&self, context: &Context<'_>) {
        let waiting = &mut *self.0.borrow_mut();
        match waiting {
            Waiting::Task(waker) => waker.clone_from(context.waker()),
            Waiting::Nobody | Waiting::Parked(_) => {
                *waiting = Waiting::Task(context.waker().clone());
            }
        }
    }

    pub(crate) fn park(&self, parked: Rc<dyn Parked>) {
        self.0.replace(Waiting::Parked(parked));
    }

    /// Drops a parked request, because the event will never happen. It would keep alive what it waits for.
    pub(crate) fn abandon(&self) {
        if let Waiting::Parked(parked) = self.0.take() {
            parked.abandon();
        }
    }

    /// Removes the waiter.
    pub(crate) fn clear(&self) {
        self.0.take();
    }
}
