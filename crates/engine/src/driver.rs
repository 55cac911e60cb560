//! How a core talks to the kernel. Three drivers behind one enum; which one is taken is decided at run time.

pub(crate) mod driver_counters;

mod calls;
pub(crate) mod choice;
mod dispatch;
pub(crate) mod epoll;
pub(crate) mod event;
pub(crate) mod operations;
pub(crate) mod simulated;
pub(crate) mod simulation;
pub(crate) mod uring;

use crate::error::Error;
use crate::limits::{DEFERRED_WORK_PER_ENTER, EVENTS_PER_WAIT};

use choice::Io;
use epoll::Epoll;
use simulated::Simulated;
use uring::Ring;

/// One core's way to the kernel.
pub(crate) enum Driver {
    Epoll(Epoll),
    /// Boxed: the ring's state is many times larger than the others'.
    Uring(Box<Ring>),
    Simulated(Box<Simulated>),
}

impl Driver {
    pub(crate) fn new(io: Io) -> Result<Self, Error> {
        match io {
            Io::Auto | Io::Epoll => Ok(Driver::Epoll(Epoll::new()?)),
            Io::IoUring => Ok(Driver::Uring(Box::new(Ring::new()?))),
        }
    }

    /// Whether the kernel carried anything out in the last look, also where nobody was woken by it: the sends of a ring are. A ring
    /// says so of looks that do not wait.
    pub(crate) fn has_worked(&self) -> bool {
        match self {
            // Sends and receives are calls of their own.
            Driver::Epoll(_) | Driver::Simulated(_) => false,
            Driver::Uring(driver) => driver.has_worked(),
        }
    }

    /// Events that one look brings at least where there are as many.
    pub(crate) fn events_per_look(&self) -> usize {
        match self {
            Driver::Epoll(_) | Driver::Simulated(_) => EVENTS_PER_WAIT,
            Driver::Uring(_) => DEFERRED_WORK_PER_ENTER,
        }
    }
}
