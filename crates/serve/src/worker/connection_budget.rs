//! Budget of client connections, shared by all cores, and the state of running out of descriptors.

pub(crate) mod room;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onrush_engine::{Allowance, Instant};

use crate::limits::SHORTAGE_END;
use crate::worker::client_counts::ClientCounts;
use crate::worker::descriptor_shares::Shares;

pub(crate) struct ConnectionBudget {
    /// Shares of the configuration in force.
    shares: Mutex<Shares>,
    pub(crate) allowance: Arc<Allowance>,
    /// Requests in flight by client of a group.
    pub(crate) group_clients: ClientCounts,
    /// Whether clients wait to be accepted: responses then close their connections, to make room for others.
    is_short: AtomicBool,
    /// When a client last had to wait, in nanoseconds of the cores' clock.
    waited_at: AtomicU64,
}

impl ConnectionBudget {
    pub(crate) fn new(shares: Shares) -> Arc<Self> {
        Arc::new(Self {
            shares: Mutex::new(shares),
            allowance: Allowance::new(shares.clients),
            group_clients: ClientCounts::default(),
            is_short: AtomicBool::new(false),
            waited_at: AtomicU64::new(0),
        })
    }

    pub(crate) fn shares(&self) -> Shares {
        // The value cannot be left half changed.
        *self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the shares of another configuration. Open connections stay.
    pub(crate) fn share_anew(&self, shares: Shares) {
        *self.shares.lock().unwrap_or_else(PoisonError::into_inner) = shares;
        self.allowance.bound(shares.clients);
    }

    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        // Relaxed: it may take effect one response earlier or later.
        self.is_short.load(Ordering::Relaxed)
    }

    fn has_waited(&self, now: Instant) -> bool {
        let now = now.nanoseconds();
        let waited_at = self.waited_at.load(Ordering::Relaxed);
        now.saturating_sub(waited_at) < SHORTAGE_END.as_nanos() as u64
    }

    fn note_waiting(&self, now: Instant) {
        self.waited_at.store(now.nanoseconds(), Ordering::Relaxed);
    }
}
