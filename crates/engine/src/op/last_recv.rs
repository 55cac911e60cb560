//! A last receive before a timeout: asks the kernel for bytes of a socket, even if the driver has reported none.

use std::task::Poll;

use crate::buffers::input::Input;
use crate::driver::operations::Operations;
use crate::error::{Error, Kind, Op};
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// Like `poll_recv`, but returns [`Kind::TimedOut`] when nothing has arrived. It is pending only while an armed
    /// receive is being cancelled or bytes are on their way in the simulated network.
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
            // The kernel may have given the receive bytes already; its last completion reports them.
            socket.recv_waiter = task;
            return Poll::Pending;
        }
        // The driver last reported it as not readable; the kernel may know more by now.
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
