//! Undoes changes, and reports which are in force.

use std::path::Path;

use serde::Serialize;

use super::journal::{Change, Journal, Run, RunCopy, UnreadableLine};
use super::machine::{Location, Machine};
use super::reset::resets_queues;
use super::words;
use crate::Error;
use crate::advise::{Target, ValueFormat};
use crate::facts::Facts;

/// Treatment of values that another program has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Report them and leave them alone.
    Leave,
    /// Overwrite them with the original value.
    Overwrite,
}

/// Result of undoing one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// Target.
    #[serde(skip)]
    pub target: Target,
    /// Current path, or a description if it is gone.
    pub path: String,
    /// Outcome.
    pub outcome: RevertOutcome,
}

/// Outcome of undoing a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevertOutcome {
    /// Restored to the original value.
    Restored,
    /// Already had the original value.
    Unchanged,
    /// Set by another program since; left alone.
    Conflict(String),
    /// The device is gone, with its values.
    Gone,
    /// The kernel refused; contains the reason.
    Refused(String),
    /// Unreadable line of the journal, with its start; its change is not undone.
    Lost(String),
    /// The changes were undone, but the journal could not be updated; contains the reason.
    Remains(String),
}

impl Reverted {
    /// Whether nothing is left to do.
    pub fn is_settled(&self) -> bool {
        matches!(
            self.outcome,
            RevertOutcome::Restored | RevertOutcome::Unchanged | RevertOutcome::Gone
        )
    }
}

/// Current state of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeStatus {
    /// Target.
    #[serde(skip)]
    pub target: Target,
    /// Current path, or a description if it is gone.
    pub path: String,
    /// Original value.
    pub before: String,
    /// Value that we set.
    pub ours: String,
    /// Current value; `None` if the target is gone.
    pub now: Option<String>,
    /// Whether the current value is still ours.
    pub is_in_force: bool,
}

/// Restores all changes in the journal, and removes the journal if nothing is left. A journal with unreadable lines is
/// renamed, and the outcome of the last such line contains the new path. Failure to remove it is an outcome.
///
/// All values are compared before any is written, because restoring a device's number of queues changes other values.
/// Changes that could not be undone stay in the journal.
pub fn revert(
    machine: &mut impl Machine,
    mut journal: Journal,
    force: Force,
) -> Result<Vec<Reverted>, Error> {
    journal.follow(&machine.facts()?);
    let mut reverted = undo(machine, journal.changes(), force)?;
    let is_settled = reverted.iter().all(Reverted::is_settled);
    let lost: Vec<UnreadableLine> = journal.lost().collect();
    let path = journal.path().to_owned();
    let place = match (is_settled, lost.is_empty()) {
        (true, true) => journal.remove().map(|()| path.clone()),
        (true, false) => journal.put_aside(),
        (false, _) => Ok(path.clone()),
    };
    let remains = place.as_ref().err().map(|error| remaining(&path, error));
    let place = place.unwrap_or(path);
    reverted.extend(lost.into_iter().map(|lost| unread(&place, lost)));
    reverted.extend(remains);
    Ok(reverted)
}

/// Restores the values at the beginning of a run, and removes the run from the journal.
pub fn revert_since(
    machine: &mut impl Machine,
    mut journal: Journal,
    run: Run,
    force: Force,
) -> Result<Vec<Reverted>, Error> {
    journal.follow(&machine.facts()?);
    let mut reverted = undo(machine, journal.changes_since(run), force)?;
    if reverted.iter().all(Reverted::is_settled) {
        let path = journal.path().to_owned();
        match journal.forget_since(run) {
            Ok(lost) => reverted.extend(lost.into_iter().map(|lost| unread(&path, lost))),
            Err(error) => reverted.push(remaining(&path, &error)),
        }
    }
    Ok(reverted)
}

/// Restores the changes of a run whose journal is gone, except targets in `theirs`, which others have changed since.
/// Values that differ from ours are left alone.
pub fn revert_run_copy(
    machine: &mut impl Machine,
    memory: RunCopy,
    theirs: &[Target],
) -> Result<Vec<Reverted>, Error> {
    let mut changes = memory.changes(&machine.facts()?);
    changes.retain(|change| !theirs.contains(&change.target));
    undo(machine, changes, Force::Leave)
}

fn unread(journal: &Path, lost: UnreadableLine) -> Reverted {
    let path = format!("line {} of {}", lost.number, journal.display());
    Reverted {
        target: Target::File { path: path.clone() },
        path,
        outcome: RevertOutcome::Lost(lost.text),
    }
}

fn remaining(journal: &Path, error: &Error) -> Reverted {
    let path = journal.display().to_string();
    let why = std::error::Error::source(error);
    let why = why.map_or_else(|| error.to_string(), ToString::to_string);
    Reverted {
        target: Target::File { path: path.clone() },
        path,
        outcome: RevertOutcome::Remains(why),
    }
}

fn undo(
    machine: &mut impl Machine,
    mut changes: Vec<Change>,
    force: Force,
) -> Result<Vec<Reverted>, Error> {
    changes.sort_by_key(|change| step_back(&change.target));
    let facts = machine.facts()?;
    let theirs: Vec<Option<String>> = changes
        .iter()
        .map(|change| conflict(machine, &facts, change))
        .collect();
    let mut reverted = Vec::new();
    let mut facts = facts;
    let mut has_reset = false;
    for (change, theirs) in changes.iter().zip(theirs) {
        if has_reset && !resets_queues(&change.target) {
            facts = machine.facts()?;
            has_reset = false;
        }
        let outcome = match theirs {
            Some(theirs) if force == Force::Leave => RevertOutcome::Conflict(theirs),
            _ => restore(machine, &facts, change),
        };
        has_reset |= resets_queues(&change.target) && outcome == RevertOutcome::Restored;
        reverted.push(Reverted {
            target: change.target.clone(),
            path: name(&change.target, &facts),
            outcome,
        });
    }
    Ok(reverted)
}

/// Order of undoing, the same as of applying: numbers of queues first. But services that move interrupts start last.
fn step_back(target: &Target) -> u8 {
    match target {
        Target::Service { .. } => u8::MAX,
        other => other.step(),
    }
}

fn name(target: &Target, facts: &Facts) -> String {
    Location::of(target, facts).map_or_else(|| target.to_string(), |place| place.to_string())
}

/// Value that another program has set in place of ours.
fn conflict(machine: &impl Machine, facts: &Facts, change: &Change) -> Option<String> {
    let place = Location::of(&change.target, facts)?;
    let now = machine.get(&place).ok()?;
    // Values lost by a reset have no value of ours to compare with, and for changes not read back it is unknown.
    let ours = change.ours.as_ref().filter(|_| change.is_seen)?;
    let spelling = ValueFormat::of(&place.to_string());
    let is_known = spelling.is_same(&now, ours) || spelling.is_same(&now, &change.before);
    (!is_known).then(|| now.trim().to_owned())
}

fn restore(machine: &mut impl Machine, facts: &Facts, change: &Change) -> RevertOutcome {
    let Some(place) = Location::of(&change.target, facts) else {
        return RevertOutcome::Gone;
    };
    let now = match machine.get(&place) {
        Ok(now) => now,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return RevertOutcome::Gone,
        Err(error) => return RevertOutcome::Refused(words(&error, &change.target)),
    };
    if now == change.before {
        return RevertOutcome::Unchanged;
    }
    if let Err(error) = machine.put(&place, &change.before) {
        return RevertOutcome::Refused(words(&error, &change.target));
    }
    match machine.get(&place) {
        Ok(now) if ValueFormat::of(&place.to_string()).is_same(&now, &change.before) => {
            RevertOutcome::Restored
        }
        Ok(now) => RevertOutcome::Refused(format!(
            "the kernel keeps {} instead of {}",
            now.trim(),
            change.before.trim()
        )),
        Err(error) => RevertOutcome::Refused(words(&error, &change.target)),
    }
}

/// Current state of each change in a journal.
pub fn status(machine: &impl Machine, journal: &Journal) -> Result<Vec<ChangeStatus>, Error> {
    change_status(machine, journal.changes())
}

/// Current state of changes, except values lost by a reset.
pub fn change_status(
    machine: &impl Machine,
    changes: Vec<Change>,
) -> Result<Vec<ChangeStatus>, Error> {
    let facts = machine.facts()?;
    let status_of = |change: Change| {
        let ours = change.ours?;
        let place = Location::of(&change.target, &facts);
        let now = place.as_ref().and_then(|place| machine.get(place).ok());
        let path = name(&change.target, &facts);
        let is_in_force = now
            .as_ref()
            .is_some_and(|now| ValueFormat::of(&path).is_same(now, &ours));
        Some(ChangeStatus {
            target: change.target,
            path,
            before: change.before.trim().to_owned(),
            ours: ours.trim().to_owned(),
            now: now.map(|now| now.trim().to_owned()),
            is_in_force,
        })
    };
    Ok(changes.into_iter().filter_map(status_of).collect())
}
