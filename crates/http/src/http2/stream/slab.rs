//! Open streams of a connection in reused slots, with lookup by id or slot, and their send queues.

use super::index::Index;
use super::send_queue::SendQueue;
use super::{NO_SLOT, SendState, Slot, Stream};
use crate::http2::flow::{Change, Overflow};
use crate::http2::priority::Priority;

/// Open streams. Allocates when the first is opened.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<Slot>,
    /// First free slot; the others follow by `next`.
    free: u32,
    open: u32,
    index: Index,
    ready: SendQueue,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Streams {
            slots: Vec::new(),
            free: NO_SLOT,
            open: 0,
            index: Index::default(),
            ready: SendQueue::new(),
        }
    }

    #[inline]
    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    #[inline]
    pub(crate) fn insert(&mut self, slot: Slot) -> Stream {
        let id = slot.id;
        let at = match self.free {
            NO_SLOT => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
            at => {
                let place = &mut self.slots[at as usize];
                self.free = place.next;
                *place = slot;
                at
            }
        };
        self.index.insert(id, at);
        self.open += 1;
        Stream { id, slot: at }
    }

    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<Stream> {
        let slot = self.index.find(id)?;
        Some(Stream { id, slot })
    }

    #[inline]
    pub(crate) fn get(&self, stream: Stream) -> Option<&Slot> {
        let slot = self.slots.get(stream.slot as usize);
        slot.filter(|slot| slot.id == stream.id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, stream: Stream) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(stream.slot as usize);
        slot.filter(|slot| slot.id == stream.id)
    }

    #[inline]
    pub(crate) fn remove(&mut self, stream: Stream) {
        self.set_send_state(stream, SendState::None);
        self.index.remove(stream.id);
        self.open -= 1;
        let slot = &mut self.slots[stream.slot as usize];
        slot.id = 0;
        slot.next = self.free;
        self.free = stream.slot;
    }

    /// Any open stream with an id that satisfies `is_meant`.
    pub(crate) fn any(&self, is_meant: impl Fn(u32) -> bool) -> Option<Stream> {
        let at = self
            .slots
            .iter()
            .position(|slot| slot.id != 0 && is_meant(slot.id))?;
        Some(Stream {
            id: self.slots[at].id,
            slot: at as u32,
        })
    }

    /// Adjusts the send windows of all streams by the difference of two initial windows, and queues streams that are no
    /// longer blocked. Returns whether there were any.
    pub(crate) fn change_windows(&mut self, by: i64) -> Result<Change, Overflow> {
        let mut outcome = Change::Same;
        for at in 0..self.slots.len() {
            if self.slots[at].id == 0 {
                continue;
            }
            if self.slots[at].sending.change(by)? == Change::Opened {
                outcome = Change::Opened;
                self.unblock(at as u32);
            }
        }
        Ok(outcome)
    }

    /// The peer has acknowledged an initial window that is smaller by `by`.
    pub(crate) fn shrink_windows(&mut self, by: u32) {
        let open = self.slots.iter_mut().filter(|slot| slot.id != 0);
        open.for_each(|slot| slot.receiving.shrink(by));
    }

    /// Queues a stream whose window opened, if it was blocked.
    pub(crate) fn unblock(&mut self, at: u32) {
        if self.slots[at as usize].turn == SendState::Blocked {
            self.ready.push(&mut self.slots, at);
        }
    }

    /// Sets whether an open stream waits to send.
    #[inline]
    pub(crate) fn set_send_state(&mut self, stream: Stream, turn: SendState) {
        let at = stream.slot;
        let old = self.slots[at as usize].turn;
        if old == turn {
            return;
        }
        if old == SendState::Queued {
            self.ready.remove(&mut self.slots, at, turn);
        }
        match turn {
            SendState::Queued => self.ready.push(&mut self.slots, at),
            SendState::None | SendState::Blocked => self.slots[at as usize].turn = turn,
        }
    }

    pub(crate) fn prioritize(&mut self, stream: Stream, priority: Priority) {
        let turn = self.slots[stream.slot as usize].turn;
        self.set_send_state(stream, SendState::None);
        self.slots[stream.slot as usize].priority = priority;
        self.set_send_state(stream, turn);
    }

    /// Whether a stream has something to send and is not blocked.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<Stream> {
        let slot = self.ready.next(&mut self.slots)?;
        let id = self.slots[slot as usize].id;
        Some(Stream { id, slot })
    }

    /// Frees the memory if no stream is open.
    pub(crate) fn release_memory(&mut self) {
        if self.open == 0 {
            *self = Streams::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::flow::{ReceiveWindow, SendWindow};

    fn slot(id: u32) -> Slot {
        Slot::new(id, SendWindow::new(10), ReceiveWindow::new(10))
    }

    #[test]
    fn reused_slots_do_not_match_old_streams() {
        let mut streams = Streams::new();
        let first = streams.insert(slot(1));
        let second = streams.insert(slot(3));
        streams.remove(first);
        assert!(streams.get(first).is_none());
        let third = streams.insert(slot(5));
        assert_eq!(third.slot(), first.slot());
        assert!(streams.get(first).is_none());
        assert_eq!(streams.find(3), Some(second));
        assert_eq!(streams.find(1), None);
        assert_eq!(streams.open(), 2);
    }

    #[test]
    fn window_update_queues_blocked_stream() {
        let mut streams = Streams::new();
        let stream = streams.insert(slot(1));
        streams.set_send_state(stream, SendState::Queued);
        assert_eq!(streams.next_ready(), Some(stream));
        let window = &mut streams.get_mut(stream).expect("it is open").sending;
        window.take(10);
        streams.set_send_state(stream, SendState::Blocked);
        assert_eq!(streams.next_ready(), None);
        assert_eq!(streams.change_windows(5), Ok(Change::Opened));
        assert_eq!(streams.next_ready(), Some(stream));
        streams.remove(stream);
        assert_eq!(streams.next_ready(), None);
    }
}
