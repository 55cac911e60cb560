//! What all cores share of one server, whatever its configuration says.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use onrush_engine::{Address, Instant};

use crate::proxy::ejection::EjectionState;

/// The bit of an endpoint's requests in flight that says that requests may wait for capacity there.
pub(super) const WAITED_FOR: u32 = 1 << 31;

/// What is known of the server at an endpoint.
#[derive(Debug)]
pub(super) struct State {
    /// Where its name leads, and its weight; `None` while the endpoint is vacant. Locked only when that changes and when a
    /// core refreshes what it has seen.
    found: Mutex<Option<Location>>,
    /// A [`Duty`].
    duty: AtomicU8,
    /// The weight that it was given by hand; 0 for that of the configuration.
    weight: AtomicU32,
    pub(super) ejection: EjectionState,
    /// Since when it may have requests, or is on trial, in nanoseconds of the clock; 0 for a server that was never away.
    pub(super) since: AtomicU64,
    /// Requests in flight of all cores and configurations, counted only with a bound, and [`WAITED_FOR`].
    pub(super) in_flight: AtomicU32,
}

/// Where a server is and how much it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) address: Address,
    pub(crate) weight: u32,
    /// Whether it gets requests only when no other server can take them.
    pub(crate) backup: bool,
}

/// What an administrator wants of a server. What lets it have more comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Duty {
    /// It gets requests, if it is up.
    Serve,
    /// It gets those of clients that have been with it, and no others.
    Drain,
    /// It gets none.
    Rest,
}

impl Duty {
    /// All of them.
    pub const ALL: [Duty; 3] = [Duty::Serve, Duty::Drain, Duty::Rest];

    /// As it is written: HAProxy's words but for the last one, which it calls `maint`.
    pub fn name(self) -> &'static str {
        match self {
            Duty::Serve => "up",
            Duty::Drain => "drain",
            Duty::Rest => "down",
        }
    }
}

impl State {
    pub(super) fn location(&self) -> MutexGuard<'_, Option<Location>> {
        // Nothing can panic while it is held; and a panic ends the process.
        self.found
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn duty(&self) -> Duty {
        let duty = self.duty.load(Ordering::Relaxed);
        Duty::ALL[usize::from(duty)]
    }

    pub(super) fn set_duty(&self, duty: Duty) {
        self.duty.store(duty as u8, Ordering::Relaxed);
    }

    /// The weight that it was given by hand.
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

/// Of a server that nothing is known of.
impl Default for State {
    fn default() -> Self {
        Self {
            found: Mutex::default(),
            duty: AtomicU8::new(Duty::Serve as u8),
            weight: AtomicU32::new(0),
            ejection: EjectionState::default(),
            since: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
        }
    }
}
