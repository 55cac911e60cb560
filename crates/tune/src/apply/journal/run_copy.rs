//! In-memory copy of a run's lines, in case the file is removed or becomes unreadable before the run is undone.

use std::path::{Path, PathBuf};

use super::Journal;
use super::history::{Change, Line, Run, changes};
use super::name_map::NameMap;
use crate::facts::Facts;

/// Lines of a journal since the beginning of a run.
#[derive(Debug)]
pub struct RunCopy {
    path: PathBuf,
    lines: Vec<Line>,
    interface_identities: NameMap,
}

impl Journal {
    /// Copies a run and all later lines.
    pub fn memory_of(&self, run: Run) -> RunCopy {
        let at = self.beginning(run).unwrap_or(self.lines.len());
        RunCopy {
            path: self.path.clone(),
            lines: self.lines[at..].to_vec(),
            interface_identities: self.interface_identities.clone(),
        }
    }
}

impl RunCopy {
    /// Path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Same as [`Journal::changes_since`], with the current names of interfaces.
    pub fn changes(mut self, facts: &Facts) -> Vec<Change> {
        self.interface_identities.follow(facts, &mut self.lines);
        changes(&self.lines)
    }
}
