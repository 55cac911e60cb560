//! Counters of one kind of request.

use onrush_measure::histogram::Histogram;

#[derive(Clone, Debug, Default)]
pub(crate) struct KindRecord {
    pub(crate) responses: u64,
    /// Unexpected responses.
    pub(crate) unexpected: u64,
    pub(crate) response: Histogram,
    /// Waits of requests without a response.
    pub(crate) unanswered: Histogram,
}

impl KindRecord {
    /// Adds the record of another core or result.
    pub(crate) fn merge(&mut self, other: &KindRecord) {
        self.responses += other.responses;
        self.unexpected += other.unexpected;
        self.response.merge(&other.response);
        self.unanswered.merge(&other.unanswered);
    }
}
