//! Order in which streams send (RFC 9218 10): most urgent first. Within an urgency, non-incremental streams are sent
//! one after the other in the order of their requests, and incremental ones round-robin; both kinds alternate, so that
//! an endless response does not starve the others.

use super::{NO_SLOT, SendState, Slot};
use crate::http2::priority::{Delivery, URGENCIES};

/// Send queues, doubly linked through the slots of their streams.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// By urgency and delivery: `Whole`, `Incremental`.
    queues: [[Queue; 2]; URGENCIES],
    /// Bit set of urgencies with a queued stream.
    urgencies: u8,
    /// Bit set of urgencies whose next turn belongs to the incremental streams.
    turns: u8,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

const EMPTY: Queue = Queue {
    first: NO_SLOT,
    last: NO_SLOT,
};

impl SendQueue {
    pub(crate) fn new() -> Self {
        SendQueue {
            queues: [[EMPTY; 2]; URGENCIES],
            urgencies: 0,
            turns: 0,
        }
    }

    /// Queues a stream by its priority: non-incremental ones by id, others last.
    pub(crate) fn push(&mut self, slots: &mut [Slot], at: u32) {
        let slot = slots[at as usize];
        let delivery = slot.priority.delivery;
        let queue = &mut self.queues[usize::from(slot.priority.urgency)][delivery as usize];
        let mut previous = queue.last;
        if delivery == Delivery::Whole {
            while previous != NO_SLOT && slots[previous as usize].id > slot.id {
                previous = slots[previous as usize].previous;
            }
        }
        let next = match previous {
            NO_SLOT => std::mem::replace(&mut queue.first, at),
            previous => std::mem::replace(&mut slots[previous as usize].next, at),
        };
        match next {
            NO_SLOT => queue.last = at,
            next => slots[next as usize].previous = at,
        }
        let slot = &mut slots[at as usize];
        (slot.previous, slot.next, slot.turn) = (previous, next, SendState::Queued);
        self.urgencies |= 1 << slot.priority.urgency;
    }

    /// Removes a stream from its queue and sets its `turn`.
    pub(crate) fn remove(&mut self, slots: &mut [Slot], at: u32, turn: SendState) {
        let Slot {
            priority,
            previous,
            next,
            ..
        } = slots[at as usize];
        let queues = &mut self.queues[usize::from(priority.urgency)];
        let queue = &mut queues[priority.delivery as usize];
        match previous {
            NO_SLOT => queue.first = next,
            previous => slots[previous as usize].next = next,
        }
        match next {
            NO_SLOT => queue.last = previous,
            next => slots[next as usize].previous = previous,
        }
        if queues.iter().all(|queue| queue.first == NO_SLOT) {
            self.urgencies &= !(1 << priority.urgency);
        }
        let slot = &mut slots[at as usize];
        (slot.previous, slot.next, slot.turn) = (NO_SLOT, NO_SLOT, turn);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.urgencies == 0
    }

    /// Returns the next stream to send. It stays queued; an incremental one moves to the end of its queue.
    #[inline]
    pub(crate) fn next(&mut self, slots: &mut [Slot]) -> Option<u32> {
        if self.urgencies == 0 {
            return None;
        }
        let urgency = self.urgencies.trailing_zeros() as usize;
        let [whole, incremental] = self.queues[urgency];
        let turn = 1 << urgency;
        let is_incremental = match (whole.first, incremental.first) {
            (NO_SLOT, _) => true,
            (_, NO_SLOT) => false,
            _ => self.turns & turn != 0,
        };
        self.turns ^= turn;
        if !is_incremental {
            return Some(whole.first);
        }
        if incremental.first != incremental.last {
            self.remove(slots, incremental.first, SendState::None);
            self.push(slots, incremental.first);
        }
        Some(incremental.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::flow::{ReceiveWindow, SendWindow};
    use crate::http2::priority::Priority;

    fn slots(priorities: &[(u8, Delivery)]) -> Vec<Slot> {
        let mut id = 1;
        let slot = |&(urgency, delivery): &(u8, Delivery)| {
            let mut slot = Slot::new(id, SendWindow::new(10), ReceiveWindow::new(10));
            slot.priority = Priority { urgency, delivery };
            id += 2;
            slot
        };
        priorities.iter().map(slot).collect()
    }

    fn turns(ready: &mut SendQueue, slots: &mut [Slot], count: usize) -> Vec<u32> {
        let next = |_| ready.next(slots).expect("one is ready");
        (0..count).map(next).collect()
    }

    #[test]
    fn queue_orders_by_urgency_then_stream_age() {
        let whole = Delivery::Whole;
        let mut slots = slots(&[(3, whole), (3, whole), (0, whole), (7, whole)]);
        let mut ready = SendQueue::new();
        for at in [3, 1, 0, 2] {
            ready.push(&mut slots, at);
        }
        for wanted in [2, 0, 1, 3] {
            assert_eq!(turns(&mut ready, &mut slots, 2), [wanted; 2]);
            ready.remove(&mut slots, wanted, SendState::None);
        }
        assert_eq!(ready.next(&mut slots), None);
    }

    #[test]
    fn incremental_streams_take_turns() {
        let (whole, parts) = (Delivery::Whole, Delivery::Incremental);
        let mut slots = slots(&[(3, parts), (3, parts), (3, whole), (3, parts)]);
        let mut ready = SendQueue::new();
        for at in [0, 1, 3] {
            ready.push(&mut slots, at);
        }
        assert_eq!(turns(&mut ready, &mut slots, 4), [0, 1, 3, 0]);
        ready.remove(&mut slots, 3, SendState::Blocked);
        assert_eq!(turns(&mut ready, &mut slots, 3), [1, 0, 1]);
        ready.push(&mut slots, 2);
        let four = turns(&mut ready, &mut slots, 4);
        assert_eq!(four.iter().filter(|&&at| at == 2).count(), 2, "{four:?}");
    }
}
