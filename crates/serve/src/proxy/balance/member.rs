//! Members of a balancer, and the question put to a policy.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) server: u32,
    /// Configured weight times [`WEIGHT_SCALE`](crate::limits::WEIGHT_SCALE), reduced during slow start. Never 0.
    pub(crate) weight: u32,
    /// Number of requests in flight at which the server is full and not chosen; `u32::MAX` for no limit.
    pub(crate) load_max: u32,
    /// Position for `Hash`: the [`hash::key`](super::hash::key) of its address, equal on every core, after every
    /// restart and on every machine with the same configuration.
    pub(crate) identity: u64,
}

/// State of a request and of the servers that a policy may need.
#[derive(Debug)]
pub(crate) struct BalanceRequest<'a, Load, Latency> {
    /// The [`hash::key`](super::hash::key) of the request, for `Hash` only.
    pub(crate) key: u64,
    /// Returns a server's number of requests in flight.
    pub(crate) load: &'a Load,
    /// Number of requests in flight of all members, for `Hash` only.
    pub(crate) load_sum: u32,
    /// Returns a server's latency in nanoseconds ([`Ewma`](crate::proxy::ewma::Ewma)), 0 if unknown; for `PeakEwma`
    /// only.
    pub(crate) latency: &'a Latency,
    /// Servers that must not be chosen, because this request failed there.
    pub(crate) avoid: &'a [u32],
}

/// Cost of one more request per unit of weight: `amount / weight`, compared without division.
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
