//! When the timer of a socket expires, in half of the room that an [`Instant`] takes: every idle connection has one.

use crate::clock::Instant;

/// When a timer expires at the latest, in units of 2^20 ns (1.05 ms). The numbers begin anew after 52 days; timers are set for
/// 12.8 days at most, so that two of them are always nearer to each other than half of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expiry(u32);

const UNIT_SHIFT: u32 = 20;

/// What lies farther away than this is as far away as this: 13 days, which no timer reaches.
const FARTHEST: u64 = 1 << 50;

impl Expiry {
    /// That of a timer which is set now for `when`.
    pub(crate) fn of(when: Instant, now: Instant) -> Self {
        let when = nearby(when, now);
        Self((when.saturating_add((1 << UNIT_SHIFT) - 1) >> UNIT_SHIFT) as u32)
    }

    /// Whether it is surely not behind `deadline`. It may be all the same within a unit.
    pub(crate) fn is_by(self, deadline: Instant, now: Instant) -> bool {
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
    fn what_expires_behind_a_deadline_is_never_said_to_be_in_time() {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        let milliseconds = Duration::from_millis;
        // Around the moments at which the numbers begin anew, too.
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
                    !expiry.is_by(now.before(milliseconds(2)), now),
                    "{begun} {ahead:?}"
                );
                // What no timer reaches is set again.
                if ahead <= days(12) {
                    assert!(
                        expiry.is_by(now + ahead + milliseconds(3), now),
                        "{begun} {ahead:?}"
                    );
                }
                if ahead >= milliseconds(60_000) {
                    assert!(
                        !expiry.is_by(now + milliseconds(59_000), now),
                        "{begun} {ahead:?}"
                    );
                }
            }
            // A little later the same holds.
            let (expiry, later) = (
                Expiry::of(now + days(1), now),
                now + days(1).saturating_sub(milliseconds(10)),
            );
            assert!(expiry.is_by(later + days(1), later));
            assert!(!expiry.is_by(later + milliseconds(5), later));
        }
    }
}
