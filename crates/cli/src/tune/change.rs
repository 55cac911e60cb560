//! What changes a machine, and what tells of it: `apply`, `confirm`, `revert`, `status`.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use onrush_tune::advise;
use onrush_tune::apply::{
    self, Applied, Awake, Back, Force, Journal, Life, Machine, Outcome, Reverted, Root, Run,
    Stopped, User,
};
use onrush_tune::facts::Facts;
use onrush_tune::report;

use super::arguments::{Apply, Lasts, Place, Revert, Status};
use super::session::Session;
use super::wait::{LOOK_EVERY, Stop, check_process, wait_for};
use super::{PARTLY, code, print, print_lines, say};

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
    let made = apply::apply(&mut machine, &request, &mut journal);
    if is_guarded {
        return until_undone(args, machine, &facts, journal, made, &stop);
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
fn split(made: Result<Vec<Applied>, Stopped>) -> (Vec<Applied>, Option<onrush_tune::Error>) {
    match made {
        Ok(applied) => (applied, None),
        Err(Stopped { applied, cause }) => (applied, Some(cause)),
    }
}

/// Lets what was changed be, for as long as it is to last, and undoes it unless it was confirmed. Nothing may end this
/// before: no reader that has left, no full disk.
fn until_undone(
    args: &Apply,
    mut machine: Root,
    facts: &Facts,
    mut journal: Journal,
    made: Result<Vec<Applied>, Stopped>,
    stop: &Stop,
) -> anyhow::Result<ExitCode> {
    let run = journal
        .last_run()
        .filter(|run| !journal.changes_since(*run).is_empty());
    let noted = match (&made, args.confirm_within, run) {
        (Ok(_), Some(_), Some(_)) => journal.wait(),
        _ => Ok(()),
    };
    let noted = noted.and(journal.remove_if_undone());
    let outcome = (|| {
        let (applied, stopped) = split(made);
        let is_done = told(args, &applied)?;
        if let Some(cause) = stopped {
            return Err(with_remedy(cause));
        }
        noted.map_err(with_remedy)?;
        match (&args.during, args.confirm_within, run) {
            (Some(during), ..) => last(during, stop, || {
                apply::stay_awake(&machine, facts, &args.wish.request())
            }),
            (None, Some(time), Some(run)) => {
                say(&format!(
                    "undone in {time:?} unless you run `onrush tune confirm`"
                ));
                wait_for_confirmation(&machine, run, time, stop)?;
                Ok(code(is_done))
            }
            _ => Ok(code(is_done)),
        }
    })();
    let Some(run) = run else {
        return outcome;
    };
    match undo_run(&mut machine, run)? {
        Undone::Confirmed => {
            say("confirmed");
            outcome
        }
        Undone::All if args.during.is_some() => outcome,
        Undone::All => outcome.map(|_| ExitCode::from(PARTLY)),
        Undone::Partly => {
            if let Err(error) = outcome {
                say(&format!("onrush tune: {error:#}"));
            }
            say("what is left stands; `onrush tune revert` tries again");
            Ok(ExitCode::from(PARTLY))
        }
    }
}

/// Prints what became of each change; whether all were made.
fn told(args: &Apply, applied: &[Applied]) -> anyhow::Result<bool> {
    match args.json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(applied)?))?,
        false => print_lines(&applied.iter().map(applied_line).collect::<String>())?,
    };
    let is_refused = |change: &Applied| matches!(change.outcome, Outcome::Refused(_));
    Ok(!applied.iter().any(is_refused))
}

/// Waits for a program, with CPUs kept awake meanwhile where that is wished for.
fn last(
    during: &Lasts,
    stop: &Stop,
    stay_awake: impl FnOnce() -> Option<Result<Awake, String>>,
) -> anyhow::Result<ExitCode> {
    let awake = stay_awake();
    match &awake {
        Some(Ok(awake)) => say(&format!(
            "CPUs wake up within {} us until it ends (/dev/cpu_dma_latency)",
            awake.limit
        )),
        Some(Err(why)) => say(&format!("CPUs may sleep deeply: {why}")),
        None => {}
    }
    wait_for(during, stop)
}

/// How it ended with a run that was to be undone.
enum Undone {
    All,
    /// Something is left, which was said.
    Partly,
    /// It was confirmed in time, and stays.
    Confirmed,
}

/// Undoes what one run has changed, unless it was confirmed. What others have changed stays.
fn undo_run(machine: &mut Root, run: Run) -> anyhow::Result<Undone> {
    let Some(journal) = known_journal(machine)? else {
        return Ok(Undone::All); // somebody has undone everything
    };
    if journal.changes_since(run).is_empty() {
        return Ok(Undone::All);
    }
    if journal.last_run() != Some(run) {
        say(
            "another onrush tune came after this one and builds on it: nothing is undone until `onrush tune revert`",
        );
        return Ok(Undone::Partly);
    }
    // Under the lock: who confirms later is told that there is nothing to confirm.
    if journal.is_confirmed() {
        return Ok(Undone::Confirmed);
    }
    if journal.is_waiting() {
        say("not confirmed: undoing");
    }
    let reverted = apply::revert_since(machine, journal, run, Force::Leave).map_err(with_remedy)?;
    // It is done, whether anybody reads of it or not.
    let _ = print_lines(&reverted.iter().map(reverted_line).collect::<String>());
    Ok(match reverted.iter().all(Reverted::is_settled) {
        true => Undone::All,
        false => Undone::Partly,
    })
}

/// Waits until a run is confirmed, the time is over, or we are told to stop; or until somebody else has undone it.
fn wait_for_confirmation(
    machine: &Root,
    run: Run,
    time: Duration,
    stop: &Stop,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + time;
    let path = Journal::path_below(machine.path())?;
    let is_waiting = || -> anyhow::Result<bool> {
        let glance = Journal::glance(&path, life(machine))?;
        Ok(glance.is_some_and(|glance| glance.waiting == Some(run)))
    };
    while Instant::now() < deadline && !stop.is_asked() && is_waiting()? {
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

pub(super) fn open_journal(machine: &Root) -> anyhow::Result<Journal> {
    let path = Journal::path_below(machine.path())?;
    let waits = || {
        say(&format!(
            "waiting for another onrush tune, which has the journal {}",
            path.display()
        ));
    };
    Journal::open_telling(&path, life(machine), waits).map_err(with_remedy)
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

fn life(machine: &Root) -> Life {
    Life::of(machine, onrush_engine::network_namespace_cookie)
}

/// The journal, if anything is applied.
fn known_journal(machine: &Root) -> anyhow::Result<Option<Journal>> {
    match Journal::exists(&Journal::path_below(machine.path())?) {
        true => open_journal(machine).map(Some),
        false => Ok(None),
    }
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
    if args.persist {
        for path in apply::unpersist(machine.path())? {
            print(&format!("removed  {}\n", path.display()))?;
        }
    }
    let force = if args.force {
        Force::Overwrite
    } else {
        Force::Leave
    };
    undo(&mut machine, force, args.json).map(code)
}

/// Undoes what the journal says, and prints how it went; whether nothing is left to undo.
fn undo(machine: &mut Root, force: Force, json: bool) -> anyhow::Result<bool> {
    let Some(journal) = known_journal(machine)? else {
        if !json {
            print("nothing is applied\n")?;
        }
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

fn reverted_line(change: &Reverted) -> String {
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
                say(&format!(
                    "line {} of the journal {} cannot be read: whether what it says is in force is not known, and `onrush tune \
                     revert` does not undo it: {}",
                    lost.number,
                    path.display(),
                    lost.text
                ));
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
