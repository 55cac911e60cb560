//! Extent of a run, for judging a condition before its end.

use crate::limits::{EARLY_END_RESPONSES_MIN, RATE_GROWTH_MAX};
use crate::record::figures::Figures;

/// Upper bound of a run's requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RunExtent {
    /// This number of requests.
    Requests(u64),
    /// As many requests as are made in this time.
    Time {
        /// Time passed, in seconds.
        elapsed_s: f64,
        /// Total time, in seconds.
        total_s: f64,
    },
    /// Until it is stopped.
    Open,
}

impl RunExtent {
    /// Upper bound of the finished requests, with a response or failed. In a run with a duration this is an estimate,
    /// which assumes that the rate does not grow by more than `RATE_GROWTH_MAX`.
    pub(super) fn requests_at_most(self, so_far: &Figures) -> Option<f64> {
        let finished = (so_far.responses + so_far.errors - so_far.unexpected) as f64;
        match self {
            RunExtent::Requests(count) => Some(finished.max(count as f64)),
            RunExtent::Time { elapsed_s, total_s } => {
                let is_enough =
                    elapsed_s > 0.0 && so_far.responses + so_far.errors >= EARLY_END_RESPONSES_MIN;
                let left = (total_s - elapsed_s).max(0.0);
                is_enough.then(|| finished + finished / elapsed_s * left * RATE_GROWTH_MAX)
            }
            RunExtent::Open => None,
        }
    }
}
