//! `onrush tune`: what a machine needs to serve fast, below any root or from a snapshot; and changing it.

mod session;

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use onrush_config::value::parse_duration;
use onrush_tune::advise::{self, Goal, Queues, Request, Role};
use onrush_tune::apply::{
    self, Applied, Awake, Back, Force, Journal, Life, Machine, Outcome, Reverted, Root, Run,
};
use onrush_tune::diagnose::{self, Confidence};
use onrush_tune::facts::{self, Counts};
use onrush_tune::report;
use onrush_tune::search::{self, End, Road, Trials, Unmeasured};
use onrush_tune::show::{self, View};
use onrush_tune::tree::{self, Tree};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use session::Session;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Something was refused, is in conflict, or is not in force.
const PARTLY: u8 = 3;

/// How often a waiting `apply` looks whether it was confirmed, told to stop, or its program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Reads the machine, plans, and changes nothing unless it is told to.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush tune plan                            what to change for a server on this machine, and why
  onrush tune plan --goal latency --json      the same for short waits, for programs
  onrush tune snapshot -o machine.json        one file with everything that was read
  onrush tune plan --root machine.json        the plan for that machine, anywhere
  onrush tune apply --confirm-within 60s      do it, and undo it unless `onrush tune confirm` says in time that all is well
  onrush tune apply --for 'onrush serve …'    do it for as long as a program runs
  onrush tune status                          what is in force, and what somebody else has changed
  onrush tune revert                          undo it
  onrush tune show --svg machine.svg          a picture: which CPU does what, coloured by load
  onrush tune diagnose --for 10s              while load runs: what is full, and what would help
  onrush tune search --measure ./measure.sh   try what matters, keep what is better

Exit codes: 0 done, 1 nothing could be done, 3 something was refused, is in conflict or is not in force.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Save everything that was read of the machine in one file
    Snapshot(Snapshot),
    /// Say what to change and why; change nothing
    Plan(Plan),
    /// Change what the plan says, with a journal that can undo it
    Apply(Apply),
    /// Say in time that an apply that waits for it may stay
    Confirm(Place),
    /// Undo what was applied
    Revert(Revert),
    /// Say what is in force and what is not any more
    Status(Status),
    /// Draw the machine: nodes, cores, siblings, and what each CPU does for the network
    Show(Show),
    /// Say what is full while load runs
    Diagnose(Diagnose),
    /// Try settings one at a time with a measurement of yours, and keep what is better
    Search(Search),
}

/// Where facts come from.
#[derive(clap::Args)]
struct Place {
    /// The root directory of a machine, or a snapshot of one
    #[arg(long, value_name = "DIR|SNAPSHOT", default_value = "/")]
    root: PathBuf,
}

impl Place {
    fn tree(&self) -> anyhow::Result<Tree> {
        Ok(Tree::open(&self.root)?.asking(onrush_engine::driver_counters))
    }
}

#[derive(clap::Args)]
struct Snapshot {
    #[command(flatten)]
    place: Place,
    /// Write it here; it holds names of processes and interfaces, no addresses
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Include the limits of this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

/// What is wished for.
#[derive(clap::Args)]
struct Wish {
    /// What matters more
    #[arg(long, value_enum, default_value = "throughput")]
    goal: GoalName,
    /// What the application does
    #[arg(long, value_enum, default_value = "server")]
    role: RoleName,
    /// Plan for this interface; repeatable. A bond or VLAN stands for its devices [default: every device that is up]
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// Leave the number of queues as it is: changing it resets the interface for a moment
    #[arg(long)]
    keep_queues: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum GoalName {
    Throughput,
    Latency,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    Server,
    Proxy,
    Client,
}

impl Wish {
    fn request(&self) -> Request {
        Request {
            goal: match self.goal {
                GoalName::Throughput => Goal::Throughput,
                GoalName::Latency => Goal::Latency,
            },
            role: match self.role {
                RoleName::Server => Role::Server,
                RoleName::Proxy => Role::Proxy,
                RoleName::Client => Role::Client,
            },
            interfaces: self.interfaces.clone(),
            queues: if self.keep_queues {
                Queues::Keep
            } else {
                Queues::Change
            },
        }
    }
}

#[derive(clap::Args)]
struct Plan {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wish: Wish,
    /// Look at the limits of this process, too
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// For programs
    #[arg(long, conflicts_with = "script")]
    json: bool,
    /// As a shell script
    #[arg(long)]
    script: bool,
}

#[derive(clap::Args)]
struct Apply {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wish: Wish,
    /// Undo everything after this time unless `onrush tune confirm` was run; also on Ctrl-C or when the session ends
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "during")]
    confirm_within: Option<Duration>,
    /// Undo everything when this process ends, or run this command and undo everything when it ends
    #[arg(long = "for", id = "during", value_name = "PID|COMMAND")]
    during: Option<String>,
    /// Do it at every boot, too: write a file of settings and a systemd unit, and list them
    #[arg(long, conflicts_with_all = ["confirm_within", "during"])]
    persist: bool,
    /// For programs
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Revert {
    #[command(flatten)]
    place: Place,
    /// Overwrite what somebody else has changed since
    #[arg(long)]
    force: bool,
    /// Remove the files that `apply --persist` wrote, too
    #[arg(long)]
    persist: bool,
    /// For programs
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Status {
    #[command(flatten)]
    place: Place,
    /// For programs
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Show {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wish: Wish,
    /// As the plan would have it instead of as it is
    #[arg(long)]
    planned: bool,
    /// Draw it into this file instead of printing it
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How long to look at the load
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    time: Duration,
    /// Mark the CPUs that the threads of this process run on
    #[arg(long, value_name = "PID", conflicts_with = "planned")]
    pid: Option<u32>,
}

#[derive(clap::Args)]
struct Diagnose {
    #[command(flatten)]
    place: Place,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// Look at this process, too: its threads and CPUs, files and sockets; until it ends, if that is sooner
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// For programs
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Search {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wish: Wish,
    /// A command whose last word printed is a number that is better when larger
    #[arg(long, value_name = "COMMAND")]
    measure: String,
    /// Try CPUs for the threads of this process and of those that it started, too
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// How often each change is measured beside the best so far
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    turns: u8,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// Runs a verb, and says how it went.
pub(crate) fn run(args: Args) -> ExitCode {
    let outcome = match args.verb {
        Verb::Snapshot(args) => snapshot(&args),
        Verb::Plan(args) => plan(&args),
        Verb::Apply(args) => apply(&args),
        Verb::Confirm(place) => confirm(&place),
        Verb::Revert(args) => revert(&args),
        Verb::Status(args) => status(&args),
        Verb::Show(args) => show(&args),
        Verb::Diagnose(args) => diagnose(&args),
        Verb::Search(args) => search(&args),
    };
    outcome.unwrap_or_else(|error| {
        say(&format!("onrush tune: {error:#}"));
        ExitCode::from(1)
    })
}

fn snapshot(args: &Snapshot) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    tree.record();
    facts::read(&tree, args.pid)?;
    tree::write_snapshot(&tree.recorded(), &args.output)?;
    Ok(ExitCode::SUCCESS)
}

fn plan(args: &Plan) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    let facts = facts::read(&tree, args.pid)?;
    let mut plan = advise::plan(&facts, &args.wish.request())?;
    plan.notes.extend(Session::of(&tree, &facts).note());
    print(&match (args.json, args.script) {
        (true, _) => format!("{}\n", serde_json::to_string_pretty(&plan)?),
        (_, true) => report::script(&plan),
        _ => report::text(&plan),
    })
}

/// Prints to standard output. A reader that has seen enough (`| head`) is no failure.
fn print(text: &str) -> anyhow::Result<ExitCode> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints lines for people: names of a machine tell a terminal nothing.
fn print_lines(lines: &str) -> anyhow::Result<ExitCode> {
    print(&report::printable(lines))
}

fn apply(args: &Apply) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&args.place.root)?;
    let request = args.wish.request();
    let facts = machine.facts()?;
    facts.check_namespace()?;
    if args.persist {
        apply::check_persist(machine.path())?;
    }
    let plan = advise::plan(&facts, &request)?;
    if args.confirm_within.is_none() && args.during.is_none() {
        Session::of(&args.place.tree()?, &facts).check(&plan)?;
    }
    let mut journal = match open_journal(&machine) {
        Ok(journal) => journal,
        Err(error) => {
            // What it would have done is worth knowing all the same.
            print(&report::text(&plan))?;
            return Err(error);
        }
    };
    let stop = Stop::listen(args.confirm_within.is_some() || args.during.is_some())?;
    let made = apply::apply(&mut machine, &request, &mut journal);
    let run = journal
        .last_run()
        .filter(|run| !journal.changes_since(*run).is_empty());
    if args.confirm_within.is_none() && args.during.is_none() {
        let is_done = told(args, &made?)?;
        if args.persist {
            persist(&machine, &plan, &journal)?;
        }
        close(journal)?;
        return Ok(code(is_done));
    }
    // From here on nothing may end this before what was changed is undone: no reader that has left, no full disk.
    let waits = match (&made, args.confirm_within, run) {
        (Ok(_), Some(_), Some(_)) => journal.wait(),
        _ => Ok(()),
    };
    close(journal)?;
    let is_done = made
        .and_then(|applied| waits.map(|()| applied))
        .map_err(anyhow::Error::from)
        .and_then(|applied| told(args, &applied));
    let (wish, place) = (&request, &facts);
    let outcome = is_done.and_then(|is_done| match (&args.during, args.confirm_within, run) {
        (Some(during), ..) => last(during, &stop, || apply::stay_awake(&machine, place, wish)),
        (None, Some(time), Some(run)) => {
            say(&format!(
                "undone in {time:?} unless you run `onrush tune confirm`"
            ));
            wait_for_confirmation(&machine, run, time, &stop)?;
            Ok(code(is_done))
        }
        _ => Ok(code(is_done)),
    });
    let Some(run) = run else {
        return outcome;
    };
    match undo_run(&mut machine, run)? {
        Undone::Confirmed => {
            say("confirmed");
            outcome
        }
        Undone::All if args.during.is_some() => outcome,
        Undone::All | Undone::Partly => outcome.map(|_| ExitCode::from(PARTLY)),
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

/// Lets others have the journal, if there is anything in it.
fn close(journal: Journal) -> Result<(), onrush_tune::Error> {
    match journal.changes().is_empty() {
        true => journal.remove(),
        false => Ok(()),
    }
}

/// Waits for a program, with CPUs kept awake meanwhile where that is wished for.
fn last(
    during: &str,
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
    wait_for_program(during, stop)
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
    let reverted = apply::revert_since(machine, journal, run, Force::Leave)?;
    // It is done, whether anybody reads of it or not.
    let _ = print_lines(&reverted.iter().map(reverted_line).collect::<String>());
    Ok(match reverted.iter().all(Reverted::is_settled) {
        true => Undone::All,
        false => Undone::Partly,
    })
}

/// Says something on standard error, as long as there is one: a session that ends takes it along.
fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{}", report::printable(words));
}

fn open_journal(machine: &Root) -> anyhow::Result<Journal> {
    let path = Journal::path_below(machine.path())?;
    let waits = || {
        say(&format!(
            "waiting for another onrush tune, which has the journal {}",
            path.display()
        ));
    };
    Journal::open_telling(&path, life(machine), waits).context(
        "changing the machine takes root (CAP_NET_ADMIN for queues and the network's settings, root for interrupts); \
         a plan does not",
    )
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

/// Signals that mean stop, where something has to be undone first.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn listen(is_needed: bool) -> io::Result<Stop> {
        let asked = Arc::new(AtomicBool::new(false));
        if is_needed {
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                signal_hook::flag::register(signal, Arc::clone(&asked))?;
            }
        }
        Ok(Stop(asked))
    }

    fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
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

/// Waits until a process ends, or runs a command and waits for it; its exit code is ours.
fn wait_for_program(during: &str, stop: &Stop) -> anyhow::Result<ExitCode> {
    if let Ok(number) = during.parse::<i32>() {
        wait_for_process(number, stop, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    // A group of its own, so that all of it can be told to end and nothing of it runs on without what it was started for.
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(during)
        .process_group(0)
        .spawn()
        .context("cannot run a shell")?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(ExitCode::from(code.unwrap_or(1)));
        }
        if stop.is_asked() && !is_told {
            is_told = true;
            tell_to_end(&child);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Waits until a process of somebody else ends, a time has come, or we are told to stop.
fn wait_for_process(number: i32, stop: &Stop, deadline: Option<Instant>) -> anyhow::Result<()> {
    let process = Pid::from_raw(number).with_context(|| format!("{number} is no process"))?;
    let descriptor = pidfd_open(process, PidfdFlags::empty())
        .with_context(|| format!("there is no process {number} to wait for"))?;
    let mut ended = [rustix::event::PollFd::new(
        &descriptor,
        rustix::event::PollFlags::IN,
    )];
    let timeout = LOOK_EVERY
        .try_into()
        .context("a tenth of a second is a time")?;
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    while !stop.is_asked() && !is_over() && ended[0].revents().is_empty() {
        match rustix::event::poll(&mut ended, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}

fn tell_to_end(child: &Child) {
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended in this moment; then the next look says so.
        let _ = kill_process_group(process, Signal::TERM);
    }
}

fn confirm(place: &Place) -> anyhow::Result<ExitCode> {
    let machine = Root::open(&place.root)?;
    let Some(mut journal) = known_journal(&machine)? else {
        anyhow::bail!("nothing is applied, so there is nothing to confirm");
    };
    if !journal.is_waiting() {
        anyhow::bail!("nothing waits to be confirmed; `onrush tune status` says what is in force");
    }
    journal.confirm()?;
    Ok(ExitCode::SUCCESS)
}

fn revert(args: &Revert) -> anyhow::Result<ExitCode> {
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
    let reverted = apply::revert(machine, journal, force)?;
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
    }
}

fn status(args: &Status) -> anyhow::Result<ExitCode> {
    let machine = Root::open(&args.place.root)?;
    let path = Journal::path_below(machine.path())?;
    let standing = match Journal::glance(&path, life(&machine))? {
        Some(glance) => {
            if glance.is_held {
                say("a change is under way: this is how it stands in this moment");
            }
            apply::standing(&machine, glance.changes)?
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
    Ok(code(standing.iter().all(|change| change.is_in_force)))
}

fn standing_line(change: &apply::Standing) -> String {
    let target = change.target.to_string();
    match (&change.now, change.is_in_force) {
        (_, true) => format!("in force {target:<44} {}\n", change.ours),
        (Some(now), false) => format!("drifted  {target:<44} {now}, was set to {}\n", change.ours),
        (None, false) => format!("gone     {target}\n"),
    }
}

fn show(args: &Show) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    let facts = facts::read(&tree, None)?;
    let (before, after) = readings(&tree, args.time, args.pid)?;
    let view = match args.planned {
        true => View::planned(&advise::plan(&facts, &args.wish.request())?.placement),
        false => View::now(&facts, after.process.as_ref()),
    };
    let loads = diagnose::loads(&before, &after);
    let Some(file) = &args.svg else {
        return print(&show::text(&facts, &view, &loads));
    };
    std::fs::write(file, show::svg(&facts, &view, &loads))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// What was counted at the beginning and the end of a time. A recorded machine stands still: its counts are those since
/// its start.
fn readings(tree: &Tree, time: Duration, process: Option<u32>) -> anyhow::Result<(Counts, Counts)> {
    let before = facts::counts(tree, process);
    if let (Some(number), None) = (process, &before.process) {
        anyhow::bail!("there is no process {number} here");
    }
    if !tree.is_live() {
        return Ok((Counts::default(), before));
    }
    let Some(number) = process else {
        thread::sleep(time);
        return Ok((before, facts::counts(tree, None)));
    };
    // A process that has ended says nothing more: what it said last is kept.
    let deadline = Instant::now() + time;
    let mut after = before.clone();
    while Instant::now() < deadline {
        let step = deadline.min(Instant::now() + Duration::from_secs(1));
        let is_there = wait_for_process(i32::try_from(number)?, &Stop::listen(false)?, Some(step));
        let counts = facts::counts(tree, Some(number));
        if is_there.is_err() || counts.process.is_none() {
            break;
        }
        after = counts;
    }
    Ok((before, after))
}

fn diagnose(args: &Diagnose) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    let facts = facts::read(&tree, None)?;
    let (before, after) = readings(&tree, args.time, args.pid)?;
    let findings = diagnose::judge(&facts, &before, &after);
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&findings)?));
    }
    let lines = findings.iter().map(|finding| {
        let confidence = match finding.confidence {
            Confidence::High => "sure    ",
            Confidence::Medium => "likely  ",
            Confidence::Low => "possible",
        };
        format!(
            "{confidence} {}\n         what helps: {}\n",
            finding.evidence, finding.remedy
        )
    });
    print_lines(&lines.collect::<String>())
}

fn search(args: &Search) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&args.place.root)?.with_process(args.pid);
    let facts = machine.facts()?;
    facts.check_namespace()?;
    if let Some(number) = args.pid.filter(|_| facts.application.is_empty()) {
        anyhow::bail!("there is no process {number} here");
    }
    if !args.wish.keep_queues {
        let plan = advise::plan(&facts, &args.wish.request())?;
        Session::of(&args.place.tree()?, &facts).check_search(&plan)?;
    }
    let mut journal = open_journal(&machine)?;
    let stop = Stop::listen(true)?;
    let mut measure = || {
        let measured = measured(&args.measure);
        // What was told to stop with us has failed for that reason.
        if stop.is_asked() {
            return Err(Unmeasured::Stopped);
        }
        measured.map_err(Unmeasured::Failed)
    };
    // A search takes long: rows are printed as they come, and a reader who has left does not end it.
    let mut tell = |road: &Road| {
        if !args.json && road.end == End::Whole {
            let _ = print_lines(&search::last_row(road));
        }
    };
    let trials = Trials {
        turns: usize::from(args.turns),
        measure: &mut measure,
        tell: &mut tell,
    };
    let road = search::search(&mut machine, &args.wish.request(), &mut journal, trials)?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&road)?))?;
    }
    match &road.end {
        End::Whole => {}
        End::Stopped => say("stopped: the rest was not tried, and what was being tried is undone"),
        End::Stuck(why) => say(&format!(
            "what was being tried could not be put back, so the rest was not tried: {why}; `onrush tune revert` tries again"
        )),
    }
    if road.steps.iter().any(|step| step.is_kept) {
        say("what was kept is in force; `onrush tune revert` undoes it");
    } else {
        journal.remove_if_undone()?;
        say("nothing was kept");
    }
    Ok(code(road.end == End::Whole))
}

/// Runs a command and reads the last word it prints as a number.
fn measured(command: &str) -> Result<f64, String> {
    let output = Command::new("sh").arg("-c").arg(command).output();
    let output = output.map_err(|error| format!("cannot run a shell: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "the measurement failed ({}): {}",
            output.status,
            words.trim()
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.split_whitespace().next_back().unwrap_or_default();
    let number = last.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("the measurement's last word is no number: {last:?}"))
}

fn code(is_done: bool) -> ExitCode {
    if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(PARTLY)
    }
}
