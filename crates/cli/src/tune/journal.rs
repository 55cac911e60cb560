//! The journal of this machine, opened as people want to hear of it.

use std::path::Path;

use onrush_tune::apply::{self, Journal, Life, Lost, Root, User};

use super::print::say;

pub(super) fn open_journal(machine: &Root) -> anyhow::Result<Journal> {
    let path = Journal::path_below(machine.path())?;
    let journal = Journal::open_telling(&path, life(machine), || say_waiting(&path));
    let journal = journal.map_err(with_remedy)?;
    for lost in journal.lost() {
        say_lost(&lost, &path);
    }
    Ok(journal)
}

/// Says what of a journal cannot be read.
pub(super) fn say_lost(lost: &Lost, path: &Path) {
    say(&format!(
        "line {} of the journal {} cannot be read: whether what it says is in force is not known, and `onrush tune revert` \
         does not undo it: {}",
        lost.number,
        path.display(),
        lost.text
    ));
}

/// An error of the journal, and what to do about it.
pub(super) fn with_remedy(error: onrush_tune::Error) -> anyhow::Error {
    let user = match rustix::process::geteuid().is_root() {
        true => User::Root,
        false => User::Other,
    };
    match apply::remedy(&error, user) {
        Some(remedy) => anyhow::anyhow!("{:#}: {remedy}", anyhow::Error::from(error)),
        None => error.into(),
    }
}

pub(super) fn life(machine: &Root) -> Life {
    Life::of(machine, onrush_engine::network_namespace_cookie)
}

/// The journal to undo what it says, if anything is applied.
pub(super) fn known_journal(machine: &Root) -> anyhow::Result<Option<Journal>> {
    let path = Journal::path_below(machine.path())?;
    Journal::open_to_undo(&path, life(machine), || say_waiting(&path)).map_err(with_remedy)
}

fn say_waiting(path: &Path) {
    say(&format!(
        "waiting for another onrush tune, which has the journal {}",
        path.display()
    ));
}
