//! Waiting for the end of a connection without receiving: a reset, or any other end of both directions.
//!
//! With epoll the one edge-triggered registration reports the end. With io_uring the armed receive reports it; only a
//! socket without one (after the peer's end of stream, or with bulk data) gets a poll, once in its life.

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
    /// Ready when the connection has ended in both directions.
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
    /// Records which directions the kernel has reported as ended.
    pub(crate) fn note_end(&mut self, ended: Ended, tasks: &Tasks) {
        self.ended = self.ended.max(ended);
        if ended == Ended::HungUp {
            tasks.wake_once(&mut self.hangup_waiter);
        }
    }

    /// Records the result of a ring's poll for the end.
    pub(crate) fn note_end_poll(&mut self, reported: Result<i32, Errno>, tasks: &Tasks) {
        let hung_up = i32::from(libc::POLLERR | libc::POLLHUP);
        if reported.is_ok_and(|events| events & hung_up != 0) {
            return self.note_end(Ended::HungUp, tasks);
        }
        if reported.is_ok() && !self.ring.polling_hangup {
            // The poll was cancelled or used up; the waiter asks for it again.
            tasks.wake_once(&mut self.hangup_waiter);
        }
    }
}
