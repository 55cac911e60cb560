//! State of one end of a simulated connection.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::socket::key::Key;

#[derive(Default)]
pub(crate) struct Peer {
    /// The other end, while it exists.
    pub(crate) other: Option<Key>,
    /// Arrived and not yet received.
    pub(crate) inbox: VecDeque<u8>,
    /// Sent by the other end, in transit or in `inbox`. Invariant: `arriving >= inbox.len()`.
    pub(crate) arriving: usize,
    /// The other end has shut down, and all its bytes have arrived.
    pub(crate) ended: bool,
    pub(crate) reset: bool,
    /// Closing this end resets the connection.
    pub(crate) resets: bool,
    /// When the last bytes sent to this end arrive; later bytes must not overtake them.
    pub(crate) last_arrival: u64,
    /// Distinguishes this connection from an earlier one in the same slot.
    pub(crate) id: u64,
    /// Source address of the other end.
    pub(crate) peer_address: Option<IpAddr>,
}

impl Peer {
    pub(crate) fn is_spent(&self) -> bool {
        self.ended || self.reset || !self.inbox.is_empty()
    }

    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        self.peer_address
    }
}
