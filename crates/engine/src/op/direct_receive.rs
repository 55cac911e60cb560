//! Direct receives on a core that busy-polls: the driver does not report the socket that is expected to get the next
//! bytes.

use crate::driver::operations::Operations;
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// The socket on which the next bytes are expected. Stops its readiness reports, which cost the sender 0.2 us each.
    pub(crate) fn expected_socket(&mut self) -> Option<Key> {
        let key = self.expected.key()?;
        if self.expected.unreported.is_none() && self.may_stop_reports(key) {
            let is_apart = self.driver.stop_reports(&self.sockets[key]);
            self.expected.unreported = is_apart.then_some(key);
        }
        Some(key)
    }

    /// Takes the task that waits for bytes, which then asks the kernel. `None` without one, or if the driver receives.
    pub(crate) fn take_direct_receiver(&mut self, key: Key) -> Option<TaskId> {
        let socket = &mut self.sockets[key];
        if socket.recv_waiter == TaskId::NONE || !self.driver.receives_when_asked(socket) {
            return None;
        }
        socket.readable = true;
        socket.is_direct_receive = true;
        Some(std::mem::replace(&mut socket.recv_waiter, TaskId::NONE))
    }

    /// Resumes reports of a socket that is no longer expected or has other waits, before the driver is polled.
    pub(crate) fn restore_reports(&mut self) {
        self.expected.note_look();
        let Some(key) = self.expected.unreported else {
            return;
        };
        if self.expected.key() != Some(key) || !self.may_stop_reports(key) {
            self.resume_reports(key);
        }
    }

    /// The socket is being closed. Its last send may depend on reports of the driver.
    pub(crate) fn forget_expected(&mut self, key: Key) {
        if self.expected.unreported == Some(key) {
            self.resume_reports(key);
        }
        self.expected.forget(key);
    }

    fn resume_reports(&mut self, key: Key) {
        self.expected.unreported = None;
        self.driver.report_again(key, &mut self.sockets[key]);
    }

    /// Whether the only wait on the socket is for bytes.
    fn may_stop_reports(&self, key: Key) -> bool {
        let socket = &self.sockets[key];
        self.expected.is_recent()
            && socket.recv_waiter != TaskId::NONE
            && socket.hangup_waiter == TaskId::NONE
            && !socket.is_blocked()
    }
}
