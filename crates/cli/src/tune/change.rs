//! Subcommands that change a machine or report changes: `apply`, `confirm`, `revert`, `status`.

use std::process::ExitCode;

use anyhow::Context;
use onrush_tune::advise;
use onrush_tune::apply::{self, Force, Guard, Journal, Machine, Reverted, Root, Run};
use onrush_tune::report;

use super::arguments::{Apply, DurationSpec, Place, Revert, Status};
use super::extent::Extent;
use super::guard;
use super::guard::AppliedRun;
use super::journal::{known_journal, life, open_journal, say_lost, with_remedy};
use super::lines::{print_applied, reverted_line, split, standing_line};
use super::print::{columns, print, print_lines, say};
use super::session::Session;
use super::wait::{StopSignals, check_process};
use super::watch;

pub(super) fn apply(args: &Apply) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&args.place.root)?;
    // Plan for the machine without the changes of a killed run.
    watch::undo_abandoned(&mut machine)?;
    let request = args.wish.request();
    let facts = machine.facts()?;
    facts.check_namespace()?;
    if args.persist {
        apply::check_persist(machine.path())?;
    }
    let plan = advise::plan(&facts, &request)?;
    if let Some(DurationSpec::Process(number)) = &args.during {
        // Before anything is changed for it.
        check_process(*number)?;
    }
    let is_guarded = args.confirm_within.is_some() || args.during.is_some();
    if !is_guarded {
        Session::of(&args.place.tree()?, &facts).check(&plan)?;
    }
    let reaches = plan
        .notes
        .iter()
        .find(|note| note.about == advise::THE_MACHINE);
    if let Some(note) = reaches {
        say(&format!("{} {}", note.about, note.text));
    }
    let mut journal = match open_journal(&machine) {
        Ok(journal) => journal,
        Err(error) => {
            // The plan is still useful to the user.
            let columns = columns().unwrap_or(report::COLUMNS);
            print(&report::text(&plan, columns))?;
            return Err(error);
        }
    };
    let stop = match is_guarded {
        true => StopSignals::listen()?,
        false => StopSignals::never(),
    };
    let earlier = journal.last_run();
    if is_guarded {
        journal.guard_by(Guard::own());
        watch::start(&args.place.root);
    }
    let made = apply::apply(&mut machine, &request, &mut journal);
    if is_guarded {
        let made = AppliedRun { earlier, made };
        return guard::until_undone(args, machine, &facts, journal, made, &stop);
    }
    let (applied, stopped) = split(made);
    let extent = print_applied(args, &applied)?;
    let ended = match (stopped, args.persist) {
        (Some(cause), _) => Err(with_remedy(cause)),
        (None, true) => persist(&machine, &plan, &journal),
        (None, false) => Ok(()),
    };
    let ended = ended.and(journal.remove_if_undone().map_err(with_remedy));
    let Err(error) = ended else {
        return Ok(extent.code());
    };
    let stand = applied.iter().filter(|change| change.took_effect()).count();
    if stand == 0 {
        return Err(error);
    }
    say(&format!("onrush tune: {error:#}"));
    say(&format!(
        "{stand} changes are in force; `onrush tune revert` undoes them"
    ));
    Ok(Extent::Partly.code())
}

fn persist(machine: &Root, plan: &advise::Plan, journal: &Journal) -> anyhow::Result<()> {
    let in_force = apply::status(machine, journal)?;
    let setting = |change: &apply::ChangeStatus| match &change.target {
        advise::Target::Setting { file } => Some((file.clone(), change.ours.clone())),
        _ => None,
    };
    let settings: Vec<_> = in_force.iter().filter_map(setting).collect();
    let program = std::env::current_exe()
        .context("cannot find the path of this program for the systemd unit")?;
    for path in apply::persist(machine.path(), plan, &settings, &program)? {
        print(&format!("written  {}\n", path.display()))?;
    }
    for warning in apply::overridden(&machine.facts()?) {
        say(&format!("warning: {warning}"));
    }
    Ok(())
}

pub(super) fn confirm(place: &Place) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&place.root)?;
    if watch::undo_abandoned(&mut machine)? {
        anyhow::bail!("the changes were not confirmed in time and are undone");
    }
    let Some(mut journal) = known_journal(&machine)? else {
        anyhow::bail!("no changes are applied: there is nothing to confirm");
    };
    if !journal.is_waiting() {
        anyhow::bail!(
            "no changes wait for confirmation; `onrush tune status` shows what is in force"
        );
    }
    journal.confirm().map_err(with_remedy)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn revert(args: &Revert) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&args.place.root)?;
    // A failure of one step does not prevent the other.
    let removed = match args.persist {
        true => apply::unpersist(machine.path()).map_err(anyhow::Error::from),
        false => Ok(Vec::new()),
    };
    let undone = undo(&mut machine, args);
    for path in removed.iter().flatten().filter(|_| !args.json) {
        print(&format!("removed  {}\n", path.display()))?;
    }
    if let (Err(error), Err(_)) = (&removed, &undone) {
        say(&format!("onrush tune: {error:#}"));
    }
    let extent = undone?;
    removed.map(|_| extent.code())
}

/// Undoes the changes in the journal, and prints the outcome.
fn undo(machine: &mut Root, args: &Revert) -> anyhow::Result<Extent> {
    let force = match args.force {
        true => Force::Overwrite,
        false => Force::Leave,
    };
    let Some(journal) = known_journal(machine)? else {
        print(if args.json {
            "[]\n"
        } else {
            "no changes are applied\n"
        })?;
        return Ok(Extent::Whole);
    };
    let reverted = apply::revert(machine, journal, force).map_err(with_remedy)?;
    if reverted.is_empty() && !args.json {
        print("no changes are applied\n")?;
    }
    match args.json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(&reverted)?))?,
        false => print_lines(&reverted.iter().map(reverted_line).collect::<String>())?,
    };
    Ok(match reverted.iter().all(Reverted::is_settled) {
        true => Extent::Whole,
        false => Extent::Partly,
    })
}

pub(super) fn status(args: &Status) -> anyhow::Result<ExitCode> {
    let machine = Root::open(&args.place.root)?;
    let path = Journal::path_below(machine.path())?;
    let mut is_whole = true;
    let mut until = None;
    let standing = match Journal::summary(&path, life(&machine))? {
        Some(glance) => {
            if glance.is_held {
                say("another onrush tune is making changes: this is the state at this moment");
            }
            for lost in &glance.lost {
                is_whole = false;
                say_lost(lost, &path);
            }
            if let Some(guard) = glance.guard() {
                is_whole &= guard.runs();
                until = Some(until_line(guard, glance.waiting));
            }
            apply::change_status(&machine, glance.changes(&machine.facts()?))?
        }
        None => Vec::new(),
    };
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&standing)?))?;
        until.iter().for_each(|line| say(line));
    } else {
        let lines: String = standing.iter().map(standing_line).collect();
        print_lines(&lines)?;
        if standing.is_empty() {
            print("no changes are applied\n")?;
        }
        if let Some(line) = until {
            print(&format!("until    {line}\n"))?;
        }
        for path in apply::persisted(machine.path()) {
            print(&format!("at boot  {}\n", path.display()))?;
        }
    }
    let extent = match is_whole && standing.iter().all(|change| change.is_in_force) {
        true => Extent::Whole,
        false => Extent::Partly,
    };
    Ok(extent.code())
}

/// Describes how long the changes of the last run stay.
fn until_line(guard: Guard, waiting: Option<Run>) -> String {
    let process = guard.process;
    match (guard.runs(), waiting) {
        (true, Some(_)) => {
            format!("process {process} undoes it unless `onrush tune confirm` confirms it in time")
        }
        (true, None) => format!("process {process} undoes it when its time is over"),
        (false, _) => format!(
            "process {process} was killed before it undid this: `onrush tune revert` undoes it, and so does the next \
             `onrush tune apply` or `search`"
        ),
    }
}
