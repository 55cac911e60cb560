//! A datagram socket, seen by the task that owns it: UDP over IPv4 and IPv6, in batches.
//!
//! Operations move batches: up to 32 messages per call, each with its peer, its local address and ECN
//! (`socket/batch.rs`). The batch belongs to the task and can be used for any socket of the core, so an idle socket
//! costs its slot. A cancelled operation leaves the unsent messages in the batch.
//!
//! A message may be many datagrams of one flow. The kernel divides it (UDP_SEGMENT) at one pass through the network
//! stack for up to 64 of them; where it cannot, the engine does, without a change for the caller. Received datagrams
//! are joined by the kernel on request (UDP_GRO), and the batch takes them apart. A datagram that does not fit is
//! reported as truncated. An unreachable peer is an error of a later operation, after which the socket can be used as
//! before.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::task::Poll;

use rustix::io::Errno;

use crate::clock::Instant;
use crate::core::Core;
use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::socket::ReceiveExtras;
use crate::socket::key::Key;
use crate::socket::option;
use crate::state::State;

use crate::claim::datagram::DatagramClaim;
use crate::socket::batch::{ReceiveBatch, Segmentation, SendBatch};
use crate::socket::control::Family;

/// A datagram socket of this core. Dropping it closes it.
///
/// Message boundaries are kept. As with any UDP socket, a datagram may be lost, duplicated or reordered.
pub struct Datagram {
    core: Core,
    key: Key,
    local: Cell<SocketAddr>,
    segmentation: Cell<Segmentation>,
}

impl Datagram {
    /// Binds a socket to `address`. Port 0 selects a free port, see [`Datagram::local`]. An IPv6 socket does not
    /// receive IPv4.
    ///
    /// # Errors
    /// As in socket(2) and bind(2).
    pub fn bind(core: &Core, address: SocketAddr) -> Result<Self, Error> {
        let state = &mut *core.inner().state.borrow_mut();
        let bound = state.bind_datagrams(address)?;
        Ok(Self::of(core, state, bound))
    }

    /// Opens this core's socket on a claimed address. Each core can do so once.
    ///
    /// # Errors
    /// `EADDRINUSE` if this core has opened its socket before or the claim was made for fewer cores; or the error with
    /// which the kernel refuses to watch the socket.
    pub fn open(core: &Core, claim: &DatagramClaim) -> Result<Self, Error> {
        let state = &mut *core.inner().state.borrow_mut();
        let bound = state.open_datagrams(claim.address(), || claim.take(core.id()))?;
        Ok(Self::of(core, state, bound))
    }

    fn of(core: &Core, state: &State, (key, local): (Key, SocketAddr)) -> Self {
        // A kernel without this option ignores the control message and sends everything as one datagram.
        let segmentation = match set_option(state, key, libc::SOL_UDP, libc::UDP_SEGMENT, 0) {
            Ok(()) => Segmentation::Kernel,
            Err(_) => Segmentation::Engine,
        };
        Self {
            core: core.clone(),
            key,
            local: Cell::new(local),
            segmentation: Cell::new(segmentation),
        }
    }

    /// Sends datagrams without an address to `peer` from now on, and receives from no other address. Datagrams that
    /// have already arrived are still received. If the network reports `peer` as unreachable, a later operation fails
    /// with `ECONNREFUSED`.
    ///
    /// # Errors
    /// As in connect(2).
    pub fn connect(&self, peer: SocketAddr) -> Result<(), Error> {
        let state = &mut *self.core.inner().state.borrow_mut();
        let local = state
            .driver
            .connect_datagrams(self.key, peer, &mut state.sockets);
        self.local
            .set(local.map_err(|errno| Error::os(Op::Connect, errno))?);
        Ok(())
    }

    /// Sends and receives only on the interface with this index from now on, regardless of the routes. Call it before
    /// [`Datagram::connect`], which chooses the local address by the route.
    ///
    /// # Errors
    /// As for [`bind_to_interface`](crate::bind_to_interface). A simulated network has no interfaces (`ENOPROTOOPT`).
    pub fn bind_to_interface(&self, index: u32) -> Result<(), Error> {
        let state = self.core.inner().state.borrow();
        let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX);
        let outcome = set_option(&state, self.key, level, option, index.cast_signed());
        outcome.map_err(|errno| Error::os(Op::Bind, errno))
    }

    /// The local address.
    pub fn local(&self) -> SocketAddr {
        self.local.get()
    }

    /// Ends every wait on this socket with [`crate::Kind::TimedOut`] once `deadline` has passed. It applies until it is
    /// set again; setting it costs one store.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        let state = &mut *self.core.inner().state.borrow_mut();
        state.set_deadline(self.key, deadline);
    }

    /// Sets where messages of several datagrams are divided. The default is the kernel (Linux 4.18 or later); the
    /// engine takes over when the kernel refuses.
    pub fn set_segmentation(&self, segmentation: Segmentation) {
        self.segmentation.set(segmentation);
    }

    /// Where messages of several datagrams are divided, as far as is known about the kernel and the device.
    pub fn segmentation(&self) -> Segmentation {
        self.segmentation.get()
    }

    /// Lets the kernel join datagrams of a flow into one message (UDP_GRO, Linux 5.0 or later), which a
    /// [`ReceiveBatch`] takes apart; each message of the batch then needs room for 65,535 bytes. Returns whether the
    /// kernel supports it; a simulated network does not.
    pub fn enable_gro(&self) -> bool {
        self.switch_on(libc::SOL_UDP, libc::UDP_GRO).is_ok()
    }

    /// Enables [`Received::to`](crate::Received::to) and [`Received::ecn`](crate::Received::ecn). A simulated network
    /// always has them.
    ///
    /// # Errors
    /// As in setsockopt(2).
    pub fn enable_control(&self) -> Result<(), Error> {
        let options = match Family::of(self.local()) {
            Family::V4 => [
                (libc::IPPROTO_IP, libc::IP_PKTINFO),
                (libc::IPPROTO_IP, libc::IP_RECVTOS),
            ],
            Family::V6 => [
                (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
                (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
            ],
        };
        if self.core.is_simulated() {
            return Ok(());
        }
        let mut options = options.into_iter();
        options
            .try_for_each(|(level, option)| self.switch_on(level, option))
            .map_err(|errno| Error::os(Op::Bind, errno))
    }

    /// Enables [`ReceiveBatch::dropped`] (SO_RXQ_OVFL, socket(7); Linux 2.6.33 or later). Returns whether the kernel
    /// supports it; a simulated network does not.
    pub fn enable_drop_count(&self) -> bool {
        self.switch_on(libc::SOL_SOCKET, libc::SO_RXQ_OVFL).is_ok()
    }

    /// Ends reception: a [`Datagram::recv_unless_stopping`] that would wait returns [`crate::Kind::Stopping`] once, as
    /// on a core that was asked to stop. Datagrams that have already arrived are received first.
    pub fn stop_receiving(&self) {
        let inner = self.core.inner();
        let socket = &mut inner.state.borrow_mut().sockets[self.key];
        socket.is_unwanted = true;
        inner.tasks.wake_once(&mut socket.recv_waiter);
    }

    fn switch_on(&self, level: c_int, option: c_int) -> Result<(), Errno> {
        let state = &mut *self.core.inner().state.borrow_mut();
        set_option(state, self.key, level, option, 1)?;
        state.sockets[self.key].receive_extras = ReceiveExtras::Control;
        Ok(())
    }

    /// Sends as many messages of the batch as one system call accepts and returns the number of datagrams sent; 0 if
    /// the batch is empty. Sent messages are removed from the batch, even if the operation is cancelled.
    ///
    /// A datagram that was sent may still be lost.
    ///
    /// # Errors
    /// As in send(2), or [`crate::Kind::TimedOut`]. An error of the kernel removes the first message from the batch so
    /// that the others can be sent: for example, it is too long (`EMSGSIZE`), or an earlier datagram was refused by the
    /// peer (`ECONNREFUSED`).
    pub fn send(&self, batch: &mut SendBatch) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_send(batch))
    }

    /// Polls [`Datagram::send`], for tasks that wait for several things at once; it wakes the calling task.
    pub fn poll_send(&self, batch: &mut SendBatch) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        let family = Family::of(self.local());
        let state = &mut *inner.state.borrow_mut();
        let polled = state.poll_send_datagrams(
            self.key,
            batch,
            family,
            &self.segmentation,
            inner.tasks.current(),
        );
        self.charge(&polled);
        polled
    }

    /// Receives the messages that have arrived, as many as one system call returns, and replaces the content of the
    /// batch. Returns the number of messages, at least one.
    ///
    /// # Errors
    /// As in recv(2), or [`crate::Kind::TimedOut`]. `ECONNREFUSED` means that the connected peer refused an earlier
    /// datagram; the socket can still be used.
    pub fn recv(&self, batch: &mut ReceiveBatch) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv(batch))
    }

    /// Polls [`Datagram::recv`], for tasks that wait for several things at once; it wakes the calling task.
    pub fn poll_recv(&self, batch: &mut ReceiveBatch) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        let state = &mut *inner.state.borrow_mut();
        let polled = state.poll_recv_datagrams(self.key, batch, inner.tasks.current());
        self.charge(&polled);
        polled
    }

    /// Like [`Datagram::recv`], but a wait also ends when the core is asked to stop, with [`crate::Kind::Stopping`].
    ///
    /// # Errors
    /// As [`Datagram::recv`].
    pub fn recv_unless_stopping(
        &self,
        batch: &mut ReceiveBatch,
    ) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| {
            let state = &self.core.inner().state;
            state.borrow_mut().sockets[self.key].interruptible = true;
            let polled = self.poll_recv(batch);
            state.borrow_mut().sockets[self.key].interruptible = polled.is_pending();
            polled
        })
    }

    /// Charges the task's budget with one operation per message; the first message is already charged.
    fn charge(&self, polled: &Poll<Result<usize, Error>>) {
        if let Poll::Ready(Ok(count)) = polled {
            let count = u32::try_from(*count).unwrap_or(u32::MAX);
            self.core.inner().tasks.charge(count.saturating_sub(1));
        }
    }

    /// The core that owns the socket.
    pub fn core(&self) -> &Core {
        &self.core
    }
}

/// Sets an option; `ENOPROTOOPT` if the socket is simulated.
fn set_option(
    state: &State,
    key: Key,
    level: c_int,
    option: c_int,
    value: c_int,
) -> Result<(), Errno> {
    match &state.sockets[key].descriptor {
        Some(descriptor) => option::set_option(descriptor, level, option, value),
        None => Err(Errno::NOPROTOOPT),
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        self.core.inner().state.borrow_mut().close(self.key);
    }
}

impl fmt::Debug for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagram")
            .field("local", &self.local)
            .field("segmentation", &self.segmentation)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;
    use crate::driver::choice::Io;
    use crate::socket::batch::Message;

    /// Sends three and a half segments from a socket for which the kernel does not segment.
    async fn send_unsegmented(core: Core) {
        let from = Datagram::bind(&core, "127.0.0.1:0".parse().unwrap()).unwrap();
        let to = Datagram::bind(&core, "127.0.0.1:0".parse().unwrap()).unwrap();
        from.connect(to.local()).unwrap();
        // Without checksums the kernel cannot segment.
        from.switch_on(libc::SOL_SOCKET, libc::SO_NO_CHECK).unwrap();
        let mut sent = SendBatch::default();
        sent.push(Message {
            segment: NonZeroU16::new(100),
            ..Message::new(&[7; 350][..])
        })
        .unwrap();
        assert_eq!(from.segmentation(), Segmentation::Kernel);
        while !sent.is_empty() {
            from.send(&mut sent).await.unwrap();
        }
        assert_eq!(from.segmentation(), Segmentation::Engine);
        let mut received = ReceiveBatch::new(1, 1000);
        for length in [100, 100, 100, 50] {
            assert_eq!(to.recv(&mut received).await, Ok(1));
            let lengths: Vec<usize> = received.iter().map(|one| one.bytes.len()).collect();
            assert_eq!(lengths, [length]);
        }
    }

    #[test]
    fn segmentation_falls_back_to_engine() {
        for core in [Io::Epoll, Io::IoUring].map(|io| Core::new(0, io).ok()) {
            let Some(core) = core else { continue };
            let done = std::rc::Rc::new(Cell::new(false));
            let (seen, sending) = (std::rc::Rc::clone(&done), core.clone());
            core.spawn(async move {
                send_unsegmented(sending).await;
                seen.set(true);
            });
            core.run();
            assert!(done.get(), "the test's task ended");
        }
    }
}
