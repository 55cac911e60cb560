//! The queues of all cores that wait for room on a server of one group. Room that is made anywhere calls the queue that has
//! waited longest.

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
    /// Each queue at most once: a core has one for each group.
    queues: VecDeque<(u64, Waker)>,
    /// How often room was made.
    calls: u64,
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
    /// room. Then the next is called instead, once for each time that room was made, where `has_room` says that there is
    /// some, which others may be able to use; `passed` is when it did so last.
    pub(crate) fn stand(
        &self,
        queue: u64,
        waker: &Waker,
        (before, passed): (Stand, u64),
        has_room: impl FnOnce() -> bool,
    ) -> u64 {
        let mut standing = self.standing();
        let place = standing.place_of(queue);
        let was_called = before == Stand::InLine && place.is_none();
        let calls = standing.calls;
        let next = match was_called && passed != calls && has_room() {
            true => standing.queues.pop_front(),
            false => None,
        };
        let entry = (queue, waker.clone());
        match place {
            Some(place) => standing.queues[place] = entry,
            None if was_called => standing.queues.push_front(entry),
            None => standing.queues.push_back(entry),
        }
        drop(standing);
        let Some((_, waker)) = next else {
            return passed;
        };
        waker.wake();
        calls
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
        if let Some((_, waker)) = first {
            waker.wake();
        }
    }

    /// There may be room for anybody: calls all.
    pub(crate) fn call_all(&self) {
        let queues = std::mem::take(&mut self.standing().queues);
        queues.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

impl Standing {
    fn place_of(&self, queue: u64) -> Option<usize> {
        self.queues.iter().position(|(known, _)| *known == queue)
    }
}
