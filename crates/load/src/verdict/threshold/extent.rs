//! How far a run can yet go, for what is said of a condition before its end.

use crate::limits::{HOPELESS_RESPONSES_MIN, RATE_GROWTH_MAX};
use crate::record::figures::Figures;

/// How many requests the whole run can come to, for what is said of it before its end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Extent {
    /// At most so many.
    Requests(u64),
    /// As many as come in this time, in seconds, of which so many have passed.
    Time {
        /// Passed.
        elapsed_s: f64,
        /// In all.
        total_s: f64,
    },
    /// Until somebody stops it.
    Open,
}

impl Extent {
    /// The most that the run's requests can come to, with a response or failed. For a run of a set time that is an
    /// estimate: the rate would have to multiply for it to be wrong.
    pub(super) fn requests_at_most(self, so_far: &Figures) -> Option<f64> {
        let finished = (so_far.responses + so_far.errors - so_far.unexpected) as f64;
        match self {
            Extent::Requests(count) => Some(finished.max(count as f64)),
            Extent::Time { elapsed_s, total_s } => {
                let is_enough =
                    elapsed_s > 0.0 && so_far.responses + so_far.errors >= HOPELESS_RESPONSES_MIN;
                let left = (total_s - elapsed_s).max(0.0);
                is_enough.then(|| finished + finished / elapsed_s * left * RATE_GROWTH_MAX)
            }
            Extent::Open => None,
        }
    }
}
