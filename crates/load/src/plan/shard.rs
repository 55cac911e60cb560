//! Which part of a run a generator makes that is one of several.

use crate::pace::arrivals::Share;

/// One of several generators that make a run together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Its number, from 0.
    pub index: u64,
    /// How many there are.
    pub count: u64,
}

impl Shard {
    /// Which of what the run counts it is.
    pub(crate) fn share(self) -> Share {
        Share::of_core(0, 1, self.index, self.count)
    }
}

impl Default for Shard {
    /// The only one.
    fn default() -> Shard {
        Shard { index: 0, count: 1 }
    }
}
