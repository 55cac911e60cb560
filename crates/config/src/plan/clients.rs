//! How many connections clients may have.

use std::num::NonZeroU32;

/// Bounds on the connections of clients; none for no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    /// Of all clients together.
    pub connections_max: Option<NonZeroU32>,
    /// Of one address; of IPv6 the first 64 bits.
    pub connections_per_address_max: Option<NonZeroU32>,
}
