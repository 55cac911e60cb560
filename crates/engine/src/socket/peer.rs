//! What a simulated network keeps of one end of a connection.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::socket::key::Key;

/// One end of a simulated connection.
#[derive(Default)]
pub(crate) struct Peer {
    /// The other end, while it exists.
    pub(crate) other: Option<Key>,
    /// Arrived, not received yet.
    pub(crate) inbox: VecDeque<u8>,
    /// Sent by the other end, still travelling or in `inbox`. Invariant: `arriving >= inbox.len()`.
    pub(crate) arriving: usize,
    /// The other end will send no more, and all it sent has arrived.
    pub(crate) ended: bool,
    pub(crate) reset: bool,
    /// Closing this end resets the connection.
    pub(crate) resets: bool,
    /// When the last bytes sent to this end arrive: later bytes may not overtake them.
    pub(crate) last_arrival: u64,
    /// Distinguishes this connection from an earlier one in the same slot.
    pub(crate) id: u64,
    /// Where the other end says that it comes from.
    pub(crate) peer_address: Option<IpAddr>,
}

impl Peer {
    /// Whether the connection has ended, failed, or received something unasked.
    pub(crate) fn is_spent(&self) -> bool {
        self.ended || self.reset || !self.inbox.is_empty()
    }

    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        self.peer_address
    }
}
