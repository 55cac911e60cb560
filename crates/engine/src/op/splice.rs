//! Moving bytes between a socket and a pipe, past our memory: splice(2).
//!
//! io_uring has a form of it, which runs on another thread and waits there; so the ring's form is the same call as with
//! epoll, and a poll of the ring when it must wait. Simulated sockets have no form: their bytes are received and sent.

use std::task::Poll;

use rustix::io::Errno;

use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::file::pipe::Pipe;
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// Whether the next bytes of the socket can go into a pipe: see [`Operations::can_splice`].
    pub(crate) fn can_splice(&mut self, key: Key) -> bool {
        self.driver.can_splice(key, &mut self.sockets[key])
    }

    /// Whether they can now, without an end to a receive that is under way.
    pub(crate) fn can_splice_now(&mut self, key: Key) -> bool {
        !self.sockets[key].ring.armed && self.can_splice(key)
    }

    /// Fills an empty pipe with some of what arrives, `max` bytes at most; `Ok(0)` is the end of the stream, or an urgent
    /// byte before it.
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

    /// Sends all that the pipe holds. What was sent before must have been taken by the kernel: [`State::poll_sent`].
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
