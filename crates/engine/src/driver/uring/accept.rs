//! Accepting connections: an accept stays armed for many connections, as long as there is room for many.

use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::Ring;
use super::submit::Accepts;
use crate::driver::calls;
use crate::driver::operations::ListenerState;
use crate::socket::key::Key;
use crate::socket::{BlockingMode, Sockets, set_blocking_mode};

impl Ring {
    /// Arms an accept, or accepts at once when the listener ends.
    pub(super) fn accept_soon(
        &mut self,
        listener: Key,
        accepting: ListenerState,
        sockets: &mut Sockets,
    ) -> Result<Key, Errno> {
        let many = match &sockets.allowance {
            Some(allowance) if !allowance.allows_multishot() => Accepts::One,
            _ => Accepts::Many,
        };
        let ends = accepting != ListenerState::Ongoing;
        let socket = &mut sockets[listener];
        match socket.ring.armed {
            false if accepting == ListenerState::Leaving => {
                // The file's flags must not change, because the other process uses it: instead of a non-blocking call,
                // this arms an accept and cancels it at once. It accepts a connection immediately or not at all.
                if calls::is_waited_for(socket) {
                    self.arm_accept(listener, socket, Accepts::One);
                    self.cancel_accept(listener, socket);
                }
            }
            false if ends => {
                // The listeners of other cores may share the file, which is harmless: they stop, too.
                set_blocking_mode(socket.descriptor(), BlockingMode::Fail)?;
                let accepted = calls::accept(socket, SocketFlags::empty())?;
                return Ok(calls::adopt(accepted, sockets));
            }
            false => self.arm_accept(listener, socket, many),
            true if ends || (many == Accepts::One && socket.ring.accepts_many) => {
                self.cancel_accept(listener, socket)
            }
            true => {}
        }
        Err(Errno::AGAIN)
    }
}

/// The next connection that an armed accept has accepted.
pub(super) fn take(listener: Key, sockets: &mut Sockets) -> Option<Result<Key, Errno>> {
    let accepted = sockets[listener].ring.accepted.get_or_insert_default();
    while let Some(accepted) = accepted.pop() {
        match accepted {
            Ok(descriptor) => {
                // It was counted when the kernel accepted it, and is counted as a socket from now on.
                sockets.uncount_live();
                return Some(Ok(calls::adopt(descriptor, sockets)));
            }
            Err(
                Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::CANCELED | Errno::AGAIN,
            ) => {}
            Err(errno) => return Some(Err(errno)),
        }
    }
    None
}
