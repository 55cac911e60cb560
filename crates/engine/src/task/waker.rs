//! Wakers: how a task is woken from wherever a standard `Waker` is.
//!
//! A waker is a number: the place of its core in a table of the process, and generation and index of the task.
//! Cloning it costs nothing, and dropping it has no effect.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::id::TaskId;
use crate::task::notifier;

/// What a thread knows of the core that runs on it.
struct OnThread {
    /// The core's place, while one runs.
    place: Cell<Option<u16>>,
    /// Its tasks that were woken through a standard `Waker` since this was last looked at. The engine's own operations do not
    /// come this way; it serves futures of the standard library and combinators. Bounded: it is emptied after every poll.
    woken: RefCell<Vec<TaskId>>,
}

thread_local! {
    static HERE: OnThread = const {
        OnThread {
            place: Cell::new(None),
            woken: RefCell::new(Vec::new()),
        }
    };
}

/// Until it is dropped, a core runs on this thread.
pub(crate) struct Here {
    before: Option<u16>,
}

impl Here {
    /// Of the core at `place`.
    pub(super) fn at(place: u16) -> Self {
        let before = HERE.with(|here| here.place.replace(Some(place)));
        Self { before }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.with(|here| here.place.set(self.before));
    }
}

/// Those who were woken on this thread since this was last called.
pub(super) fn for_each_woken(wake: impl Fn(TaskId)) {
    HERE.with(|here| {
        // Taken out first: `wake` may not run while the list is borrowed, since futures drop wakers at any time.
        if !here.woken.borrow().is_empty() {
            let mut ids = here.woken.take();
            ids.drain(..).for_each(wake);
            // Its memory is needed again soon.
            here.woken.replace(ids);
        }
    });
}

/// A waker that carries the task's name and its core's in its data pointer: no reference count, no allocation. On its core's
/// thread it is a push into a list, elsewhere a message to the core's notifier.
pub(super) fn waker(id: TaskId, place: u16) -> Waker {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| ());

    fn clone(data: *const ()) -> RawWaker {
        RawWaker::new(data, &VTABLE)
    }

    fn wake(data: *const ()) {
        let (place, task) = TaskId::unpack(data.addr());
        // During the destruction of a thread its list may be gone; the notifier is not.
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

    /// A place that no core of these tests has.
    const PLACE: u16 = CORES_MAX as u16 - 1;

    #[test]
    fn a_wake_where_no_task_runs_leaves_nothing_behind() {
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
