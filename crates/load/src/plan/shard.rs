//! One generator's share of a distributed run.

use crate::pace::arrivals::Share;

/// Number of a generator in a distributed run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Number of the generator, from 0.
    pub index: u64,
    /// Number of generators.
    pub count: u64,
}

impl Shard {
    /// Returns the share of the run's connections and requests.
    pub(crate) fn share(self) -> Share {
        Share::of_core(0, 1, self.index, self.count)
    }
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { index: 0, count: 1 }
    }
}
