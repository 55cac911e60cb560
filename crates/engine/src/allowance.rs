//! How many accepted connections the cores of a process may hold together: a bound on file descriptors that leaves enough
//! of them for what else connections need.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::MULTISHOT_ACCEPTS;

/// A bound on accepted connections, shared by cores.
///
/// Each core looks before it accepts and counts afterwards, so there may be one more for each listener.
#[derive(Debug)]
pub struct Allowance {
    max: usize,
    /// Connections whose descriptors are open.
    held: AtomicUsize,
}

impl Allowance {
    /// At most `max` connections.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            held: AtomicUsize::new(0),
        })
    }

    /// How many connections are open.
    pub fn held(&self) -> usize {
        // Relaxed, here and below: the number guards nothing but itself.
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.held() >= self.max
    }

    /// Whether so much is left that the kernel may accept until it is told to stop.
    pub(crate) fn is_wide(&self) -> bool {
        self.held().saturating_add(MULTISHOT_ACCEPTS) < self.max
    }

    pub(crate) fn take(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}
