//! Tasks of one core: a slab of futures and a queue of those that can go on.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

/// Names a task; stale names (the task has ended, its place was reused) are recognised and ignored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TaskId {
    index: u32,
    generation: u32,
}

impl TaskId {
    /// No task at all: waking it does nothing.
    pub(crate) const NONE: TaskId = TaskId {
        index: u32::MAX,
        generation: u32::MAX,
    };

    /// The task as a waker names it, with the place of its core:
    ///
    /// ```text
    ///   63       52 51          26 25        0
    ///   [  place  ] [ generation ] [  index  ]
    /// ```
    fn pack(self, place: u16) -> usize {
        usize::from(place) << (2 * ID_BITS)
            | (self.generation as usize) << ID_BITS
            | self.index as usize
    }

    fn unpack(packed: usize) -> (u16, Self) {
        let task = Self {
            index: packed as u32 & ID_MASK,
            generation: (packed >> ID_BITS) as u32 & ID_MASK,
        };
        ((packed >> (2 * ID_BITS)) as u16, task)
    }
}

/// Bits of an index and of a generation: 67 million tasks on one core, more than fit its memory.
const ID_BITS: u32 = 26;
const ID_MASK: u32 = (1 << ID_BITS) - 1;
const _: () = assert!(usize::BITS == 64 && CORES_MAX <= 1 << (64 - 2 * ID_BITS));

use crate::limits::{CORES_MAX, OPERATIONS_PER_POLL, PAUSED_PER_TURN};
use crate::mailbox;

type Future_ = Pin<Box<dyn Future<Output = ()>>>;

struct Entry {
    generation: u32,
    /// `None` while the task runs and after it ended.
    future: Option<Future_>,
    /// Whether the task is in the queue; keeps it from being queued twice.
    queued: bool,
}

/// Who is waiting and who can go on.
pub(crate) struct Tasks {
    /// Of the core they belong to: [`mailbox::Place`].
    place: u16,
    entries: RefCell<Vec<Entry>>,
    unused: RefCell<Vec<u32>>,
    ready: RefCell<VecDeque<TaskId>>,
    /// Those that have had their share of this turn and go on in one of the next.
    paused: RefCell<VecDeque<TaskId>>,
    count: Cell<usize>,
    current: Cell<TaskId>,
    /// Operations the running task may still finish at once before the others get their turn.
    budget: Cell<u32>,
    /// The running task was charged for more than that: the kernel gets its turn, too, before it goes on.
    is_overdrawn: Cell<bool>,
}

impl Tasks {
    /// No tasks yet, of the core at `place`.
    pub(crate) fn new(place: u16) -> Self {
        Self {
            place,
            entries: RefCell::new(Vec::new()),
            unused: RefCell::new(Vec::new()),
            ready: RefCell::new(VecDeque::new()),
            paused: RefCell::new(VecDeque::new()),
            count: Cell::new(0),
            current: Cell::new(TaskId::NONE),
            budget: Cell::new(0),
            is_overdrawn: Cell::new(false),
        }
    }

    /// Adds a task, which runs for the first time after the present one has paused.
    pub(crate) fn spawn(&self, future: Future_) -> TaskId {
        let mut entries = self.entries.borrow_mut();
        let index = self.unused.borrow_mut().pop().unwrap_or_else(|| {
            assert!(
                entries.len() <= ID_MASK as usize,
                "a core has memory for fewer tasks"
            );
            entries.push(Entry {
                generation: 0,
                future: None,
                queued: false,
            });
            (entries.len() - 1) as u32
        });
        let entry = &mut entries[index as usize];
        entry.future = Some(future);
        entry.queued = true;
        let id = TaskId {
            index,
            generation: entry.generation,
        };
        self.ready.borrow_mut().push_back(id);
        self.count.set(self.count.get() + 1);
        id
    }

    /// Tasks that have not ended.
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// The task that runs now; operations remember it as the one to wake.
    pub(crate) fn current(&self) -> TaskId {
        self.current.get()
    }

    /// Takes `operations` off what the running task may do in a row. When that was more than it had, it goes on in one of
    /// the next turns, as one that pauses.
    pub(crate) fn charge(&self, operations: u32) {
        let left = self.budget.get().checked_sub(operations);
        self.budget.set(left.unwrap_or(0));
        self.is_overdrawn.set(left.is_none());
    }

    /// Takes one operation off what the running task may do in a row; `false`, and the task is queued again, when
    /// nothing is left.
    pub(crate) fn may_go_on(&self) -> bool {
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                true
            }
            None if self.is_overdrawn.take() => {
                self.pause();
                false
            }
            None => {
                self.wake(self.current());
                false
            }
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.borrow().is_empty() || !self.paused.borrow().is_empty()
    }

    /// Lets the running task go on in one of the next turns, when those that have paused before it have.
    pub(crate) fn pause(&self) {
        self.paused.borrow_mut().push_back(self.current());
    }

    /// Queues the task unless it is queued already or has ended.
    pub(crate) fn wake(&self, id: TaskId) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(id.index as usize) else {
            return;
        };
        if entry.generation == id.generation && !entry.queued {
            entry.queued = true;
            self.ready.borrow_mut().push_back(id);
        }
    }

    /// Wakes every task.
    pub(crate) fn wake_all(&self) {
        let entries = self.entries.borrow();
        let all = entries.iter().enumerate().map(|(index, entry)| TaskId {
            index: index as u32,
            generation: entry.generation,
        });
        let all: Vec<TaskId> = all.collect();
        drop(entries);
        all.into_iter().for_each(|task| self.wake(task));
    }

    /// Wakes those who were woken by a standard `Waker` on this thread.
    pub(crate) fn wake_woken(&self) {
        HERE.with(|here| {
            // Taken out first: `wake` may not run while the list is borrowed, since futures drop wakers at any time.
            if !here.woken.borrow().is_empty() {
                let mut ids = here.woken.take();
                ids.drain(..).for_each(|id| self.wake(id));
                // Its memory is needed again soon.
                here.woken.replace(ids);
            }
        });
    }

    /// Wakers that are woken on this thread find these tasks without a lock until what is returned is dropped.
    pub(crate) fn are_here(&self) -> Here {
        let before = HERE.with(|here| here.place.replace(Some(self.place)));
        Here { before }
    }

    /// Wakes whoever waits, who then does not wait any more.
    pub(crate) fn wake_once(&self, waiter: &mut TaskId) {
        self.wake(std::mem::replace(waiter, TaskId::NONE));
    }

    /// Runs ready tasks, at most `limit` of them, and some that have paused before.
    pub(crate) fn run(&self, limit: usize) {
        let _here = self.are_here();
        for _ in 0..PAUSED_PER_TURN {
            let Some(id) = self.paused.borrow_mut().pop_front() else {
                break;
            };
            self.wake(id);
        }
        for _ in 0..limit {
            let Some(id) = self.ready.borrow_mut().pop_front() else {
                return;
            };
            self.poll(id);
        }
    }

    fn poll(&self, id: TaskId) {
        let Some(mut future) = self.take_future(id) else {
            return;
        };
        self.current.set(id);
        self.budget.set(OPERATIONS_PER_POLL);
        self.is_overdrawn.set(false);
        let waker = waker(id, self.place);
        let done = future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        self.current.set(TaskId::NONE);
        if done {
            drop(future);
            self.release(id);
        } else {
            self.entries.borrow_mut()[id.index as usize].future = Some(future);
        }
        // Behind the destructors of a task that has ended: they wake others, too.
        self.wake_woken();
    }

    fn take_future(&self, id: TaskId) -> Option<Future_> {
        let mut entries = self.entries.borrow_mut();
        let entry = &mut entries[id.index as usize];
        if entry.generation != id.generation {
            return None;
        }
        entry.queued = false;
        entry.future.take()
    }

    fn release(&self, id: TaskId) {
        let entry = &mut self.entries.borrow_mut()[id.index as usize];
        entry.generation = entry.generation.wrapping_add(1) & ID_MASK;
        entry.queued = false;
        self.unused.borrow_mut().push(id.index);
        self.count.set(self.count.get() - 1);
    }

    /// Ends all tasks where they stand, and those that their destructors spawn. The destructors run one by one, outside
    /// of any borrow.
    pub(crate) fn clear(&self) {
        let _here = self.are_here();
        // A task that was left would keep its core alive, and the core the task.
        while self.drop_futures() {}
        // Whom the destructors have woken is gone.
        self.wake_woken();
        self.ready.borrow_mut().clear();
        self.paused.borrow_mut().clear();
    }

    /// Ends the tasks that there are; whether there were any.
    fn drop_futures(&self) -> bool {
        let mut any = false;
        let count = self.entries.borrow().len();
        for index in 0..count {
            let (future, generation) = {
                let entry = &mut self.entries.borrow_mut()[index];
                (entry.future.take(), entry.generation)
            };
            if let Some(future) = future {
                drop(future);
                self.release(TaskId {
                    index: index as u32,
                    generation,
                });
                any = true;
            }
        }
        any
    }
}

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

impl Drop for Here {
    fn drop(&mut self) {
        HERE.with(|here| here.place.set(self.before));
    }
}

/// A waker that carries the task's name and its core's in its data pointer: no reference count, no allocation. On its core's
/// thread it is a push into a list, elsewhere a message to the core's mailbox.
fn waker(id: TaskId, place: u16) -> Waker {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| ());

    fn clone(data: *const ()) -> RawWaker {
        RawWaker::new(data, &VTABLE)
    }

    fn wake(data: *const ()) {
        let (place, task) = TaskId::unpack(data.addr());
        // During the destruction of a thread its list may be gone; the mailbox is not.
        let is_noted = HERE.try_with(|here| {
            let is_here = here.place.get() == Some(place);
            if is_here {
                here.woken.borrow_mut().push(task);
            }
            is_here
        });
        if is_noted != Ok(true) {
            mailbox::wake(place, task);
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

    /// A place that no core of these tests has.
    const PLACE: u16 = CORES_MAX as u16 - 1;

    #[test]
    fn a_task_that_wakes_itself_runs_again() {
        let tasks = Tasks::new(PLACE);
        let runs = Rc::new(Cell::new(0));
        let seen = Rc::clone(&runs);
        tasks.spawn(Box::pin(poll_fn(move |context| {
            seen.set(seen.get() + 1);
            if seen.get() == 3 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })));
        tasks.run(10);
        assert_eq!((runs.get(), tasks.count()), (3, 0));
    }

    #[test]
    fn tasks_that_pause_go_on_a_few_a_turn_and_in_their_order() {
        let tasks = Rc::new(Tasks::new(PLACE));
        let order = Rc::new(RefCell::new(Vec::new()));
        for number in 0..PAUSED_PER_TURN + 1 {
            let (own, order) = (Rc::clone(&tasks), Rc::clone(&order));
            tasks.spawn(Box::pin(poll_fn(move |_| {
                order.borrow_mut().push(number);
                own.pause();
                Poll::<()>::Pending
            })));
        }
        tasks.run(1000);
        assert!(order.take().into_iter().eq(0..PAUSED_PER_TURN + 1), "once");
        let mut wanted = (0..PAUSED_PER_TURN + 1).cycle();
        for _ in 0..5 {
            assert!(tasks.has_ready());
            tasks.run(1000);
            let turn: Vec<usize> = wanted.by_ref().take(PAUSED_PER_TURN).collect();
            assert_eq!(order.take(), turn);
        }
        tasks.clear();
        assert!(!tasks.has_ready());
    }

    #[test]
    fn a_task_that_is_charged_for_more_than_it_may_goes_on_in_another_turn() {
        for (charged, runs_in_a_turn) in [(OPERATIONS_PER_POLL, 10), (OPERATIONS_PER_POLL + 1, 1)] {
            let tasks = Rc::new(Tasks::new(PLACE));
            let runs = Rc::new(Cell::new(0));
            let (own, seen) = (Rc::clone(&tasks), Rc::clone(&runs));
            tasks.spawn(Box::pin(poll_fn(move |_| {
                seen.set(seen.get() + 1);
                own.charge(charged);
                assert!(!own.may_go_on());
                Poll::<()>::Pending
            })));
            for turn in 1..4 {
                tasks.run(10);
                assert_eq!(runs.get(), turn * runs_in_a_turn);
            }
            tasks.clear();
        }
    }

    #[test]
    fn a_name_of_an_ended_task_wakes_nobody() {
        let tasks = Tasks::new(PLACE);
        let first = tasks.spawn(Box::pin(async {}));
        tasks.run(1);
        let polled = Rc::new(Cell::new(0));
        let seen = Rc::clone(&polled);
        let second = tasks.spawn(Box::pin(poll_fn(move |_| {
            seen.set(seen.get() + 1);
            Poll::Pending
        })));
        tasks.run(10);
        assert_eq!(first.index, second.index, "the place is reused");
        tasks.wake(first);
        tasks.run(10);
        assert_eq!(polled.get(), 1);
    }

    /// A task that waits for ever, leaves its waker, and counts its polls.
    fn waiting(waker: &Rc<RefCell<Option<Waker>>>, polls: &Rc<Cell<u32>>) -> Future_ {
        let (waker, polls) = (Rc::clone(waker), Rc::clone(polls));
        Box::pin(poll_fn(move |context| {
            polls.set(polls.get() + 1);
            *waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        }))
    }

    /// Does something when it is dropped.
    struct AtEnd<F: FnMut()>(F);

    impl<F: FnMut()> Drop for AtEnd<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    #[test]
    fn whom_the_destructor_of_a_future_wakes_runs_again() {
        let tasks = Tasks::new(PLACE);
        let (waker, polls) = (Rc::default(), Rc::default());
        tasks.spawn(waiting(&waker, &polls));
        let at_end = AtEnd({
            let waker = Rc::clone(&waker);
            move || waker.borrow_mut().take().into_iter().for_each(Waker::wake)
        });
        // Dropped with the future, not when the future ends.
        tasks.spawn(Box::pin(poll_fn(move |_| {
            let _held = &at_end;
            Poll::Ready(())
        })));
        tasks.run(2);
        assert!(tasks.has_ready(), "it was woken");
        tasks.run(10);
        assert_eq!(polls.get(), 2);
        tasks.clear();
    }

    #[test]
    fn a_wake_where_no_task_runs_leaves_nothing_behind() {
        let tasks = Tasks::new(PLACE);
        let (waker, polls) = (Rc::default(), Rc::default());
        tasks.spawn(waiting(&waker, &polls));
        tasks.run(1);
        let waker: Waker = waker.take().expect("it has run");
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

    #[test]
    fn what_destructors_spawn_while_all_ends_ends_too() {
        let tasks = Rc::new(Tasks::new(PLACE));
        let held = Rc::new(());
        let (own, kept) = (Rc::clone(&tasks), Rc::clone(&held));
        let at_end = AtEnd(move || {
            let kept = Rc::clone(&kept);
            own.spawn(Box::pin(async move {
                std::future::pending::<()>().await;
                drop(kept);
            }));
        });
        tasks.spawn(Box::pin(async move {
            std::future::pending::<()>().await;
            drop(at_end);
        }));
        tasks.run(5);
        tasks.clear();
        assert_eq!((Rc::strong_count(&held), tasks.count()), (1, 0));
        assert!(!tasks.has_ready());
    }

    #[test]
    fn clearing_drops_every_future_once() {
        let tasks = Tasks::new(PLACE);
        let held = Rc::new(());
        for _ in 0..10 {
            let held = Rc::clone(&held);
            tasks.spawn(Box::pin(async move {
                std::future::pending::<()>().await;
                drop(held);
            }));
        }
        tasks.run(5);
        tasks.clear();
        assert_eq!((Rc::strong_count(&held), tasks.count()), (1, 0));
    }
}
