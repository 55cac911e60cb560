//! The addresses and the identity of both ends of a stream.

use std::net::SocketAddr;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrUnix, getsockname};

use super::Stream;
use crate::socket::note::Note;

impl Stream {
    /// The peer's TCP address; `None` for Unix sockets, and loopback for simulated ones without another source.
    pub fn peer(&self) -> Option<SocketAddr> {
        let state = self.core.inner().state.borrow();
        state.sockets[self.key].peer(self.key)
    }

    /// Index of the connection in the core's table, unique among open connections; see [`Accepted`](crate::Accepted).
    pub fn slot_index(&self) -> u32 {
        self.key.0
    }

    /// Sequence number among the accepted connections of the core, from 1; meaningless for others.
    pub fn sequence_number(&self) -> u32 {
        self.core.inner().state.borrow().sockets[self.key].number
    }

    /// Changes the note that [`Core::visit_accepted`](crate::Core::visit_accepted) shows of this connection.
    #[inline]
    pub fn change_note(&self, change: impl FnOnce(Note) -> Note) {
        let socket = &mut self.core.inner().state.borrow_mut().sockets[self.key];
        socket.set_note(change(socket.note()));
    }

    /// The user ID of the peer of a Unix socket at the time it connected (SO_PEERCRED, unix(7)); `None` for TCP.
    pub fn peer_user(&self) -> Option<u32> {
        let state = self.core.inner().state.borrow();
        let descriptor = state.sockets[self.key].descriptor.as_ref()?;
        let is_unix =
            getsockname(descriptor).is_ok_and(|name| SocketAddrUnix::try_from(name).is_ok());
        let credentials = is_unix.then(|| socket_peercred(descriptor));
        Some(credentials?.ok()?.uid.as_raw())
    }

    /// The local TCP address; `None` for Unix sockets.
    pub fn local(&self) -> Option<SocketAddr> {
        let state = self.core.inner().state.borrow();
        let socket = &state.sockets[self.key];
        if socket.simulated.is_some() {
            return Some(([127, 0, 0, 1], 80).into());
        }
        let descriptor = socket.descriptor.as_ref()?;
        SocketAddr::try_from(getsockname(descriptor).ok()?).ok()
    }
}
