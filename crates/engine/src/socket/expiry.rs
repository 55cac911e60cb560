//! Expiry of a socket's timer in half the size of an [`Instant`], because every idle connection has one.

use crate::clock::Instant;

/// Upper bound of a timer's expiry in units of 2^20 ns (1.05 ms). It wraps after 52 days; timers are set for at most
/// 12.8 days, so two of them always differ by less than half of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expiry(u32);

const UNIT_SHIFT: u32 = 20;

/// Times farther away are treated as this one: 13 days, beyond every timer.
const FARTHEST: u64 = 1 << 50;

impl Expiry {
    pub(crate) fn of(when: Instant, now: Instant) -> Self {
        let when = nearby(when, now);
        Self((when.saturating_add((1 << UNIT_SHIFT) - 1) >> UNIT_SHIFT) as u32)
    }

    /// Whether it is certainly not after `deadline`. May be false for a difference below one unit.
    pub(crate) fn is_certainly_before(self, deadline: Instant, now: Instant) -> bool {
        let latest = (nearby(deadline, now) >> UNIT_SHIFT) as u32;
        latest.wrapping_sub(self.0).cast_signed() >= 0
    }
}

fn nearby(when: Instant, now: Instant) -> u64 {
    let farthest = now.nanoseconds().saturating_add(FARTHEST);
    when.nanoseconds().min(farthest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn expiry_comparison_is_conservative() {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        let milliseconds = Duration::from_millis;
        // Includes the moments at which the units wrap.
        for begun in [0, 1, 51, 52, 53, 104, 365] {
            let now = Instant::default() + days(begun) + milliseconds(1000);
            for ahead in [
                milliseconds(0),
                milliseconds(1),
                milliseconds(60_000),
                days(1),
                days(12),
                days(4000),
                Duration::MAX,
            ] {
                let expiry = Expiry::of(now + ahead, now);
                assert!(
                    !expiry.is_certainly_before(now.before(milliseconds(2)), now),
                    "{begun} {ahead:?}"
                );
                // A time beyond every timer is set again.
                if ahead <= days(12) {
                    assert!(
                        expiry.is_certainly_before(now + ahead + milliseconds(3), now),
                        "{begun} {ahead:?}"
                    );
                }
                if ahead >= milliseconds(60_000) {
                    assert!(
                        !expiry.is_certainly_before(now + milliseconds(59_000), now),
                        "{begun} {ahead:?}"
                    );
                }
            }
            // The same holds a little later.
            let (expiry, later) = (
                Expiry::of(now + days(1), now),
                now + days(1).saturating_sub(milliseconds(10)),
            );
            assert!(expiry.is_certainly_before(later + days(1), later));
            assert!(!expiry.is_certainly_before(later + milliseconds(5), later));
        }
    }
}
