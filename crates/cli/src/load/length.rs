//! Length of a run, as far as it is known in advance.

use std::time::Duration;

use onrush_load::threshold::RunExtent;

#[derive(Clone, Copy, Debug)]
pub(super) struct RunLength {
    pub(super) after: Option<Duration>,
    pub(super) count: Option<u64>,
}

impl RunLength {
    pub(super) fn extent(self, elapsed_s: f64) -> RunExtent {
        match (self.count, self.after) {
            (Some(count), _) => RunExtent::Requests(count),
            (None, Some(after)) => RunExtent::Time {
                elapsed_s,
                total_s: after.as_secs_f64(),
            },
            (None, None) => RunExtent::Open,
        }
    }
}
