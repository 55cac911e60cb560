//! The executor of one core: a slab of tasks and a queue of ready ones.

pub(crate) mod notifier;
pub(crate) mod profile;

pub(crate) mod id;
mod waker;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use crate::clock::{Clock, Instant};
use crate::limits::{OPERATIONS_PER_POLL, YIELDED_PER_TURN};
use crate::task::notifier::Woken;
use crate::task::profile::{Profiler, Work};

use id::ID_MASK;
use id::TaskId;
use waker::CoreGuard;

type Future_ = Pin<Box<dyn Future<Output = ()>>>;

struct Entry {
    generation: u32,
    /// `None` while the task runs and after it ended.
    future: Option<Future_>,
    /// Whether the task is queued; prevents queueing it twice.
    queued: bool,
    work: Work,
}

pub(crate) struct Tasks {
    /// The core's number in the table of [`Place`](crate::task::notifier::Place)s.
    place: u16,
    entries: RefCell<Vec<Entry>>,
    unused: RefCell<Vec<u32>>,
    /// Ready tasks with the time of their wake-up.
    ready: RefCell<VecDeque<(TaskId, Instant)>>,
    /// Tasks that have used up their operations of this poll and continue in a later iteration of the event loop.
    yielded: RefCell<VecDeque<TaskId>>,
    count: Cell<usize>,
    current: Cell<TaskId>,
    /// Operations that the running task may still finish before other tasks run.
    budget: Cell<u32>,
    /// The running task was charged for more than its budget: the kernel is looked at before it continues.
    is_overdrawn: Cell<bool>,
    pub(crate) profiler: Profiler,
}

impl Tasks {
    pub(crate) fn new(place: u16, clock: Clock) -> Self {
        Self {
            place,
            entries: RefCell::new(Vec::new()),
            unused: RefCell::new(Vec::new()),
            ready: RefCell::new(VecDeque::new()),
            yielded: RefCell::new(VecDeque::new()),
            count: Cell::new(0),
            current: Cell::new(TaskId::NONE),
            budget: Cell::new(0),
            is_overdrawn: Cell::new(false),
            profiler: Profiler::new(clock),
        }
    }

    /// Adds a task, which first runs after the current one has yielded.
    pub(crate) fn spawn(&self, work: Work, future: Future_) -> TaskId {
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
                work,
            });
            (entries.len() - 1) as u32
        });
        let entry = &mut entries[index as usize];
        entry.future = Some(future);
        entry.queued = true;
        entry.work = work;
        let id = TaskId {
            index,
            generation: entry.generation,
        };
        let now = self.profiler.begun();
        self.ready.borrow_mut().push_back((id, now));
        self.count.set(self.count.get() + 1);
        id
    }

    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// The running task, which operations record as the one to wake.
    pub(crate) fn current(&self) -> TaskId {
        self.current.get()
    }

    /// Attributes the running task's time to `work` from its next poll on.
    #[inline]
    pub(crate) fn attribute_time_to(&self, work: Work) {
        let index = self.current.get().index as usize;
        if let Some(entry) = self.entries.borrow_mut().get_mut(index) {
            entry.work = work;
        }
    }

    /// Subtracts `operations` from the running task's budget; a task that exceeds it continues in a later turn.
    pub(crate) fn charge(&self, operations: u32) {
        let left = self.budget.get().checked_sub(operations);
        self.budget.set(left.unwrap_or(0));
        self.is_overdrawn.set(left.is_none());
    }

    /// Takes one operation from the running task's budget. If none is left, queues the task again and returns `false`.
    pub(crate) fn may_continue(&self) -> bool {
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                true
            }
            None if self.is_overdrawn.take() => {
                self.yield_now();
                false
            }
            None => {
                self.wake(self.current());
                false
            }
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.borrow().is_empty() || !self.yielded.borrow().is_empty()
    }

    /// Starts the accounts when the core begins to run; tasks spawned before count as woken now.
    pub(crate) fn begin(&self) {
        self.profiler.begin();
        self.set_wake_time(0);
    }

    /// Number of ready tasks, excluding yielded ones.
    pub(crate) fn ready(&self) -> usize {
        self.ready.borrow().len()
    }

    /// Sets the wake-up time of ready tasks after the first `before` to now: a look, which
    /// reads no clock, has woken them.
    pub(crate) fn set_wake_time(&self, before: usize) {
        let now = self.profiler.begun();
        for (_, woken) in self.ready.borrow_mut().iter_mut().skip(before) {
            *woken = now;
        }
    }

    /// Continues the running task in a later turn, after earlier yielded tasks.
    pub(crate) fn yield_now(&self) {
        self.yielded.borrow_mut().push_back(self.current());
    }

    /// Queues the task unless it is queued or has ended.
    pub(crate) fn wake(&self, id: TaskId) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(id.index as usize) else {
            return;
        };
        if entry.generation == id.generation && !entry.queued {
            entry.queued = true;
            let now = self.profiler.begun();
            self.ready.borrow_mut().push_back((id, now));
        }
    }

    fn wake_all(&self) {
        let entries = self.entries.borrow();
        let all = entries.iter().enumerate().map(|(index, entry)| TaskId {
            index: index as u32,
            generation: entry.generation,
        });
        let all: Vec<TaskId> = all.collect();
        drop(entries);
        all.into_iter().for_each(|task| self.wake(task));
    }

    /// Wakes the tasks that other threads have woken.
    pub(crate) fn wake_from_other_threads(&self, woken: Woken) {
        match woken {
            Woken::None => {}
            Woken::Some(mut woken) => {
                woken.sort_unstable();
                woken.into_iter().for_each(|task| self.wake(task));
            }
            Woken::All => self.wake_all(),
        }
    }

    /// Wakes the tasks that a standard `Waker` has woken on this thread.
    pub(crate) fn wake_from_wakers(&self) {
        waker::for_each_woken(|id| self.wake(id));
    }

    /// Until the returned guard is dropped, wakers of these tasks on this thread take no lock.
    pub(crate) fn enter_thread(&self) -> CoreGuard {
        CoreGuard::at(self.place)
    }

    /// Wakes the waiting task and clears `waiter`.
    pub(crate) fn wake_once(&self, waiter: &mut TaskId) {
        self.wake(std::mem::replace(waiter, TaskId::NONE));
    }

    /// Runs at most `limit` ready tasks, including some that have yielded.
    pub(crate) fn run(&self, limit: usize) {
        let _here = self.enter_thread();
        for _ in 0..YIELDED_PER_TURN {
            let Some(id) = self.yielded.borrow_mut().pop_front() else {
                break;
            };
            self.wake(id);
        }
        for _ in 0..limit {
            let Some((id, woken)) = self.ready.borrow_mut().pop_front() else {
                return;
            };
            self.poll(id, woken);
        }
    }

    fn poll(&self, id: TaskId, woken: Instant) {
        if let Some(work) = self.poll_task(id) {
            self.profiler.end_poll(work, woken);
        }
    }

    /// Polls a task that is not queued and returns its kind of work; `None` if it has ended.
    pub(crate) fn poll_task(&self, id: TaskId) -> Option<Work> {
        let (mut future, work) = self.take_future(id)?;
        self.current.set(id);
        self.budget.set(OPERATIONS_PER_POLL);
        self.is_overdrawn.set(false);
        let waker = waker::waker(id, self.place);
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
        // After the destructors of a task that has ended, because they may wake others.
        self.wake_from_wakers();
        Some(work)
    }

    fn take_future(&self, id: TaskId) -> Option<(Future_, Work)> {
        let mut entries = self.entries.borrow_mut();
        let entry = &mut entries[id.index as usize];
        if entry.generation != id.generation {
            return None;
        }
        entry.queued = false;
        Some((entry.future.take()?, entry.work))
    }

    fn release(&self, id: TaskId) {
        let entry = &mut self.entries.borrow_mut()[id.index as usize];
        entry.generation = entry.generation.wrapping_add(1) & ID_MASK;
        entry.queued = false;
        self.unused.borrow_mut().push(id.index);
        self.count.set(self.count.get() - 1);
    }

    /// Drops all tasks, also tasks spawned by destructors, which run one by one, outside of any borrow.
    pub(crate) fn clear(&self) {
        let _here = self.enter_thread();
        // A remaining task would keep its core alive, and the core the task.
        while self.drop_futures() {}
        // The tasks that the destructors have woken are gone.
        self.wake_from_wakers();
        self.ready.borrow_mut().clear();
        self.yielded.borrow_mut().clear();
    }

    /// Drops the present tasks; returns whether there were any.
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

#[cfg(test)]
mod tests;
