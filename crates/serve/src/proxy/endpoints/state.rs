//! State of a server that all cores and all configurations share.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use onrush_engine::{Address, Instant};

use crate::proxy::ejection::EjectionState;

/// Bit of `in_flight` that is set while requests may be waiting for capacity.
pub(super) const HAS_WAITERS: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct State {
    /// Resolved address and weight; `None` while vacant. Locked only for changes and when a core refreshes its view.
    found: Mutex<Option<Location>>,
    /// A [`AdminState`].
    duty: AtomicU8,
    /// Weight set through the admin interface; 0 for the configured one.
    weight: AtomicU32,
    pub(super) ejection: EjectionState,
    /// Start of its current service or trial, in nanoseconds of the clock; 0 if it has always been in service.
    pub(super) since: AtomicU64,
    /// Number of requests in flight of all cores and configurations, counted only with a limit; and [`HAS_WAITERS`].
    pub(super) in_flight: AtomicU32,
}

/// Address and weight of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) address: Address,
    pub(crate) weight: u32,
    /// Whether the server gets requests only when no primary server is available.
    pub(crate) backup: bool,
}

/// Administrative state of a server, from the most to the least available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum AdminState {
    /// The server gets requests, if it is up.
    Serve,
    /// The server gets requests of clients that stick to it, and no others.
    Drain,
    /// The server gets no requests.
    Rest,
}

impl AdminState {
    /// All states.
    pub const ALL: [AdminState; 3] = [AdminState::Serve, AdminState::Drain, AdminState::Rest];

    /// Name in the admin interface: as in HAProxy, which calls the last one `maint`.
    pub fn name(self) -> &'static str {
        match self {
            AdminState::Serve => "up",
            AdminState::Drain => "drain",
            AdminState::Rest => "down",
        }
    }
}

impl State {
    pub(super) fn location(&self) -> MutexGuard<'_, Option<Location>> {
        // No code panics while the lock is held, and a panic ends the process.
        self.found
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn duty(&self) -> AdminState {
        let duty = self.duty.load(Ordering::Relaxed);
        AdminState::ALL[usize::from(duty)]
    }

    pub(super) fn set_duty(&self, duty: AdminState) {
        self.duty.store(duty as u8, Ordering::Relaxed);
    }

    pub(super) fn weight(&self) -> Option<u32> {
        Some(self.weight.load(Ordering::Relaxed)).filter(|&weight| weight > 0)
    }

    pub(super) fn set_weight(&self, weight: Option<u32>) {
        self.weight.store(weight.unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn set_since(&self, now: Instant) {
        self.since.store(now.nanoseconds(), Ordering::Relaxed);
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            found: Mutex::default(),
            duty: AtomicU8::new(AdminState::Serve as u8),
            weight: AtomicU32::new(0),
            ejection: EjectionState::default(),
            since: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
        }
    }
}
