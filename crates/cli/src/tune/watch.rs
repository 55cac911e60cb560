//! Undoes the changes of a killed process. A second process watches the first; if both are killed, the next `onrush
//! tune` command that changes the machine undoes them.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use onrush_tune::apply::{self, Force, Journal, Root};

use super::arguments::UndoWhenKilled;
use super::extent::Extent;
use super::journal::{known_journal, life, with_remedy};
use super::lines::reverted_line;
use super::print::say;
use super::wait::{StopSignals, wait_for_process};

/// Starts a process that undoes the changes of this one if this one is killed. It takes the lock of all `onrush tune` commands,
/// so it does nothing while this process runs.
pub(super) fn start(root: &Path) {
    let started = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .args(["tune", "undo-when-killed"])
            .arg(std::process::id().to_string())
            .arg("--root")
            .arg(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
    });
    if let Err(error) = started {
        say(&format!(
            "cannot start the process that undoes this when this one is killed ({error}): the next `onrush tune apply` does"
        ));
    }
}

/// Waits until the watched process ends, and undoes the run that it did not undo.
pub(super) fn run(args: &UndoWhenKilled) -> anyhow::Result<ExitCode> {
    // Ctrl-C and the end of the terminal must reach the other process only.
    let _ = rustix::process::setsid();
    // An error means that the process has already ended.
    let _ = wait_for_process(args.process, &StopSignals::never(), None);
    undo_abandoned(&mut Root::open(&args.place.root)?)?;
    Ok(Extent::Whole.code())
}

/// Undoes the last run if the process that had to undo it was killed. Returns whether it was.
pub(super) fn undo_abandoned(machine: &mut Root) -> anyhow::Result<bool> {
    let path = Journal::path_below(machine.path())?;
    let glance = Journal::summary(&path, life(machine))?;
    let guard = glance.and_then(|glance| glance.guard());
    let Some(guard) = guard.filter(|guard| !guard.runs()) else {
        return Ok(false);
    };
    let Some(journal) = known_journal(machine)? else {
        return Ok(false);
    };
    // The journal may have a newer run by now.
    let Some(run) = journal.abandoned() else {
        return Ok(false);
    };
    say(&format!(
        "process {} was killed before it undid its changes: undoing them",
        guard.process
    ));
    let reverted = apply::revert_since(machine, journal, run, Force::Leave).map_err(with_remedy)?;
    reverted
        .iter()
        .for_each(|change| say(reverted_line(change).trim_end()));
    Ok(true)
}
