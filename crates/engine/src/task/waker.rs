//! Wakers of tasks.
//!
//! A waker is a number: the index of its core in a table of the process, and generation and index of the task. Cloning
//! it costs nothing, and dropping it has no effect.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::id::TaskId;
use crate::task::notifier;

/// Thread-local state of the core that runs on a thread.
struct ThreadState {
    place: Cell<Option<u16>>,
    /// Tasks woken through a standard `Waker`, by futures of the standard library and combinators; the engine's own
    /// operations do not use it. Bounded, because it is emptied after every poll.
    woken: RefCell<Vec<TaskId>>,
}

thread_local! {
    static HERE: ThreadState = const {
        ThreadState {
            place: Cell::new(None),
            woken: RefCell::new(Vec::new()),
        }
    };
}

/// Guard: until it is dropped, a core runs on this thread.
pub(crate) struct CoreGuard {
    before: Option<u16>,
}

impl CoreGuard {
    pub(super) fn at(place: u16) -> Self {
        let before = HERE.with(|here| here.place.replace(Some(place)));
        Self { before }
    }
}

impl Drop for CoreGuard {
    fn drop(&mut self) {
        HERE.with(|here| here.place.set(self.before));
    }
}

/// Takes the tasks that were woken on this thread and calls `wake` for each.
pub(super) fn for_each_woken(wake: impl Fn(TaskId)) {
    HERE.with(|here| {
        // Taken out first: `wake` must not run while the list is borrowed, since futures drop wakers at any time.
        if !here.woken.borrow().is_empty() {
            let mut ids = here.woken.take();
            ids.drain(..).for_each(wake);
            // Put back to reuse its memory.
            here.woken.replace(ids);
        }
    });
}

/// A waker with the IDs of the task and its core in its data pointer: no reference count, no allocation. On the core's
/// thread waking pushes to a list, elsewhere it notifies the core.
pub(super) fn waker(id: TaskId, place: u16) -> Waker {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| ());

    fn clone(data: *const ()) -> RawWaker {
        RawWaker::new(data, &VTABLE)
    }

    fn wake(data: *const ()) {
        let (place, task) = TaskId::unpack(data.addr());
        // While a thread is destroyed its list may be gone; the notifier is not.
        let is_noted = HERE.try_with(|here| {
            let is_here = here.place.get() == Some(place);
            if is_here {
                here.woken.borrow_mut().push(task);
            }
            is_here
        });
        if is_noted != Ok(true) {
            notifier::wake(place, task);
        }
    }

    let raw = RawWaker::new(ptr::without_provenance(id.pack(place)), &VTABLE);
    // SAFETY: the functions of VTABLE never dereference the data pointer, which is a plain number, and own nothing; so
    // cloning, waking and dropping in any order and on any thread keep RawWaker's contract.
    unsafe { Waker::from_raw(raw) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::task::Poll;

    use crate::clock::Clock;
    use crate::limits::CORES_MAX;
    use crate::task::Tasks;
    use crate::task::profile::Work;

    /// An index without a core.
    const PLACE: u16 = CORES_MAX as u16 - 1;

    #[test]
    fn wake_outside_core_queues_nothing_locally() {
        let tasks = Tasks::new(PLACE, Clock::Real);
        let left: Rc<Cell<Option<Waker>>> = Rc::default();
        let leaving = Rc::clone(&left);
        tasks.spawn(
            Work::TASK,
            Box::pin(poll_fn(move |context| {
                leaving.set(Some(context.waker().clone()));
                Poll::Pending
            })),
        );
        tasks.run(1);
        let waker = left.take().expect("it has run");
        let elsewhere = waker.clone();
        let left = std::thread::spawn(move || {
            elsewhere.wake_by_ref();
            HERE.with(|here| here.woken.borrow().capacity())
        });
        assert_eq!(left.join().expect("no panic"), 0);
        waker.wake();
        assert!(HERE.with(|here| here.woken.borrow().is_empty()));
        tasks.clear();
    }
}
