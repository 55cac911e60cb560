//! Weight of a server that warms up: caches are cold, code is not yet compiled, connections must be opened. Pure:
//! computes the weight from the time since start.

use std::time::Duration;

use onrush_engine::Instant;

use crate::limits::{SLOW_START_STEP_FIRST, SLOW_START_STEPS, WEIGHT_SCALE};

/// Slow start in even steps. The first step is a tenth of the weight, because a server without requests never warms up.
/// Steps instead of a slope, because each change rebuilds the balancer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowStart {
    /// Time from start to full weight; zero disables slow start.
    pub(crate) duration: Duration,
}

impl SlowStart {
    /// The effective weight, times [`WEIGHT_SCALE`], of a server that came up at `since`; `None` if it was always up.
    pub(crate) fn weight(self, written: u32, since: Option<Instant>, now: Instant) -> u32 {
        let full = u64::from(written) * u64::from(WEIGHT_SCALE);
        let step = since.map_or(SLOW_START_STEPS, |since| self.step(since, now));
        // At most `full`, which fits as the sum of all weights does; at least 1, because weights are scaled by 256.
        (full * u64::from(step) / u64::from(SLOW_START_STEPS)) as u32
    }

    /// Time of the next change of weight for a server that came up at `since`; `None` at full weight.
    pub(crate) fn next_change(self, since: Instant, now: Instant) -> Option<Instant> {
        let step = self.step(since, now);
        (step < SLOW_START_STEPS).then(|| {
            // Rounded up, so that the step is complete at that time.
            let nanoseconds = self.duration.as_nanos() * u128::from(step + 1);
            let after = nanoseconds.div_ceil(u128::from(SLOW_START_STEPS));
            since + Duration::from_nanos(after as u64)
        })
    }

    fn step(self, since: Instant, now: Instant) -> u32 {
        let passed = now.since(since);
        if passed >= self.duration {
            return SLOW_START_STEPS;
        }
        let steps = passed.as_nanos() * u128::from(SLOW_START_STEPS) / self.duration.as_nanos();
        (steps as u32).max(SLOW_START_STEP_FIRST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: SlowStart = SlowStart {
        duration: Duration::from_secs(20),
    };

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanoseconds(milliseconds * 1_000_000)
    }

    #[test]
    fn slow_start_weight_grows_from_10_percent() {
        for (passed, percent) in [
            (0, 10),
            (1_000, 10),
            (2_999, 10),
            (3_000, 15),
            (10_000, 50),
            (19_999, 95),
            (20_000, 100),
            (1_000_000, 100),
        ] {
            let weight = START.weight(3, Some(at(500)), at(500 + passed));
            assert_eq!(
                weight,
                3 * WEIGHT_SCALE * percent / 100,
                "after {passed} ms"
            );
        }
    }

    #[test]
    fn full_weight_without_slow_start() {
        assert_eq!(START.weight(7, None, at(0)), 7 * WEIGHT_SCALE);
        let at_once = SlowStart {
            duration: Duration::ZERO,
        };
        assert_eq!(at_once.weight(7, Some(at(5)), at(5)), 7 * WEIGHT_SCALE);
        assert_eq!(at_once.next_change(at(5), at(5)), None);
    }

    #[test]
    fn weight_is_never_zero() {
        assert!(START.weight(1, Some(at(0)), at(0)) > 0);
    }

    #[test]
    fn weight_grows_at_each_change() {
        for duration in [1, 7, 20, 1_000_000_007, 20_000_000_000] {
            let start = SlowStart {
                duration: Duration::from_nanos(duration),
            };
            let (mut now, mut changes) = (at(500), 0);
            let mut weight = start.weight(1000, Some(at(500)), now);
            while let Some(next) = start.next_change(at(500), now) {
                let before = Instant::from_nanoseconds(next.nanoseconds() - 1);
                assert_eq!(start.weight(1000, Some(at(500)), before), weight);
                let grown = start.weight(1000, Some(at(500)), next);
                assert!(grown > weight, "at {next:?} of {duration} ns");
                (now, weight, changes) = (next, grown, changes + 1);
            }
            assert_eq!(weight, 1000 * WEIGHT_SCALE);
            assert!(changes <= SLOW_START_STEPS - SLOW_START_STEP_FIRST);
        }
    }
}
