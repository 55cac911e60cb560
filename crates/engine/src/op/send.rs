//! Sending what a socket has queued, several parts in one call.
//!
//! The operation may end before the bytes are sent: the slot owns them, the next operation reports a failure, and only
//! a second send waits for the first. With io_uring that saves one wake-up per response. With epoll the small sends of
//! a turn are made together at its end: a peer on another CPU, woken by the first of them, finds the others as well and
//! does not sleep and wake again for each. Sends above [`DEFERRED_BYTES_MAX`] are made at once, while the bytes are in
//! the CPU's cache.
//!
//! ```text
//!             small              end of the turn: sent whole
//!   at rest ──────────> due ──────────────────────────────────> at rest
//!      │                 └─ the socket takes a part ─> blocked ─────┘
//!      └──── large: at once, a part of it ────────────────┘  writable: the rest is sent
//! ```

use std::task::Poll;

use rustix::io::Errno;

use crate::buffers::outgoing::{Part, Queue};
use crate::clock::Instant;
use crate::driver::operations::{NextData, Operations, Sender};
use crate::error::{Error, Kind, Op};
use crate::limits::{DEFERRED_BYTES_MAX, DEFERRED_SENDS_MAX, PARTS_PER_SEND};
use crate::socket::Deferred;
use crate::socket::key::Key;
use crate::state::State;
use crate::task::Tasks;
use crate::task::id::TaskId;

impl State {
    pub(crate) fn poll_flush(
        &mut self,
        key: Key,
        follows: NextData,
        tasks: &Tasks,
    ) -> Poll<Result<(), Error>> {
        let flushed = self.flush_now(key, follows);
        if self.due.len() >= DEFERRED_SENDS_MAX {
            self.send_due(tasks);
        }
        self.finish_send(key, flushed, Op::Send, tasks.current())
    }

    /// Sends as much as the socket takes without waiting; EAGAIN if bytes are left.
    pub(crate) fn flush_now(&mut self, key: Key, follows: NextData) -> Result<(), Error> {
        match self.driver.sender() {
            Sender::Kernel => self.driver.send(key, follows, &mut self.sockets, self.now),
            Sender::Core => self.flush_deferred(key, follows),
        }
    }

    /// Defers the send until just before the next poll of the kernel if it is small and nothing follows it; otherwise
    /// sends at once.
    fn flush_deferred(&mut self, key: Key, follows: NextData) -> Result<(), Error> {
        let socket = &mut self.sockets[key];
        if socket.outgoing.is_empty() && socket.send_failed.is_none() {
            return Ok(());
        }
        if follows != NextData::Nothing
            || socket.deferred == Deferred::Blocked
            || socket.send_failed.is_some()
            || !is_small(&socket.outgoing)
        {
            return self.flush_to_kernel(key, follows);
        }
        if socket.deferred == Deferred::Idle {
            socket.deferred = Deferred::Due;
            socket.written = Instant::default();
            self.due.push(key);
        }
        Ok(())
    }

    /// Hands the bytes to the kernel, or to the simulated network.
    pub(crate) fn flush_to_kernel(&mut self, key: Key, follows: NextData) -> Result<(), Error> {
        let socket = &mut self.sockets[key];
        if let Some(errno) = socket.send_failed {
            socket.outgoing.clear();
            return Err(Error::os(Op::Send, errno));
        }
        if self.notes_writes && !socket.outgoing.is_empty() {
            socket.written = self.driver.moment(self.now);
        }
        let sent = self.driver.send(key, follows, &mut self.sockets, self.now);
        self.sockets[key].deferred = match is_again(&sent) {
            true => {
                self.sockets.note_wait(key, self.now);
                Deferred::Blocked
            }
            false => Deferred::Idle,
        };
        sent
    }

    /// Performs the deferred sends, and wakes tasks that wait to send more.
    pub(crate) fn send_due(&mut self, tasks: &Tasks) {
        // Sends to servers come first: the first wakes the server's thread, which works in parallel with the rest.
        for is_accepted in [false, true] {
            for at in 0..self.due.len() {
                let key = self.due[at];
                let socket = &self.sockets[key];
                // The slot may have been closed since, or flushed by a task that could not wait.
                if socket.deferred == Deferred::Due && socket.is_accepted == is_accepted {
                    self.perform_send(key, tasks);
                }
            }
        }
        self.due.clear();
    }

    /// Sends the rest of a socket's deferred bytes, as far as the socket takes them.
    fn perform_send(&mut self, key: Key, tasks: &Tasks) {
        let sent = self.flush_to_kernel(key, NextData::Nothing);
        if is_again(&sent) {
            return;
        }
        let socket = &mut self.sockets[key];
        if let Err(Error {
            kind: Kind::Os(errno),
            ..
        }) = sent
        {
            socket.send_failed = Some(errno);
            tasks.wake_once(&mut socket.recv_waiter);
            tasks.wake_once(&mut socket.hangup_waiter);
        }
        tasks.wake_once(&mut socket.send_waiter);
        if socket.closing {
            self.release(key);
        }
    }

    pub(crate) fn note_writable(&mut self, key: Key, tasks: &Tasks) {
        let socket = &mut self.sockets[key];
        socket.writable = true;
        match socket.deferred {
            Deferred::Blocked => self.perform_send(key, tasks),
            Deferred::Idle | Deferred::Due => tasks.wake_once(&mut socket.send_waiter),
        }
    }

    /// Waits until the kernel has taken every byte, also with io_uring.
    pub(crate) fn poll_sent(&mut self, key: Key, task: TaskId) -> Poll<Result<(), Error>> {
        let sent = match self.driver.sender() {
            Sender::Kernel => self.driver.is_sent(key, &mut self.sockets),
            Sender::Core => self.flush_to_kernel(key, NextData::Nothing),
        };
        self.finish_send(key, sent, Op::Send, task)
    }

    /// Turns EAGAIN into a wait for writability or the deadline.
    pub(crate) fn finish_send<T>(
        &mut self,
        key: Key,
        outcome: Result<T, Error>,
        op: Op,
        task: TaskId,
    ) -> Poll<Result<T, Error>> {
        match outcome {
            Err(error) if error == Error::os(op, Errno::AGAIN) => {}
            outcome => return Poll::Ready(outcome),
        }
        if let Err(error) = self.wait_until_deadline(key, op) {
            return Poll::Ready(Err(error));
        }
        self.sockets[key].send_waiter = task;
        Poll::Pending
    }
}

fn is_again<T>(sent: &Result<T, Error>) -> bool {
    matches!(sent, Err(error) if *error == Error::os(Op::Send, Errno::AGAIN))
}

/// Whether the queued bytes are few enough to wait until just before the next poll of the kernel.
fn is_small(outgoing: &Queue<Part>) -> bool {
    let mut bytes = 0;
    outgoing.iter().all(|part| {
        bytes += part.bytes().len();
        bytes <= DEFERRED_BYTES_MAX
    }) && outgoing.len() <= PARTS_PER_SEND
}
