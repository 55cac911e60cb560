//! Reads a journal without waiting for its lock and without changing it.

use std::io;
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::guard::Guard;
use super::history::{Change, Line, Run, UnreadableLine, changes};
use super::name_map::NameMap;
use super::{Journal, journal_file, runs};
use crate::Error;
use crate::apply::JournalScope;
use crate::facts::Facts;

/// Read-only summary of a journal.
#[derive(Debug)]
pub struct JournalSummary {
    lines: Vec<Line>,
    interface_identities: NameMap,
    /// Unreadable lines.
    pub lost: Vec<UnreadableLine>,
    /// The last run, if it waits for confirmation.
    pub waiting: Option<Run>,
    /// Whether a process holds the journal, so that changes may be incomplete.
    pub is_held: bool,
}

impl JournalSummary {
    /// Same as [`Journal::changes`], with the current names of interfaces.
    pub fn changes(mut self, facts: &Facts) -> Vec<Change> {
        self.interface_identities.follow(facts, &mut self.lines);
        changes(&self.lines)
    }

    /// Process that must undo the last run; `None` if the run is confirmed or has none.
    pub fn guard(&self) -> Option<Guard> {
        runs::of_last_run(&self.lines).map(|(_, guard)| guard)
    }
}

impl Journal {
    /// Reads the journal without waiting for its lock; needs read permission only. `None` if nothing is applied.
    pub fn summary(
        path: &Path,
        life: impl Into<JournalScope>,
    ) -> Result<Option<JournalSummary>, Error> {
        let file = match journal_file::opening().open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| Error::Read(path.to_owned(), error))?,
        };
        // Shared, so that concurrent readers do not take each other for a writer; released when the file is closed.
        let is_held = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => false,
            Err(Errno::WOULDBLOCK) => true,
            Err(error) => return Err(Error::Read(path.to_owned(), error.into())),
        };
        let mut journal = Journal::read(path, file)?;
        if is_held && journal.is_cut {
            // The last line is being written.
            journal.lines.pop();
        }
        Ok(journal.is_of(&life.into()).then(|| JournalSummary {
            lost: journal.lost().collect(),
            waiting: journal.last_run().filter(|_| journal.is_waiting()),
            is_held,
            lines: journal.lines,
            interface_identities: journal.interface_identities,
        }))
    }
}
