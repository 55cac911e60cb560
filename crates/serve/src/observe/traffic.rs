//! Request counters of one core for a listener, route or group.

use std::cell::Cell;
use std::ops::{AddAssign, SubAssign};
use std::time::Duration;

use super::forwarding_times::{ForwardingTimes, ForwardingTimesView};
use super::latency::{Histogram, Latencies, class};
use crate::observe::record::{FailureClass, Record, RequestEnd};

/// Counters of one listener, route or group. Only the core's own thread accesses them.
#[derive(Debug)]
pub(crate) struct Traffic {
    name: String,
    /// By the first digit of the status; 0 is for requests without a response.
    statuses: [Cell<u64>; 6],
    /// Response bytes.
    sent: Cell<u64>,
    retries: Cell<u64>,
    failures: [Cell<u64>; FailureClass::ALL.len()],
    given_up: Cell<u64>,
    /// Requests that completed in the turn in which they arrived: one duration for first and last byte.
    whole: Latencies,
    /// Other requests: the time to the first byte,
    first: Latencies,
    /// and the time to the last byte.
    total: Latencies,
    /// Waits, connections and retries; of groups only. Boxed because few requests change it.
    effort: Box<ForwardingTimes>,
}

#[derive(Clone, Copy)]
pub(crate) struct EndedRequest<'r> {
    pub(crate) record: &'r Record,
    pub(crate) end: RequestEnd,
    /// Number of bytes of the response.
    pub(crate) sent: u64,
    pub(crate) duration: Duration,
    pub(crate) class: usize,
}

fn add(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get() + more);
}

impl<'r> EndedRequest<'r> {
    pub(crate) fn new(
        record: &'r Record,
        (end, sent): (RequestEnd, u64),
        duration: Duration,
    ) -> Self {
        Self {
            record,
            end,
            sent,
            duration,
            class: class(duration),
        }
    }
}

impl Traffic {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            statuses: Default::default(),
            sent: Cell::default(),
            retries: Cell::default(),
            failures: Default::default(),
            given_up: Cell::default(),
            whole: Latencies::default(),
            first: Latencies::default(),
            total: Latencies::default(),
            effort: Box::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Waits, connections and retries.
    pub(crate) fn effort(&self) -> &ForwardingTimes {
        &self.effort
    }

    /// Records the time to first byte of a response that completes in a later turn.
    pub(crate) fn first_byte(&self, class: usize, duration: Duration) {
        self.first.observe(class, duration);
    }

    /// Counts an ended request.
    #[inline]
    pub(crate) fn observe(&self, ended: EndedRequest<'_>) {
        let EndedRequest {
            record,
            end,
            sent,
            duration,
            class,
        } = ended;
        let status = record.status().unwrap_or(0);
        add(&self.statuses[usize::from(status / 100).min(5)], 1);
        add(&self.sent, sent);
        if record.is_ordinary() && end == RequestEnd::Complete {
            match record.has_first_byte_recorded() {
                false => self.whole.observe(class, duration),
                true => self.total.observe(class, duration),
            }
            return;
        }
        self.observe_unusual(ended);
    }

    fn observe_unusual(&self, ended: EndedRequest<'_>) {
        let record = ended.record;
        // The lifetime of a tunnel is not a latency.
        if !record.is_tunnel() && record.status().is_some() {
            match record.has_first_byte_recorded() {
                false => self.whole.observe(ended.class, ended.duration),
                true => self.total.observe(ended.class, ended.duration),
            }
        }
        add(&self.retries, record.retries().into());
        self.effort.has_ended(record.retries());
        if let Some(class) = record.failure() {
            add(&self.failures[class as usize], 1);
        }
        add(&self.given_up, u64::from(ended.end == RequestEnd::GivenUp));
    }

    pub(crate) fn view(&self) -> TrafficView {
        let whole = self.whole.histogram();
        let with = |later: &Latencies| {
            let mut sum = whole.clone();
            sum += &later.histogram();
            sum
        };
        TrafficView {
            name: self.name.clone(),
            statuses: std::array::from_fn(|class| self.statuses[class].get()),
            sent: self.sent.get(),
            retries: self.retries.get(),
            failures: std::array::from_fn(|class| self.failures[class].get()),
            given_up: self.given_up.get(),
            first_byte: with(&self.first),
            duration: with(&self.total),
            effort: self.effort.view(),
        }
    }
}

/// Request counters of a listener, route or group, of one core or all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrafficView {
    /// Name of the listener, route or group.
    pub name: String,
    /// Number of ended requests, by the first digit of the status; index 0 is for requests without a response.
    pub statuses: [u64; 6],
    /// Number of bytes of responses, heads included.
    pub sent: u64,
    /// Number of retries of requests.
    pub retries: u64,
    /// Number of forwarded requests without a complete response from a server, in the order of [`FailureClass::ALL`].
    pub failures: [u64; FailureClass::ALL.len()],
    /// Number of requests whose client disconnected before the whole response was sent.
    pub given_up: u64,
    /// From the request head to the first byte of the response.
    pub first_byte: Histogram,
    /// From the request head to the last byte of the response, without tunnels.
    pub duration: Histogram,
    /// Waits, connections and causes of retries; of groups only.
    pub effort: ForwardingTimesView,
}

impl TrafficView {
    /// Number of ended requests.
    pub fn requests(&self) -> u64 {
        self.statuses.iter().sum()
    }
}

impl AddAssign<&TrafficView> for TrafficView {
    fn add_assign(&mut self, other: &TrafficView) {
        for (sum, more) in self.statuses.iter_mut().zip(other.statuses) {
            *sum += more;
        }
        self.sent += other.sent;
        self.retries += other.retries;
        for (sum, more) in self.failures.iter_mut().zip(other.failures) {
            *sum += more;
        }
        self.given_up += other.given_up;
        self.first_byte += &other.first_byte;
        self.duration += &other.duration;
        self.effort += &other.effort;
    }
}

impl SubAssign<&TrafficView> for TrafficView {
    /// Leaves the difference to an earlier view of the same counters.
    fn sub_assign(&mut self, before: &TrafficView) {
        for (count, less) in self.statuses.iter_mut().zip(before.statuses) {
            *count = count.saturating_sub(less);
        }
        for (count, less) in self.failures.iter_mut().zip(before.failures) {
            *count = count.saturating_sub(less);
        }
        self.sent = self.sent.saturating_sub(before.sent);
        self.retries = self.retries.saturating_sub(before.retries);
        self.given_up = self.given_up.saturating_sub(before.given_up);
        self.first_byte -= &before.first_byte;
        self.duration -= &before.duration;
        self.effort -= &before.effort;
    }
}
