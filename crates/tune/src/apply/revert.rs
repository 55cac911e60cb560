//! Changing a machine back, and saying what is in force.

use std::path::Path;

use serde::Serialize;

use super::journal::{Change, Journal, Lost, Memory, Run};
use super::machine::{Machine, Place};
use super::reset::resets_queues;
use super::words;
use crate::Error;
use crate::advise::{Spelling, Target};
use crate::facts::Facts;

/// What to do about values that somebody else has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// They are theirs: reported and left alone.
    Leave,
    /// They are overwritten with what was there before us.
    Overwrite,
}

/// What became of one change when it was reverted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// What was changed.
    #[serde(skip)]
    pub target: Target,
    /// Where it is, or what it is called when it is gone.
    pub path: String,
    /// How it ended.
    pub outcome: Back,
}

/// How going back ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Back {
    /// It is as it was before.
    Restored,
    /// It was as before already.
    Unchanged,
    /// Somebody else changed it to this; it was left alone.
    Conflict(String),
    /// The device is gone, and its values with it.
    Gone,
    /// The kernel refused; the sentence says why.
    Refused(String),
    /// A line of the journal that cannot be read, and how it begins: what it said is not undone.
    Lost(String),
    /// The journal itself: what it says was undone, but it could not be changed; the sentence says why.
    Remains(String),
}

impl Reverted {
    /// Whether nothing is left to do about it.
    pub fn is_settled(&self) -> bool {
        matches!(self.outcome, Back::Restored | Back::Unchanged | Back::Gone)
    }
}

/// How one change stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// What was changed.
    #[serde(skip)]
    pub target: Target,
    /// Where it is, or what it is called when it is gone.
    pub path: String,
    /// What was there before.
    pub before: String,
    /// What we put there.
    pub ours: String,
    /// What is there now; none when it is gone.
    pub now: Option<String>,
    /// Whether that is what we put there.
    pub is_in_force: bool,
}

/// Restores what the journal says was changed, and removes the journal when nothing is left; with lines that cannot be read
/// it is put aside instead, under the path that the last of these says. A journal that cannot be removed is one of those
/// outcomes.
///
/// Everything is compared before anything is written, since giving a device its old number of queues changes what there
/// is to compare. Changes that could not be restored stay in the journal.
pub fn revert(
    machine: &mut impl Machine,
    mut journal: Journal,
    force: Force,
) -> Result<Vec<Reverted>, Error> {
    journal.follow(&machine.facts()?);
    let mut reverted = undo(machine, journal.changes(), force)?;
    let is_settled = reverted.iter().all(Reverted::is_settled);
    let lost: Vec<Lost> = journal.lost().collect();
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

/// Restores what was changed since a run began to what it was then, and makes the journal forget it.
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

/// Restores what a run has changed whose journal has gone, but for targets that others have changed since. Values that are
/// not ours any more are left alone.
pub fn revert_remembered(
    machine: &mut impl Machine,
    memory: Memory,
    theirs: &[Target],
) -> Result<Vec<Reverted>, Error> {
    let mut changes = memory.changes(&machine.facts()?);
    changes.retain(|change| !theirs.contains(&change.target));
    undo(machine, changes, Force::Leave)
}

fn unread(journal: &Path, lost: Lost) -> Reverted {
    let path = format!("line {} of {}", lost.number, journal.display());
    Reverted {
        target: Target::File { path: path.clone() },
        path,
        outcome: Back::Lost(lost.text),
    }
}

fn remaining(journal: &Path, error: &Error) -> Reverted {
    let path = journal.display().to_string();
    let why = std::error::Error::source(error);
    let why = why.map_or_else(|| error.to_string(), ToString::to_string);
    Reverted {
        target: Target::File { path: path.clone() },
        path,
        outcome: Back::Remains(why),
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
            Some(theirs) if force == Force::Leave => Back::Conflict(theirs),
            _ => restore(machine, &facts, change),
        };
        has_reset |= resets_queues(&change.target) && outcome == Back::Restored;
        reverted.push(Reverted {
            target: change.target.clone(),
            path: name(&change.target, &facts),
            outcome,
        });
    }
    Ok(reverted)
}

/// The order of going back is that of going there, since numbers of queues come first both times; but a program that
/// moves interrupts starts again only when they are back.
fn step_back(target: &Target) -> u8 {
    match target {
        Target::Service { .. } => u8::MAX,
        other => other.step(),
    }
}

fn name(target: &Target, facts: &Facts) -> String {
    Place::of(target, facts).map_or_else(|| target.to_string(), |place| place.to_string())
}

/// What somebody else put where we had put something.
fn conflict(machine: &impl Machine, facts: &Facts, change: &Change) -> Option<String> {
    let place = Place::of(&change.target, facts)?;
    let now = machine.get(&place).ok()?;
    // What a reset lost has no value of ours to compare with, and of what was not seen nobody knows what the kernel kept.
    let ours = change.ours.as_ref().filter(|_| change.is_seen)?;
    let spelling = Spelling::of(&place.to_string());
    let is_known = spelling.is_same(&now, ours) || spelling.is_same(&now, &change.before);
    (!is_known).then(|| now.trim().to_owned())
}

fn restore(machine: &mut impl Machine, facts: &Facts, change: &Change) -> Back {
    let Some(place) = Place::of(&change.target, facts) else {
        return Back::Gone;
    };
    let now = match machine.get(&place) {
        Ok(now) => now,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Back::Gone,
        Err(error) => return Back::Refused(words(&error, &change.target)),
    };
    if now == change.before {
        return Back::Unchanged;
    }
    if let Err(error) = machine.put(&place, &change.before) {
        return Back::Refused(words(&error, &change.target));
    }
    match machine.get(&place) {
        Ok(now) if Spelling::of(&place.to_string()).is_same(&now, &change.before) => Back::Restored,
        Ok(now) => Back::Refused(format!(
            "the kernel keeps {} instead of {}",
            now.trim(),
            change.before.trim()
        )),
        Err(error) => Back::Refused(words(&error, &change.target)),
    }
}

/// How each change of a journal stands.
pub fn status(machine: &impl Machine, journal: &Journal) -> Result<Vec<Standing>, Error> {
    standing(machine, journal.changes())
}

/// How changes stand, without those of which only what was there before is known.
pub fn standing(machine: &impl Machine, changes: Vec<Change>) -> Result<Vec<Standing>, Error> {
    let facts = machine.facts()?;
    let standing = |change: Change| {
        let ours = change.ours?;
        let place = Place::of(&change.target, &facts);
        let now = place.as_ref().and_then(|place| machine.get(place).ok());
        let path = name(&change.target, &facts);
        let is_in_force = now
            .as_ref()
            .is_some_and(|now| Spelling::of(&path).is_same(now, &ours));
        Some(Standing {
            target: change.target,
            path,
            before: change.before.trim().to_owned(),
            ours: ours.trim().to_owned(),
            now: now.map(|now| now.trim().to_owned()),
            is_in_force,
        })
    };
    Ok(changes.into_iter().filter_map(standing).collect())
}
