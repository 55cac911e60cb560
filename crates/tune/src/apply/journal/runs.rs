//! Runs of a journal: their lines, and forgetting them.

use std::fs::File;
use std::io::{self, Read, Seek};

use super::Journal;
use super::guard::Guard;
use super::history::{self, Change, Line, Run, UnreadableLine, changes};
use crate::Error;

impl Journal {
    /// The latest run.
    pub fn last_run(&self) -> Option<Run> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Wish { run, .. } => Some(*run),
            _ => None,
        })
    }

    pub(super) fn beginning(&self, run: Run) -> Option<usize> {
        let is_it = |line: &Line| matches!(line, Line::Wish { run: found, .. } if *found == run);
        self.lines.iter().position(is_it)
    }

    /// Changes since a run began, relative to the values at that time. Empty if the journal does not contain the run.
    pub fn changes_since(&self, run: Run) -> Vec<Change> {
        let beginning = self.beginning(run);
        beginning.map_or_else(Vec::new, |at| changes(&self.lines[at..]))
    }

    /// Whether the journal contains a run.
    pub fn knows(&self, run: Run) -> bool {
        self.beginning(run).is_some()
    }

    /// Forgets a run and all later lines after they were undone, and removes the journal if nothing is left. If some of
    /// these lines are unreadable, returns them and forgets nothing, because they may describe changes.
    pub fn forget_since(mut self, run: Run) -> Result<Vec<UnreadableLine>, Error> {
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

impl Journal {
    /// Sets the process that undoes later runs.
    pub fn guard_by(&mut self, guard: Option<Guard>) {
        self.guard = guard;
    }

    pub(super) fn note_guard(&mut self) -> Result<(), Error> {
        match self.guard {
            Some(guard) => self.append(Line::Guard(guard)),
            None => Ok(()),
        }
    }

    /// The last run, if the process that should have undone it was killed.
    pub fn abandoned(&self) -> Option<Run> {
        let (run, guard) = of_last_run(&self.lines)?;
        (!guard.runs()).then_some(run)
    }
}

/// The last run and the process that must undo it; `None` if the run is confirmed or has none.
pub(super) fn of_last_run(lines: &[Line]) -> Option<(Run, Guard)> {
    let mut guard = None;
    for line in lines.iter().rev() {
        match line {
            Line::Confirmed => return None,
            Line::Guard(found) => guard = Some(*found),
            Line::Wish { run, .. } => return Some(*run).zip(guard),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::{Request, Target};

    #[test]
    fn run_of_killed_process_is_abandoned_unless_confirmed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        let mut journal = Journal::open(&path, "b").expect("open");
        let own = Guard::own().expect("/proc shows this process");
        let another = Guard {
            started: own.started + 1,
            ..own
        };
        for (guard, is_abandoned) in [(None, false), (Some(own), false), (Some(another), true)] {
            journal.guard_by(guard);
            journal.record_request(&Request::default()).expect("noted");
            let target = Target::Setting {
                file: "net/core/somaxconn".to_owned(),
            };
            journal.change(&target, "1\n", "2").expect("noted");
            let last = journal.last_run();
            assert_eq!(journal.abandoned(), last.filter(|_| is_abandoned));
            let glance = Journal::summary(&path, "b")
                .expect("read")
                .expect("a journal");
            assert_eq!(glance.guard(), guard);
        }
        journal.confirm().expect("noted");
        assert_eq!(journal.abandoned(), None);
    }
}
