//! What changes a machine, and what tells of it: `apply`, `confirm`, `revert`, `status`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use onrush_tune::advise;
use onrush_tune::apply::{
    self, Applied, Back, Force, Journal, Life, Lost, Machine, Outcome, Reverted, Root, Stopped,
    User,
};
use onrush_tune::report;

use super::arguments::{Apply, Lasts, Place, Revert, Status};
use super::guard::Made;
use super::session::Session;
use super::wait::{Stop, check_process};
use super::{PARTLY, code, guard, print, print_lines, say};

pub(super) fn apply(args: &Apply) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&args.place.root)?;
    let request = args.wish.request();
    let facts = machine.facts()?;
    facts.check_namespace()?;
    if args.persist {
        apply::check_persist(machine.path())?;
    }
    let plan = advise::plan(&facts, &request)?;
    if let Some(Lasts::Process(number)) = &args.during {
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
            // What it would have done is worth knowing all the same.
            let columns = super::columns().unwrap_or(report::COLUMNS);
            print(&report::text(&plan, columns))?;
            return Err(error);
        }
    };
    let stop = Stop::listen(is_guarded)?;
    let earlier = journal.last_run();
    let made = apply::apply(&mut machine, &request, &mut journal);
    if is_guarded {
        let made = Made { earlier, made };
        return guard::until_undone(args, machine, &facts, journal, made, &stop);
    }
    let (applied, stopped) = split(made);
    let is_done = told(args, &applied)?;
    let ended = match (stopped, args.persist) {
        (Some(cause), _) => Err(with_remedy(cause)),
        (None, true) => persist(&machine, &plan, &journal),
        (None, false) => Ok(()),
    };
    let ended = ended.and(journal.remove_if_undone().map_err(with_remedy));
    let Err(error) = ended else {
        return Ok(code(is_done));
    };
    let stand = applied.iter().filter(|change| change.stands()).count();
    if stand == 0 {
        return Err(error);
    }
    say(&format!("onrush tune: {error:#}"));
    say(&format!(
        "{stand} changes stand; `onrush tune revert` undoes them"
    ));
    Ok(ExitCode::from(PARTLY))
}

/// What was done, and why not more.
pub(super) fn split(
    made: Result<Vec<Applied>, Stopped>,
) -> (Vec<Applied>, Option<onrush_tune::Error>) {
    match made {
        Ok(applied) => (applied, None),
        Err(Stopped { applied, cause }) => (applied, Some(cause)),
    }
}

/// Prints what became of each change; whether all were made.
pub(super) fn told(args: &Apply, applied: &[Applied]) -> anyhow::Result<bool> {
    match args.json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(applied)?))?,
        false => print_lines(&applied.iter().map(applied_line).collect::<String>())?,
    };
    let is_refused = |change: &Applied| matches!(change.outcome, Outcome::Refused(_));
    Ok(!applied.iter().any(is_refused))
}

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
fn say_lost(lost: &Lost, path: &Path) {
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

fn applied_line(change: &Applied) -> String {
    let values = format!("{} -> {}", change.before, change.proposed);
    match &change.outcome {
        Outcome::Done => format!("done     {:<44} {values}\n", change.target.to_string()),
        Outcome::Adjusted(kept) => {
            format!(
                "adjusted {:<44} {values}, the kernel kept {kept}\n",
                change.target.to_string()
            )
        }
        Outcome::Refused(why) => format!(
            "refused  {:<44} {values}: {why}\n",
            change.target.to_string()
        ),
    }
}

fn persist(machine: &Root, plan: &advise::Plan, journal: &Journal) -> anyhow::Result<()> {
    let in_force = apply::status(machine, journal)?;
    let setting = |change: &apply::Standing| match &change.target {
        advise::Target::Setting { file } => Some((file.clone(), change.ours.clone())),
        _ => None,
    };
    let settings: Vec<_> = in_force.iter().filter_map(setting).collect();
    let program =
        std::env::current_exe().context("cannot find this program's own file for the unit")?;
    for path in apply::persist(machine.path(), plan, &settings, &program)? {
        print(&format!("written  {}\n", path.display()))?;
    }
    Ok(())
}

pub(super) fn confirm(place: &Place) -> anyhow::Result<ExitCode> {
    let machine = Root::open(&place.root)?;
    let Some(mut journal) = known_journal(&machine)? else {
        anyhow::bail!("nothing is applied, so there is nothing to confirm");
    };
    if !journal.is_waiting() {
        anyhow::bail!("nothing waits to be confirmed; `onrush tune status` says what is in force");
    }
    journal.confirm().map_err(with_remedy)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn revert(args: &Revert) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&args.place.root)?;
    let force = if args.force {
        Force::Overwrite
    } else {
        Force::Leave
    };
    // Neither keeps the other from being done.
    let removed = match args.persist {
        true => apply::unpersist(machine.path()).map_err(anyhow::Error::from),
        false => Ok(Vec::new()),
    };
    let undone = undo(&mut machine, force, args.json);
    for path in removed.iter().flatten().filter(|_| !args.json) {
        print(&format!("removed  {}\n", path.display()))?;
    }
    if let (Err(error), Err(_)) = (&removed, &undone) {
        say(&format!("onrush tune: {error:#}"));
    }
    let is_undone = undone?;
    removed.map(|_| code(is_undone))
}

/// Undoes what the journal says, and prints how it went; whether nothing is left to undo.
fn undo(machine: &mut Root, force: Force, json: bool) -> anyhow::Result<bool> {
    let Some(journal) = known_journal(machine)? else {
        print(if json { "[]\n" } else { "nothing is applied\n" })?;
        return Ok(true);
    };
    let reverted = apply::revert(machine, journal, force).map_err(with_remedy)?;
    if reverted.is_empty() && !json {
        print("nothing is applied\n")?;
    }
    match json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(&reverted)?))?,
        false => print_lines(&reverted.iter().map(reverted_line).collect::<String>())?,
    };
    Ok(reverted.iter().all(Reverted::is_settled))
}

pub(super) fn reverted_line(change: &Reverted) -> String {
    let target = change.target.to_string();
    match &change.outcome {
        Back::Restored => format!("restored {target}\n"),
        Back::Unchanged => format!("as it was {target}\n"),
        Back::Gone => format!("gone     {target}\n"),
        Back::Conflict(theirs) => {
            format!(
                "conflict {target}: somebody else has set it to {theirs}; --force overwrites that\n"
            )
        }
        Back::Refused(why) => format!("refused  {target}: {why}\n"),
        Back::Remains(why) => {
            format!("remains  {target}: what it says is undone, and it cannot be changed: {why}\n")
        }
        Back::Lost(text) => format!(
            "lost     {target} cannot be read, and what it said is not undone; the file is kept: {text}\n"
        ),
    }
}

pub(super) fn status(args: &Status) -> anyhow::Result<ExitCode> {
    let machine = Root::open(&args.place.root)?;
    let path = Journal::path_below(machine.path())?;
    let mut is_whole = true;
    let standing = match Journal::glance(&path, life(&machine))? {
        Some(glance) => {
            if glance.is_held {
                say("a change is under way: this is how it stands in this moment");
            }
            for lost in &glance.lost {
                is_whole = false;
                say_lost(lost, &path);
            }
            apply::standing(&machine, glance.changes(&machine.facts()?))?
        }
        None => Vec::new(),
    };
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&standing)?))?;
    } else {
        let lines: String = standing.iter().map(standing_line).collect();
        print_lines(&lines)?;
        if standing.is_empty() {
            print("nothing is applied\n")?;
        }
        for path in apply::persisted(machine.path()) {
            print(&format!("at boot  {}\n", path.display()))?;
        }
    }
    Ok(code(
        is_whole && standing.iter().all(|change| change.is_in_force),
    ))
}

fn standing_line(change: &apply::Standing) -> String {
    let target = change.target.to_string();
    match (&change.now, change.is_in_force) {
        (_, true) => format!("in force {target:<44} {}\n", change.ours),
        (Some(now), false) => format!("drifted  {target:<44} {now}, was set to {}\n", change.ours),
        (None, false) => format!("gone     {target}\n"),
    }
}
