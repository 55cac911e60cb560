//! How many connections and stalled streams clients may have, and how many requests they may cancel.

use std::num::NonZeroU32;

use crate::limits;

/// Bounds on clients; `None` means no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Of all clients together.
    pub connections_max: Option<NonZeroU32>,
    /// Of one address; of IPv6 the first 64 bits.
    pub connections_per_address_max: Option<NonZeroU32>,
    /// Streams per second that may be reset before they are served, on each connection of HTTP/2, beyond a burst.
    pub http2_resets_per_second: u32,
    /// Stalled HTTP/2 streams of one address on one core.
    pub stalled_streams_per_address_max: NonZeroU32,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients {
            connections_max: None,
            connections_per_address_max: None,
            http2_resets_per_second: limits::HTTP2_RESETS_PER_SECOND,
            stalled_streams_per_address_max: limits::STALLED_STREAMS_PER_ADDRESS_MAX_DEFAULT,
        }
    }
}
