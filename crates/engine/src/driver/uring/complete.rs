//! Handling the completions of a socket.

use std::os::fd::{FromRawFd, OwnedFd};
use std::rc::Rc;

use io_uring::cqueue;
use rustix::io::Errno;

use super::Ring;
use super::operation::Operation;
use super::outcome::outcome;
use crate::buffers::buffer::Pool;
use crate::clock;
use crate::driver::calls;
use crate::limits::{MESSAGES_FREE_MAX, RECEIVED_MAX};
use crate::socket::key::Key;
use crate::socket::{Socket, Sockets};
use crate::task::Tasks;

impl Ring {
    #[allow(
        clippy::too_many_arguments,
        reason = "a completion (4) and where it goes (3); a struct would only rename them"
    )]
    pub(super) fn complete(
        &mut self,
        operation: Operation,
        key: Key,
        result: i32,
        flags: u32,
        sockets: &mut Sockets,
        tasks: &Tasks,
        pool: &Rc<Pool>,
    ) {
        let socket = &mut sockets[key];
        if !cqueue::more(flags) {
            socket.ring.operations -= 1;
        }
        match operation {
            Operation::Recv => self.complete_recv(key, result, flags, socket, tasks, pool),
            Operation::Accept => {
                socket.ring.armed &= cqueue::more(flags);
                socket.ring.cancelling &= socket.ring.armed;
                // SAFETY: a non-negative result of accept is a new descriptor without another owner.
                let accepted = outcome(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
                socket.ring.accepted.get_or_insert_default().push(accepted);
                tasks.wake_once(&mut socket.recv_waiter);
                if result >= 0 {
                    sockets.count_live();
                }
            }
            Operation::Send => {
                self.complete_send(key, result, socket, tasks);
                if sockets[key].ring.sending {
                    // The peer has not taken all of it.
                    sockets.note_wait(key, clock::now());
                }
            }
            Operation::PollWritable => {
                socket.ring.polling_writable = false;
                socket.writable = true;
                tasks.wake_once(&mut socket.send_waiter);
            }
            Operation::PollReadable => {
                socket.ring.polling_readable = false;
                socket.readable = true;
                let urgent = i32::from(libc::POLLPRI);
                let has_hint = outcome(result).is_ok_and(|events| events & urgent != 0);
                socket.ring.is_perhaps_urgent |= has_hint;
                tasks.wake_once(&mut socket.recv_waiter);
            }
            Operation::PollHangup => {
                socket.ring.polling_hangup = cqueue::more(flags);
                socket.note_end_poll(outcome(result), tasks);
            }
            Operation::Cancel | Operation::Wake => unreachable!("not of a socket"),
        }
        if sockets[key].closing && sockets[key].ring.operations == 0 {
            sockets.remove(key);
        }
    }

    fn complete_send(&mut self, key: Key, result: i32, socket: &mut Socket, tasks: &Tasks) {
        socket.ring.sending = false;
        if let Some(message) = socket.ring.message.take()
            && self.messages.len() < MESSAGES_FREE_MAX
        {
            self.messages.push(message);
        }
        socket.written = self.entered;
        match outcome(result) {
            Ok(count) => {
                socket.outgoing.consume(count as usize);
                if socket.outgoing.is_empty() {
                    // The task may wait for something else by now, with its own deadline.
                    socket.count_taken(count as u64);
                } else {
                    socket.note_taken(count as u64, clock::now());
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => socket.send_failed = Some(errno),
        }
        let is_cancelled = socket.closing && socket.timed_out;
        if is_cancelled && !socket.outgoing.is_empty() {
            // A part may have been sent before, and an orderly end would look complete to the peer.
            calls::reset_at_close(socket);
        }
        if is_cancelled || socket.send_failed.is_some() {
            socket.outgoing.clear();
        }
        if !socket.outgoing.is_empty() {
            self.submit_send(key, socket);
        } else {
            tasks.wake_once(&mut socket.send_waiter);
        }
    }

    fn complete_recv(
        &mut self,
        key: Key,
        result: i32,
        flags: u32,
        socket: &mut Socket,
        tasks: &Tasks,
        pool: &Rc<Pool>,
    ) {
        if !cqueue::more(flags) {
            socket.ring.armed = false;
            socket.ring.cancelling = false;
        }
        // The kernel returns a buffer whenever it has taken one, even with an error.
        let buffer = cqueue::buffer_select(flags).map(|id| self.buffers.take(id, pool));
        match (outcome(result), buffer) {
            (Ok(0), _) => socket.ring.end = Some(Ok(())),
            (Ok(count), Some(mut buffer)) => {
                buffer.fill(count as usize);
                socket.readable = buffer.room() == 0;
                socket.note_length(buffer.len());
                socket.ring.received.push(buffer);
                if socket.ring.received.len() >= RECEIVED_MAX {
                    self.cancel_recv(key, socket);
                }
            }
            (Ok(_), None) => unreachable!("bytes were received into no buffer"),
            // No provided buffers, or cancelled for back-pressure: the next wait arms it again or receives bulk at
            // once.
            (Err(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN), _) => {
                socket.readable |= socket.bulk > 0;
            }
            (Err(errno), _) => socket.ring.end = Some(Err(errno)),
        }
        tasks.wake_once(&mut socket.recv_waiter);
        if !socket.ring.armed {
            // The receive has failed, or no longer reports the end.
            tasks.wake_once(&mut socket.hangup_waiter);
        }
    }
}
