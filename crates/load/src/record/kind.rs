//! Counters of one kind of request.

use onrush_measure::histogram::Histogram;

/// What came of the requests of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindRecord {
    pub(crate) responses: u64,
    /// Of these, others than expected.
    pub(crate) unexpected: u64,
    /// Response times.
    pub(crate) response: Histogram,
    /// How long those without a response had waited.
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
