//! Sending and receiving datagrams, batches of them in one call. Nothing of a batch is lent to the kernel longer than the call
//! lasts: with io_uring they are the same calls as with epoll, and a poll of the ring when they must wait. So whoever gives up
//! such an operation has in the batch what has not left.

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::task::Poll;

use rustix::io::Errno;

use crate::claim::datagram::open;
use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::socket::batch::{ReceiveBatch, Segmentation, SendBatch, Sending};
use crate::socket::control::Family;
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// A datagram socket on `address`, and the address that it got.
    pub(crate) fn bind_datagrams(
        &mut self,
        address: SocketAddr,
    ) -> Result<(Key, SocketAddr), Error> {
        self.open_datagrams(address, || {
            let socket = open(address)?;
            rustix::net::bind(&socket, &address)?;
            Ok(socket)
        })
    }

    /// The same with a socket that `open` makes, bound to `address`. Not called on a simulated network.
    pub(crate) fn open_datagrams(
        &mut self,
        address: SocketAddr,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<(Key, SocketAddr), Error> {
        self.driver
            .bind_datagrams(address, open, &mut self.sockets)
            .map_err(|errno| Error::os(Op::Bind, errno))
    }

    /// Sends some of the batch and says how many datagrams. An error is that of the first message, which is dropped.
    pub(crate) fn poll_send_datagrams(
        &mut self,
        key: Key,
        batch: &mut SendBatch,
        family: Family,
        segmentation: &Cell<Segmentation>,
        task: TaskId,
    ) -> Poll<Result<usize, Error>> {
        if batch.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let sent = loop {
            let sending = Sending {
                family,
                segmentation: segmentation.get(),
            };
            let sent = self
                .driver
                .send_datagrams(key, batch, sending, &mut self.sockets);
            let is_refused = matches!(sent, Err(errno) if refuses_segments(errno));
            if !is_refused || !batch.is_segmented() || sending.segmentation == Segmentation::Engine
            {
                break sent;
            }
            segmentation.set(Segmentation::Engine);
        };
        if matches!(sent, Err(errno) if errno != Errno::AGAIN) {
            batch.drop_first();
        }
        let sent = sent.map_err(|errno| Error::os(Op::Send, errno));
        self.finish_send(key, sent, Op::Send, task)
    }

    /// Receives messages into the batch and says how many.
    pub(crate) fn poll_recv_datagrams(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
        task: TaskId,
    ) -> Poll<Result<usize, Error>> {
        match self.driver.recv_datagrams(key, batch, &mut self.sockets) {
            Err(Errno::AGAIN) => self.wait_for_bytes(key, task),
            received => {
                self.expected.note_received(key);
                Poll::Ready(received.map_err(|errno| Error::os(Op::Recv, errno)))
            }
        }
    }
}

/// Whether the kernel may say so of segments that it cannot make, although each of them could be sent as a datagram: checksums
/// are switched off (EINVAL), a segment is longer than what the way takes (EINVAL or EMSGSIZE), the device makes no checksums
/// (EIO), or something between has taken the option away (ENOPROTOOPT).
fn refuses_segments(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INVAL | Errno::NOPROTOOPT | Errno::IO | Errno::MSGSIZE
    )
}
