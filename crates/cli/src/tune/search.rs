//! `onrush tune search`, with a command of the user as the measurement.

use std::process::{Command, ExitCode};

use onrush_tune::advise;
use onrush_tune::apply::{Machine, Root};
use onrush_tune::search::{self, End, SearchTrace, Trials, Unmeasured};

use super::arguments::Search;
use super::extent::Extent;
use super::journal::{open_journal, with_remedy};
use super::print::{print, print_lines, say};
use super::session::Session;
use super::wait::StopSignals;
use super::watch;

pub(super) fn search(args: &Search) -> anyhow::Result<ExitCode> {
    let mut machine = Root::open(&args.place.root)?.with_process(args.pid);
    watch::undo_abandoned(&mut machine)?;
    let facts = machine.facts()?;
    facts.check_namespace()?;
    if let Some(number) = args.pid.filter(|_| facts.application.is_empty()) {
        anyhow::bail!("process {number} does not exist");
    }
    if !args.wish.keep_queues {
        let plan = advise::plan(&facts, &args.wish.request())?;
        Session::of(&args.place.tree()?, &facts).check_search(&plan)?;
    }
    let mut journal = open_journal(&machine)?;
    let stop = StopSignals::listen()?;
    let mut measure = || {
        let measured = measured(&args.measure);
        // The signal may also have ended the measurement, so its failure does not count.
        if stop.is_asked() {
            return Err(Unmeasured::Stopped);
        }
        measured.map_err(Unmeasured::Failed)
    };
    // A search takes long: rows are printed as they come, and a closed output does not end it.
    let mut tell = |road: &SearchTrace| {
        if !args.json && road.end == End::Whole {
            let _ = print_lines(&search::last_row(road));
        }
    };
    let trials = Trials {
        turns: usize::from(args.turns),
        measure: &mut measure,
        on_step: &mut tell,
    };
    let road = match search::search(&mut machine, &args.wish.request(), &mut journal, trials) {
        Ok(road) => road,
        Err(error) if journal.changes().is_empty() => return Err(with_remedy(error)),
        Err(error) => {
            let error = with_remedy(error).context("the search ended early");
            say(&format!("onrush tune: {error:#}"));
            let stand = journal.changes().len();
            say(&format!(
                "{stand} changes are in force; `onrush tune revert` undoes them"
            ));
            return Ok(Extent::Partly.code());
        }
    };
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&road)?))?;
    }
    match &road.end {
        End::Whole => {}
        End::Stopped => {
            say("stopped: the remaining settings were not tried, and the current trial is undone")
        }
        End::Stuck(why) => say(&format!(
            "the current trial could not be undone, so the remaining settings were not tried: {why}; `onrush tune revert` tries again"
        )),
    }
    if road.steps.iter().any(|step| step.is_kept) {
        say("the kept changes are in force; `onrush tune revert` undoes them");
    } else {
        journal.remove_if_undone()?;
        say("no change was kept");
    }
    let extent = match road.end {
        End::Whole => Extent::Whole,
        End::Stopped | End::Stuck(_) => Extent::Partly,
    };
    Ok(extent.code())
}

/// Runs a command and parses the last word of its output as a number.
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
    number.ok_or_else(|| {
        format!("the last word of the measurement's output is not a number: {last:?}")
    })
}
