//! Sums over a sliding window of time.

use std::ops::{AddAssign, SubAssign};
use std::time::Duration;

use onrush_engine::Instant;

use crate::limits::WINDOW_SLICES;

/// Sum of the amounts added during the last window. The window moves in slices, so the oldest tenth may be missing.
/// Adding takes one comparison and two additions, except at the start of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Window<T> {
    slices: [T; WINDOW_SLICES],
    /// Invariant: the sum of `slices`.
    sum: T,
    newest: usize,
    /// In nanoseconds; not 0.
    slice_length: u64,
    /// End of the newest slice, in nanoseconds of the clock.
    slice_end: u64,
}

impl<T: AddAssign + SubAssign + Copy + Default> Window<T> {
    pub(crate) fn new(length: Duration) -> Self {
        let slice_length = length.as_nanos() as u64 / WINDOW_SLICES as u64;
        Self {
            slices: [T::default(); WINDOW_SLICES],
            sum: T::default(),
            newest: 0,
            slice_length: slice_length.max(1),
            slice_end: 0,
        }
    }

    pub(crate) fn add(&mut self, amount: T, now: Instant) {
        self.advance(now);
        self.slices[self.newest] += amount;
        self.sum += amount;
    }

    pub(crate) fn sum(&mut self, now: Instant) -> T {
        self.advance(now);
        self.sum
    }

    pub(crate) fn clear(&mut self) {
        self.slices.fill(T::default());
        self.sum = T::default();
    }

    fn advance(&mut self, now: Instant) {
        let Some(late) = now.nanoseconds().checked_sub(self.slice_end) else {
            return;
        };
        let passed = late / self.slice_length + 1;
        self.slice_end = (self.slice_end).saturating_add(passed * self.slice_length);
        if passed >= WINDOW_SLICES as u64 {
            return self.clear();
        }
        for _ in 0..passed {
            self.newest = (self.newest + 1) % WINDOW_SLICES;
            let oldest = std::mem::take(&mut self.slices[self.newest]);
            self.sum -= oldest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn old_window_amounts_expire() {
        let at = |second: u64| Instant::from_nanoseconds(second * 1_000_000_000);
        let mut window = Window::<u32>::new(Duration::from_secs(10));
        window.add(3, at(100));
        window.add(4, at(105));
        for (second, sum) in [(105, 7), (109, 7), (110, 4), (114, 4), (115, 0), (1000, 0)] {
            assert_eq!(window.sum(at(second)), sum, "at {second} s");
        }
    }

    proptest! {
        #[test]
        fn window_sum_covers_nine_to_ten_slices(
            additions in prop::collection::vec((0..30_u64, 0..100_u64), 1..60),
        ) {
            let mut window = Window::<u64>::new(Duration::from_nanos(100));
            let mut added: Vec<(u64, u64)> = Vec::new();
            let mut now = 12_345;
            for (pause, amount) in additions {
                now += pause;
                window.add(amount, Instant::from_nanoseconds(now));
                added.push((now, amount));
                let since = |start| {
                    let recent = added.iter().filter(|(at, _)| *at >= start);
                    recent.map(|(_, amount)| amount).sum::<u64>()
                };
                let sum = window.sum(Instant::from_nanoseconds(now));
                prop_assert!(since(now - 90) <= sum && sum <= since(now - 100));
            }
        }
    }
}
