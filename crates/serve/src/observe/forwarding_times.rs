//! Waits for capacity, connection times and retries of a group. Nothing is recorded for a request that is sent at once
//! on an existing connection, as nearly all are.

use std::cell::Cell;
use std::ops::{AddAssign, SubAssign};
use std::time::Duration;

use super::latency::{Histogram, Latencies, class};
use crate::observe::record::FailureClass;

/// Requests sent this often or more are counted together.
pub const ATTEMPTS_MAX: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct ForwardingTimes {
    /// Waiting times of requests that waited for capacity.
    queued: Latencies,
    /// Connection times, including TLS.
    connected: Latencies,
    /// By the failure of the previous attempt.
    retries: [Cell<u64>; FailureClass::ALL.len()],
    /// Ended requests by how often they were sent: twice, three times, more often.
    repeated: [Cell<u64>; ATTEMPTS_MAX - 1],
}

impl ForwardingTimes {
    /// Records a wait for capacity, successful or not.
    pub(crate) fn record_queue_time(&self, duration: Duration) {
        self.queued.observe(class(duration), duration);
    }

    /// Records the time a connection to a server took.
    pub(crate) fn has_connected(&self, duration: Duration) {
        self.connected.observe(class(duration), duration);
    }

    pub(crate) fn record_retry(&self, why: FailureClass) {
        let counter = &self.retries[why as usize];
        counter.set(counter.get() + 1);
    }

    pub(super) fn has_ended(&self, retries: u8) {
        let Some(again) = usize::from(retries).checked_sub(1) else {
            return;
        };
        let counter = &self.repeated[again.min(ATTEMPTS_MAX - 2)];
        counter.set(counter.get() + 1);
    }

    pub(super) fn view(&self) -> ForwardingTimesView {
        ForwardingTimesView {
            queued: self.queued.histogram(),
            connected: self.connected.histogram(),
            retries: std::array::from_fn(|class| self.retries[class].get()),
            repeated: std::array::from_fn(|again| self.repeated[again].get()),
        }
    }
}

/// Waits, connection times and retries of a group, on one core or all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ForwardingTimesView {
    /// Waiting times of requests that waited for capacity, successfully or not.
    pub queued: Histogram,
    /// Times of successful connections to servers for any purpose, including TLS.
    pub connected: Histogram,
    /// Retries by the failure of the previous attempt, in the order of [`FailureClass::ALL`].
    pub retries: [u64; FailureClass::ALL.len()],
    /// Ended requests that were sent twice, three times and so on; the last counts that often or more.
    pub repeated: [u64; ATTEMPTS_MAX - 1],
}

impl AddAssign<&ForwardingTimesView> for ForwardingTimesView {
    fn add_assign(&mut self, other: &ForwardingTimesView) {
        self.queued += &other.queued;
        self.connected += &other.connected;
        let counts = self.retries.iter_mut().zip(other.retries);
        counts.for_each(|(sum, more)| *sum += more);
        let counts = self.repeated.iter_mut().zip(other.repeated);
        counts.for_each(|(sum, more)| *sum += more);
    }
}

impl SubAssign<&ForwardingTimesView> for ForwardingTimesView {
    /// Leaves the difference to an earlier view of the same group.
    fn sub_assign(&mut self, before: &ForwardingTimesView) {
        self.queued -= &before.queued;
        self.connected -= &before.connected;
        let counts = self.retries.iter_mut().zip(before.retries);
        counts.for_each(|(count, less)| *count = count.saturating_sub(less));
        let counts = self.repeated.iter_mut().zip(before.repeated);
        counts.for_each(|(count, less)| *count = count.saturating_sub(less));
    }
}
