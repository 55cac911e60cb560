//! What is known of a connection that was accepted, for who lists them: when it was, and what its owner notes.

use std::time::Duration;

use crate::clock::Instant;

/// What the owner of a connection wants to be known of it, for who [looks](crate::Core::look_at_accepted) at the connections of
/// a core. The engine does not read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Note {
    /// How often something has happened.
    pub count: u32,
    /// What it is.
    pub kind: u16,
    /// What it is busy with.
    pub state: u8,
}

/// A moment in units of 2^24 ns (17 ms), which begin anew after 2.3 years.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Coarse(u32);

impl Coarse {
    const UNIT_SHIFT: u32 = 24;

    pub(crate) fn of(now: Instant) -> Self {
        Self((now.nanoseconds() >> Self::UNIT_SHIFT) as u32)
    }

    /// How long ago it was.
    pub(crate) fn age(self, now: Instant) -> Duration {
        let units = Self::of(now).0.wrapping_sub(self.0);
        Duration::from_nanos(u64::from(units) << Self::UNIT_SHIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_right_while_the_units_begin_anew() {
        let year = Duration::from_secs(365 * 24 * 3600);
        for begun in [Duration::ZERO, year, 2 * year, 3 * year] {
            let now = Instant::default() + begun;
            for age in [Duration::ZERO, Duration::from_secs(1), year, 2 * year] {
                let said = Coarse::of(now).age(now + age);
                let off = said.abs_diff(age);
                assert!(off <= Duration::from_millis(17), "{said:?} for {age:?}");
            }
        }
    }
}
