//! What a group's requests took to be sent: waits for capacity, connections, further attempts. Nothing is counted for a
//! request that is sent at once, on a connection that exists, and that is nearly all of them.

use std::cell::Cell;
use std::ops::{AddAssign, SubAssign};
use std::time::Duration;

use super::latency::{Histogram, Latencies, class};
use crate::observe::record::Class;

/// Requests that were sent so many times at most are told apart; those with more are counted together.
pub const ATTEMPTS_MAX: usize = 4;

/// Of one group, on one core.
#[derive(Debug, Default)]
pub(crate) struct Effort {
    /// How long requests have waited for capacity, those that did.
    queued: Latencies,
    /// How long connections took, with TLS.
    connected: Latencies,
    /// By what had gone wrong with the attempt before.
    retries: [Cell<u64>; Class::ALL.len()],
    /// Requests that have ended, by how often they were sent: twice, three times, more often.
    repeated: [Cell<u64>; ATTEMPTS_MAX - 1],
}

impl Effort {
    /// A request has waited for capacity, be it in vain.
    pub(crate) fn has_queued(&self, duration: Duration) {
        self.queued.observe(class(duration), duration);
    }

    /// A connection to a server was made.
    pub(crate) fn has_connected(&self, duration: Duration) {
        self.connected.observe(class(duration), duration);
    }

    /// A request is sent again.
    pub(crate) fn retries(&self, why: Class) {
        let counter = &self.retries[why as usize];
        counter.set(counter.get() + 1);
    }

    /// A request that was sent again has ended.
    pub(super) fn has_ended(&self, retries: u8) {
        let Some(again) = usize::from(retries).checked_sub(1) else {
            return;
        };
        let counter = &self.repeated[again.min(ATTEMPTS_MAX - 2)];
        counter.set(counter.get() + 1);
    }

    pub(super) fn view(&self) -> EffortView {
        EffortView {
            queued: self.queued.histogram(),
            connected: self.connected.histogram(),
            retries: std::array::from_fn(|class| self.retries[class].get()),
            repeated: std::array::from_fn(|again| self.repeated[again].get()),
        }
    }
}

/// What the requests of a group took to be sent: on one core, or on all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EffortView {
    /// How long requests have waited for capacity, those that did, be it in vain.
    pub queued: Histogram,
    /// How long connections to the servers took, with TLS, for whatever they were made; those that failed are left out.
    pub connected: Histogram,
    /// Further attempts by what had gone wrong with the one before, in the order of [`Class::ALL`].
    pub retries: [u64; Class::ALL.len()],
    /// Requests that have ended and were sent twice, three times and so on; the last one: that often or more.
    pub repeated: [u64; ATTEMPTS_MAX - 1],
}

impl AddAssign<&EffortView> for EffortView {
    fn add_assign(&mut self, other: &EffortView) {
        self.queued += &other.queued;
        self.connected += &other.connected;
        let counts = self.retries.iter_mut().zip(other.retries);
        counts.for_each(|(sum, more)| *sum += more);
        let counts = self.repeated.iter_mut().zip(other.repeated);
        counts.for_each(|(sum, more)| *sum += more);
    }
}

impl SubAssign<&EffortView> for EffortView {
    /// What has come since the other one was taken of the same.
    fn sub_assign(&mut self, before: &EffortView) {
        self.queued -= &before.queued;
        self.connected -= &before.connected;
        let counts = self.retries.iter_mut().zip(before.retries);
        counts.for_each(|(count, less)| *count = count.saturating_sub(less));
        let counts = self.repeated.iter_mut().zip(before.repeated);
        counts.for_each(|(count, less)| *count = count.saturating_sub(less));
    }
}
