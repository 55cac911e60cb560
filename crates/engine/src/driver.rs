//! The drivers: epoll, io_uring and a simulation, as one enum; selected at run time.
//!
//! A task does not know its driver. Operations use one set of methods, the trait in `operations.rs`; each driver
//! implements it in a file of that name, and `dispatch.rs` selects the driver with one `match` per call. Calls that
//! both kernel drivers make are in `calls.rs`. Two things are outside the set because the drivers have nothing in
//! common there: the wait itself (`core/turn.rs`) and the shutdown of a ring.
//!
//! | | epoll | io_uring | simulated |
//! |---|---|---|---|
//! | used | where io_uring is blocked, as in many containers, or slower | by `auto` from Linux 6.17 on | in tests |
//! | accept | edge-triggered; one of the cores that share a Unix listener is woken | multishot; one by one near the limit on connections | from the simulation |
//! | receive | `recv` into a buffer of the core, for bulk a wide one | small messages multishot into buffers lent to the kernel; bulk by `recv` after a poll of the ring | short, late, in pieces |
//! | send | small ones at the end of the turn, large ones at once; waits for writability only after EAGAIN | queued, submitted with the next wait; from 32 KiB on at once by the same calls | at the end of the turn, with the same faults |
//! | files | `sendfile` | `sendfile`, for which a ring has no operation; a poll of the ring when it must wait | read and sent |
//! | tunnels, long bodies | buffers; bulk by `splice` through a pipe | the same calls; a poll of the ring when they must wait | buffers |
//! | datagrams | `sendmmsg`, `recvmmsg` | the same calls; a poll of the ring when they must wait | lost, duplicated, reordered |
//! | time | the clock | the clock | virtual; it jumps to the next event |

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

pub(crate) enum Driver {
    Epoll(Epoll),
    /// Boxed, because the ring's state is many times larger than that of epoll.
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

    /// Whether the last look did work in the kernel, such as a ring's sends. A ring reports it only for looks without a
    /// wait.
    pub(crate) fn has_worked(&self) -> bool {
        match self {
            // Sends and receives are separate system calls.
            Driver::Epoll(_) | Driver::Simulated(_) => false,
            Driver::Uring(driver) => driver.has_worked(),
        }
    }

    /// Returns the minimum number of events that one poll returns if that many are pending.
    pub(crate) fn events_per_look(&self) -> usize {
        match self {
            Driver::Epoll(_) | Driver::Simulated(_) => EVENTS_PER_WAIT,
            Driver::Uring(_) => DEFERRED_WORK_PER_ENTER,
        }
    }
}
