//! How late a core sees what has happened.

use std::time::Duration;

use super::Core;
use crate::clock::Instant;

impl Core {
    /// For how long what this turn has found may have waited to be seen: the time that the turn before took, and that by
    /// which the wait between them went on behind the earliest timer. A thread that had no CPU shows here as far as a timer
    /// was due meanwhile. Of a wait that a signal ended, as it does when a stopped process goes on, all counts: nobody knows
    /// when the stop began.
    #[inline]
    pub fn lateness(&self) -> Duration {
        self.0.lateness.get()
    }

    /// The sum of all [latenesses](Core::lateness) that were longer than [`STALL_MIN`](crate::STALL_MIN) since this was last asked.
    pub fn take_stalled(&self) -> Duration {
        self.0.stalled.take()
    }

    /// The same, without asking to start anew.
    pub fn stalled(&self) -> Duration {
        self.0.stalled.get()
    }

    /// The longest [lateness](Core::lateness) since this was last asked: what a socket or a timer may have had to wait
    /// for.
    pub fn take_busy_max(&self) -> Duration {
        self.0.busy_max.take()
    }

    /// The same, without asking to start anew.
    pub fn busy_max(&self) -> Duration {
        self.0.busy_max.get()
    }

    /// For how long the core was held up since `begin`: the sum of its [latenesses](Core::lateness) of more than
    /// [`STALL_MIN`](crate::STALL_MIN), of the last 8 at most.
    pub fn stalled_since(&self, begin: Instant) -> Duration {
        self.0.stalls.borrow().since(begin)
    }

    /// How long it is since `begin`, as of this turn and without the time that the core was held up.
    pub fn time_without_stalls(&self, begin: Instant) -> Duration {
        let time = self.now().since(begin);
        time.saturating_sub(self.stalled_since(begin))
    }
}
