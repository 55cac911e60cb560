//! Limits of clients: connections, stalled streams and cancelled requests.

use std::num::NonZeroU32;

use crate::limits;

/// Limits of clients; `None` means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Connections of all clients.
    pub connections_max: Option<NonZeroU32>,
    /// Connections of one address; for IPv6, of a /64 prefix.
    pub connections_per_address_max: Option<NonZeroU32>,
    /// Maximum number of streams per second that a client may reset before they are served, on each HTTP/2 connection,
    /// beyond a burst.
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
