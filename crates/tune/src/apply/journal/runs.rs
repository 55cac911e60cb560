//! Runs that a journal has: what belongs to one, and forgetting it.

use std::fs::File;
use std::io::{self, Read, Seek};

use super::Journal;
use super::history::{self, Change, Line, Lost, Run, changes};
use crate::Error;

impl Journal {
    /// The run that began last.
    pub fn last_run(&self) -> Option<Run> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Wish { run, .. } => Some(*run),
            _ => None,
        })
    }

    /// Where a run begins.
    pub(super) fn beginning(&self, run: Run) -> Option<usize> {
        let is_it = |line: &Line| matches!(line, Line::Wish { run: found, .. } if *found == run);
        self.lines.iter().position(is_it)
    }

    /// What was changed since a run began: beside what was there then. Nothing when the journal does not know the run.
    pub fn changes_since(&self, run: Run) -> Vec<Change> {
        let beginning = self.beginning(run);
        beginning.map_or_else(Vec::new, |at| changes(&self.lines[at..]))
    }

    /// Whether the journal tells of a run.
    pub fn knows(&self, run: Run) -> bool {
        self.beginning(run).is_some()
    }

    /// Forgets a run and everything after it, which was undone; the whole journal when nothing is left in it. Where lines
    /// of that cannot be read nothing is forgotten, and these are returned: what they said may be somebody's yet.
    pub fn forget_since(mut self, run: Run) -> Result<Vec<Lost>, Error> {
        let Some(at) = self.beginning(run) else {
            return Ok(Vec::new());
        };
        let lost = history::lost(&self.lines[at..]);
        if !lost.is_empty() {
            return Ok(lost);
        }
        self.lines.truncate(at);
        if self.changes().is_empty() && self.lost().next().is_none() {
            return self.remove().map(|()| lost);
        }
        let forget = |file: &mut File| -> io::Result<()> {
            let mut bytes = Vec::new();
            file.seek(io::SeekFrom::Start(0))?;
            file.read_to_end(&mut bytes)?;
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let kept: usize = lines.take(at).map(<[u8]>::len).sum();
            file.set_len(kept as u64)?;
            file.sync_data()
        };
        forget(&mut self.file).map_err(|error| Error::Write(self.path.clone(), error))?;
        Ok(lost)
    }
}
