//! Listing the open connections that a core has accepted.

use std::net::SocketAddr;
use std::time::Duration;

use super::Core;
use crate::clock::Instant;
use crate::socket::key::Key;
use crate::socket::note::Note;
use crate::socket::tcp_info::TcpInfo;
use crate::socket::{Socket, Sockets};

/// An accepted connection.
pub struct Accepted<'c> {
    key: Key,
    socket: &'c Socket,
}

impl Core {
    /// Calls `look` with the accepted connections in `count` slots of the core's table, starting at index `from`.
    /// Returns the next index, or `None` at the end of the table. A connection keeps its index while it is open.
    pub fn visit_accepted(
        &self,
        from: usize,
        count: usize,
        mut look: impl FnMut(&Accepted<'_>),
    ) -> Option<usize> {
        let state = self.inner().state.borrow();
        let end = from.saturating_add(count).min(state.sockets.slots());
        for index in from..end {
            if let Some(accepted) = Accepted::at(&state.sockets, index as u32) {
                look(&accepted);
            }
        }
        (end < state.sockets.slots()).then_some(end)
    }

    /// Calls `look` with the accepted connection at index `place`, if there is one.
    pub fn with_accepted<T>(&self, place: u32, look: impl FnOnce(&Accepted<'_>) -> T) -> Option<T> {
        let state = self.inner().state.borrow();
        let is_known = (place as usize) < state.sockets.slots();
        let accepted = is_known.then(|| Accepted::at(&state.sockets, place))?;
        Some(look(&accepted?))
    }
}

impl<'c> Accepted<'c> {
    /// `None` for a connection that was not accepted or is closing.
    fn at(sockets: &'c Sockets, index: u32) -> Option<Self> {
        let key = Key(index);
        let socket = &sockets[key];
        (socket.is_accepted && !socket.closing).then_some(Self { key, socket })
    }

    /// Index in the core's table, unique among open connections.
    pub fn place(&self) -> u32 {
        self.key.0
    }

    /// Sequence number among the connections that the core has accepted; it wraps after 2^32.
    pub fn number(&self) -> u32 {
        self.socket.number
    }

    /// Time since it was accepted, to 17 ms.
    pub fn age(&self, now: Instant) -> Duration {
        self.socket.accepted_at.age(now)
    }

    /// The note that its owner has [set](crate::Stream::change_note).
    pub fn note(&self) -> Note {
        self.socket.note()
    }

    /// Whether the peer must read before more can be sent. A last send that a ring performs by itself is not included.
    pub fn is_blocked(&self) -> bool {
        self.socket.is_blocked()
    }

    /// As [`Stream::peer`](crate::Stream::peer); makes a system call.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.socket.peer(self.key)
    }

    /// As [`Stream::tcp_info`](crate::Stream::tcp_info); makes a system call.
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        TcpInfo::of(self.socket.descriptor.as_ref()?)
    }
}
