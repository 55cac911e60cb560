//! Temporary changes: waits for their end and undoes them, even if the output or the journal cannot be written.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use onrush_tune::advise::Target;
use onrush_tune::apply::{
    self, Applied, ApplyError, CpuLatencyLimit, Force, Journal, RevertOutcome, Reverted, Root, Run,
    RunCopy,
};
use onrush_tune::facts::Facts;

use super::arguments::{Apply, DurationSpec};
use super::extent::Extent;
use super::journal::{known_journal, life, with_remedy};
use super::lines::{print_applied, reverted_line, split};
use super::print::{print_lines, say};
use super::wait::{LOOK_EVERY, StopSignals, wait_for};

/// The journal could not be read or changed when the run was undone: it may differ from the machine.
const UNRECORDED: u8 = 4;

/// Result of applying a plan.
pub(super) struct AppliedRun {
    /// The last run before this one.
    pub(super) earlier: Option<Run>,
    pub(super) made: Result<Vec<Applied>, ApplyError>,
}

/// Waits for as long as the changes last, and undoes them unless they were confirmed. No failed write may end it
/// earlier, such as a closed output or a full disk.
pub(super) fn until_undone(
    args: &Apply,
    mut machine: Root,
    facts: &Facts,
    mut journal: Journal,
    made: AppliedRun,
    stop: &StopSignals,
) -> anyhow::Result<ExitCode> {
    let AppliedRun { earlier, made } = made;
    // If the journal had no room for this run, its last run is an earlier one, which must not be undone here.
    let own = journal.last_run().filter(|run| Some(*run) != earlier);
    let run = own.filter(|run| !journal.changes_since(*run).is_empty());
    let memory = run.map(|run| (run, journal.memory_of(run)));
    let noted = match (&made, args.confirm_within, run) {
        (Ok(_), Some(_), Some(_)) => journal.wait(),
        _ => Ok(()),
    };
    let noted = noted.and(journal.remove_if_undone());
    let outcome = (|| {
        let (applied, stopped) = split(made);
        let extent = print_applied(args, &applied)?;
        if let Some(cause) = stopped {
            return Err(with_remedy(cause));
        }
        noted.map_err(with_remedy)?;
        match (&args.during, args.confirm_within, run) {
            (Some(during), ..) => wait_for_end(during, stop, || {
                apply::limit_cpu_latency(&machine, facts, &args.wish.request())
            }),
            (None, Some(time), Some(run)) => {
                say(&format!(
                    "undone in {time:?} unless you run `onrush tune confirm`"
                ));
                wait_for_confirmation(&machine, run, time, stop)?;
                Ok(extent.code())
            }
            _ => Ok(extent.code()),
        }
    })();
    let Some((run, memory)) = memory else {
        if let Some(run) = own {
            forget_unchanged(&machine, run);
        }
        return outcome;
    };
    let undone = undo_run(args, &mut machine, run, memory);
    if !matches!(undone, Ok(UndoOutcome::All | UndoOutcome::Confirmed))
        && let Err(error) = &outcome
    {
        say(&format!("onrush tune: {error:#}"));
    }
    match undone {
        Ok(UndoOutcome::Confirmed) => {
            say("confirmed");
            outcome
        }
        Ok(UndoOutcome::All) if args.during.is_some() => outcome,
        Ok(UndoOutcome::All) => outcome.map(|_| Extent::Partly.code()),
        Ok(UndoOutcome::Partly) => {
            say("some changes are still in force; `onrush tune revert` tries again");
            Ok(Extent::Partly.code())
        }
        Ok(UndoOutcome::Unrecorded) => Ok(ExitCode::from(UNRECORDED)),
        Err(error) => {
            say(&format!("onrush tune: {error:#}"));
            say("the changes of this run are still in force; `onrush tune revert` tries again");
            Ok(ExitCode::from(UNRECORDED))
        }
    }
}

/// Waits for the end, and keeps CPUs out of deep sleep meanwhile, if requested.
fn wait_for_end(
    during: &DurationSpec,
    stop: &StopSignals,
    stay_awake: impl FnOnce() -> Option<Result<CpuLatencyLimit, String>>,
) -> anyhow::Result<ExitCode> {
    let awake = stay_awake();
    match &awake {
        Some(Ok(awake)) => say(&format!(
            "CPU wake-up latency is limited to {} us until the end of this run (/dev/cpu_dma_latency)",
            awake.limit
        )),
        Some(Err(why)) => say(&format!("deep CPU sleep states are not disabled: {why}")),
        None => {}
    }
    wait_for(during, stop)
}

/// Removes a finished run without changes from the journal. If that fails, the earlier run remains visible in it.
fn forget_unchanged(machine: &Root, run: Run) {
    if let Ok(Some(journal)) = known_journal(machine)
        && journal.last_run() == Some(run)
        && journal.changes_since(run).is_empty()
    {
        let _ = journal.forget_since(run);
    }
}

/// Outcome of undoing a run.
enum UndoOutcome {
    All,
    /// Something is left; a message has been printed.
    Partly,
    /// It was confirmed in time, and stays.
    Confirmed,
    /// The journal was changed or cannot be updated; a message has been printed.
    Unrecorded,
}

/// Undoes the changes of one run, unless it was confirmed. Changes by others stay. If the journal no longer contains
/// the run, `memory` is used.
fn undo_run(
    args: &Apply,
    machine: &mut Root,
    run: Run,
    memory: RunCopy,
) -> anyhow::Result<UndoOutcome> {
    let path = memory.path().display().to_string();
    let journal = match known_journal(machine) {
        Ok(Some(journal)) => journal,
        Ok(None) => {
            return undo_remembered(
                args,
                machine,
                memory,
                &[],
                &format!("the journal {path} was removed"),
            );
        }
        Err(error) => {
            say(&format!("onrush tune: {error:#}"));
            let what = format!("the journal {path} cannot be read");
            undo_remembered(args, machine, memory, &[], &what)?;
            return Ok(UndoOutcome::Unrecorded);
        }
    };
    if !journal.knows(run) {
        let theirs: Vec<Target> = journal
            .changes()
            .into_iter()
            .map(|change| change.target)
            .collect();
        let what = format!("the journal {path} was replaced");
        return undo_remembered(args, machine, memory, &theirs, &what);
    }
    if journal.changes_since(run).is_empty() {
        return Ok(UndoOutcome::All);
    }
    if journal.last_run() != Some(run) {
        say(
            "a later onrush tune builds on the changes of this one: nothing is undone until `onrush tune revert`",
        );
        return Ok(UndoOutcome::Partly);
    }
    // Under the lock: a later `confirm` fails, as there is nothing to confirm.
    if journal.is_confirmed() {
        return Ok(UndoOutcome::Confirmed);
    }
    if journal.is_waiting() {
        say("not confirmed: undoing");
    }
    let reverted = apply::revert_since(machine, journal, run, Force::Leave).map_err(with_remedy)?;
    tell(args, &reverted);
    let remains = |change: &&Reverted| matches!(change.outcome, RevertOutcome::Remains(_));
    if let Some(journal) = reverted.iter().find(remains) {
        say(&format!(
            "{}; `onrush tune revert` does it when it can",
            reverted_line(journal).trim_end()
        ));
        return Ok(UndoOutcome::Unrecorded);
    }
    Ok(match reverted.iter().all(Reverted::is_settled) {
        true => UndoOutcome::All,
        false => UndoOutcome::Partly,
    })
}

/// Undoes the changes from `memory`, because the journal no longer contains them. Targets that others have changed
/// since are left alone.
fn undo_remembered(
    args: &Apply,
    machine: &mut Root,
    memory: RunCopy,
    theirs: &[Target],
    what: &str,
) -> anyhow::Result<UndoOutcome> {
    let reverted = apply::revert_run_copy(machine, memory, theirs)?;
    let is_as_before = |change: &Reverted| {
        matches!(
            change.outcome,
            RevertOutcome::Unchanged | RevertOutcome::Gone
        )
    };
    if reverted.iter().all(is_as_before) {
        say(&format!(
            "{what}: the changes of this run were already undone by another program, such as `onrush tune revert`"
        ));
        return Ok(UndoOutcome::All);
    }
    say(&format!(
        "{what} while the changes of this run were in force: they are undone, but earlier changes are no longer recorded"
    ));
    tell(args, &reverted);
    let left: String = reverted
        .iter()
        .filter(|change| !change.is_settled())
        .map(reverted_line)
        .collect();
    for line in left.lines() {
        say(line);
    }
    Ok(UndoOutcome::Unrecorded)
}

/// Prints the outcome; failed writes are ignored, as the changes are already undone.
fn tell(args: &Apply, reverted: &[Reverted]) {
    let lines: String = reverted.iter().map(reverted_line).collect();
    if args.json {
        // Standard output holds one JSON document.
        for line in lines.lines() {
            say(line);
        }
        return;
    }
    let _ = print_lines(&lines);
}

/// Waits until a run is confirmed, another process undoes it, the time is over, or a signal arrives.
fn wait_for_confirmation(
    machine: &Root,
    run: Run,
    time: Duration,
    stop: &StopSignals,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + time;
    let path = Journal::path_below(machine.path())?;
    let is_waiting = || -> anyhow::Result<bool> {
        let glance = Journal::summary(&path, life(machine))?;
        Ok(glance.is_some_and(|glance| glance.waiting == Some(run)))
    };
    while Instant::now() < deadline && !stop.is_asked() && is_waiting()? {
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
