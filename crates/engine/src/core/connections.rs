//! The connections that a core has accepted and that are open, for who lists them.

use std::net::SocketAddr;
use std::time::Duration;

use super::Core;
use crate::clock::Instant;
use crate::socket::key::Key;
use crate::socket::note::Note;
use crate::socket::tcp_info::TcpInfo;
use crate::socket::{Socket, Sockets};

/// One of the connections that a core has accepted.
pub struct Accepted<'c> {
    key: Key,
    socket: &'c Socket,
}

impl Core {
    /// Shows `look` those of the accepted connections that stand at the places from `from` on in the core's table, of which
    /// `count` are looked at. Returns where to go on: `None` behind the last. A connection keeps its place while it is open.
    pub fn look_at_accepted(
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

    /// What `look` makes of the accepted connection at `place`, if one is there.
    pub fn look_at_place<T>(&self, place: u32, look: impl FnOnce(&Accepted<'_>) -> T) -> Option<T> {
        let state = self.inner().state.borrow();
        let is_known = (place as usize) < state.sockets.slots();
        let accepted = is_known.then(|| Accepted::at(&state.sockets, place))?;
        Some(look(&accepted?))
    }
}

impl<'c> Accepted<'c> {
    /// `None` for what was not accepted, and what nobody uses any more.
    fn at(sockets: &'c Sockets, index: u32) -> Option<Self> {
        let key = Key(index);
        let socket = &sockets[key];
        (socket.is_accepted && !socket.closing).then_some(Self { key, socket })
    }

    /// Where it stands in the core's table, which only one open connection does.
    pub fn place(&self) -> u32 {
        self.key.0
    }

    /// Its number among those that the core has accepted; it begins anew behind 2^32 of them.
    pub fn number(&self) -> u32 {
        self.socket.number
    }

    /// How long ago it was accepted, to 17 ms.
    pub fn age(&self, now: Instant) -> Duration {
        self.socket.accepted_at.age(now)
    }

    /// What its owner has [noted](crate::Stream::change_note).
    pub fn note(&self) -> Note {
        self.socket.note()
    }

    /// Whether more can be sent only when the peer has read what it was sent before. A last send that a ring carries out by
    /// itself is not seen.
    pub fn is_blocked(&self) -> bool {
        self.socket.is_blocked()
    }

    /// As [`Stream::peer`](crate::Stream::peer): a system call.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.socket.peer(self.key)
    }

    /// As [`Stream::tcp_info`](crate::Stream::tcp_info): a system call.
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        TcpInfo::of(self.socket.descriptor.as_ref()?)
    }
}
