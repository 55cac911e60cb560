//! Sending and receiving datagrams, a batch per call. The kernel uses a batch's memory only during the call, also with
//! io_uring, which adds only a poll. So after a cancelled send the batch still holds the unsent datagrams.

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
    /// Binds a datagram socket to `address` and returns the address that it got.
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

    /// Like [`State::bind_datagrams`], with a bound socket of `open`, which the simulated network does not call.
    pub(crate) fn open_datagrams(
        &mut self,
        address: SocketAddr,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<(Key, SocketAddr), Error> {
        self.driver
            .bind_datagrams(address, open, &mut self.sockets)
            .map_err(|errno| Error::os(Op::Bind, errno))
    }

    /// Sends some of the batch; returns the number of datagrams. On an error the first message is dropped.
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

/// Whether the error can mean that the kernel cannot segment, although each segment could be sent as a datagram:
/// checksums are disabled (EINVAL), a segment exceeds the path's MTU (EINVAL or EMSGSIZE), the device does not compute
/// checksums (EIO), or a layer below lacks the option (ENOPROTOOPT).
fn refuses_segments(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INVAL | Errno::NOPROTOOPT | Errno::IO | Errno::MSGSIZE
    )
}
