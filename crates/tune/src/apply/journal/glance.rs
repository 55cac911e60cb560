//! A look into a journal that neither waits for who has it nor changes it.

use std::io;
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::bearers::Bearers;
use super::guard::Guard;
use super::history::{Change, Line, Lost, Run, changes};
use super::{Journal, place, runs};
use crate::Error;
use crate::apply::Life;
use crate::facts::Facts;

/// What a journal says to who only wants to know.
#[derive(Debug)]
pub struct Glance {
    lines: Vec<Line>,
    bearers: Bearers,
    /// Lines that cannot be read.
    pub lost: Vec<Lost>,
    /// The run that waits to be confirmed, if the last one does.
    pub waiting: Option<Run>,
    /// Whether somebody has the journal in this moment: the changes are not the last ones.
    pub is_held: bool,
}

impl Glance {
    /// As [`Journal::changes`], by the names that interfaces have now.
    pub fn changes(mut self, facts: &Facts) -> Vec<Change> {
        self.bearers.follow(facts, &mut self.lines);
        changes(&self.lines)
    }

    /// The process that has to undo the last run; `None` if the run may stay.
    pub fn guard(&self) -> Option<Guard> {
        runs::of_last_run(&self.lines).map(|(_, guard)| guard)
    }
}

impl Journal {
    /// Looks into the journal, and neither waits for who has it nor changes it; none when nothing is applied. It takes
    /// no right but to read the file.
    pub fn glance(path: &Path, life: impl Into<Life>) -> Result<Option<Glance>, Error> {
        let file = match place::opening().open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| Error::Read(path.to_owned(), error))?,
        };
        // Shared, so that two who look do not take each other for one who changes something; gone with the file.
        let is_held = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => false,
            Err(Errno::WOULDBLOCK) => true,
            Err(error) => return Err(Error::Read(path.to_owned(), error.into())),
        };
        let mut journal = Journal::read(path, file)?;
        if is_held && journal.is_cut {
            // It is being written in this moment.
            journal.lines.pop();
        }
        Ok(journal.is_of(&life.into()).then(|| Glance {
            lost: journal.lost().collect(),
            waiting: journal.last_run().filter(|_| journal.is_waiting()),
            is_held,
            lines: journal.lines,
            bearers: journal.bearers,
        }))
    }
}
