//! What operations ask of a driver: one set of methods, which each driver has in a file of this name.
//!
//! Which driver it is is asked once per call, here; there is no table of functions, and nothing is allocated.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;

use super::Driver;
use crate::address::{Address, Source};
use crate::buffer::Pool;
use crate::clock::Instant;
use crate::error::Error;
use crate::file::File;
use crate::input::Input;
use crate::pipe::Pipe;
use crate::socket::key::Key;
use crate::socket::{Socket, Sockets};

/// What follows at once behind the bytes that are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follows {
    Nothing,
    /// So many bytes of a file.
    File(u64),
}

/// Which bytes of a file to send; never none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// For how long connections are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accepting {
    /// Until the core stops.
    Ongoing,
    /// It stops: what has come is taken, and nothing more is waited for.
    Ending,
}

/// Who carries out a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// The core: what it has handed over has been sent.
    Core,
    /// The kernel, later: what it has been handed it reads until a completion says so.
    Kernel,
}

/// Whether a socket that is given up has a last send that is let finish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastSend {
    None,
    Finishes,
}

/// `EAGAIN` is "not yet" everywhere, and the socket's waiter is woken when that may have changed.
pub(crate) trait Operations {
    /// A descriptor by which other threads end the driver's wait.
    fn waking_descriptor(&self) -> std::io::Result<OwnedFd>;

    /// Makes the socket at `key` listen on `address`. Where that takes a descriptor, `open` makes it.
    fn listen(
        &mut self,
        key: Key,
        address: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(), Errno>;

    /// A listener is going to be closed.
    fn forget_listener(&self, listener: &Socket);

    /// A socket that is connecting to `address`. Where that takes a descriptor, `open` makes it and begins.
    fn connect(
        &mut self,
        source: &Source,
        address: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Error>,
        sockets: &mut Sockets,
    ) -> Result<Key, Error>;

    /// How a connecting ended that has ended.
    fn connected(&self, socket: &Socket) -> Result<(), Errno>;

    /// What the kernel has accepted by itself.
    fn take_accepted(&mut self, listener: Key, sockets: &mut Sockets)
    -> Option<Result<Key, Errno>>;

    fn accept(
        &mut self,
        listener: Key,
        accepting: Accepting,
        sockets: &mut Sockets,
    ) -> Result<Key, Errno>;

    /// Whether somebody waits to be accepted, although nobody may be. If not, whoever comes wakes the listener's task.
    fn is_waited_for(&mut self, listener: Key, sockets: &mut Sockets) -> bool;

    /// Appends what has arrived to `input`; `Ok(0)` is the end of the stream.
    fn recv(
        &mut self,
        key: Key,
        input: &mut Input,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<usize, Error>;

    /// Whether a receive is under way that may have taken bytes already. It is asked to end, and its end wakes the receiver.
    fn ends_recv(&mut self, key: Key, socket: &mut Socket) -> bool;

    fn sender(&self) -> Sender;

    /// Hands over what is queued; `EAGAIN` when something is left.
    fn send(
        &mut self,
        key: Key,
        follows: Follows,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Error>;

    /// Whether all that was handed over has been sent, where the kernel sends later.
    fn is_sent(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Error>;

    /// The moment of a send in a turn that began at `now`.
    fn moment(&self, now: Instant) -> Instant;

    /// Sends some of the stretch and says how many bytes.
    fn send_file(
        &mut self,
        key: Key,
        file: &File,
        stretch: Stretch,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<u64, Error>;

    /// Whether the next bytes of the socket can go into a pipe. Where urgent ones have come, which are passed over by a
    /// receive only, no more do. While some are on their way into our memory, or have
    /// come there, the next ones are to be received; then this stops the receiving, and is true soon.
    fn can_splice(&mut self, key: Key, socket: &mut Socket) -> bool;

    /// Fills an empty pipe with some of what arrives.
    fn splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno>;

    /// Sends all that the pipe holds.
    fn splice_out(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Errno>;

    /// Has the end of the connection reported, where that takes a call.
    fn watch_end(&mut self, key: Key, socket: &mut Socket);

    /// Whether the connection has ended, failed, or received something unasked, beyond what the socket knows.
    fn is_spent(&self, socket: &Socket) -> bool;

    /// Ends our side.
    fn end(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Errno>;

    /// Makes the close to come a reset.
    fn reset_at_close(&mut self, key: Key, sockets: &mut Sockets);

    /// Ends what is in flight for a socket that is given up.
    fn cancel(&mut self, key: Key, last: LastSend, socket: &mut Socket);

    /// Closes a socket for which nothing is in flight, and frees its slot.
    fn release(&mut self, key: Key, sockets: &mut Sockets);
}

/// The one place where it is asked which driver it is.
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
    fn forget_listener(&self, listener: &Socket) {
        dispatch!(self, driver => driver.forget_listener(listener))
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
    fn splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno> {
        dispatch!(self, driver => driver.splice_in(key, pipe, sockets))
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
    fn watch_end(&mut self, key: Key, socket: &mut Socket) {
        dispatch!(self, driver => driver.watch_end(key, socket))
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
