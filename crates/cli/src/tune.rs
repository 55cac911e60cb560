//! `onrush tune`: what a machine needs to serve fast, below any root or from a snapshot; and changing it.

mod arguments;
mod change;
mod guard;
mod search;
mod session;
mod wait;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use onrush_file::Output;
use onrush_tune::advise;
use onrush_tune::diagnose::{self, Confidence};
use onrush_tune::facts::{self, Counts};
use onrush_tune::report;
use onrush_tune::show::{self, View};
use onrush_tune::tree::{self, Tree};

pub(crate) use arguments::Args;
use arguments::{Diagnose, Place, Plan, Show, Snapshot, Verb};
use session::Session;
use wait::{Stop, wait_for_process};

use crate::terminal;

/// Something was refused, is in conflict, or is not in force.
const PARTLY: u8 = 3;

/// Runs a verb, and says how it went.
pub(crate) fn run(args: Args) -> ExitCode {
    let outcome = match args.verb {
        Verb::Snapshot(args) => snapshot(&args),
        Verb::Plan(args) => plan(&args),
        Verb::Apply(args) => change::apply(&args),
        Verb::Confirm(place) => change::confirm(&place),
        Verb::Revert(args) => change::revert(&args),
        Verb::Status(args) => change::status(&args),
        Verb::Show(args) => show(&args),
        Verb::Diagnose(args) => diagnose(&args),
        Verb::Search(args) => search::search(&args),
    };
    outcome.unwrap_or_else(|error| {
        say(&format!("onrush tune: {error:#}"));
        ExitCode::from(1)
    })
}

fn snapshot(args: &Snapshot) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    let file = output("-o", &args.output, &args.place)?;
    check_process(&tree, args.pid)?;
    tree.record();
    facts::read(&tree, args.pid)?;
    tree::write_snapshot(&tree.recorded(), file)?;
    Ok(ExitCode::SUCCESS)
}

/// The file that a flag names, which is looked at before the work and is not what that reads.
fn output(flag: &str, path: &Path, place: &Place) -> anyhow::Result<Output> {
    let file =
        Output::new(path).with_context(|| format!("{} cannot be written", path.display()))?;
    if file.is_same(&place.root) {
        anyhow::bail!(
            "{flag} would overwrite {}, which is read: name another file",
            place.root.display()
        );
    }
    Ok(file)
}

/// Whether there is a process whose limits are asked for: every one has some (proc_pid_limits(5)).
fn check_process(tree: &Tree, process: Option<u32>) -> anyhow::Result<()> {
    match process {
        Some(number) if tree.text(&format!("/proc/{number}/limits")).is_none() => {
            anyhow::bail!("there is no process {number} here")
        }
        _ => Ok(()),
    }
}

fn plan(args: &Plan) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    check_process(&tree, args.pid)?;
    let facts = facts::read(&tree, args.pid)?;
    let mut plan = advise::plan(&facts, &args.wish.request())?;
    plan.notes.extend(Session::of(&tree, &facts).note());
    print(&match (args.json, args.script) {
        (true, _) => format!("{}\n", serde_json::to_string_pretty(&plan)?),
        (_, true) => report::script(&plan),
        _ => report::text(&plan, columns().unwrap_or(report::COLUMNS)),
    })
}

/// Prints to standard output. What cannot be written there is an exit code at the end, and keeps nothing from being done.
fn print(text: &str) -> anyhow::Result<ExitCode> {
    terminal::write_raw(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Prints lines for people: names of a machine tell a terminal nothing.
fn print_lines(lines: &str) -> anyhow::Result<ExitCode> {
    print(&report::printable(lines))
}

/// Says something on standard error, as long as there is one: a session that ends takes it along.
fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{}", report::one_line(words));
}

/// The columns of the terminal that is printed to, which COLUMNS may say otherwise; none when it is no terminal.
fn columns() -> Option<usize> {
    /// Narrower ones are no use to anybody, and may be a mistake.
    const COLUMNS_MIN: usize = 40;
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let seen = || {
        let is_terminal = io::stdout().is_terminal();
        let size = is_terminal.then(ratatui::crossterm::terminal::size)?;
        size.ok().map(|(columns, _)| usize::from(columns))
    };
    said.or_else(seen)
        .map(|columns: usize| columns.max(COLUMNS_MIN))
}

fn show(args: &Show) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    let file = args.svg.as_ref();
    let file = file.map(|path| output("--svg", path, &args.place));
    let file = file.transpose()?;
    let facts = facts::read(&tree, None)?;
    let (before, after) = readings(&tree, args.time, args.pid)?;
    let view = match args.planned {
        true => View::planned(&advise::plan(&facts, &args.wish.request())?.placement),
        false => View::now(&facts, after.process.as_ref()),
    };
    let loads = diagnose::loads(&before, &after);
    let Some(file) = file else {
        let columns = columns().unwrap_or(usize::MAX);
        return print(&show::text(&facts, &view, &loads, columns));
    };
    let path = file.path().to_owned();
    file.write(|out| out.write_all(show::svg(&facts, &view, &loads).as_bytes()))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// What was counted at the beginning and the end of a time. A recorded machine stands still: its counts are those since
/// its start.
fn readings(tree: &Tree, time: Duration, process: Option<u32>) -> anyhow::Result<(Counts, Counts)> {
    let mut before = facts::counts(tree, process);
    if let (Some(number), None) = (process, &before.process) {
        anyhow::bail!("there is no process {number} here");
    }
    if !tree.is_live() {
        before.unread = Some(facts::unread(tree, process));
        return Ok((Counts::default(), before));
    }
    let Some(number) = process else {
        thread::sleep(time);
        let mut after = facts::counts(tree, None);
        after.unread = Some(facts::unread(tree, None));
        return Ok((before, after));
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
    after.unread = Some(facts::unread(tree, Some(number)));
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
    let columns = columns().unwrap_or(usize::MAX);
    let lines = findings.iter().map(|finding| {
        let confidence = match finding.confidence {
            Confidence::High => "sure    ",
            Confidence::Medium => "likely  ",
            Confidence::Low => "possible",
        };
        let evidence = report::wrapped(&format!("{confidence} "), &finding.evidence, columns);
        let remedy = report::wrapped("         what helps: ", &finding.remedy, columns);
        format!("{evidence}\n{remedy}\n")
    });
    print_lines(&lines.collect::<String>())
}

fn code(is_done: bool) -> ExitCode {
    if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(PARTLY)
    }
}
