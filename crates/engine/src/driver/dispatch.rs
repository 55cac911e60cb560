//! The one place where it is asked which driver it is, once per call: no table of functions, and nothing is allocated.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;

use super::Driver;
use super::operations::{Accepting, Follows, LastSend, Operations, Sender, Stretch};
use crate::address::{Address, Source};
use crate::buffers::buffer::Pool;
use crate::buffers::input::Input;
use crate::clock::Instant;
use crate::error::Error;
use crate::file::File;
use crate::file::pipe::Pipe;
use crate::socket::batch::{ReceiveBatch, SendBatch, Sending};
use crate::socket::key::Key;
use crate::socket::{Socket, Sockets};

macro_rules! dispatch {
    ($driver:expr, $name:ident => $call:expr) => {
        match $driver {
            Driver::Epoll($name) => $call,
            Driver::Uring($name) => $call,
            Driver::Simulated($name) => $call,
        }
    };
}

impl Operations for Driver {
    #[inline]
    fn waking_descriptor(&self) -> std::io::Result<OwnedFd> {
        dispatch!(self, driver => driver.waking_descriptor())
    }

    #[inline]
    fn listen(
        &mut self,
        key: Key,
        address: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(), Errno> {
        dispatch!(self, driver => driver.listen(key, address, open, sockets))
    }

    #[inline]
    fn forget(&self, socket: &Socket) {
        dispatch!(self, driver => driver.forget(socket))
    }

    #[inline]
    fn connect(
        &mut self,
        source: &Source,
        address: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Error>,
        sockets: &mut Sockets,
    ) -> Result<Key, Error> {
        dispatch!(self, driver => driver.connect(source, address, open, sockets))
    }

    #[inline]
    fn connected(&self, socket: &Socket) -> Result<(), Errno> {
        dispatch!(self, driver => driver.connected(socket))
    }

    #[inline]
    fn take_accepted(
        &mut self,
        listener: Key,
        sockets: &mut Sockets,
    ) -> Option<Result<Key, Errno>> {
        dispatch!(self, driver => driver.take_accepted(listener, sockets))
    }

    #[inline]
    fn accept(
        &mut self,
        listener: Key,
        accepting: Accepting,
        sockets: &mut Sockets,
    ) -> Result<Key, Errno> {
        dispatch!(self, driver => driver.accept(listener, accepting, sockets))
    }

    #[inline]
    fn adopt(&mut self, connection: OwnedFd, sockets: &mut Sockets) -> Result<Key, Errno> {
        dispatch!(self, driver => driver.adopt(connection, sockets))
    }

    #[inline]
    fn is_waited_for(&mut self, listener: Key, sockets: &mut Sockets) -> bool {
        dispatch!(self, driver => driver.is_waited_for(listener, sockets))
    }

    #[inline]
    fn recv(
        &mut self,
        key: Key,
        input: &mut Input,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<usize, Error> {
        dispatch!(self, driver => driver.recv(key, input, sockets, pool))
    }

    #[inline]
    fn receives_when_asked(&self, socket: &Socket) -> bool {
        dispatch!(self, driver => driver.receives_when_asked(socket))
    }

    #[inline]
    fn stop_reports(&self, socket: &Socket) -> bool {
        dispatch!(self, driver => driver.stop_reports(socket))
    }

    #[inline]
    fn report_again(&self, key: Key, socket: &mut Socket) {
        dispatch!(self, driver => driver.report_again(key, socket));
    }

    #[inline]
    fn ends_recv(&mut self, key: Key, socket: &mut Socket) -> bool {
        dispatch!(self, driver => driver.ends_recv(key, socket))
    }

    #[inline]
    fn sender(&self) -> Sender {
        dispatch!(self, driver => driver.sender())
    }

    #[inline]
    fn send(
        &mut self,
        key: Key,
        follows: Follows,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Error> {
        dispatch!(self, driver => driver.send(key, follows, sockets, now))
    }

    #[inline]
    fn is_sent(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Error> {
        dispatch!(self, driver => driver.is_sent(key, sockets))
    }

    #[inline]
    fn moment(&self, now: Instant) -> Instant {
        dispatch!(self, driver => driver.moment(now))
    }

    #[inline]
    fn send_file(
        &mut self,
        key: Key,
        file: &File,
        stretch: Stretch,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<u64, Error> {
        dispatch!(self, driver => driver.send_file(key, file, stretch, sockets, pool))
    }

    #[inline]
    fn can_splice(&mut self, key: Key, socket: &mut Socket) -> bool {
        dispatch!(self, driver => driver.can_splice(key, socket))
    }

    #[inline]
    fn drop_arrived(&mut self, key: Key, max: u64, sockets: &mut Sockets) -> Result<usize, Errno> {
        dispatch!(self, driver => driver.drop_arrived(key, max, sockets))
    }

    #[inline]
    fn splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        max: u64,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        dispatch!(self, driver => driver.splice_in(key, pipe, max, sockets))
    }

    #[inline]
    fn splice_out(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Errno> {
        dispatch!(self, driver => driver.splice_out(key, pipe, sockets, now))
    }

    #[inline]
    fn bind_datagrams(
        &mut self,
        address: SocketAddr,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(Key, SocketAddr), Errno> {
        dispatch!(self, driver => driver.bind_datagrams(address, open, sockets))
    }

    #[inline]
    fn connect_datagrams(
        &mut self,
        key: Key,
        peer: SocketAddr,
        sockets: &mut Sockets,
    ) -> Result<SocketAddr, Errno> {
        dispatch!(self, driver => driver.connect_datagrams(key, peer, sockets))
    }

    #[inline]
    fn send_datagrams(
        &mut self,
        key: Key,
        batch: &mut SendBatch,
        sending: Sending,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        dispatch!(self, driver => driver.send_datagrams(key, batch, sending, sockets))
    }

    #[inline]
    fn recv_datagrams(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        dispatch!(self, driver => driver.recv_datagrams(key, batch, sockets))
    }

    #[inline]
    fn watch_end(&mut self, key: Key, socket: &mut Socket) {
        dispatch!(self, driver => driver.watch_end(key, socket))
    }

    #[inline]
    fn watch_arrivals(&mut self, key: Key, socket: &mut Socket) {
        dispatch!(self, driver => driver.watch_arrivals(key, socket))
    }

    #[inline]
    fn is_spent(&self, socket: &Socket) -> bool {
        dispatch!(self, driver => driver.is_spent(socket))
    }

    #[inline]
    fn end(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Errno> {
        dispatch!(self, driver => driver.end(key, sockets))
    }

    #[inline]
    fn reset_at_close(&mut self, key: Key, sockets: &mut Sockets) {
        dispatch!(self, driver => driver.reset_at_close(key, sockets))
    }

    #[inline]
    fn cancel(&mut self, key: Key, last: LastSend, socket: &mut Socket) {
        dispatch!(self, driver => driver.cancel(key, last, socket))
    }

    #[inline]
    fn release(&mut self, key: Key, sockets: &mut Sockets) {
        dispatch!(self, driver => driver.release(key, sockets))
    }
}
