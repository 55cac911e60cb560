//! What one look at the kernel brings.

use crate::socket::Ended;
use crate::socket::key::Key;

/// How much of what had happened a look at the kernel has brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// All of it.
    Whole,
    /// As much as one look may; there may be more.
    Filled,
    /// Perhaps not all of it: a signal ended the wait, and a look without a wait came behind it. A process that was stopped
    /// and goes on ends it so, too, without a handler (signal(7), "Interruption of system calls and library functions by
    /// stop signals").
    Interrupted,
}

/// What a driver learned while waiting; acted on after reaping, never during it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Readiness of a socket (epoll, simulated).
    Ready(Readiness),
    /// Another thread wants the core's attention.
    Wake,
}

/// What may be tried on a socket, and whether its connection has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    pub(crate) key: Key,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) ended: Ended,
    /// There are urgent bytes.
    pub(crate) urgent: bool,
}
