//! The state of a server as far as ejection is concerned. All cores share it, and every configuration that has the server.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::absence::Absence;

/// Whether a server has been taken out for the outcome of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Presence {
    In,
    Out,
    /// It gets one request, which shows whether it responds again.
    OnTrial,
    /// It has got that request.
    Tried,
}

/// A server's [`Presence`], and what is remembered of its absences.
#[derive(Debug)]
pub(crate) struct EjectionState {
    /// A [`Presence`]. Changed only while `record` is locked.
    presence: AtomicU8,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) absence: Absence,
    /// Number of the absence: the task of one absence does not end the next.
    pub(super) term: u32,
}

impl EjectionState {
    pub(crate) fn presence(&self) -> Presence {
        match self.presence.load(Ordering::Relaxed) {
            0 => Presence::In,
            1 => Presence::Out,
            2 => Presence::OnTrial,
            3 => Presence::Tried,
            other => unreachable!("{other} was never stored"),
        }
    }

    /// Forgets everything: another server is here now, or ejection begins to apply to this one.
    pub(crate) fn begin_anew(&self) {
        let mut record = self.record();
        record.absence = Absence::default();
        record.term = record.term.wrapping_add(1);
        self.set_presence(Presence::In);
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        // Nothing can panic while it is held; and a panic ends the process.
        self.record
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn set_presence(&self, presence: Presence) {
        self.presence.store(presence as u8, Ordering::Relaxed);
    }
}

/// The state of a new server.
impl Default for EjectionState {
    fn default() -> Self {
        Self {
            presence: AtomicU8::new(Presence::In as u8),
            record: Mutex::default(),
        }
    }
}
