//! Data about accepted connections for listings: the time of the accept, and a note of the owner.

use std::time::Duration;

use crate::clock::Instant;

/// An owner's note on a connection, unused by the engine; see
/// [`Core::visit_accepted`](crate::Core::visit_accepted).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Note {
    /// A counter of the owner.
    pub count: u32,
    /// Kind of the connection.
    pub kind: u16,
    /// State of the connection.
    pub state: u8,
}

/// A time in units of 2^24 ns (17 ms); it wraps after 2.3 years.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CoarseInstant(u32);

impl CoarseInstant {
    const UNIT_SHIFT: u32 = 24;

    pub(crate) fn of(now: Instant) -> Self {
        Self((now.nanoseconds() >> Self::UNIT_SHIFT) as u32)
    }

    pub(crate) fn age(self, now: Instant) -> Duration {
        let units = Self::of(now).0.wrapping_sub(self.0);
        Duration::from_nanos(u64::from(units) << Self::UNIT_SHIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_correct_after_clock_wrap() {
        let year = Duration::from_secs(365 * 24 * 3600);
        for begun in [Duration::ZERO, year, 2 * year, 3 * year] {
            let now = Instant::default() + begun;
            for age in [Duration::ZERO, Duration::from_secs(1), year, 2 * year] {
                let said = CoarseInstant::of(now).age(now + age);
                let off = said.abs_diff(age);
                assert!(off <= Duration::from_millis(17), "{said:?} for {age:?}");
            }
        }
    }
}
