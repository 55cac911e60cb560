//! What operations ask of a driver: one set of methods, which each driver has in a file of this name.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;

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

/// What follows at once behind the bytes that are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follows {
    Nothing,
    /// Bytes of a file, which leave in packets of their own.
    Apart,
    /// Bytes of a file, which may leave in one packet with them (MSG_MORE).
    Joined,
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
    /// The same, and another process has the queue as well. What has come is taken all the same: the kernel wakes one waiter
    /// for a connection, which may have been this one, and nobody else would look.
    Leaving,
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

/// Passes the list of operations to the macro `$with`.
macro_rules! operations {
    ($with:ident) => { $with! {
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

    /// A listener is going to be closed, or a connection that was just accepted to become another core's.
    fn forget(&self, socket: &Socket);

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

    /// Makes a connection that was accepted with the same driver one of this core's sockets.
    fn adopt(&mut self, connection: OwnedFd, sockets: &mut Sockets) -> Result<Key, Errno>;

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

    /// Whether a receive from a socket that counts as readable asks the kernel, which has none under way.
    fn receives_when_asked(&self, socket: &Socket) -> bool;

    /// Has nothing reported of a socket that is asked without that; whether that could be done.
    fn stop_reports(&self, socket: &Socket) -> bool;

    /// Has everything reported again, also what has happened meanwhile.
    fn report_again(&self, key: Key, socket: &mut Socket);

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
    /// receive only, no more do. While some are on their way into our memory, or have come there, the next ones are to be
    /// received; then this stops the receiving, and is true soon.
    fn can_splice(&mut self, key: Key, socket: &mut Socket) -> bool;

    /// Drops what has arrived at a TCP socket, `max` bytes at most, and says how many; `Ok(0)` is the end of the stream.
    fn drop_arrived(&mut self, key: Key, max: u64, sockets: &mut Sockets) -> Result<usize, Errno>;

    /// Fills an empty pipe with some of what arrives, `max` bytes at most.
    fn splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        max: u64,
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

    /// A datagram socket on `address`, and the address that it got. Where that takes a descriptor, `open` makes it and binds it.
    fn bind_datagrams(
        &mut self,
        address: SocketAddr,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(Key, SocketAddr), Errno>;

    /// From now on datagrams go to `peer` and come from there; the address that the socket has then.
    fn connect_datagrams(
        &mut self,
        key: Key,
        peer: SocketAddr,
        sockets: &mut Sockets,
    ) -> Result<SocketAddr, Errno>;

    /// Sends messages of the batch, and says how many datagrams left. An error is the first one's, which stays in the batch.
    fn send_datagrams(
        &mut self,
        key: Key,
        batch: &mut SendBatch,
        sending: Sending,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno>;

    /// Receives messages into the batch, and says how many.
    fn recv_datagrams(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno>;

    /// Has the end of the connection reported, where that takes a call.
    fn watch_end(&mut self, key: Key, socket: &mut Socket);

    /// Has arrivals reported that nobody waits for, where that takes a call.
    fn watch_arrivals(&mut self, key: Key, socket: &mut Socket);

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
    } };
}
pub(super) use operations;

/// Makes the trait of the operations.
macro_rules! declare {
    ($($(#[$doc:meta])* fn $name:ident $arguments:tt $(-> $result:ty)?;)*) => {
        /// `EAGAIN` is "not yet" everywhere, and the socket's waiter is woken when that may have changed.
        pub(crate) trait Operations {
            $($(#[$doc])* fn $name $arguments $(-> $result)?;)*
        }
    };
}

operations!(declare);
