//! Asking a socket for what nobody has reported, on a core that busy-polls: while that goes on, nothing is reported of it.

use crate::driver::operations::Operations;
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// Where the next bytes are expected. The driver reports nothing of that socket from here on, which costs the sender of each
    /// message 0.2 us.
    pub(crate) fn expect(&mut self) -> Option<Key> {
        let key = self.expected.key()?;
        if self.expected.apart.is_none() && self.may_be_apart(key) {
            let is_apart = self.driver.stop_reports(&self.sockets[key]);
            self.expected.apart = is_apart.then_some(key);
        }
        Some(key)
    }

    /// The task that waits for bytes of the socket, which waits no more: its receive will ask the kernel. `None` where nobody
    /// waits, or the driver has them received by itself.
    pub(crate) fn ask(&mut self, key: Key) -> Option<TaskId> {
        let socket = &mut self.sockets[key];
        if socket.recv_waiter == TaskId::NONE || !self.driver.receives_when_asked(socket) {
            return None;
        }
        socket.readable = true;
        socket.is_asked = true;
        Some(std::mem::replace(&mut socket.recv_waiter, TaskId::NONE))
    }

    /// Before a look at the driver: it reports again of a socket that is not asked any more, or of which something else is waited
    /// for.
    pub(crate) fn look_again(&mut self) {
        self.expected.note_look();
        let Some(key) = self.expected.apart else {
            return;
        };
        if self.expected.key() != Some(key) || !self.may_be_apart(key) {
            self.end_apart(key);
        }
    }

    /// The socket is given up. Its last bytes may have to wait for what the driver reports.
    pub(crate) fn expect_no_more(&mut self, key: Key) {
        if self.expected.apart == Some(key) {
            self.end_apart(key);
        }
        self.expected.forget(key);
    }

    fn end_apart(&mut self, key: Key) {
        self.expected.apart = None;
        self.driver.report_again(key, &mut self.sockets[key]);
    }

    /// Whether all that is waited for of the socket is what is asked for.
    fn may_be_apart(&self, key: Key) -> bool {
        let socket = &self.sockets[key];
        self.expected.is_lively()
            && socket.recv_waiter != TaskId::NONE
            && socket.hangup_waiter == TaskId::NONE
            && !socket.is_blocked()
    }
}
