//! Who waits for what happens next on a stream: a task, or a request that needs none until then.
//!
//! A task that waits keeps the memory of all that it is going to do. Many requests that wait for servers at a time would take more of it
//! than the CPU's caches have, and the allocator's quick lists.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::limits::PARKED_SPARE_MAX;

/// A request that waits without a task.
pub(crate) trait Parked {
    /// Something has happened: it goes on in a task. Once; from then on this does nothing.
    fn begin(&self);

    /// The same, outside of whatever it waited for: what of it needs no waiting is done at once, and no task is begun for that.
    fn go_on(self: Rc<Self>);

    /// It has waited so long for capacity of a server, and has it now.
    fn queued(&self, _duration: Duration) {}

    /// Nobody needs it any more.
    fn abandon(&self);

    /// Itself, for who knows of what type it is.
    fn as_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// Requests that have gone on, whose memory is for the next ones that wait.
#[derive(Default)]
pub(crate) struct SpareParked(RefCell<Vec<Rc<dyn Parked>>>);

impl SpareParked {
    /// One of this type, if there is one.
    pub(crate) fn take<T: Parked + 'static>(&self) -> Option<Rc<T>> {
        let parked = self.0.borrow_mut().pop()?;
        parked.as_any().downcast().ok()
    }

    /// One that has gone on. It is kept if nobody else knows it: who does could have the next request go on.
    pub(crate) fn give(&self, parked: Rc<dyn Parked>) {
        let mut all = self.0.borrow_mut();
        if Rc::strong_count(&parked) == 1 && all.len() < PARKED_SPARE_MAX {
            all.push(parked);
        }
    }

    /// Frees all kept objects and returns their number.
    pub(crate) fn clear(&self) -> usize {
        self.0.take().len()
    }
}

/// Who waits.
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
    /// Something has happened.
    pub(crate) fn wake(&self) {
        match self.0.take() {
            Waiting::Nobody => {}
            Waiting::Task(waker) => waker.wake(),
            Waiting::Parked(parked) => parked.begin(),
        }
    }

    /// The request that is parked here, which is to [go on](Parked::go_on).
    pub(crate) fn take_parked(&self) -> Option<Rc<dyn Parked>> {
        match self.0.take() {
            Waiting::Parked(parked) => Some(parked),
            others => {
                self.0.replace(others);
                None
            }
        }
    }

    /// It has waited so long for capacity of a server: who is parked here is [told](Parked::queued), a task is woken.
    pub(crate) fn queued(&self, duration: Duration) {
        match &*self.0.borrow() {
            Waiting::Nobody => {}
            Waiting::Task(waker) => waker.wake_by_ref(),
            Waiting::Parked(parked) => parked.queued(duration),
        }
    }

    /// The running task waits for what happens next.
    pub(crate) fn wait(&self, context: &Context<'_>) {
        let waiting = &mut *self.0.borrow_mut();
        match waiting {
            Waiting::Task(waker) => waker.clone_from(context.waker()),
            Waiting::Nobody | Waiting::Parked(_) => {
                *waiting = Waiting::Task(context.waker().clone());
            }
        }
    }

    /// A request waits for it without a task.
    pub(crate) fn park(&self, parked: Rc<dyn Parked>) {
        self.0.replace(Waiting::Parked(parked));
    }

    /// What would happen next never will. Who is parked here would keep alive what it waits for.
    pub(crate) fn abandon(&self) {
        if let Waiting::Parked(parked) = self.0.take() {
            parked.abandon();
        }
    }

    /// Nobody waits any more.
    pub(crate) fn clear(&self) {
        self.0.take();
    }
}
