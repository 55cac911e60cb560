//! How many accepted connections the cores of a process may hold together: a bound on file descriptors that leaves enough
//! of them for what else connections need.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::MULTISHOT_ACCEPTS;

/// A bound on accepted connections, shared by cores.
///
/// Each core looks before it accepts and counts afterwards, so there may be one more for each listener.
#[derive(Debug)]
pub struct Allowance {
    max: AtomicUsize,
    /// Connections whose descriptors are open.
    held: AtomicUsize,
}

impl Allowance {
    /// At most `max` connections.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: AtomicUsize::new(max),
            held: AtomicUsize::new(0),
        })
    }

    /// At most `max` connections from now on. Those that are open stay.
    pub fn bound(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// How many connections are open.
    pub fn held(&self) -> usize {
        // Relaxed, everywhere here: the number guards nothing but itself.
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.held() >= self.max()
    }

    /// Whether so much is left that the kernel may accept until it is told to stop.
    pub(crate) fn is_wide(&self) -> bool {
        self.held().saturating_add(MULTISHOT_ACCEPTS) < self.max()
    }

    pub(crate) fn take(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that one core has accepted and another one is to serve. It is counted on its way, as its descriptor is open.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) connection: OwnedFd,
    /// Dropped when the connection is counted elsewhere, or closed.
    pub(crate) counted: Option<Counted>,
}

/// One of the connections that an allowance holds.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Allowance>);

impl Counted {
    pub(crate) fn new(allowance: &Arc<Allowance>) -> Self {
        allowance.take();
        Self(Arc::clone(allowance))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.give_back();
    }
}
