//! A socket's operations in flight with a ring, and their results.
//!
//! With io_uring the kernel reads and writes memory while tasks do other work or have ended. The rule: memory in flight
//! belongs to the socket's slot, never to a task.
//!
//! - Bytes that are being sent are in the slot's `outgoing` queue, as parts that own their bytes; the vector of a
//!   `sendmsg` is in a box of the slot.
//! - Received bytes arrive in buffers that `ProvidedBuffers` (`driver/uring/provided.rs`) owns until the kernel returns them.
//! - Dropping a `Stream` marks the slot as closing, lets a last send finish for a bounded time (unless the connection
//!   is reset), and cancels the rest. The slot is reused when no operation is in flight.
//! - Memory that the kernel may write to is owned through a pointer (`Memory` in `buffers/buffer.rs`), not a box, whose
//!   address only the owner may have. Test builds fill returned memory with a pattern (`buffers/poison.rs`).
//! - Batches of datagrams are lent for the duration of one call on every driver, so they belong to the task.
//! - A core that ends cancels everything and frees its memory when nothing is in flight.
//!
//! So dropping a future or a stream is sound at any moment.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::buffers::buffer::Buffer;
use crate::buffers::outgoing::{Queue, Queued};
use crate::socket::message::Message;

impl Queued for Buffer {}

impl Queued for Result<OwnedFd, Errno> {}

#[derive(Default)]
pub(crate) struct InFlight {
    /// Operations whose last completion has not been seen. The slot may be reused only at zero.
    pub(crate) operations: u8,
    /// A receive or accept is armed.
    pub(crate) armed: bool,
    /// The armed accept is multishot.
    pub(crate) accepts_many: bool,
    /// The armed receive or accept is being cancelled.
    pub(crate) cancelling: bool,
    /// A send is in flight; the parts at the front of `outgoing` belong to the kernel.
    pub(crate) sending: bool,
    /// A poll for writability is in flight.
    pub(crate) polling_writable: bool,
    pub(crate) polling_readable: bool,
    /// A poll for readability has reported urgent bytes. Linux reports them with all bytes that wake the poll
    /// (`sock_def_readable`), so this is only a reason to check.
    pub(crate) is_perhaps_urgent: bool,
    /// A multishot poll for the end of both directions is in flight.
    pub(crate) polling_hangup: bool,
    pub(crate) received: Queue<Buffer>,
    /// The peer has ended its side, or the receive failed.
    pub(crate) end: Option<Result<(), Errno>>,
    /// Message header and vector of a send of several parts; at a fixed address while the send is in flight.
    pub(crate) message: Option<Box<Message>>,
    /// Accepted by a listener and not yet taken. Boxed, because connections do not have it.
    pub(crate) accepted: Option<Box<Queue<Result<OwnedFd, Errno>>>>,
}

impl InFlight {
    /// Whether an operation is in flight that a reset completes.
    pub(crate) fn reports_end(&self) -> bool {
        self.polling_hangup || (self.armed && !self.cancelling)
    }

    /// Whether the connection has ended or failed, or unexpected bytes have arrived.
    pub(crate) fn is_spent(&self) -> bool {
        self.end.is_some() || !self.received.is_empty()
    }
}
