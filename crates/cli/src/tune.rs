//! `onrush tune`: plans, applies and checks the tuning of a machine, below any root or from a snapshot.

mod arguments;
mod change;
mod guard;
mod journal;
mod search;
mod session;
mod wait;
mod watch;

mod extent;
mod lines;
mod print;

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use onrush_file::Output;
use onrush_tune::advise;
use onrush_tune::diagnose::{self, Confidence, Limiter};
use onrush_tune::facts::{self, Counts};
use onrush_tune::report;
use onrush_tune::show::{self, View};
use onrush_tune::tree::{self, Tree};

pub(crate) use arguments::Args;
use arguments::{Diagnose, Place, Plan, Show, Snapshot, Verb};
use print::{columns, print, print_lines, say};
use session::Session;
use wait::{StopSignals, wait_for_process};

/// Runs the subcommand and returns the exit code.
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
        Verb::UndoWhenKilled(args) => watch::run(&args),
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

/// Opens the output file before the work starts; refuses a file that is also read.
fn output(flag: &str, path: &Path, place: &Place) -> anyhow::Result<Output> {
    let file =
        Output::new(path).with_context(|| format!("{} cannot be written", path.display()))?;
    if file.is_same(&place.root) {
        anyhow::bail!(
            "{flag} would overwrite the input {}: name another file",
            place.root.display()
        );
    }
    Ok(file)
}

/// Checks that the process exists: each process has limits (proc_pid_limits(5)).
fn check_process(tree: &Tree, process: Option<u32>) -> anyhow::Result<()> {
    match process {
        Some(number) if tree.text(&format!("/proc/{number}/limits")).is_none() => {
            anyhow::bail!("process {number} does not exist")
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

/// Counters at the beginning and the end of an interval. A recorded machine has only the counts since its start.
fn readings(tree: &Tree, time: Duration, process: Option<u32>) -> anyhow::Result<(Counts, Counts)> {
    let mut before = facts::counts(tree, process);
    if let (Some(number), None) = (process, &before.process) {
        anyhow::bail!("process {number} does not exist");
    }
    if !tree.is_live() {
        before.unread = Some(facts::unread(tree, process));
        return Ok((Counts::default(), before));
    }
    let mut after = before.clone();
    wait_until(tree, Instant::now() + time, process, &mut after)?;
    if process.is_none() {
        after = facts::counts(tree, None);
    }
    Ok((before, after))
}

/// Two readings, with samples of queues between them and the CPU time of every process.
fn watched(tree: &Tree, time: Duration, process: Option<u32>) -> anyhow::Result<(Counts, Counts)> {
    if !tree.is_live() {
        return readings(tree, time, process);
    }
    let programs = facts::programs(tree);
    let mut samples = vec![facts::sample(tree, process)];
    let mut before = facts::counts(tree, process);
    if let (Some(number), None) = (process, &before.process) {
        anyhow::bail!("process {number} does not exist");
    }
    before.programs = Some(programs);
    let begin = Instant::now();
    let mut after = before.clone();
    for number in 1..=facts::sample::SAMPLES {
        let next = begin + time * number / facts::sample::SAMPLES;
        if !wait_until(tree, next, process, &mut after)? {
            break;
        }
        samples.push(facts::sample(tree, process));
    }
    if process.is_none() {
        after = facts::counts(tree, None);
    }
    after.unread = Some(facts::unread(tree, process));
    after.programs = Some(facts::programs(tree));
    after.samples = samples;
    Ok((before, after))
}

/// Waits until `end` and updates the counts of a process each second. Returns false when the process has ended; its
/// last counts are kept.
fn wait_until(
    tree: &Tree,
    end: Instant,
    process: Option<u32>,
    last: &mut Counts,
) -> anyhow::Result<bool> {
    let Some(number) = process else {
        thread::sleep(end.saturating_duration_since(Instant::now()));
        return Ok(true);
    };
    loop {
        let step = end.min(Instant::now() + Duration::from_secs(1));
        let is_there = wait_for_process(i32::try_from(number)?, &StopSignals::never(), Some(step));
        let counts = facts::counts(tree, Some(number));
        if is_there.is_err() || counts.process.is_none() {
            return Ok(false);
        }
        *last = counts;
        if Instant::now() >= end {
            return Ok(true);
        }
    }
}

fn diagnose(args: &Diagnose) -> anyhow::Result<ExitCode> {
    let tree = args.place.tree()?;
    let facts = facts::read(&tree, None)?;
    let (before, after) = watched(&tree, args.time, args.pid)?;
    let findings = diagnose::judge(&facts, &before, &after);
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&findings)?));
    }
    let columns = columns().unwrap_or(usize::MAX);
    let lines = findings.iter().map(|finding| {
        let confidence = match (finding.limiter, finding.confidence) {
            (Limiter::CannotKnow, _) => "unknown ",
            (_, Confidence::High) => "sure    ",
            (_, Confidence::Medium) => "likely  ",
            (_, Confidence::Low) => "possible",
        };
        let evidence = report::wrapped(&format!("{confidence} "), &finding.evidence, columns);
        let remedy = report::wrapped("         what helps: ", &finding.remedy, columns);
        format!("{evidence}\n{remedy}\n")
    });
    print_lines(&lines.collect::<String>())
}
