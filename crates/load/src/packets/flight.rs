//! Datagrams whose echo is outstanding. Pure.

use std::ops::Range;

use crate::limits::FLIGHT_MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u64,
    /// Intended and actual send time, in nanoseconds of the clock.
    due: u64,
    sent: u64,
    state: SlotState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotState {
    Empty,
    Waiting,
    /// The timeout has passed.
    Expired,
}

/// Times of a datagram whose echo has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EchoTimes {
    pub(super) number: u64,
    pub(super) due: u64,
    pub(super) sent: u64,
    pub(super) in_time: InTime,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InTime {
    Yes,
    No,
}

/// Outstanding datagrams of a flow, by number.
#[derive(Debug)]
pub(super) struct OutstandingDatagrams {
    /// Datagram `n` is at `n % slots.len()`. Invariant: the length is a power of two.
    slots: Box<[Slot]>,
    next: u64,
    /// All datagrams with lower numbers have returned or expired.
    oldest: u64,
    waiting: u64,
}

impl OutstandingDatagrams {
    /// With room for `most` outstanding datagrams, up to the limit.
    pub(super) fn new(most: u64) -> OutstandingDatagrams {
        let empty = Slot {
            number: 0,
            due: 0,
            sent: 0,
            state: SlotState::Empty,
        };
        let slots = most.clamp(1, FLIGHT_MAX).next_power_of_two();
        OutstandingDatagrams {
            slots: vec![empty; slots as usize].into(),
            next: 0,
            oldest: 0,
            waiting: 0,
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Records that the next datagram is sent. An outstanding datagram in the same slot is forgotten.
    #[inline]
    pub(super) fn start(&mut self, due: u64, sent: u64) {
        let number = self.next;
        let slot = self.slot(number);
        let was = slot.state;
        *slot = Slot {
            number,
            due,
            sent,
            state: SlotState::Waiting,
        };
        self.next += 1;
        if was != SlotState::Waiting {
            self.waiting += 1;
        }
    }

    /// Undoes [`start`](Self::start) for `numbers`, which the kernel refused.
    pub(super) fn cancel(&mut self, numbers: Range<u64>) {
        for number in numbers {
            let slot = self.slot(number);
            if slot.number == number && slot.state == SlotState::Waiting {
                slot.state = SlotState::Empty;
                self.waiting -= 1;
            }
        }
    }

    /// Records the echo with this sequence number; `None` if no such datagram was sent, or if it has been forgotten.
    #[inline]
    pub(super) fn complete(&mut self, sequence: u32) -> Option<EchoTimes> {
        let behind = (self.next as u32).wrapping_sub(sequence);
        let number = self.next.checked_sub(behind.into())?;
        let slot = self.slot(number);
        if slot.number != number {
            return None;
        }
        let landed = |slot: &Slot, in_time| EchoTimes {
            number,
            due: slot.due,
            sent: slot.sent,
            in_time,
        };
        match slot.state {
            SlotState::Empty => None,
            SlotState::Waiting => {
                slot.state = SlotState::Empty;
                let landed = landed(slot, InTime::Yes);
                self.waiting -= 1;
                Some(landed)
            }
            SlotState::Expired => {
                slot.state = SlotState::Empty;
                Some(landed(slot, InTime::No))
            }
        }
    }

    /// Expires the datagrams that were sent before `moment`.
    pub(super) fn expire(&mut self, moment: u64) {
        let len = self.slots.len() as u64;
        self.oldest = self.oldest.max(self.next.saturating_sub(len));
        while self.oldest < self.next {
            let number = self.oldest;
            let slot = self.slot(number);
            let is_waiting = slot.number == number && slot.state == SlotState::Waiting;
            if is_waiting && slot.sent >= moment {
                return;
            }
            if is_waiting {
                slot.state = SlotState::Expired;
                self.waiting -= 1;
            }
            self.oldest += 1;
        }
    }

    fn slot(&mut self, number: u64) -> &mut Slot {
        let mask = self.slots.len() as u64 - 1;
        &mut self.slots[(number & mask) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_completes_datagram_once() {
        let mut flight = OutstandingDatagrams::new(4);
        flight.start(10, 11);
        flight.start(20, 22);
        assert_eq!(flight.waiting(), 2);
        let landed = flight.complete(1).unwrap();
        assert_eq!(
            (landed.due, landed.sent, landed.in_time),
            (20, 22, InTime::Yes)
        );
        assert_eq!(flight.complete(1), None, "a duplicate has none");
        assert_eq!(flight.complete(2), None, "it was never sent");
        assert_eq!(flight.waiting(), 1);
    }

    #[test]
    fn expired_echo_is_late() {
        let mut flight = OutstandingDatagrams::new(4);
        flight.start(1, 1);
        flight.start(5, 5);
        flight.expire(5);
        assert_eq!(flight.waiting(), 1);
        assert_eq!(flight.complete(0).unwrap().in_time, InTime::No);
        assert_eq!(flight.complete(1).unwrap().in_time, InTime::Yes);
    }

    #[test]
    fn reused_slot_discards_old_datagram() {
        let mut flight = OutstandingDatagrams::new(2);
        (0..5).for_each(|at| flight.start(at, at));
        assert_eq!(flight.waiting(), 2);
        assert_eq!(flight.complete(0), None);
        assert_eq!(flight.complete(4).unwrap().sent, 4);
        flight.expire(100);
        assert_eq!(flight.waiting(), 0);
    }

    #[test]
    fn cancelled_datagrams_are_not_outstanding() {
        let mut flight = OutstandingDatagrams::new(8);
        (0..4).for_each(|at| flight.start(at, at));
        flight.cancel(1..4);
        assert_eq!(flight.waiting(), 1);
        assert_eq!(flight.complete(2), None);
        assert_eq!(flight.complete(0).unwrap().sent, 0);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut flight = OutstandingDatagrams::new(2);
        flight.next = u64::from(u32::MAX);
        flight.oldest = flight.next;
        flight.start(1, 1);
        flight.start(2, 2);
        assert_eq!(flight.complete(u32::MAX).unwrap().due, 1);
        assert_eq!(flight.complete(0).unwrap().due, 2);
    }
}
