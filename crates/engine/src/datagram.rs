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
use crate::socket::Beside;
use crate::socket::key::Key;
use crate::socket::option;
use crate::state::State;

use crate::claim::datagram::DatagramClaim;
use crate::socket::batch::{ReceiveBatch, Segmentation, SendBatch};
use crate::socket::control::Family;

/// A datagram socket of this core. Dropping it closes it.
///
/// Boundaries are kept: what was one datagram to send is one that is received, or none, or two, and in any order.
pub struct Datagram {
    core: Core,
    key: Key,
    local: Cell<SocketAddr>,
    segmentation: Cell<Segmentation>,
}

impl Datagram {
    /// A socket on `address`; port 0 becomes a free one, see [`Datagram::local`]. One on IPv6 takes no IPv4.
    ///
    /// # Errors
    /// As in socket(2) and bind(2).
    pub fn bind(core: &Core, address: SocketAddr) -> Result<Self, Error> {
        let state = &mut *core.inner().state.borrow_mut();
        let bound = state.bind_datagrams(address)?;
        Ok(Self::of(core, state, bound))
    }

    /// The socket of this core on a claimed address, which it takes once.
    ///
    /// # Errors
    /// `EADDRINUSE` when it has taken it before, or the claim was made for fewer cores; and when the kernel refuses to watch it.
    pub fn open(core: &Core, claim: &DatagramClaim) -> Result<Self, Error> {
        let state = &mut *core.inner().state.borrow_mut();
        let bound = state.open_datagrams(claim.address(), || claim.take(core.id()))?;
        Ok(Self::of(core, state, bound))
    }

    fn of(core: &Core, state: &State, (key, local): (Key, SocketAddr)) -> Self {
        // A kernel that does not know the option passes the control message over and sends everything as one datagram.
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

    /// From now on datagrams without an address go to `peer`, and those of nobody else are received. What had arrived before
    /// still is. When `peer` is not there, a later operation says so (`ECONNREFUSED`), if the network does.
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

    /// From now on datagrams leave by the interface with this index and come in by it, whatever the routes say; to be called
    /// before [`Datagram::connect`], which chooses an address of this side by the route.
    ///
    /// # Errors
    /// As for [`bind_to_interface`](crate::bind_to_interface). A simulated network has no interfaces (`ENOPROTOOPT`).
    pub fn bind_to_interface(&self, index: u32) -> Result<(), Error> {
        let state = self.core.inner().state.borrow();
        let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX);
        let outcome = set_option(&state, self.key, level, option, index.cast_signed());
        outcome.map_err(|errno| Error::os(Op::Bind, errno))
    }

    /// The address of this side.
    pub fn local(&self) -> SocketAddr {
        self.local.get()
    }

    /// Every wait on this socket ends with [`crate::Kind::TimedOut`] once `deadline` has passed. Holds until it is set
    /// again; setting it costs a store.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        let state = &mut *self.core.inner().state.borrow_mut();
        state.set_deadline(self.key, deadline);
    }

    /// Says who parts messages of several datagrams. It is the kernel, from Linux 4.18 on, until it refuses to, and then the
    /// engine.
    pub fn set_segmentation(&self, segmentation: Segmentation) {
        self.segmentation.set(segmentation);
    }

    /// Who parts messages of several datagrams, by what is known of the kernel and the device so far.
    pub fn segmentation(&self) -> Segmentation {
        self.segmentation.get()
    }

    /// From now on the kernel may put datagrams of a flow together into one message (UDP_GRO), which a
    /// [`ReceiveBatch`] takes apart; it then needs room for 65,535 bytes in each. Whether the kernel, from Linux 5.0 on, does;
    /// a simulated network does not.
    pub fn coalesce(&self) -> bool {
        self.switch_on(libc::SOL_UDP, libc::UDP_GRO).is_ok()
    }

    /// From now on [`Received::to`](crate::Received::to) and [`Received::ecn`](crate::Received::ecn) are known. A simulated
    /// network always says so.
    ///
    /// # Errors
    /// As in setsockopt(2).
    pub fn tell_control(&self) -> Result<(), Error> {
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

    /// From now on [`ReceiveBatch::dropped`] is known (SO_RXQ_OVFL, socket(7)). Whether the kernel, from Linux 2.6.33 on, says so;
    /// a simulated network does not.
    pub fn tell_drops(&self) -> bool {
        self.switch_on(libc::SOL_SOCKET, libc::SO_RXQ_OVFL).is_ok()
    }

    /// Receives what has arrived, and then nothing: [`Datagram::recv_unless_stopping`] ends once more with
    /// [`crate::Kind::Stopping`], as on a core that was asked to stop.
    pub fn end(&self) {
        let inner = self.core.inner();
        let socket = &mut inner.state.borrow_mut().sockets[self.key];
        socket.is_unwanted = true;
        inner.tasks.wake_once(&mut socket.recv_waiter);
    }

    fn switch_on(&self, level: c_int, option: c_int) -> Result<(), Errno> {
        let state = &mut *self.core.inner().state.borrow_mut();
        set_option(state, self.key, level, option, 1)?;
        state.sockets[self.key].beside = Beside::Control;
        Ok(())
    }

    /// Sends messages of the batch as far as one call to the kernel takes them, and returns how many datagrams left; 0 when
    /// the batch is empty. Those that have left are taken out of it, also when the operation is given up.
    ///
    /// That a datagram has left says nothing of its arrival.
    ///
    /// # Errors
    /// As in send(2), or [`crate::Kind::TimedOut`]. One of the kernel takes the first message out of the batch, so that
    /// the others can be sent: it is too long, say (`EMSGSIZE`), or an earlier datagram has met nobody (`ECONNREFUSED`).
    pub fn send(&self, batch: &mut SendBatch) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_send(batch))
    }

    /// [`Datagram::send`] for those who wait for more than one thing at a time; the task that asks is the one that is woken.
    pub fn poll_send(&self, batch: &mut SendBatch) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_go_on() {
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

    /// Receives what has arrived, into the batch in place of what was there, as much as one call to the kernel brings; returns
    /// how many messages that were, at least one.
    ///
    /// # Errors
    /// As in recv(2), or [`crate::Kind::TimedOut`]. `ECONNREFUSED` says that a datagram to the peer that the socket is connected
    /// to has met nobody; the socket can be used as before.
    pub fn recv(&self, batch: &mut ReceiveBatch) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv(batch))
    }

    /// [`Datagram::recv`] for those who wait for more than one thing at a time; the task that asks is the one that is woken.
    pub fn poll_recv(&self, batch: &mut ReceiveBatch) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_go_on() {
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

    /// Every message but the first, which has been counted, is an operation of its own.
    fn charge(&self, polled: &Poll<Result<usize, Error>>) {
        if let Poll::Ready(Ok(count)) = polled {
            let count = u32::try_from(*count).unwrap_or(u32::MAX);
            self.core.inner().tasks.charge(count.saturating_sub(1));
        }
    }

    /// The core it belongs to.
    pub fn core(&self) -> &Core {
        &self.core
    }
}

/// Sets an option of a socket that has a descriptor.
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

    /// Sends three and a half segments from a socket that the kernel makes no segments for.
    async fn send_unsegmented(core: Core) {
        let from = Datagram::bind(&core, "127.0.0.1:0".parse().unwrap()).unwrap();
        let to = Datagram::bind(&core, "127.0.0.1:0".parse().unwrap()).unwrap();
        from.connect(to.local()).unwrap();
        // It makes no checksum, and so no segments, of a socket that wants none.
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
