//! The line of queues, of all cores, that wait for capacity of one group. Released capacity calls the queue that has
//! waited longest.
//!
//! Each configuration of the group has queues of its own, all in this line and with one limit of length: a request that
//! waits for a removed server must not delay requests that other servers can take.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    state: Mutex<State>,
    queues: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Each queue at most once: a core has one per group and configuration.
    queues: VecDeque<Entry>,
    /// Number of times that capacity was released.
    calls: u64,
}

#[derive(Debug)]
struct Entry {
    queue: u64,
    waker: Waker,
    /// See [`WaitQueue::enter`].
    passed: u64,
}

/// Whether a queue is in the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    /// None of the queue's requests waits for capacity.
    Outside,
    /// The queue waits in the line, or was called and has not yet tried to use the capacity.
    InLine,
}

impl WaitQueue {
    pub(crate) fn add_queue(&self) -> u64 {
        self.queues.fetch_add(1, Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers `waker` to be woken when `queue` is called. A queue enters at the end, or returns to the front if it
    /// was called and could not use the capacity. In the latter case the next queue is called instead, once per
    /// release, if `may_be_more` reports capacity for others: each release goes from queue to queue until one can use
    /// it. `passed` is the number of the release that the queue last passed on; the new value is returned.
    pub(crate) fn enter(
        &self,
        queue: u64,
        waker: &Waker,
        (before, passed): (Position, u64),
        may_be_more: impl FnOnce() -> bool,
    ) -> u64 {
        let mut state = self.state();
        let index = state.index_of(queue);
        let was_called = before == Position::InLine && index.is_none();
        let calls = state.calls;
        let passes = was_called && passed != calls && may_be_more();
        let entry = Entry {
            queue,
            waker: waker.clone(),
            passed: if passes { calls } else { passed },
        };
        let passed = entry.passed;
        let next = if passes { state.take_next() } else { None };
        match index {
            Some(index) => state.queues[index] = entry,
            None if was_called => {
                let front = state.count_that_passed();
                state.queues.insert(front, entry);
            }
            None => state.queues.push_back(entry),
        }
        drop(state);
        if let Some(next) = next {
            next.waker.wake();
        }
        passed
    }

    /// Removes `queue` from the line. Returns whether it was there.
    pub(crate) fn leave(&self, queue: u64) -> bool {
        let mut state = self.state();
        let index = state.index_of(queue);
        if let Some(index) = index {
            state.queues.remove(index);
        }
        index.is_some()
    }

    /// Capacity was released: calls the first queue. `none_waits` runs under the lock if no other queue is left.
    pub(crate) fn call(&self, none_waits: impl FnOnce()) {
        let mut state = self.state();
        state.calls += 1;
        let first = state.queues.pop_front();
        if state.queues.is_empty() {
            none_waits();
        }
        drop(state);
        if let Some(first) = first {
            first.waker.wake();
        }
    }

    /// Calls all queues, when there may be capacity for any of them.
    pub(crate) fn call_all(&self) {
        let queues = std::mem::take(&mut self.state().queues);
        queues.into_iter().for_each(|entry| entry.waker.wake());
    }
}

impl State {
    fn index_of(&self, queue: u64) -> Option<usize> {
        self.queues.iter().position(|entry| entry.queue == queue)
    }

    /// Number of queues at the front that have passed on the last call.
    fn count_that_passed(&self) -> usize {
        let had_it = |entry: &&Entry| entry.passed == self.calls;
        self.queues.iter().take_while(had_it).count()
    }

    /// Removes the first queue that has not had the last call.
    fn take_next(&mut self) -> Option<Entry> {
        let next = self
            .queues
            .iter()
            .position(|entry| entry.passed != self.calls)?;
        self.queues.remove(next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;
    use proptest::prelude::*;

    /// A queue that tries to use capacity when it is woken.
    #[derive(Default)]
    struct Queue {
        number: u64,
        woken: AtomicUsize,
    }

    impl Wake for Queue {
        fn wake(self: Arc<Self>) {
            self.woken.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queues in the line in this order, with the state that each must keep.
    struct Waiters {
        line: WaitQueue,
        queues: Vec<(Arc<Queue>, (Position, u64))>,
    }

    impl Waiters {
        fn new(count: u64) -> Self {
            let line = WaitQueue::default();
            let queue = |number| Queue {
                number,
                ..Queue::default()
            };
            let mut waiters = Self {
                queues: (0..count)
                    .map(|_| (Arc::new(queue(line.add_queue())), (Position::Outside, 0)))
                    .collect(),
                line,
            };
            for queue in 0..count as usize {
                waiters.enter(queue);
            }
            waiters
        }

        fn enter(&mut self, queue: usize) {
            let (queue, state) = &mut self.queues[queue];
            let waker = Waker::from(Arc::clone(queue));
            let passed = self.line.enter(queue.number, &waker, *state, || true);
            *state = (Position::InLine, passed);
        }

        /// The first queue that was woken and has not tried yet.
        fn woken(&self) -> Option<usize> {
            let is_woken = |(queue, _): &(Arc<Queue>, _)| queue.woken.load(Ordering::Relaxed) > 0;
            self.queues.iter().position(is_woken)
        }

        /// Releases capacity that only `user` can use; returns the queues that tried, in order.
        fn call(&mut self, user: Option<usize>) -> Vec<usize> {
            self.line.call(|| ());
            let mut looked = Vec::new();
            while let Some(queue) = self.woken() {
                self.queues[queue].0.woken.fetch_sub(1, Ordering::Relaxed);
                looked.push(queue);
                if Some(queue) == user {
                    self.queues[queue].1.0 = Position::Outside;
                    self.line.leave(self.queues[queue].0.number);
                } else {
                    self.enter(queue);
                }
            }
            looked
        }
    }

    #[test]
    fn wakeup_is_passed_on_until_used() {
        let mut waiters = Waiters::new(4);
        assert_eq!(waiters.call(Some(2)), [0, 1, 2]);
        assert_eq!(waiters.call(Some(0)), [0], "none has lost its position");
        assert_eq!(waiters.call(None), [1, 3]);
        waiters.enter(2);
        assert_eq!(waiters.call(Some(2)), [1, 3, 2]);
    }

    proptest! {
        #[test]
        fn each_queue_receives_a_wakeup_once(
            users in prop::collection::vec(prop::option::of(0..5_usize), 1..40),
        ) {
            let mut waiters = Waiters::new(5);
            let mut order: Vec<usize> = (0..5).collect();
            for user in users {
                let used = user.and_then(|user| order.iter().position(|queue| *queue == user));
                let until = used.map_or(order.len(), |index| index + 1);
                prop_assert_eq!(&waiters.call(user), &order[..until]);
                if let Some(index) = used {
                    order.remove(index);
                }
                if let Some(user) = user.filter(|user| !order.contains(user)) {
                    waiters.enter(user);
                    order.push(user);
                }
            }
        }
    }
}
