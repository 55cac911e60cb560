//! A bound on the accepted connections of all cores, which leaves file descriptors for their other needs.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::MULTISHOT_ACCEPTS;

/// A bound on accepted connections, shared by cores.
///
/// Each core checks before it accepts and counts afterwards, so the bound may be exceeded by one per listener.
#[derive(Debug)]
pub struct Allowance {
    max: AtomicUsize,
    /// Connections with open descriptors.
    held: AtomicUsize,
}

impl Allowance {
    /// A bound of `max` connections.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: AtomicUsize::new(max),
            held: AtomicUsize::new(0),
        })
    }

    /// Changes the bound. Open connections stay open.
    pub fn bound(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Number of open connections.
    pub fn held(&self) -> usize {
        // Relaxed, everywhere here: the counter guards no other memory.
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.held() >= self.max()
    }

    /// Whether there is room for a multishot accept.
    pub(crate) fn allows_multishot(&self) -> bool {
        self.held().saturating_add(MULTISHOT_ACCEPTS) < self.max()
    }

    pub(crate) fn take(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that one core hands to another. It is counted in between, because its descriptor is open.
#[derive(Debug)]
pub(crate) struct HandedConnection {
    pub(crate) connection: OwnedFd,
    /// Dropped when the connection is counted elsewhere, or closed.
    pub(crate) counted: Option<AllowanceGuard>,
}

#[derive(Debug)]
pub(crate) struct AllowanceGuard(Arc<Allowance>);

impl AllowanceGuard {
    pub(crate) fn new(allowance: &Arc<Allowance>) -> Self {
        allowance.take();
        Self(Arc::clone(allowance))
    }
}

impl Drop for AllowanceGuard {
    fn drop(&mut self) {
        self.0.give_back();
    }
}
