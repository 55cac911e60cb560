//! Batches response times before they go into the histograms. Between two requests the kernel evicts a histogram from
//! the CPU's cache, so it is updated for many of them in a row. Responses with exactly the same times, such as
//! responses to pipelined requests received at once, share an entry.

use super::limits::TIMES_HELD;
use crate::record::times::{CountedTimes, ResponseTimes, Times};

#[derive(Debug)]
pub(super) struct PendingTimes {
    /// Invariant: at most [`TIMES_HELD`] entries, which is its capacity.
    took: Vec<CountedTimes>,
}

impl Default for PendingTimes {
    fn default() -> PendingTimes {
        PendingTimes {
            took: Vec::with_capacity(TIMES_HELD),
        }
    }
}

impl PendingTimes {
    /// Adds `count` responses with these times. If there is no room, moves the earlier ones into `times`.
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

    pub(super) fn add_to(&self, times: &mut Times) {
        times.responded(&self.took);
    }

    pub(super) fn move_to(&mut self, times: &mut Times) {
        self.add_to(times);
        self.took.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_response_is_in_each_histogram_once() {
        for responses in [1, 2, TIMES_HELD, TIMES_HELD + 1, 3 * TIMES_HELD] {
            let (mut recent, mut times) = (PendingTimes::default(), Times::default());
            for number in 0..responses as u64 {
                let took = ResponseTimes {
                    send_lag: 1,
                    first_byte: 2 + number,
                    service: 3 + number,
                    response: 4 + number,
                    own: 1,
                };
                // The same times twice, for one and for two responses.
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
