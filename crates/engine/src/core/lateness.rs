//! The delay between an event and the event loop's iteration in which a core sees it.

use std::time::Duration;

use super::Core;
use crate::clock::Instant;

impl Core {
    /// Returns an upper bound on the time for which this iteration's events waited to be seen: the duration of the
    /// previous iteration, plus the time by which the wait after it exceeded the earliest timer. A wait that a signal
    /// interrupted, as when a stopped process continues, counts whole, because the start of the stop is unknown.
    #[inline]
    pub fn lateness(&self) -> Duration {
        self.0.lateness.get()
    }

    /// The sum of all [latenesses](Core::lateness) above [`STALL_MIN`](crate::STALL_MIN) since the last call.
    pub fn take_stalled(&self) -> Duration {
        self.0.stalled.take()
    }

    /// [`Core::take_stalled`] without a reset.
    pub fn stalled(&self) -> Duration {
        self.0.stalled.get()
    }

    /// The longest [lateness](Core::lateness) since the last call.
    pub fn take_busy_max(&self) -> Duration {
        self.0.busy_max.take()
    }

    /// [`Core::take_busy_max`] without a reset.
    pub fn busy_max(&self) -> Duration {
        self.0.busy_max.get()
    }

    /// The time for which the core was held up since `begin`: the sum of its last 8 [latenesses](Core::lateness) above
    /// [`STALL_MIN`](crate::STALL_MIN), as far as they are later.
    pub fn stalled_since(&self, begin: Instant) -> Duration {
        self.0.stalls.borrow().since(begin)
    }

    /// Returns the time from `begin` to this iteration of the event loop, without the time for which the core was held
    /// up.
    pub fn time_without_stalls(&self, begin: Instant) -> Duration {
        let time = self.now().since(begin);
        time.saturating_sub(self.stalled_since(begin))
    }
}
