//! Opens the journal of this machine, with messages for the user.

use std::path::Path;

use onrush_tune::apply::{self, Journal, JournalScope, Root, UnreadableLine, User};

use super::print::say;

pub(super) fn open_journal(machine: &Root) -> anyhow::Result<Journal> {
    let path = Journal::path_below(machine.path())?;
    let journal = Journal::open_with_notice(&path, life(machine), || say_waiting(&path));
    let journal = journal.map_err(with_remedy)?;
    for lost in journal.lost() {
        say_lost(&lost, &path);
    }
    Ok(journal)
}

/// Reports a line of the journal that cannot be read.
pub(super) fn say_lost(lost: &UnreadableLine, path: &Path) {
    say(&format!(
        "line {} of the journal {} cannot be read: its change may be in force, and `onrush tune revert` does not undo it: {}",
        lost.number,
        path.display(),
        lost.text
    ));
}

/// Adds advice to an error of the journal.
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

pub(super) fn life(machine: &Root) -> JournalScope {
    JournalScope::of(machine, onrush_engine::network_namespace_cookie)
}

/// Opens the journal for undoing, if anything is applied.
pub(super) fn known_journal(machine: &Root) -> anyhow::Result<Option<Journal>> {
    let path = Journal::path_below(machine.path())?;
    Journal::open_to_undo(&path, life(machine), || say_waiting(&path)).map_err(with_remedy)
}

fn say_waiting(path: &Path) {
    say(&format!(
        "waiting for another onrush tune, which has locked the journal {}",
        path.display()
    ));
}
