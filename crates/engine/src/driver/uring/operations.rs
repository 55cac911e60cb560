//! The operations by io_uring, and by system calls where a ring has no suitable operation.
//!
//! A ring's sockets are blocking, since io_uring fails on others instead of waiting. So the flag is set for the
//! duration of such a call, and a poll of the ring does the waiting.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use super::submit::{must_send_now, send_by_call};
use super::{Ring, accept};
use crate::address::{Address, Source};
use crate::buffers::buffer::Pool;
use crate::buffers::input::Input;
use crate::clock::{self, Instant};
use crate::driver::calls;
use crate::driver::operations::{FileRange, LastSend, ListenerState, NextData, Operations, Sender};
use crate::error::{Error, Op};
use crate::file::File;
use crate::file::pipe::Pipe;
use crate::socket::batch::{ReceiveBatch, SendBatch, Sending};
use crate::socket::key::Key;
use crate::socket::{BlockingMode, Socket, Sockets, set_blocking_mode};

impl Operations for Ring {
    fn waking_descriptor(&self) -> std::io::Result<OwnedFd> {
        self.wake.try_clone()
    }

    fn listen(
        &mut self,
        key: Key,
        _: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(), Errno> {
        sockets[key].descriptor = Some(open()?);
        Ok(())
    }

    fn forget(&self, _: &Socket) {}

    fn connect(
        &mut self,
        _: &Source,
        _: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Error>,
        sockets: &mut Sockets,
    ) -> Result<Key, Error> {
        let key = sockets.insert(Socket::new(Some(open()?)));
        self.poll_writable(key, &mut sockets[key]);
        Ok(key)
    }

    fn connected(&self, socket: &Socket) -> Result<(), Errno> {
        socket_error(socket.descriptor())??;
        // io_uring can wait only on blocking sockets.
        let flags = fcntl_getfl(socket.descriptor())? - OFlags::NONBLOCK;
        fcntl_setfl(socket.descriptor(), flags)
    }

    fn take_accepted(
        &mut self,
        listener: Key,
        sockets: &mut Sockets,
    ) -> Option<Result<Key, Errno>> {
        accept::take(listener, sockets)
    }

    fn accept(
        &mut self,
        listener: Key,
        accepting: ListenerState,
        sockets: &mut Sockets,
    ) -> Result<Key, Errno> {
        self.accept_soon(listener, accepting, sockets)
    }

    fn adopt(&mut self, connection: OwnedFd, sockets: &mut Sockets) -> Result<Key, Errno> {
        Ok(calls::adopt(connection, sockets))
    }

    fn is_waited_for(&mut self, listener: Key, sockets: &mut Sockets) -> bool {
        let socket = &mut sockets[listener];
        let is_waiting = calls::is_waited_for(socket);
        socket.readable = is_waiting;
        if socket.ring.armed {
            // An armed accept would go on accepting.
            self.cancel_accept(listener, socket);
        } else if !is_waiting && !socket.ring.polling_readable {
            self.poll_readable(listener, socket);
        }
        is_waiting
    }

    fn recv(
        &mut self,
        key: Key,
        input: &mut Input,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<usize, Error> {
        let socket = &mut sockets[key];
        let mut received = socket.ring.received.pop();
        if received.is_some() {
            let appended = input.append(&mut received, pool);
            assert!(
                appended != Ok(0),
                "the caller consumes or refuses before a whole buffer is unconsumed"
            );
            if let Some(rest) = received {
                socket.ring.received.push_front(rest);
            }
            return appended;
        }
        match socket.ring.end {
            Some(Ok(())) => return Ok(0),
            Some(Err(errno)) => return Err(Error::os(Op::Recv, errno)),
            None => {}
        }
        // A full buffer is usually followed by more bytes, which are received at once, without a turn of the core.
        if socket.readable && !socket.ring.armed {
            let received = calls::receive(socket, input, pool);
            if received != Err(Error::os(Op::Recv, Errno::AGAIN)) {
                return received;
            }
        }
        match socket.bulk {
            _ if socket.ring.armed || socket.ring.polling_readable => {}
            0 => self.arm_recv(key, socket, pool)?,
            // The next data exceeds a provided buffer: one call for all of it costs less than its parts.
            _ => self.poll_readable(key, socket),
        }
        Err(Error::os(Op::Recv, Errno::AGAIN))
    }

    fn receives_when_asked(&self, socket: &Socket) -> bool {
        !socket.ring.armed
    }

    fn stop_reports(&self, _: &Socket) -> bool {
        false
    }

    fn report_again(&self, _: Key, _: &mut Socket) {}

    fn ends_recv(&mut self, key: Key, socket: &mut Socket) -> bool {
        let is_receiving = socket.ring.armed && !socket.ring.is_spent();
        if is_receiving {
            self.cancel_recv(key, socket);
        }
        is_receiving
    }

    fn sender(&self) -> Sender {
        Sender::Kernel
    }

    /// A send that is made at once goes as far as the socket takes it.
    fn send(
        &mut self,
        key: Key,
        follows: NextData,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Error> {
        let socket = &mut sockets[key];
        if let Some(errno) = socket.send_failed {
            socket.outgoing.clear();
            return Err(Error::os(Op::Send, errno));
        }
        if must_send_now(socket, follows) {
            let flushed = send_by_call(socket, follows, now);
            if flushed != Err(Error::os(Op::Send, Errno::AGAIN)) {
                return flushed;
            }
            sockets.note_wait(key, now);
        }
        let socket = &mut sockets[key];
        if socket.outgoing.is_empty() {
            return Ok(());
        }
        if socket.ring.sending {
            return Err(Error::os(Op::Send, Errno::AGAIN));
        }
        self.submit_send(key, socket);
        Ok(())
    }

    fn is_sent(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Error> {
        let socket = &mut sockets[key];
        match socket.send_failed {
            Some(errno) => return Err(Error::os(Op::Send, errno)),
            None if socket.ring.sending => {}
            None if socket.outgoing.is_empty() => return Ok(()),
            None => self.submit_send(key, socket),
        }
        Err(Error::os(Op::Send, Errno::AGAIN))
    }

    fn moment(&self, _: Instant) -> Instant {
        clock::now()
    }

    fn send_file(
        &mut self,
        key: Key,
        file: &File,
        stretch: FileRange,
        sockets: &mut Sockets,
        _: &Rc<Pool>,
    ) -> Result<u64, Error> {
        let socket = &mut sockets[key];
        if let Some(errno) = socket.send_failed {
            return Err(Error::os(Op::SendFile, errno));
        }
        debug_assert!(!socket.ring.sending, "the head was sent before");
        if socket.ring.polling_writable {
            return Err(Error::os(Op::SendFile, Errno::AGAIN));
        }
        socket.writable = true;
        set_blocking_mode(socket.descriptor(), BlockingMode::Fail)
            .map_err(|errno| Error::os(Op::SendFile, errno))?;
        let sent = calls::send_file(socket, file, stretch);
        set_blocking_mode(socket.descriptor(), BlockingMode::Wait)
            .map_err(|errno| Error::os(Op::SendFile, errno))?;
        if sent == Err(Error::os(Op::SendFile, Errno::AGAIN)) {
            self.poll_writable(key, socket);
        }
        sent
    }

    fn can_splice(&mut self, key: Key, socket: &mut Socket) -> bool {
        if std::mem::take(&mut socket.ring.is_perhaps_urgent) {
            socket.urgent |= calls::is_urgent(socket);
        }
        if socket.urgent {
            return false;
        }
        self.cancel_recv(key, socket);
        let ring = &socket.ring;
        !ring.armed && ring.received.is_empty() && ring.end.is_none()
    }

    fn drop_arrived(&mut self, key: Key, max: u64, sockets: &mut Sockets) -> Result<usize, Errno> {
        self.once_readable(key, sockets, |socket| calls::drop_arrived(socket, max))
    }

    fn splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        max: u64,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        self.once_readable(key, sockets, |socket| {
            calls::with_nonblocking(socket, |socket| calls::fill(socket, pipe, max))
        })
    }

    fn splice_out(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Errno> {
        let socket = &mut sockets[key];
        debug_assert!(!socket.ring.sending, "it has been waited for");
        if socket.ring.polling_writable {
            return Err(Errno::AGAIN);
        }
        socket.writable = true;
        let drained = calls::with_nonblocking(socket, |socket| calls::drain(socket, pipe, now));
        if drained == Err(Errno::AGAIN) {
            self.poll_writable(key, socket);
        }
        drained
    }

    fn bind_datagrams(
        &mut self,
        _: SocketAddr,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(Key, SocketAddr), Errno> {
        calls::bind(open, sockets)
    }

    fn connect_datagrams(
        &mut self,
        key: Key,
        peer: SocketAddr,
        sockets: &mut Sockets,
    ) -> Result<SocketAddr, Errno> {
        calls::connect(&sockets[key], peer)
    }

    fn send_datagrams(
        &mut self,
        key: Key,
        batch: &mut SendBatch,
        sending: Sending,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        let socket = &mut sockets[key];
        if socket.ring.polling_writable {
            return Err(Errno::AGAIN);
        }
        socket.writable = true;
        let sent = calls::send_datagrams(socket, batch, sending);
        if sent == Err(Errno::AGAIN) {
            self.poll_writable(key, socket);
        }
        sent
    }

    fn recv_datagrams(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        let socket = &mut sockets[key];
        if socket.ring.polling_readable && !socket.is_direct_receive {
            return Err(Errno::AGAIN);
        }
        // After a receive that emptied the socket the next call waits at once, without a call that would return EAGAIN.
        let received = calls::recv_datagrams(socket, batch);
        if received == Err(Errno::AGAIN) && !socket.ring.polling_readable {
            self.poll_readable(key, socket);
        }
        received
    }

    fn watch_end(&mut self, key: Key, socket: &mut Socket) {
        if !socket.ring.reports_end() {
            self.poll_hangup(key, socket);
        }
    }

    /// A bulk socket has no armed receive. The next receive would begin with this poll.
    fn watch_arrivals(&mut self, key: Key, socket: &mut Socket) {
        let ring = &socket.ring;
        let is_bulk = socket.bulk > 0 && !ring.armed;
        if is_bulk && !ring.polling_readable && !socket.readable {
            self.poll_readable(key, socket);
        }
    }

    fn is_spent(&self, socket: &Socket) -> bool {
        let ring = &socket.ring;
        let is_told = ring.armed && !ring.cancelling || ring.polling_readable;
        ring.is_spent() || !is_told && calls::has_arrived(socket)
    }

    fn end(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Errno> {
        calls::end(&sockets[key])
    }

    fn reset_at_close(&mut self, key: Key, sockets: &mut Sockets) {
        calls::reset_at_close(&sockets[key]);
    }

    fn cancel(&mut self, key: Key, last: LastSend, socket: &mut Socket) {
        match last {
            LastSend::Finishes => self.cancel_waits(key, socket),
            LastSend::None => self.cancel_all(key, socket),
        }
    }

    fn release(&mut self, key: Key, sockets: &mut Sockets) {
        sockets.remove(key);
    }
}
