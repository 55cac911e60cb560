//! Response times that are in no histogram yet. A histogram is looked at for many of them in a row: between two requests the
//! kernel has driven it out of the CPU's cache. Responses that took exactly the same, as those do that came in one receive to
//! requests that were sent at once, are one of them.

use super::limits::TIMES_HELD;
use crate::record::times::{ResponseTimes, Times, Took};

/// The latest response times.
#[derive(Debug)]
pub(super) struct Recent {
    /// Invariant: no more than [`TIMES_HELD`], which there is memory for.
    took: Vec<Took>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            took: Vec::with_capacity(TIMES_HELD),
        }
    }
}

impl Recent {
    /// So many more. Where there is no room for them, those before them are put into `times`.
    #[inline]
    pub(super) fn add(&mut self, count: u64, took: &ResponseTimes, times: &mut Times) {
        if let Some((last, of_last)) = self.took.last_mut()
            && last == took
        {
            *of_last += count;
            return;
        }
        if self.took.len() == TIMES_HELD {
            self.move_to(times);
        }
        self.took.push((*took, count));
    }

    /// Adds them to `times`.
    pub(super) fn add_to(&self, times: &mut Times) {
        times.responded(&self.took);
    }

    /// The same, and forgets them.
    pub(super) fn move_to(&mut self, times: &mut Times) {
        self.add_to(times);
        self.took.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_response_is_in_each_histogram_once_however_many_are_held() {
        for responses in [1, 2, TIMES_HELD, TIMES_HELD + 1, 3 * TIMES_HELD] {
            let (mut recent, mut times) = (Recent::default(), Times::default());
            for number in 0..responses as u64 {
                let took = ResponseTimes {
                    send_lag: 1,
                    first_byte: 2 + number,
                    service: 3 + number,
                    response: 4 + number,
                    own: 1,
                };
                // Twice the same, and one in three of each.
                recent.add(1, &took, &mut times);
                recent.add(2, &took, &mut times);
            }
            let mut seen = times.clone();
            recent.add_to(&mut seen);
            recent.move_to(&mut times);
            recent.move_to(&mut times);
            for times in [&seen, &times] {
                assert!(times.is_consistent(3 * responses as u64));
                assert_eq!(times.undelayed.count(), 3 * responses as u64);
                assert_eq!((times.response.min(), times.undelayed.min()), (4, 3));
                assert_eq!(times.response.max(), 3 + responses as u64);
            }
        }
    }
}
