//! Servers that may be chosen, and what is asked of a policy.

/// A server that may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its index in the group.
    pub(crate) server: u32,
    /// Its effective weight: the configured one times [`WEIGHT_SCALE`](crate::limits::WEIGHT_SCALE), less while the
    /// server starts slowly. Never 0.
    pub(crate) weight: u32,
    /// It is full when it has so many requests in flight, and not chosen then; `u32::MAX` when it is never full.
    pub(crate) load_max: u32,
    /// What places its keys: the [`hash::key`](super::hash::key) of its name, so that every core, every restart and every Onrush with
    /// the same file agree, whatever comes before it in the group.
    pub(crate) identity: u64,
}

/// What a policy may want to know of a request and of the servers as they are now.
#[derive(Debug)]
pub(crate) struct Question<'a, Load, Latency> {
    /// The [`hash::key`](super::hash::key) of what equal requests have in common. Only `Hash` reads it.
    pub(crate) key: u64,
    /// How many requests a server has in flight.
    pub(crate) load: &'a Load,
    /// How many all members have in flight together. Only `Hash` reads it.
    pub(crate) load_sum: u32,
    /// A server's latency as [`Ewma`](crate::proxy::ewma::Ewma) values it now, in nanoseconds; 0 when it is not known. Only
    /// `PeakEwma` reads it.
    pub(crate) latency: &'a Latency,
    /// Servers on which this request has failed. They are not chosen.
    pub(crate) avoid: &'a [u32],
}

/// What one more request costs at a member, for each unit of its weight: `amount / weight`, compared without dividing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) amount: u64,
    /// Not 0.
    pub(super) weight: u32,
}

impl Cost {
    pub(super) fn is_below(self, other: Cost) -> bool {
        let (this, that) = (u128::from(self.amount), u128::from(other.amount));
        this * u128::from(other.weight) < that * u128::from(self.weight)
    }
}
