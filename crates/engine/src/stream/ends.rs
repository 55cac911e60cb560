//! Who is at either end of a stream.

use std::net::SocketAddr;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrUnix, getsockname};

use super::Stream;
use crate::socket::note::Note;

impl Stream {
    /// The peer's TCP address; `None` for Unix sockets. Simulated sockets are all on the loopback, unless they were
    /// connected from somewhere else.
    pub fn peer(&self) -> Option<SocketAddr> {
        let state = self.core.inner().state.borrow();
        state.sockets[self.key].peer(self.key)
    }

    /// Where the connection stands in the core's table, which only one open connection does: see
    /// [`Accepted`](crate::Accepted).
    pub fn place(&self) -> u32 {
        self.key.0
    }

    /// Its number among those that the core has accepted, from 1; means nothing of one that was not.
    pub fn number(&self) -> u32 {
        self.core.inner().state.borrow().sockets[self.key].number
    }

    /// Changes what is noted of the connection for who [looks](crate::Core::look_at_accepted) at it.
    #[inline]
    pub fn change_note(&self, change: impl FnOnce(Note) -> Note) {
        let socket = &mut self.core.inner().state.borrow_mut().sockets[self.key];
        socket.set_note(change(socket.note()));
    }

    /// The user at the other end of a Unix socket, as it was when they connected (SO_PEERCRED, unix(7)); `None` for TCP.
    pub fn peer_user(&self) -> Option<u32> {
        let state = self.core.inner().state.borrow();
        let descriptor = state.sockets[self.key].descriptor.as_ref()?;
        let is_unix =
            getsockname(descriptor).is_ok_and(|name| SocketAddrUnix::try_from(name).is_ok());
        let credentials = is_unix.then(|| socket_peercred(descriptor));
        Some(credentials?.ok()?.uid.as_raw())
    }

    /// The TCP address of this side; `None` for Unix sockets.
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
