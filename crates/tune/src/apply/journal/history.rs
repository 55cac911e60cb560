//! Lines of a journal, and the changes that they describe.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::guard::Guard;
use super::identity::Identity;
use crate::advise::{Request, Target};
use crate::apply::journal_scope::JournalScope;
use crate::apply::reset::resets_queues;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Begin {
        schema: u32,
        boot: String,
        /// Cookie of the network namespace; `None` if the kernel did not report it, and in journals of older versions.
        #[serde(default)]
        namespace: Option<u64>,
        version: String,
        made: Option<PathBuf>,
    },
    /// Identity of the interface that has this name from here on, to find it again after it is renamed.
    Bearer {
        name: String,
        identity: Identity,
    },
    /// Unreadable line; its contents are lost. Never written.
    #[serde(skip)]
    Lost(UnreadableLine),
    /// Request of a run that begins.
    Wish {
        request: Request,
        #[serde(default)]
        run: Run,
    },
    /// Process that undoes the run at its timeout.
    Guard(Guard),
    /// The run waits for confirmation; without it, it is undone.
    Waits,
    Change {
        target: Target,
        before: String,
        wrote: String,
    },
    /// Value that a reset of the device is about to lose, to be restored with it.
    Keep {
        target: Target,
        before: String,
    },
    Kept {
        target: Target,
        kept: String,
    },
    Refused {
        target: Target,
    },
    Confirmed,
}

impl Line {
    /// JSON with a newline.
    pub(super) fn text(&self) -> io::Result<String> {
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        Ok(text + "\n")
    }
}

impl JournalScope {
    pub(super) fn first_line(&self, made: Option<&PathBuf>) -> io::Result<String> {
        let line = Line::Begin {
            schema: SCHEMA,
            boot: self.boot.clone(),
            namespace: self.namespace,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made: made.cloned(),
        };
        line.text()
    }
}

pub(super) fn lost(lines: &[Line]) -> Vec<UnreadableLine> {
    let lost = lines.iter().filter_map(|line| match line {
        Line::Lost(lost) => Some(lost.clone()),
        _ => None,
    });
    lost.collect()
}

/// Identifies a run in a journal: an apply, or a step of a search. Made of the PID and the position in the journal, so
/// that it is unique while the process lives, even if the journal is removed and created again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Run(pub(super) u64);

/// An unreadable line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLine {
    /// Line number, from 1.
    pub number: usize,
    /// Start of the line.
    pub text: String,
}

/// The combined changes of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Target.
    pub target: Target,
    /// Value before the first change, byte for byte.
    pub before: String,
    /// Expected value: what the kernel kept after the last change, or what was written when the writer died before
    /// reading it back. `None` for values that a reset of the device lost.
    pub ours: Option<String>,
    /// Whether it was read back; false for the change during which the writer died.
    pub is_seen: bool,
}

/// Changes in some lines in order of their first change, without refused ones.
pub(super) fn changes(lines: &[Line]) -> Vec<Change> {
    let mut order: Vec<Target> = Vec::new();
    let mut changes: BTreeMap<Target, Change> = BTreeMap::new();
    // State before a change that may still be refused.
    let mut pending: BTreeMap<Target, Option<Change>> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Change {
                target,
                before,
                wrote,
            } => {
                pending.insert(target.clone(), changes.get(target).cloned());
                if !order.contains(target) {
                    order.push(target.clone());
                }
                let before = changes
                    .get(target)
                    .map_or(before, |change| &change.before)
                    .clone();
                let change = Change {
                    target: target.clone(),
                    before,
                    ours: Some(wrote.clone()),
                    is_seen: false,
                };
                changes.insert(target.clone(), change);
            }
            Line::Keep { target, before } => {
                if !order.contains(target) {
                    order.push(target.clone());
                    let change = Change {
                        target: target.clone(),
                        before: before.clone(),
                        ours: None,
                        is_seen: false,
                    };
                    changes.insert(target.clone(), change);
                }
            }
            Line::Kept { target, kept } => {
                if let Some(change) = changes.get_mut(target) {
                    change.ours = Some(kept.clone());
                    change.is_seen = true;
                }
            }
            Line::Refused { target } => {
                match pending.remove(target).flatten() {
                    Some(earlier) => drop(changes.insert(target.clone(), earlier)),
                    None => drop(changes.remove(target)),
                }
                forget_kept(target, &mut changes);
                order.retain(|known| changes.contains_key(known));
            }
            Line::Begin { .. }
            | Line::Bearer { .. }
            | Line::Lost(_)
            | Line::Wish { .. }
            | Line::Guard(_)
            | Line::Waits
            | Line::Confirmed => {}
        }
    }
    order
        .into_iter()
        .filter_map(|target| changes.remove(&target))
        .collect()
}

/// Forgets values that a reset was about to lose, if the change that causes it was refused and there was no other.
fn forget_kept(refused: &Target, changes: &mut BTreeMap<Target, Change>) {
    let is_of_it = |target: &Target| target.interface() == refused.interface();
    let is_reset = |target: &Target| is_of_it(target) && resets_queues(target);
    if resets_queues(refused) && !changes.keys().any(is_reset) {
        changes.retain(|target, change| change.ours.is_some() || !is_of_it(target));
    }
}

/// Version of the format. Version 1 has no identities of interfaces, which are found by name; version 2 has no guards.
pub(super) const SCHEMA: u32 = 3;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::apply::Journal;

    fn setting(file: &str) -> Target {
        Target::Setting {
            file: file.to_owned(),
        }
    }

    #[test]
    fn run_with_unreadable_line_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        let wish = |journal: &mut Journal, file: &str| {
            journal.record_request(&Request::default()).expect("noted");
            journal.change(&setting(file), "1\n", "2").expect("noted");
            journal.kept(&setting(file), "2\n").expect("noted");
            journal.last_run().expect("a run")
        };
        let mut journal = Journal::open(&path, "b").expect("open");
        wish(&mut journal, "first");
        let run = wish(&mut journal, "second");
        drop(journal);
        let whole = fs::read_to_string(&path).expect("read");
        let lines: Vec<&str> = whole.lines().collect();
        // After the run's beginning, at its end, and in an earlier run; only the last lets the run be forgotten.
        for (at, lost, kept) in [(5, 1, 7), (6, 1, 7), (2, 0, 4)] {
            let mut damaged = lines.clone();
            damaged[at] = "{\"kept\":{\"tar";
            let text = damaged.join("\n") + "\n";
            fs::write(&path, &text).expect("written");
            let journal = Journal::open(&path, "b").expect("open");
            assert!(journal.knows(run));
            assert_eq!(journal.forget_since(run).expect("possible").len(), lost);
            let left = fs::read_to_string(&path).expect("read");
            let expected: String = text.split_inclusive('\n').take(kept).collect();
            assert_eq!(left, expected, "damaged at {at}");
        }
    }
}
