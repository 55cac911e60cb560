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
}

impl Responses {
    /// The head of a response has come, so long after its request was sent.
    pub(crate) fn observe(&self, status: u16, latency: Duration) {
        let counter = &self.statuses[usize::from(status / 100).clamp(1, 5)];
        counter.set(counter.get() + 1);
        self.first_byte.observe(class(latency), latency);
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
}
