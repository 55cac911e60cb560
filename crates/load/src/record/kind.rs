//! Counters of one kind of request.

use onrush_measure::histogram::Histogram;

#[derive(Clone, Debug, Default)]
pub(crate) struct KindRecord {
    pub(crate) responses: u64,
    pub(crate) unexpected: u64,
    pub(crate) response: Histogram,
    /// Waits of requests without a response.
    pub(crate) unanswered: Histogram,
}

impl KindRecord {
    pub(crate) fn merge(&mut self, other: &KindRecord) {
        self.responses += other.responses;
        self.unexpected += other.unexpected;
        self.response.merge(&other.response);
        self.unanswered.merge(&other.unanswered);
    }
}
