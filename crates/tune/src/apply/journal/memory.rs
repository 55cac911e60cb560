//! What a run has changed, kept by who made it: the file may go, or not be read any more, before it is to be undone.

use std::path::{Path, PathBuf};

use super::Journal;
use super::bearers::Bearers;
use super::history::{Change, Line, Run, changes};
use crate::facts::Facts;

/// What the journal said of one run when it was made.
#[derive(Debug)]
pub struct Memory {
    path: PathBuf,
    lines: Vec<Line>,
    bearers: Bearers,
}

impl Journal {
    /// Remembers a run and everything after it.
    pub fn memory_of(&self, run: Run) -> Memory {
        let at = self.beginning(run).unwrap_or(self.lines.len());
        Memory {
            path: self.path.clone(),
            lines: self.lines[at..].to_vec(),
            bearers: self.bearers.clone(),
        }
    }
}

impl Memory {
    /// Where the journal was.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As [`Journal::changes_since`], by the names that interfaces have now.
    pub fn changes(mut self, facts: &Facts) -> Vec<Change> {
        self.bearers.follow(facts, &mut self.lines);
        changes(&self.lines)
    }
}
