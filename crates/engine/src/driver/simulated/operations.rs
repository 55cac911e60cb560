//! The operations on a simulated network.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::{Simulated, SimulatedEvent, peer};
use crate::address::{Address, Source};
use crate::buffers::buffer::Pool;
use crate::buffers::input::Input;
use crate::clock::Instant;
use crate::driver::operations::{FileRange, LastSend, ListenerState, NextData, Operations, Sender};
use crate::error::{Error, Kind, Op};
use crate::file::File;
use crate::file::pipe::Pipe;
use crate::limits::BUFFER_BYTES;
use crate::socket::batch::{ReceiveBatch, SendBatch, Sending};
use crate::socket::key::Key;
use crate::socket::{Socket, Sockets};

impl Operations for Simulated {
    fn waking_descriptor(&self) -> std::io::Result<OwnedFd> {
        Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
    }

    fn listen(
        &mut self,
        key: Key,
        address: &Address,
        _: impl FnOnce() -> Result<OwnedFd, Errno>,
        _: &mut Sockets,
    ) -> Result<(), Errno> {
        if self.listeners.contains_key(&address.to_string()) {
            return Err(Errno::ADDRINUSE);
        }
        self.listeners.insert(address.to_string(), key);
        self.backlog.insert(key.0, VecDeque::new());
        Ok(())
    }

    fn forget(&self, _: &Socket) {}

    fn connect(
        &mut self,
        source: &Source,
        address: &Address,
        _: impl FnOnce() -> Result<OwnedFd, Error>,
        sockets: &mut Sockets,
    ) -> Result<Key, Error> {
        self.connect_ends(source.address, address, sockets)
            .map_err(|errno| Error::os(Op::Connect, errno))
    }

    fn connected(&self, _: &Socket) -> Result<(), Errno> {
        Ok(())
    }

    fn take_accepted(&mut self, _: Key, _: &mut Sockets) -> Option<Result<Key, Errno>> {
        None
    }

    fn accept(
        &mut self,
        listener: Key,
        accepting: ListenerState,
        _: &mut Sockets,
    ) -> Result<Key, Errno> {
        // On stopping no artificial EAGAIN is returned.
        if accepting == ListenerState::Ongoing && self.injects_again(listener, 0) {
            return Err(Errno::AGAIN);
        }
        let waiting = self.backlog.get_mut(&listener.0);
        waiting.and_then(VecDeque::pop_front).ok_or(Errno::AGAIN)
    }

    /// Not needed: a simulated network has one core.
    fn adopt(&mut self, _: OwnedFd, _: &mut Sockets) -> Result<Key, Errno> {
        Err(Errno::NOTSUP)
    }

    fn is_waited_for(&mut self, listener: Key, _: &mut Sockets) -> bool {
        let waiting = self.backlog.get(&listener.0);
        waiting.is_some_and(|waiting| !waiting.is_empty())
    }

    fn recv(
        &mut self,
        key: Key,
        input: &mut Input,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<usize, Error> {
        let buffer = input.buffer_with_room(pool)?;
        let count = self
            .recv_bytes(key, sockets, buffer.spare())
            .map_err(|errno| Error::os(Op::Recv, errno))?;
        buffer.fill(count);
        Ok(count)
    }

    fn receives_when_asked(&self, _: &Socket) -> bool {
        false
    }

    fn stop_reports(&self, _: &Socket) -> bool {
        false
    }

    fn report_again(&self, _: Key, _: &mut Socket) {}

    fn ends_recv(&mut self, _: Key, _: &mut Socket) -> bool {
        false
    }

    fn sender(&self) -> Sender {
        Sender::Core
    }

    fn send(
        &mut self,
        key: Key,
        _: NextData,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Error> {
        while let Some(part) = sockets[key].outgoing.pop() {
            match self.send_bytes(key, sockets, part.bytes()) {
                Ok(count) => {
                    sockets[key].outgoing.push_front(part);
                    sockets[key].outgoing.consume(count);
                    sockets[key].note_taken(count as u64, now);
                }
                Err(errno) => {
                    if errno == Errno::AGAIN {
                        sockets[key].outgoing.push_front(part);
                    } else {
                        sockets[key].outgoing.clear();
                    }
                    return Err(Error::os(Op::Send, errno));
                }
            }
        }
        Ok(())
    }

    fn is_sent(&mut self, _: Key, _: &mut Sockets) -> Result<(), Error> {
        Ok(())
    }

    fn moment(&self, now: Instant) -> Instant {
        now
    }

    fn send_file(
        &mut self,
        key: Key,
        file: &File,
        stretch: FileRange,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<u64, Error> {
        let mut buffer = pool.take()?;
        let count = stretch.length.min(BUFFER_BYTES as u64) as usize;
        match file.read(stretch.offset, &mut buffer.spare()[..count])? {
            0 => return Err(Error::new(Op::SendFile, Kind::FileTooShort)),
            count => buffer.fill(count),
        }
        match self.send_bytes(key, sockets, &buffer) {
            Ok(count) => Ok(count as u64),
            Err(errno) => Err(Error::os(Op::SendFile, errno)),
        }
    }

    fn can_splice(&mut self, _: Key, _: &mut Socket) -> bool {
        false
    }

    fn drop_arrived(&mut self, _: Key, _: u64, _: &mut Sockets) -> Result<usize, Errno> {
        unreachable!("it cannot splice")
    }

    fn splice_in(&mut self, _: Key, _: &mut Pipe, _: u64, _: &mut Sockets) -> Result<usize, Errno> {
        unreachable!("it cannot splice")
    }

    fn splice_out(
        &mut self,
        _: Key,
        _: &mut Pipe,
        _: &mut Sockets,
        _: Instant,
    ) -> Result<(), Errno> {
        unreachable!("it cannot splice")
    }

    fn bind_datagrams(
        &mut self,
        address: SocketAddr,
        _: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(Key, SocketAddr), Errno> {
        self.bind_endpoint(address, sockets)
    }

    fn connect_datagrams(
        &mut self,
        key: Key,
        peer: SocketAddr,
        _: &mut Sockets,
    ) -> Result<SocketAddr, Errno> {
        self.connect_endpoint(key, peer)
    }

    fn send_datagrams(
        &mut self,
        key: Key,
        batch: &mut SendBatch,
        _: Sending,
        _: &mut Sockets,
    ) -> Result<usize, Errno> {
        self.send_batch(key, batch)
    }

    fn recv_datagrams(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
        _: &mut Sockets,
    ) -> Result<usize, Errno> {
        self.recv_batch(key, batch)
    }

    fn watch_end(&mut self, _: Key, _: &mut Socket) {}

    fn watch_arrivals(&mut self, _: Key, _: &mut Socket) {}

    fn is_spent(&self, socket: &Socket) -> bool {
        socket.simulated.as_ref().is_some_and(|end| end.is_spent())
    }

    fn end(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Errno> {
        if let Some(other) = peer(sockets, key).other {
            self.deliver(other, sockets, SimulatedEvent::End);
        }
        Ok(())
    }

    fn reset_at_close(&mut self, key: Key, sockets: &mut Sockets) {
        peer(sockets, key).resets = true;
    }

    fn cancel(&mut self, _: Key, _: LastSend, _: &mut Socket) {}

    fn release(&mut self, key: Key, sockets: &mut Sockets) {
        match self.datagrams.close(key) {
            true => sockets.remove(key),
            false => self.close(key, sockets),
        }
    }
}
