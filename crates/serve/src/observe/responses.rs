//! Response counters of one core for one server.

use std::cell::Cell;
use std::time::Duration;

use super::latency::{Histogram, Latencies, class};

#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// By the first digit of the status; index 0 is for requests without a response.
    statuses: [Cell<u64>; 6],
    /// From the request to the first byte of the response.
    first_byte: Latencies,
    /// Boxed because few requests change it.
    rare: Box<Rare>,
}

#[derive(Debug, Default)]
struct Rare {
    /// For responses that completed in a later turn than they started: the time to the first byte,
    begun: Latencies,
    /// and to the last byte.
    ended: Latencies,
    /// Number of ejections by passive health checks.
    ejections: Cell<u64>,
}

impl Responses {
    /// Counts a response; `latency` is the time from sending the request to the response head.
    pub(crate) fn observe(&self, status: u16, latency: Duration) {
        let counter = &self.statuses[usize::from(status / 100).clamp(1, 5)];
        counter.set(counter.get() + 1);
        self.first_byte.observe(class(latency), latency);
    }

    /// Records the times to first and last byte of a response that completed in a later turn.
    pub(crate) fn end(&self, begun: Duration, ended: Duration) {
        self.rare.begun.observe(class(begun), begun);
        self.rare.ended.observe(class(ended), ended);
    }

    /// Counts an ejection by passive health checks.
    pub(crate) fn eject(&self) {
        self.rare.ejections.set(self.rare.ejections.get() + 1);
    }

    pub(crate) fn fail(&self) {
        let counter = &self.statuses[0];
        counter.set(counter.get() + 1);
    }

    pub(crate) fn statuses(&self) -> [u64; 6] {
        std::array::from_fn(|class| self.statuses[class].get())
    }

    pub(crate) fn first_byte(&self) -> Histogram {
        self.first_byte.histogram()
    }

    /// Time from requests to the last byte of their responses. Responses completed in one turn count with their first
    /// byte.
    pub(crate) fn duration(&self) -> Histogram {
        let mut all = self.first_byte.histogram();
        all -= &self.rare.begun.histogram();
        all += &self.rare.ended.histogram();
        all
    }

    pub(crate) fn ejections(&self) -> u64 {
        self.rare.ejections.get()
    }
}
