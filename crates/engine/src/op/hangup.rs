//! Waiting for the end of a connection without receiving: a reset, and whatever else leaves it to nobody.
//!
//! It costs no call to the kernel where that reports the end anyway: epoll with the edges of the one registration, a ring
//! by the receive that is armed. Only a ring's socket without one, behind the end of the peer's side or in bulk, gets a
//! poll, once for the life of the connection.

use std::task::Poll;

use rustix::io::Errno;

use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::socket::key::Key;
use crate::socket::{Ended, Socket};
use crate::state::State;
use crate::task::Tasks;
use crate::task::id::TaskId;

impl State {
    /// Ready once the connection is over in both directions.
    pub(crate) fn poll_hung_up(&mut self, key: Key, task: TaskId) -> Poll<Error> {
        let socket = &mut self.sockets[key];
        if let Some(errno) = socket.send_failed {
            return Poll::Ready(Error::os(Op::Send, errno));
        }
        if let Some(Err(errno)) = socket.ring.end {
            return Poll::Ready(Error::os(Op::Recv, errno));
        }
        if socket.ended == Ended::HungUp {
            return Poll::Ready(Error::os(Op::Recv, Errno::CONNRESET));
        }
        socket.hangup_waiter = task;
        self.driver.watch_end(key, socket);
        Poll::Pending
    }
}

impl Socket {
    /// The kernel has said that so much of the connection is over.
    pub(crate) fn note_end(&mut self, ended: Ended, tasks: &Tasks) {
        self.ended = self.ended.max(ended);
        if ended == Ended::HungUp {
            tasks.wake_once(&mut self.hangup_waiter);
        }
    }

    /// A ring's poll for the end has `reported` these events.
    pub(crate) fn hear_of_end(&mut self, reported: Result<i32, Errno>, tasks: &Tasks) {
        let hung_up = i32::from(libc::POLLERR | libc::POLLHUP);
        if reported.is_ok_and(|events| events & hung_up != 0) {
            return self.note_end(Ended::HungUp, tasks);
        }
        if reported.is_ok() && !self.ring.polling_hangup {
            // It has ended by itself: whoever waits asks for it again.
            tasks.wake_once(&mut self.hangup_waiter);
        }
    }
}
