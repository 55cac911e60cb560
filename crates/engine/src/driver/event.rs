//! The result of one poll of the kernel.

use crate::socket::Ended;
use crate::socket::key::Key;

/// How many of the pending events a poll of the kernel returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PollOutcome {
    /// All.
    Complete,
    /// One poll returned its maximum number of events; more may be pending.
    LimitReached,
    /// Perhaps not all: a signal ended the wait, and a look without a wait followed. Continuing a stopped process also
    /// ends a wait, even without a signal handler (signal(7), "Interruption of system calls … by stop signals").
    Interrupted,
}

/// An event reported by a driver; handled after collecting, never during it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Ready(Readiness),
    /// Another thread has work for the core.
    Wake,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    pub(crate) key: Key,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) ended: Ended,
    pub(crate) urgent: bool,
}
