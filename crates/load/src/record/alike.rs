//! Responses that took exactly the same: those to requests that were sent at once, and came in one receive. Sixteen of them are
//! measured by one look at each histogram.

use crate::times::{ResponseTimes, Times};

/// So many responses that took the same, and are in no histogram yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    took: ResponseTimes,
    count: u64,
}

impl Alike {
    /// So many more. Where they took something else, those before them are put into `times`.
    #[inline]
    pub(super) fn add(&mut self, count: u64, took: &ResponseTimes, times: &mut Times) {
        if self.took != *took {
            self.put(times);
            *self = Alike {
                took: *took,
                count: 0,
            };
        }
        self.count += count;
    }

    /// Puts them into `times`.
    #[inline]
    pub(super) fn put(&self, times: &mut Times) {
        times.responded(&self.took, self.count);
    }
}
