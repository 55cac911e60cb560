//! Periods in which a core was held up, so that its lateness is not attributed to the peers it waited for.

use std::time::Duration;

use crate::clock::Instant;
use crate::limits::STALLS_KEPT;

#[derive(Default)]
pub(super) struct Stalls {
    /// End and length of each stall, in no particular order.
    latest: [(Instant, Duration); STALLS_KEPT],
    next: usize,
    end: Instant,
}

impl Stalls {
    pub(super) fn note(&mut self, end: Instant, length: Duration) {
        self.latest[self.next] = (end, length);
        self.next = (self.next + 1) % STALLS_KEPT;
        self.end = end;
    }

    /// Total length of the stalls after `begin`.
    pub(super) fn since(&self, begin: Instant) -> Duration {
        if self.end <= begin {
            return Duration::ZERO;
        }
        let part = |(end, length): (Instant, Duration)| length.min(end.since(begin));
        self.latest.into_iter().map(part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanoseconds(milliseconds * 1_000_000)
    }

    #[test]
    fn stalls_before_operation_start_do_not_count() {
        let mut stalls = Stalls::default();
        assert_eq!(stalls.since(at(0)), Duration::ZERO);
        stalls.note(at(1000), Duration::from_millis(300));
        stalls.note(at(2000), Duration::from_millis(50));
        for (begin, expected) in [(0, 350), (700, 350), (900, 150), (1000, 50), (1970, 30)] {
            let expected = Duration::from_millis(expected);
            assert_eq!(stalls.since(at(begin)), expected, "since {begin} ms");
        }
        assert_eq!(stalls.since(at(2000)), Duration::ZERO);
        for _ in 0..2 * STALLS_KEPT {
            stalls.note(at(3000), Duration::from_millis(1));
        }
        let kept = Duration::from_millis(STALLS_KEPT as u64);
        assert_eq!(stalls.since(at(0)), kept, "no more than are kept");
    }
}
