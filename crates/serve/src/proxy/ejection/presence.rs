//! A server's state of ejection, shared by all cores and all configurations that have the server.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

use onrush_engine::Instant;

use super::recheck_delay::EjectionHistory;

/// State of ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EjectionPhase {
    In,
    Out,
    /// The next suitable request goes to it and shows whether it responds again.
    OnTrial,
    /// The trial request is in progress.
    Tried,
}

/// A server's [`EjectionPhase`] and the history of its absences.
#[derive(Debug)]
pub(crate) struct EjectionState {
    /// A [`EjectionPhase`]. Changed only while `record` is locked.
    presence: AtomicU8,
    /// Whether a rule would have taken the server out, but it had to stay. Only while it is `In`; changed as `presence`.
    is_failing: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) absence: EjectionHistory,
    /// Number of the current absence, so that a task started for one absence cannot end the next.
    pub(super) term: u32,
    /// Time from which a response shows that a failing server works again.
    pub(super) failing_until: Instant,
}

impl EjectionState {
    pub(crate) fn presence(&self) -> EjectionPhase {
        match self.presence.load(Ordering::Relaxed) {
            0 => EjectionPhase::In,
            1 => EjectionPhase::Out,
            2 => EjectionPhase::OnTrial,
            3 => EjectionPhase::Tried,
            other => unreachable!("{other} was never stored"),
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Resets the state, because the address now has another server, or because ejection begins to apply to this one.
    pub(crate) fn reset_state(&self) {
        let mut record = self.record();
        record.absence = EjectionHistory::default();
        record.term = record.term.wrapping_add(1);
        self.set_presence(EjectionPhase::In);
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        // No code panics while the lock is held, and a panic ends the process.
        self.record
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn set_failing(&self) {
        self.is_failing.store(true, Ordering::Relaxed);
    }

    pub(super) fn clear_failing(&self) {
        self.is_failing.store(false, Ordering::Relaxed);
    }

    pub(super) fn set_presence(&self, presence: EjectionPhase) {
        self.clear_failing();
        self.presence.store(presence as u8, Ordering::Relaxed);
    }
}

impl Default for EjectionState {
    fn default() -> Self {
        Self {
            presence: AtomicU8::new(EjectionPhase::In as u8),
            is_failing: AtomicBool::new(false),
            record: Mutex::default(),
        }
    }
}
