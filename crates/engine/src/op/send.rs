//! Sending what a socket has queued, several parts in one call.
//!
//! The bytes may still be on their way when the operation is done: the slot owns them, a failure is reported by the next
//! operation, and only a second send waits for the first. With io_uring that saves one wake-up per response. With epoll
//! the small sends of a turn leave together at its end: a peer on another CPU that is woken by the first of them finds
//! the others, too, and does not go to sleep in between, to be woken for each. What is larger than
//! [`DEFERRED_BYTES_MAX`] leaves at once, while it is still in the CPU's cache.
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
use crate::driver::operations::{Follows, Operations, Sender};
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
        follows: Follows,
        tasks: &Tasks,
    ) -> Poll<Result<(), Error>> {
        let flushed = self.flush_now(key, follows);
        if self.due.len() >= DEFERRED_SENDS_MAX {
            self.send_due(tasks);
        }
        self.finish_send(key, flushed, Op::Send, tasks.current())
    }

    /// Sends what the socket takes without a wait; EAGAIN when something is left.
    pub(crate) fn flush_now(&mut self, key: Key, follows: Follows) -> Result<(), Error> {
        match self.driver.sender() {
            Sender::Kernel => self.driver.send(key, follows, &mut self.sockets, self.now),
            Sender::Core => self.flush_soon(key, follows),
        }
    }

    /// At the end of the turn when that may be, else at once.
    fn flush_soon(&mut self, key: Key, follows: Follows) -> Result<(), Error> {
        let socket = &mut self.sockets[key];
        if socket.outgoing.is_empty() && socket.send_failed.is_none() {
            return Ok(());
        }
        if follows != Follows::Nothing
            || socket.deferred == Deferred::Blocked
            || socket.send_failed.is_some()
            || !is_small(&socket.outgoing)
        {
            return self.flush_through(key, follows);
        }
        if socket.deferred == Deferred::AtRest {
            socket.deferred = Deferred::Due;
            socket.written = Instant::default();
            self.due.push(key);
        }
        Ok(())
    }

    /// Into the kernel, or as far as the simulated network goes.
    pub(crate) fn flush_through(&mut self, key: Key, follows: Follows) -> Result<(), Error> {
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
            false => Deferred::AtRest,
        };
        sent
    }

    /// Carries out the sends that wait for the end of the turn. Who waits to send more is woken when it may.
    pub(crate) fn send_due(&mut self, tasks: &Tasks) {
        // Those to servers first: the thread at the other end of many of them is woken by the first and has work from there
        // on, and so has that of the clients.
        for is_accepted in [false, true] {
            for at in 0..self.due.len() {
                let key = self.due[at];
                let socket = &self.sockets[key];
                // Its slot may have been given up since, or flushed by somebody who could not wait.
                if socket.deferred == Deferred::Due && socket.is_accepted == is_accepted {
                    self.carry_out(key, tasks);
                }
            }
        }
        self.due.clear();
    }

    /// Sends what is left of a socket's deferred bytes, as far as it takes them.
    fn carry_out(&mut self, key: Key, tasks: &Tasks) {
        let sent = self.flush_through(key, Follows::Nothing);
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

    /// The socket can take bytes again.
    pub(crate) fn is_writable_again(&mut self, key: Key, tasks: &Tasks) {
        let socket = &mut self.sockets[key];
        socket.writable = true;
        match socket.deferred {
            Deferred::Blocked => self.carry_out(key, tasks),
            Deferred::AtRest | Deferred::Due => tasks.wake_once(&mut socket.send_waiter),
        }
    }

    /// Waits until the kernel has taken every byte, also with io_uring.
    pub(crate) fn poll_sent(&mut self, key: Key, task: TaskId) -> Poll<Result<(), Error>> {
        let sent = match self.driver.sender() {
            Sender::Kernel => self.driver.is_sent(key, &mut self.sockets),
            Sender::Core => self.flush_through(key, Follows::Nothing),
        };
        self.finish_send(key, sent, Op::Send, task)
    }

    /// Turns "not yet" into a wait for writability or the deadline.
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

/// Whether nothing went wrong but that the socket takes no more for now.
fn is_again<T>(sent: &Result<T, Error>) -> bool {
    matches!(sent, Err(error) if *error == Error::os(Op::Send, Errno::AGAIN))
}

/// Whether so little is queued that it may wait for the end of the turn.
fn is_small(outgoing: &Queue<Part>) -> bool {
    let mut bytes = 0;
    outgoing.iter().all(|part| {
        bytes += part.bytes().len();
        bytes <= DEFERRED_BYTES_MAX
    }) && outgoing.len() <= PARTS_PER_SEND
}
