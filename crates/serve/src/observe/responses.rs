//! What one core counts of the responses of one server.

use std::cell::Cell;
use std::time::Duration;

use super::latency::{Histogram, Latencies, class};

/// Of one server, on one core.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// By the first digit of the status; index 0 is for requests without a response.
    statuses: [Cell<u64>; 6],
    /// From the request to the first byte of the response.
    first_byte: Latencies,
    /// Apart from what every request changes.
    rare: Box<Rare>,
}

#[derive(Debug, Default)]
struct Rare {
    /// Of responses whose last byte came in a later turn than the first: the times to the first,
    begun: Latencies,
    /// and to the last.
    ended: Latencies,
    /// How often the server was taken out for the outcome of requests.
    ejections: Cell<u64>,
}

impl Responses {
    /// The head of a response has come, so long after its request was sent.
    pub(crate) fn observe(&self, status: u16, latency: Duration) {
        let counter = &self.statuses[usize::from(status / 100).clamp(1, 5)];
        counter.set(counter.get() + 1);
        self.first_byte.observe(class(latency), latency);
    }

    /// A response has ended in a later turn than its head came: the times from the request to both.
    pub(crate) fn end(&self, begun: Duration, ended: Duration) {
        self.rare.begun.observe(class(begun), begun);
        self.rare.ended.observe(class(ended), ended);
    }

    /// The server is taken out for the outcome of requests.
    pub(crate) fn eject(&self) {
        self.rare.ejections.set(self.rare.ejections.get() + 1);
    }

    /// An attempt at the server has failed.
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

    /// From requests to the last byte of responses; where there is none, to the first. One that came as a whole was counted
    /// once, by its first byte.
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
