//! What the process is doing, as balancers and service managers are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the process is doing, for those who send it clients.
#[derive(Clone, Default, Debug)]
pub struct Readiness(Arc<AtomicU8>);

/// See [`Readiness`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// It serves.
    Ready,
    /// It serves, and asks for no more clients.
    Draining,
    /// It finishes what is in flight.
    Stopping,
}

impl Readiness {
    /// What it is doing now.
    pub fn phase(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Ready,
            1 => Phase::Draining,
            _ => Phase::Stopping,
        }
    }

    /// What it is doing from now on. A server that stops does not come back.
    pub fn set(&self, phase: Phase) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                (now < Phase::Stopping as u8).then_some(phase as u8)
            });
    }
}

impl Phase {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Ready => "ready",
            Phase::Draining => "draining",
            Phase::Stopping => "stopping",
        }
    }
}
