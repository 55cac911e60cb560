//! Moving bytes between a socket and a pipe without a copy to user space: splice(2).
//!
//! The splice operation of io_uring blocks a worker thread, so with a ring this makes the same calls as epoll, and adds
//! a poll to the ring to wait. Simulated sockets cannot splice; their bytes are received and sent.

use std::task::Poll;

use rustix::io::Errno;

use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::file::pipe::Pipe;
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// Whether the next bytes of the socket can go into a pipe; see [`Operations::can_splice`].
    pub(crate) fn can_splice(&mut self, key: Key) -> bool {
        self.driver.can_splice(key, &mut self.sockets[key])
    }

    /// Whether the socket can splice without cancelling an armed receive.
    pub(crate) fn can_splice_now(&mut self, key: Key) -> bool {
        !self.sockets[key].ring.armed && self.can_splice(key)
    }

    /// Fills an empty pipe with at most `max` bytes; `Ok(0)` is the end of the stream, or an urgent byte before it.
    pub(crate) fn poll_splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        max: u64,
        task: TaskId,
    ) -> Poll<Result<usize, Error>> {
        match self.driver.splice_in(key, pipe, max, &mut self.sockets) {
            Err(Errno::AGAIN) => self.wait_for_bytes(key, task),
            filled => {
                self.expected.note_received(key);
                Poll::Ready(filled.map_err(|errno| Error::os(Op::Recv, errno)))
            }
        }
    }

    /// Sends everything in the pipe. The kernel must have taken all earlier bytes: [`State::poll_sent`].
    pub(crate) fn poll_splice_out(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        task: TaskId,
    ) -> Poll<Result<(), Error>> {
        let drained = self
            .driver
            .splice_out(key, pipe, &mut self.sockets, self.now)
            .map_err(|errno| Error::os(Op::Send, errno));
        if drained.is_err() {
            self.sockets.note_wait(key, self.now);
        }
        self.finish_send(key, drained, Op::Send, task)
    }
}
