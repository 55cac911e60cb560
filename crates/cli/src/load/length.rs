//! Length of a run, as far as it is known in advance.

use std::time::Duration;

use onrush_load::threshold::Extent;

#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    pub(super) after: Option<Duration>,
    pub(super) count: Option<u64>,
}

impl Length {
    pub(super) fn extent(self, elapsed_s: f64) -> Extent {
        match (self.count, self.after) {
            (Some(count), _) => Extent::Requests(count),
            (None, Some(after)) => Extent::Time {
                elapsed_s,
                total_s: after.as_secs_f64(),
            },
            (None, None) => Extent::Open,
        }
    }
}
