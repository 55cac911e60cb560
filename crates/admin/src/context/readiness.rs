//! Readiness of the process, for load balancers and service managers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Current phase of the process, shared between threads.
#[derive(Clone, Default, Debug)]
pub struct Readiness(Arc<AtomicU8>);

/// Phase of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Serves requests.
    Ready,
    /// Serves requests, but load balancers should send no new clients.
    Draining,
    /// Finishes requests in flight.
    Stopping,
}

impl Readiness {
    /// Current phase.
    pub fn phase(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Ready,
            1 => Phase::Draining,
            _ => Phase::Stopping,
        }
    }

    /// Sets the phase. [`Phase::Stopping`] is final.
    pub fn set(&self, phase: Phase) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                (now < Phase::Stopping as u8).then_some(phase as u8)
            });
    }
}

impl Phase {
    /// Name of the phase in responses.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Ready => "ready",
            Phase::Draining => "draining",
            Phase::Stopping => "stopping",
        }
    }
}
