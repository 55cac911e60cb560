//! The queues of all cores that wait for room on a server of one group, in one configuration of it or the next. Room that
//! is made anywhere calls the queue that has waited longest.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

#[derive(Debug, Default)]
pub(crate) struct Line {
    standing: Mutex<Standing>,
    queues: AtomicU64,
}

#[derive(Debug, Default)]
struct Standing {
    /// Each queue at most once: a core has one for each group and configuration.
    queues: VecDeque<Entry>,
    /// How often room was made.
    calls: u64,
}

#[derive(Debug)]
struct Entry {
    queue: u64,
    waker: Waker,
    /// See [`Line::stand`].
    passed: u64,
}

/// A queue's way through the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stand {
    /// It has none.
    Away,
    /// It stands in the line, or was called and has not found out whether there is room for it.
    InLine,
}

impl Line {
    /// A name for one more queue.
    pub(crate) fn enroll(&self) -> u64 {
        self.queues.fetch_add(1, Ordering::Relaxed)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        // Nothing that runs under the lock can panic and leave half of a change.
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `waker` woken when it is the turn of `queue`, which stands at the end, or in front when it was called and found no
    /// room. Then the next is called instead, once for each time that room was made, where `may_be_room` says that there may
    /// be some, which others may be able to use; `passed` is when it did so last, and what is returned when it has now. So
    /// the call goes from one to the next until somebody can use it or all have had it.
    pub(crate) fn stand(
        &self,
        queue: u64,
        waker: &Waker,
        (before, passed): (Stand, u64),
        may_be_room: impl FnOnce() -> bool,
    ) -> u64 {
        let mut standing = self.standing();
        let place = standing.place_of(queue);
        let was_called = before == Stand::InLine && place.is_none();
        let calls = standing.calls;
        let passes = was_called && passed != calls && may_be_room();
        let entry = Entry {
            queue,
            waker: waker.clone(),
            passed: if passes { calls } else { passed },
        };
        let passed = entry.passed;
        let next = if passes { standing.take_next() } else { None };
        match place {
            Some(place) => standing.queues[place] = entry,
            None if was_called => {
                let front = standing.behind_those_who_passed();
                standing.queues.insert(front, entry);
            }
            None => standing.queues.push_back(entry),
        }
        drop(standing);
        if let Some(next) = next {
            next.waker.wake();
        }
        passed
    }

    /// Takes `queue` out of the line; whether it stood there.
    pub(crate) fn leave(&self, queue: u64) -> bool {
        let mut standing = self.standing();
        let place = standing.place_of(queue);
        if let Some(place) = place {
            standing.queues.remove(place);
        }
        place.is_some()
    }

    /// There is room: calls the first. `nobody_waits` runs under the lock when no other is left.
    pub(crate) fn call(&self, nobody_waits: impl FnOnce()) {
        let mut standing = self.standing();
        standing.calls += 1;
        let first = standing.queues.pop_front();
        if standing.queues.is_empty() {
            nobody_waits();
        }
        drop(standing);
        if let Some(first) = first {
            first.waker.wake();
        }
    }

    /// There may be room for anybody: calls all.
    pub(crate) fn call_all(&self) {
        let queues = std::mem::take(&mut self.standing().queues);
        queues.into_iter().for_each(|entry| entry.waker.wake());
    }
}

impl Standing {
    fn place_of(&self, queue: u64) -> Option<usize> {
        self.queues.iter().position(|entry| entry.queue == queue)
    }

    /// How many in front have had the last call and passed it on.
    fn behind_those_who_passed(&self) -> usize {
        let had_it = |entry: &&Entry| entry.passed == self.calls;
        self.queues.iter().take_while(had_it).count()
    }

    /// The first who has not had the last call.
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

    /// A queue of a test: it looks for room when it is woken.
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

    /// Queues that stand in a line in this order, and what each has to remember.
    struct Standees {
        line: Line,
        queues: Vec<(Arc<Queue>, (Stand, u64))>,
    }

    impl Standees {
        fn new(count: u64) -> Self {
            let line = Line::default();
            let queue = |number| Queue {
                number,
                ..Queue::default()
            };
            let mut standees = Self {
                queues: (0..count)
                    .map(|_| (Arc::new(queue(line.enroll())), (Stand::Away, 0)))
                    .collect(),
                line,
            };
            for queue in 0..count as usize {
                standees.stand(queue);
            }
            standees
        }

        fn stand(&mut self, queue: usize) {
            let (queue, state) = &mut self.queues[queue];
            let waker = Waker::from(Arc::clone(queue));
            let passed = self.line.stand(queue.number, &waker, *state, || true);
            *state = (Stand::InLine, passed);
        }

        /// Who was woken and has not looked yet.
        fn woken(&self) -> Option<usize> {
            let is_woken = |(queue, _): &(Arc<Queue>, _)| queue.woken.load(Ordering::Relaxed) > 0;
            self.queues.iter().position(is_woken)
        }

        /// Who looks for one room that was made, in this order, when only `user` can use it.
        fn call(&mut self, user: Option<usize>) -> Vec<usize> {
            self.line.call(|| ());
            let mut looked = Vec::new();
            while let Some(queue) = self.woken() {
                self.queues[queue].0.woken.fetch_sub(1, Ordering::Relaxed);
                looked.push(queue);
                if Some(queue) == user {
                    self.queues[queue].1.0 = Stand::Away;
                    self.line.leave(self.queues[queue].0.number);
                } else {
                    self.stand(queue);
                }
            }
            looked
        }
    }

    #[test]
    fn a_call_goes_along_the_line_until_somebody_can_use_it() {
        let mut standees = Standees::new(4);
        assert_eq!(standees.call(Some(2)), [0, 1, 2]);
        assert_eq!(standees.call(Some(0)), [0], "nobody has lost his place");
        assert_eq!(standees.call(None), [1, 3]);
        standees.stand(2);
        assert_eq!(standees.call(Some(2)), [1, 3, 2]);
    }

    proptest! {
        #[test]
        fn every_call_is_looked_at_once_by_each_in_order_until_it_is_used(
            users in prop::collection::vec(prop::option::of(0..5_usize), 1..40),
        ) {
            let mut standees = Standees::new(5);
            let mut order: Vec<usize> = (0..5).collect();
            for user in users {
                let used = user.and_then(|user| order.iter().position(|queue| *queue == user));
                let until = used.map_or(order.len(), |place| place + 1);
                prop_assert_eq!(&standees.call(user), &order[..until]);
                if let Some(place) = used {
                    order.remove(place);
                }
                if let Some(user) = user.filter(|user| !order.contains(user)) {
                    standees.stand(user);
                    order.push(user);
                }
            }
        }
    }
}
