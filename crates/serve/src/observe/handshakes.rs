//! Counts of TLS handshakes with clients on one core.

use std::cell::Cell;
use std::ops::AddAssign;

use onrush_tls::{HandshakeError, HandshakeFailure, Info, Version};

#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    /// By version and whether the session was resumed, in the order of [`HandshakesView::complete`].
    complete: [Cell<u64>; 4],
    failed: [Cell<u64>; HandshakeFailure::ALL.len()],
}

impl Handshakes {
    pub(crate) fn complete(&self, info: &Info) {
        let version = match info.version {
            Version::Tls12 => 0,
            Version::Tls13 => 2,
        };
        let counter = &self.complete[version + usize::from(info.is_resumed)];
        counter.set(counter.get() + 1);
    }

    pub(crate) fn failed(&self, error: &HandshakeError) {
        let counter = &self.failed[error.failure() as usize];
        counter.set(counter.get() + 1);
    }

    pub(crate) fn view(&self) -> HandshakesView {
        HandshakesView {
            complete: std::array::from_fn(|kind| self.complete[kind].get()),
            failed: std::array::from_fn(|reason| self.failed[reason].get()),
        }
    }
}

/// TLS handshakes with clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HandshakesView {
    /// TLS 1.2 full and resumed, TLS 1.3 full and resumed.
    pub complete: [u64; 4],
    /// Failed handshakes, in the order of [`HandshakeFailure::ALL`].
    pub failed: [u64; HandshakeFailure::ALL.len()],
}

impl AddAssign for HandshakesView {
    fn add_assign(&mut self, other: HandshakesView) {
        let counts = self.complete.iter_mut().zip(other.complete);
        counts.for_each(|(sum, more)| *sum += more);
        let counts = self.failed.iter_mut().zip(other.failed);
        counts.for_each(|(sum, more)| *sum += more);
    }
}
