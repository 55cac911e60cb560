//! Moving bytes between a socket and a pipe, past our memory: splice(2).
//!
//! io_uring has a form of it, which runs on another thread and waits there; so the ring's form is the same call as with
//! epoll, and a poll of the ring when it must wait. Simulated sockets have no form: their bytes are received and sent.

use std::task::Poll;

use rustix::io::Errno;

use crate::clock::Instant;
use crate::driver::Driver;
use crate::error::{Error, Op};
use crate::pipe::Pipe;
use crate::socket::key::Key;
use crate::socket::{Socket, set_blocking};
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// Whether the next bytes of the socket can go into a pipe. Where urgent ones have come, which are passed over by a
    /// receive only, no more do. While some are on their way into our memory, or have
    /// come there, the next ones are to be received; then this stops the receiving, and is true soon.
    pub(crate) fn can_splice(&mut self, key: Key) -> bool {
        match &mut self.driver {
            Driver::Epoll(_) => !self.sockets[key].urgent,
            Driver::Uring(_) if self.sockets[key].urgent => false,
            Driver::Uring(driver) => {
                let socket = &mut self.sockets[key];
                driver.cancel_recv(key, socket);
                let ring = &socket.ring;
                !ring.armed && ring.received.is_empty() && ring.end.is_none()
            }
            Driver::Simulated(_) => false,
        }
    }

    /// Fills an empty pipe with some of what arrives; `Ok(0)` is the end of the stream, or an urgent byte before it.
    pub(crate) fn poll_splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        task: TaskId,
    ) -> Poll<Result<usize, Error>> {
        let filled = match &mut self.driver {
            Driver::Epoll(_) => fill(&mut self.sockets[key], pipe),
            Driver::Uring(driver) => {
                let socket = &mut self.sockets[key];
                if socket.ring.polling_readable {
                    Err(Errno::AGAIN)
                } else {
                    socket.readable = true;
                    let filled = unblocked(socket, |socket| fill(socket, pipe));
                    if filled == Err(Errno::AGAIN) {
                        driver.poll_readable(key, socket);
                    }
                    filled
                }
            }
            Driver::Simulated(_) => unreachable!("it cannot splice"),
        };
        match filled {
            Err(Errno::AGAIN) => self.wait_for_bytes(key, task),
            filled => Poll::Ready(filled.map_err(|errno| Error::os(Op::Recv, errno))),
        }
    }

    /// Sends all that the pipe holds. What was sent before must have been taken by the kernel: [`State::poll_sent`].
    pub(crate) fn poll_splice_out(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        task: TaskId,
    ) -> Poll<Result<(), Error>> {
        let now = self.now;
        let drained = match &mut self.driver {
            Driver::Epoll(_) => drain(&mut self.sockets[key], pipe, now),
            Driver::Uring(driver) => {
                let socket = &mut self.sockets[key];
                debug_assert!(!socket.ring.sending, "it has been waited for");
                if socket.ring.polling {
                    Err(Errno::AGAIN)
                } else {
                    socket.writable = true;
                    let drained = unblocked(socket, |socket| drain(socket, pipe, now));
                    if drained == Err(Errno::AGAIN) {
                        driver.poll_writable(key, socket);
                    }
                    drained
                }
            }
            Driver::Simulated(_) => unreachable!("it cannot splice"),
        };
        self.finish_send(
            key,
            drained.map_err(|errno| Error::os(Op::Send, errno)),
            Op::Send,
            task,
        )
    }
}

/// Unlike a receive, a short one says nothing: a pipe has room for so many packets, not for so many bytes.
fn fill(socket: &mut Socket, pipe: &mut Pipe) -> Result<usize, Errno> {
    if !socket.readable {
        return Err(Errno::AGAIN);
    }
    loop {
        match pipe.fill(socket.descriptor()) {
            Err(Errno::INTR) => {}
            filled => {
                socket.readable = filled != Err(Errno::AGAIN);
                return filled;
            }
        }
    }
}

fn drain(socket: &mut Socket, pipe: &mut Pipe, now: Instant) -> Result<(), Errno> {
    while pipe.held() > 0 {
        if !socket.writable {
            return Err(Errno::AGAIN);
        }
        match pipe.drain(socket.descriptor()) {
            Ok(_) => socket.renew_deadline(now),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => socket.writable = false,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// A ring's sockets are blocking (on others io_uring does not wait but fails), so the flag is set for the length of a
/// call.
fn unblocked<T>(
    socket: &mut Socket,
    call: impl FnOnce(&mut Socket) -> Result<T, Errno>,
) -> Result<T, Errno> {
    set_blocking(socket.descriptor(), false)?;
    let outcome = call(socket);
    set_blocking(socket.descriptor(), true)?;
    outcome
}
