//! Sequence numbers received of a flow, to detect lost, duplicated and reordered datagrams.

use crate::limits::WINDOW;

/// How a sequence number arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is higher than all before.
    InOrder,
    /// For the first time, after a higher number (RFC 4737 section 3.3).
    Reordered,
    /// Not for the first time.
    Duplicate,
    /// Below the window, so it is unknown whether it arrived before.
    TooLate,
}

/// The last [`WINDOW`] sequence numbers of a flow. Numbers have 32 bits on the wire and 64 bits here.
#[derive(Clone, Debug)]
pub struct Window {
    /// Highest number received plus one.
    next: u64,
    /// One bit per number below `next`, set if the number was received; number `n` is bit `n % WINDOW`.
    received: Box<[u64]>,
}

impl Default for Window {
    fn default() -> Window {
        Window {
            next: 0,
            received: vec![0; (WINDOW / 64) as usize].into(),
        }
    }
}

impl Window {
    /// Highest number received plus one: a lower bound of the number sent.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Records the arrival of `sequence`, a number as on the wire. It is extended to the 64-bit number closest to the
    /// highest so far (RFC 1982).
    #[inline]
    pub fn record(&mut self, sequence: u32) -> Arrival {
        let ahead = sequence.wrapping_sub(self.next as u32);
        if ahead == 0 {
            self.mark_received(self.next);
            self.next += 1;
            return Arrival::InOrder;
        }
        self.arrive_elsewhere(ahead.cast_signed())
    }

    #[cold]
    fn arrive_elsewhere(&mut self, ahead: i32) -> Arrival {
        let Some(number) = self.next.checked_add_signed(ahead.into()) else {
            return Arrival::TooLate;
        };
        if ahead > 0 {
            self.clear(self.next, number);
            self.mark_received(number);
            self.next = number + 1;
            return Arrival::InOrder;
        }
        if self.next - number > WINDOW {
            return Arrival::TooLate;
        }
        match self.was_received(number) {
            true => Arrival::Duplicate,
            false => {
                self.mark_received(number);
                Arrival::Reordered
            }
        }
    }

    /// Clears the bits of numbers `from..to`.
    fn clear(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW {
            self.received.fill(0);
            return;
        }
        for number in from..to {
            let (word, bit) = place(number);
            self.received[word] &= !bit;
        }
    }

    fn mark_received(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.received[word] |= bit;
    }

    fn was_received(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.received[word] & bit != 0
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrivals_are_classified() {
        let mut window = Window::default();
        let arrivals = [0, 1, 3, 2, 2, 3, 10, 4].map(|number| window.record(number));
        use Arrival::{Duplicate, InOrder, Reordered};
        let expected = [
            InOrder, InOrder, InOrder, Reordered, Duplicate, Duplicate, InOrder, Reordered,
        ];
        assert_eq!(arrivals, expected);
        assert_eq!(window.next(), 11);
    }

    #[test]
    fn datagram_before_window_is_too_late() {
        let mut window = Window::default();
        window.record(WINDOW as u32);
        assert_eq!(window.record(0), Arrival::TooLate);
        assert_eq!(window.record(1), Arrival::Reordered);
        assert_eq!(window.record(1), Arrival::Duplicate);
        // No number is below the first.
        assert_eq!(Window::default().record(u32::MAX), Arrival::TooLate);
    }

    #[test]
    fn sequence_numbers_are_extended() {
        let mut window = Window::default();
        for step in 1..=8u64 {
            let number = step * (1 << 30);
            assert_eq!(window.record(number as u32), Arrival::InOrder);
            assert_eq!(window.next(), number + 1);
        }
    }

    proptest! {
        /// Compares the window with a set of all numbers received.
        #[test]
        fn window_agrees_with_btree_set(steps in prop::collection::vec((-70_000i64..70_000, 0u8..4), 1..400)) {
            let mut window = Window::default();
            let mut come = BTreeSet::new();
            let mut next = 0u64;
            for (jump, kind) in steps {
                let number = match kind {
                    0 => next,
                    1 => next.saturating_add_signed(jump / 1000),
                    _ => next.saturating_add_signed(jump),
                };
                let arrived = window.record(number as u32);
                let expected = if number >= next {
                    Arrival::InOrder
                } else if next - number > WINDOW {
                    Arrival::TooLate
                } else if come.contains(&number) {
                    Arrival::Duplicate
                } else {
                    Arrival::Reordered
                };
                prop_assert_eq!(arrived, expected, "{} with {} next", number, next);
                come.insert(number);
                next = next.max(number + 1);
            }
            prop_assert_eq!(window.next(), next);
        }
    }
}
