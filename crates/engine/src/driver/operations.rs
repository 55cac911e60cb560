//! The interface between operations and drivers: each driver implements this trait in a file named `operations.rs`.

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

/// The data that immediately follows the bytes of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextData {
    Nothing,
    /// Bytes of a file, sent in packets of their own.
    SeparatePacket,
    /// Bytes of a file, which may share a packet with the bytes before (MSG_MORE).
    SamePacket,
}

/// A range of a file to send; not empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRange {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Whether a listener still accepts new connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListenerState {
    /// The listener accepts until the core stops.
    Ongoing,
    /// The core stops: queued connections are accepted, and no new ones are awaited.
    Ending,
    /// Like `Ending`, but another process has the queue as well. Queued connections are still accepted: the kernel
    /// wakes one waiter per connection, which may have been this one, and no other would accept it.
    Leaving,
}

/// The side that performs sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// The core: a call sends the bytes.
    Core,
    /// The kernel, later: it reads the memory until it reports a completion.
    Kernel,
}

/// Whether a socket that is closed has a last send that may finish.
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

    /// Makes the socket at `key` listen on `address`. `open` makes the descriptor, if the driver needs one.
    fn listen(
        &mut self,
        key: Key,
        address: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(), Errno>;

    /// Deregisters a listener before it is closed, or an accepted connection before it moves to another core.
    fn forget(&self, socket: &Socket);

    /// Starts to connect a socket to `address`. `open` makes the descriptor and connects it, if the driver needs one.
    fn connect(
        &mut self,
        source: &Source,
        address: &Address,
        open: impl FnOnce() -> Result<OwnedFd, Error>,
        sockets: &mut Sockets,
    ) -> Result<Key, Error>;

    /// Outcome of a connect that has ended.
    fn connected(&self, socket: &Socket) -> Result<(), Errno>;

    /// A connection that the kernel has already accepted by itself.
    fn take_accepted(&mut self, listener: Key, sockets: &mut Sockets)
    -> Option<Result<Key, Errno>>;

    fn accept(
        &mut self,
        listener: Key,
        accepting: ListenerState,
        sockets: &mut Sockets,
    ) -> Result<Key, Errno>;

    /// Adds a connection accepted with the same kind of driver to this core's sockets.
    fn adopt(&mut self, connection: OwnedFd, sockets: &mut Sockets) -> Result<Key, Errno>;

    /// Whether a connection is queued while the bound is reached. If not, the next one wakes the listener's task.
    fn is_waited_for(&mut self, listener: Key, sockets: &mut Sockets) -> bool;

    /// Appends received bytes to `input`; `Ok(0)` is the end of the stream.
    fn recv(
        &mut self,
        key: Key,
        input: &mut Input,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<usize, Error>;

    /// Whether a receive from a socket marked as readable makes a system call, because none is in progress.
    fn receives_when_asked(&self, socket: &Socket) -> bool;

    /// Stops reports of a socket that is polled directly; returns whether that worked.
    fn stop_reports(&self, socket: &Socket) -> bool;

    /// Resumes reports of a socket, including events since [`Operations::stop_reports`].
    fn report_again(&self, key: Key, socket: &mut Socket);

    /// Whether a receive is in progress that may have taken bytes. It is cancelled, and its end wakes the receiver.
    fn ends_recv(&mut self, key: Key, socket: &mut Socket) -> bool;

    fn sender(&self) -> Sender;

    /// Sends the queued bytes; `EAGAIN` if some are left.
    fn send(
        &mut self,
        key: Key,
        follows: NextData,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Error>;

    /// Whether all submitted bytes are sent, if the kernel sends later.
    fn is_sent(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Error>;

    /// Returns the time stamp of a send in an iteration of the event loop that began at `now`.
    fn moment(&self, now: Instant) -> Instant;

    /// Sends some of the range and returns the number of bytes.
    fn send_file(
        &mut self,
        key: Key,
        file: &File,
        stretch: FileRange,
        sockets: &mut Sockets,
        pool: &Rc<Pool>,
    ) -> Result<u64, Error>;

    /// Whether the next bytes of the socket can go into a pipe. No longer after urgent bytes have arrived, which only a
    /// receive can skip. While a receive is in progress or received bytes are pending, they must be received first;
    /// then this stops the receive and soon returns true.
    fn can_splice(&mut self, key: Key, socket: &mut Socket) -> bool;

    /// Discards at most `max` received bytes of a TCP socket and returns their number; `Ok(0)` is the end of the
    /// stream.
    fn drop_arrived(&mut self, key: Key, max: u64, sockets: &mut Sockets) -> Result<usize, Errno>;

    /// Fills an empty pipe with at most `max` received bytes.
    fn splice_in(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        max: u64,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno>;

    fn splice_out(
        &mut self,
        key: Key,
        pipe: &mut Pipe,
        sockets: &mut Sockets,
        now: Instant,
    ) -> Result<(), Errno>;

    /// Binds a datagram socket to `address` and returns its address. `open` makes the descriptor, if the driver needs
    /// one.
    fn bind_datagrams(
        &mut self,
        address: SocketAddr,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        sockets: &mut Sockets,
    ) -> Result<(Key, SocketAddr), Errno>;

    /// Connects a datagram socket to `peer`, and returns its local address.
    fn connect_datagrams(
        &mut self,
        key: Key,
        peer: SocketAddr,
        sockets: &mut Sockets,
    ) -> Result<SocketAddr, Errno>;

    /// Sends messages of the batch; returns the number of datagrams. On an error the first message stays in the batch.
    fn send_datagrams(
        &mut self,
        key: Key,
        batch: &mut SendBatch,
        sending: Sending,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno>;

    /// Receives messages into the batch, and returns their number.
    fn recv_datagrams(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
        sockets: &mut Sockets,
    ) -> Result<usize, Errno>;

    /// Enables reports of the end of the connection, if that takes a call.
    fn watch_end(&mut self, key: Key, socket: &mut Socket);

    /// Enables reports of arriving bytes that no task waits for, if that takes a call.
    fn watch_arrivals(&mut self, key: Key, socket: &mut Socket);

    /// Whether the connection has ended or failed or has unexpected bytes, beyond what the socket's fields show.
    fn is_spent(&self, socket: &Socket) -> bool;

    fn end(&mut self, key: Key, sockets: &mut Sockets) -> Result<(), Errno>;

    fn reset_at_close(&mut self, key: Key, sockets: &mut Sockets);

    /// Cancels the operations in flight of a socket that is being closed.
    fn cancel(&mut self, key: Key, last: LastSend, socket: &mut Socket);

    /// Closes a socket without operations in flight, and frees its slot.
    fn release(&mut self, key: Key, sockets: &mut Sockets);
    } };
}
pub(super) use operations;

/// Makes the trait of the operations.
macro_rules! declare {
    ($($(#[$doc:meta])* fn $name:ident $arguments:tt $(-> $result:ty)?;)*) => {
        /// Operations of a driver. `EAGAIN` means "not yet"; the socket's waiter is woken when that may have changed.
        pub(crate) trait Operations {
            $($(#[$doc])* fn $name $arguments $(-> $result)?;)*
        }
    };
}

operations!(declare);
