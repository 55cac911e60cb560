//! Who is at either end of a stream.

use std::net::SocketAddr;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrUnix, getpeername, getsockname};

use super::Stream;

impl Stream {
    /// The peer's TCP address; `None` for Unix sockets. Simulated sockets are all on the loopback, unless they were
    /// connected from somewhere else.
    pub fn peer(&self) -> Option<SocketAddr> {
        let state = self.core.inner().state.borrow();
        let socket = &state.sockets[self.key];
        if let Some(end) = &socket.simulated {
            let address = end.peer_address().unwrap_or([127, 0, 0, 1].into());
            return Some((address, 1024_u16.wrapping_add(self.key.0 as u16)).into());
        }
        let descriptor = socket.descriptor.as_ref()?;
        SocketAddr::try_from(getpeername(descriptor).ok()??).ok()
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
