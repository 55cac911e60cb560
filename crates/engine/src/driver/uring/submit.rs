//! Submitting the operations of a socket.

use std::os::fd::AsRawFd;

use io_uring::types::{CancelBuilder, Fd};
use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::Ring;
use super::operation::{Operation, user_data};
use super::provided::ProvidedBuffers;
use crate::buffers::buffer::Pool;
use crate::clock::{self, Instant};
use crate::driver::calls;
use crate::driver::operations::NextData;
use crate::error::{Error, Kind, Op};
use crate::limits::{BUFFER_BYTES, DIRECT_SEND_BYTES_MIN, MULTISHOT_BYTES, SEND_BYTES_MAX};
use crate::socket::key::Key;
use crate::socket::message::Message;
use crate::socket::{Socket, Sockets};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accepts {
    One,
    Many,
}

impl Ring {
    /// Arms a receive into provided buffers.
    ///
    /// # Errors
    /// When tasks hold all buffers of the core: the receive would fail and be armed again, over and over.
    pub(crate) fn arm_recv(
        &mut self,
        key: Key,
        socket: &mut Socket,
        pool: &Pool,
    ) -> Result<(), Error> {
        if !self.buffers.can_take(pool) {
            return Err(Error::new(Op::Buffer, Kind::NoBuffers));
        }
        let descriptor = target(socket);
        let entry = if self.multishot {
            recv_multishot(descriptor)
        } else {
            recv_once(descriptor)
        };
        self.push(entry.user_data(user_data(Operation::Recv, key)));
        socket.ring.armed = true;
        socket.ring.operations += 1;
        Ok(())
    }

    pub(crate) fn arm_accept(&mut self, key: Key, socket: &mut Socket, accepts: Accepts) {
        let descriptor = target(socket);
        let entry = match accepts {
            Accepts::Many => opcode::AcceptMulti::new(descriptor)
                .flags(libc::SOCK_CLOEXEC)
                .build(),
            Accepts::One => {
                opcode::Accept::new(descriptor, std::ptr::null_mut(), std::ptr::null_mut())
                    .flags(libc::SOCK_CLOEXEC)
                    .build()
            }
        };
        socket.ring.accepts_many = accepts == Accepts::Many;
        self.push(entry.user_data(user_data(Operation::Accept, key)));
        socket.ring.armed = true;
        socket.ring.operations += 1;
    }

    pub(crate) fn poll_writable(&mut self, key: Key, socket: &mut Socket) {
        let entry = opcode::PollAdd::new(target(socket), libc::POLLOUT as u32).build();
        self.push(entry.user_data(user_data(Operation::PollWritable, key)));
        socket.ring.polling_writable = true;
        socket.ring.operations += 1;
    }

    pub(crate) fn poll_readable(&mut self, key: Key, socket: &mut Socket) {
        let events = libc::POLLIN | libc::POLLPRI;
        let entry = opcode::PollAdd::new(target(socket), events as u32).build();
        self.push(entry.user_data(user_data(Operation::PollReadable, key)));
        socket.ring.polling_readable = true;
        socket.ring.operations += 1;
    }

    /// Makes a call that takes bytes from a socket. On EAGAIN, polls for readability.
    pub(crate) fn once_readable(
        &mut self,
        key: Key,
        sockets: &mut Sockets,
        call: impl FnOnce(&mut Socket) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let socket = &mut sockets[key];
        if socket.ring.polling_readable {
            return Err(Errno::AGAIN);
        }
        socket.readable = true;
        let outcome = call(socket);
        if outcome == Err(Errno::AGAIN) {
            self.poll_readable(key, socket);
        }
        outcome
    }

    /// Polls for the end of both directions, multishot: it also reports a half-close, which cannot be excluded.
    pub(crate) fn poll_hangup(&mut self, key: Key, socket: &mut Socket) {
        let entry = opcode::PollAdd::new(target(socket), 0).multi(true).build();
        self.push(entry.user_data(user_data(Operation::PollHangup, key)));
        socket.ring.polling_hangup = true;
        socket.ring.operations += 1;
    }

    /// Sends the parts of `outgoing`, which must not be empty or already in flight.
    pub(crate) fn submit_send(&mut self, key: Key, socket: &mut Socket) {
        debug_assert!(!socket.ring.sending && !socket.outgoing.is_empty());
        let descriptor = target(socket);
        let entry = if socket.outgoing.len() == 1 {
            let bytes = socket.outgoing.first_mut().expect("not empty").bytes();
            let length = bytes.len().min(SEND_BYTES_MAX);
            // The rest is sent by the next operation, as after every short send.
            opcode::Send::new(descriptor, bytes.as_ptr(), length as u32)
                .flags(libc::MSG_NOSIGNAL)
                .build()
        } else {
            // Filled in its final place: moving a box invalidates pointers into it.
            let free = || self.messages.pop().unwrap_or_else(Message::empty);
            let message = socket.ring.message.get_or_insert_with(free);
            opcode::SendMsg::new(descriptor, message.fill(&socket.outgoing))
                .flags(libc::MSG_NOSIGNAL as u32)
                .build()
        };
        self.push(entry.user_data(user_data(Operation::Send, key)));
        socket.ring.sending = true;
        socket.written = Instant::default();
        socket.ring.operations += 1;
    }

    fn cancel(&mut self, operation: Operation, key: Key) {
        let entry =
            opcode::AsyncCancel2::new(CancelBuilder::user_data(user_data(operation, key))).build();
        // Its own completion is ignored; the cancelled operation's completion has the result.
        self.push(entry.user_data(user_data(Operation::Cancel, key)));
    }

    pub(crate) fn cancel_recv(&mut self, key: Key, socket: &mut Socket) {
        if socket.ring.armed && !socket.ring.cancelling {
            socket.ring.cancelling = true;
            self.cancel(Operation::Recv, key);
        }
    }

    /// Cancels the armed accept; connections that it has taken from the queue still arrive.
    pub(crate) fn cancel_accept(&mut self, key: Key, socket: &mut Socket) {
        if socket.ring.armed && !socket.ring.cancelling {
            socket.ring.cancelling = true;
            self.cancel(Operation::Accept, key);
        }
    }

    /// Cancels everything the socket waits for except the send of `outgoing`; the completions still arrive. The slot,
    /// and with it the connection, stays until the last of them.
    pub(crate) fn cancel_waits(&mut self, key: Key, socket: &mut Socket) {
        self.cancel_recv(key, socket);
        let ring = &socket.ring;
        for (in_flight, operation) in [
            (ring.armed, Operation::Accept),
            (ring.polling_writable, Operation::PollWritable),
            (ring.polling_readable, Operation::PollReadable),
            (ring.polling_hangup, Operation::PollHangup),
        ] {
            if in_flight {
                self.cancel(operation, key);
            }
        }
    }

    pub(crate) fn cancel_all(&mut self, key: Key, socket: &mut Socket) {
        self.cancel_waits(key, socket);
        if socket.ring.sending {
            self.cancel(Operation::Send, key);
        }
    }
}

/// Whether the queued parts are sent by a system call. The head of a file is: otherwise the file could follow only
/// after its completion, one turn of the core later (measured: 7.9 us instead of 5.9 us for 9 KB). So is bulk, for the
/// same reason, and because the next connection's bulk would displace it from the CPU's cache.
pub(super) fn must_send_now(socket: &Socket, follows: NextData) -> bool {
    let parts = socket.outgoing.iter().map(|part| part.bytes().len());
    !socket.ring.sending
        && (follows != NextData::Nothing || parts.sum::<usize>() >= DIRECT_SEND_BYTES_MIN)
}

/// Sends as much as the socket takes; EAGAIN if bytes are left.
pub(super) fn send_by_call(
    socket: &mut Socket,
    follows: NextData,
    now: Instant,
) -> Result<(), Error> {
    socket.writable = true;
    socket.written = clock::now();
    calls::flush(socket, follows, now)
}

/// The descriptor of a ring operation: the only place where a socket is named to the ring.
fn target(socket: &Socket) -> Fd {
    Fd(socket.descriptor().as_raw_fd())
}

fn recv_once(descriptor: Fd) -> squeue::Entry {
    opcode::Recv::new(descriptor, std::ptr::null_mut(), BUFFER_BYTES as u32)
        .buf_group(ProvidedBuffers::GROUP)
        .build()
        .flags(squeue::Flags::BUFFER_SELECT)
}

/// A multishot receive that ends with the receive that reaches [`MULTISHOT_BYTES`].
pub(super) fn recv_multishot(descriptor: Fd) -> squeue::Entry {
    /// Offset of the field `optlen` in `struct io_uring_sqe`, for which the io-uring crate has no name.
    const OPTLEN: usize = 44;
    const { assert!(size_of::<squeue::Entry>() == 64 && align_of::<squeue::Entry>() == 8) };
    let mut entry = opcode::RecvMulti::new(descriptor, ProvidedBuffers::GROUP).build();
    let optlen = (&raw mut entry)
        .cast::<u8>()
        .wrapping_add(OPTLEN)
        .cast::<u32>();
    // SAFETY: four aligned bytes within the entry, which is that C structure, initialised, and contains only integers.
    unsafe { optlen.write(MULTISHOT_BYTES) };
    entry
}
