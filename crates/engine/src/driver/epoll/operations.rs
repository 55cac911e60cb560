//! The operations by non-blocking system calls, which return EAGAIN, and by edge-triggered readiness.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::net::sockopt::socket_error;

use super::Epoll;
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
use crate::socket::{Ended, Socket, Sockets};

impl Operations for Epoll {
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
        let descriptor = open()?;
        // io_uring can wait only on blocking sockets; epoll needs non-blocking ones.
        fcntl_setfl(&descriptor, fcntl_getfl(&descriptor)? | OFlags::NONBLOCK)?;
        self.register_listener(&descriptor, key)?;
        sockets[key].descriptor = Some(descriptor);
        Ok(())
    }

    /// Removes the registration. Closing a descriptor does so only if it is the socket's last one (epoll(7), question
    /// 6): a closed Unix listener would keep taking wake-ups from the listeners of other cores.
    fn forget(&self, socket: &Socket) {
        // Fails only if it is not registered any more.
        let _ = rustix::event::epoll::delete(&self.epoll, socket.descriptor());
    }

    fn connect(
        &mut self,
        _: &Source,
        _: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Error>,
        sockets: &mut Sockets,
    ) -> Result<Key, Error> {
        let key = sockets.insert(Socket::new(Some(open()?)));
        self.registered(key, sockets)
            .map_err(|errno| Error::os(Op::Connect, errno))
    }

    fn connected(&self, socket: &Socket) -> Result<(), Errno> {
        socket_error(socket.descriptor())?
    }

    fn take_accepted(&mut self, _: Key, _: &mut Sockets) -> Option<Result<Key, Errno>> {
        None
    }

    fn accept(
        &mut self,
        listener: Key,
        accepting: ListenerState,
        sockets: &mut Sockets,
    ) -> Result<Key, Errno> {
        match accepting {
            ListenerState::Ongoing if sockets[listener].readable => {}
            ListenerState::Ongoing => return Err(Errno::AGAIN),
            // A core that stops asks the kernel: a connection that arrived since the last look must not be lost.
            ListenerState::Ending => {}
            // From here on new connections wake the other process only.
            ListenerState::Leaving => self.forget(&sockets[listener]),
        }
        let accepted = calls::accept(&sockets[listener], SocketFlags::NONBLOCK);
        sockets[listener].readable = accepted.as_ref().err() != Some(&Errno::AGAIN);
        self.adopt(accepted?, sockets)
    }

    fn adopt(&mut self, connection: OwnedFd, sockets: &mut Sockets) -> Result<Key, Errno> {
        let key = calls::adopt(connection, sockets);
        self.registered(key, sockets)
    }

    fn is_waited_for(&mut self, listener: Key, sockets: &mut Sockets) -> bool {
        let socket = &mut sockets[listener];
        let is_waiting = calls::is_waited_for(socket);
        socket.readable = is_waiting;
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
        let received = match socket.readable {
            true => calls::receive(socket, input, pool),
            false => Err(Error::os(Op::Recv, Errno::AGAIN)),
        };
        match socket.send_failed {
            Some(errno) if received == Err(Error::os(Op::Recv, Errno::AGAIN)) => {
                Err(Error::os(Op::Send, errno))
            }
            _ => received,
        }
    }

    fn receives_when_asked(&self, _: &Socket) -> bool {
        true
    }

    fn stop_reports(&self, socket: &Socket) -> bool {
        rustix::event::epoll::delete(&self.epoll, socket.descriptor()).is_ok()
    }

    fn report_again(&self, key: Key, socket: &mut Socket) {
        if self.register(socket.descriptor(), key).is_err() {
            // No memory for the registration: the socket is marked as ready, and the next calls find out.
            socket.readable = true;
            socket.writable = true;
        }
    }

    fn ends_recv(&mut self, _: Key, _: &mut Socket) -> bool {
        false
    }

    fn sender(&self) -> Sender {
        Sender::Core
    }

    fn send(
        &mut self,
        key: Key,
        follows: NextData,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Error> {
        calls::flush(&mut sockets[key], follows, now)
    }

    fn is_sent(&mut self, _: Key, _: &mut Sockets) -> Result<(), Error> {
        Ok(())
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
        calls::send_file(&mut sockets[key], file, stretch)
    }

    fn can_splice(&mut self, _: Key, socket: &mut Socket) -> bool {
        !socket.urgent
    }

    fn drop_arrived(&mut self, key: Key, max: u64, sockets: &mut Sockets) -> Result<usize, Errno> {
        calls::drop_arrived(&mut sockets[key], max)
    }

    fn splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        max: u64,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        calls::fill(&mut sockets[key], pipe, max)
    }

    fn splice_out(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Errno> {
        calls::drain(&mut sockets[key], pipe, now)
    }

    fn bind_datagrams(
        &mut self,
        _: SocketAddr,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(Key, SocketAddr), Errno> {
        let (key, bound) = calls::bind(open, sockets)?;
        Ok((self.registered(key, sockets)?, bound))
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
        calls::send_datagrams(&mut sockets[key], batch, sending)
    }

    fn recv_datagrams(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        calls::recv_datagrams(&mut sockets[key], batch)
    }

    fn watch_end(&mut self, _: Key, _: &mut Socket) {}

    fn watch_arrivals(&mut self, _: Key, _: &mut Socket) {}

    fn is_spent(&self, socket: &Socket) -> bool {
        // Bytes that were spliced or discarded may have been the last; only a call can tell.
        socket.ended != Ended::No || socket.readable && calls::has_arrived(socket)
    }

    fn end(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Errno> {
        calls::end(&sockets[key])
    }

    fn reset_at_close(&mut self, key: Key, sockets: &mut Sockets) {
        calls::reset_at_close(&sockets[key]);
    }

    fn cancel(&mut self, _: Key, _: LastSend, _: &mut Socket) {}

    fn release(&mut self, key: Key, sockets: &mut Sockets) {
        sockets.remove(key);
    }
}

impl Epoll {
    /// Registers the socket at `key`, or removes it on failure.
    fn registered(&self, key: Key, sockets: &mut Sockets) -> Result<Key, Errno> {
        let registered = self.register(sockets[key].descriptor(), key);
        if registered.is_err() {
            sockets.remove(key);
        }
        registered.map(|()| key)
    }
}
