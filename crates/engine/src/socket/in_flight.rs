//! What one socket has in flight with a ring, and what came back for it.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::buffers::buffer::Buffer;
use crate::buffers::outgoing::{Queue, Queued};
use crate::socket::message::Message;

impl Queued for Buffer {}

impl Queued for Result<OwnedFd, Errno> {}

/// What one socket has in flight, and what came back for it.
#[derive(Default)]
pub(crate) struct InFlight {
    /// Operations whose last completion has not been seen. The slot may be reused only at zero.
    pub(crate) operations: u8,
    /// A receive or accept is armed.
    pub(crate) armed: bool,
    /// The accept that is armed stays so.
    pub(crate) accepts_many: bool,
    /// The armed receive has been asked to end.
    pub(crate) cancelling: bool,
    /// A send is in flight; the parts at the front of `outgoing` belong to the kernel.
    pub(crate) sending: bool,
    /// A wait for writability is in flight.
    pub(crate) polling: bool,
    /// A wait for readability is in flight.
    pub(crate) polling_readable: bool,
    /// A wait for readability has ended with a word of urgent bytes. Such words come with all bytes where they wake the
    /// wait (`sock_def_readable` of Linux), so it is only worth a look.
    pub(crate) is_perhaps_urgent: bool,
    /// A multishot wait for the end of both directions is in flight.
    pub(crate) polling_hangup: bool,
    pub(crate) received: Queue<Buffer>,
    /// The peer has ended its side, or the receive failed.
    pub(crate) end: Option<Result<(), Errno>>,
    /// Message header and vector of a send of several parts, while one is in flight: it stays where it is that long.
    pub(crate) message: Option<Box<Message>>,
    /// Accepted by a listener, not taken yet. Boxed: what no connection has should cost none anything.
    pub(crate) accepted: Option<Box<Queue<Result<OwnedFd, Errno>>>>,
}

impl InFlight {
    /// Whether an operation is in flight that a reset completes.
    pub(crate) fn hears_of_end(&self) -> bool {
        self.polling_hangup || (self.armed && !self.cancelling)
    }

    /// Whether the connection has ended, failed, or received something unasked.
    pub(crate) fn is_spent(&self) -> bool {
        self.end.is_some() || !self.received.is_empty()
    }
}
