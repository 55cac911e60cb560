//! A last look: what the kernel has for a socket by now, whatever is known of it.

use std::task::Poll;

use crate::buffers::input::Input;
use crate::driver::operations::Operations;
use crate::error::{Error, Kind, Op};
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// As `poll_recv`, but where nothing has arrived that is [`Kind::TimedOut`]. It is pending only while bytes are on their
    /// way within this process.
    pub(crate) fn poll_arrived(
        &mut self,
        key: Key,
        input: &mut Input,
        task: TaskId,
    ) -> Poll<Result<usize, Error>> {
        let State {
            driver, sockets, ..
        } = self;
        let socket = &mut sockets[key];
        if driver.ends_recv(key, socket) {
            // The kernel may have given it bytes already; its last completion says so.
            socket.recv_waiter = task;
            return Poll::Pending;
        }
        // That it is not was what the last look at the kernel said.
        socket.readable = true;
        if let Some(received) = self.recv_now(key, input) {
            return Poll::Ready(received);
        }
        let socket = &mut self.sockets[key];
        let is_there = |end: &crate::socket::peer::Peer| end.is_spent();
        if socket.simulated.as_deref().is_some_and(is_there) {
            socket.recv_waiter = task;
            return Poll::Pending;
        }
        Poll::Ready(Err(Error::new(Op::Recv, Kind::TimedOut)))
    }
}
