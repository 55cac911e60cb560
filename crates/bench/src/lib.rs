//! Experiments: starts programs in roles, measures them side by side, judges the figures, and reports them on one page.
//!
//! An experiment is a file (`docs/experiment.md`); the default is `scenario/chain.toml`. The modules follow the order
//! of a run: scenario -> placement -> environment -> run -> collect -> verdict -> report. `onrush serve` and `onrush
//! load` are child processes like any other program, so that all are measured by the same means.
//!
//! `schedule.rs` determines the trials of a round. In `run/`, `rounds.rs` repeats rounds, `trial.rs` runs one trial,
//! `network.rs` creates its hosts and `journal.rs` writes the record from which a killed run resumes. `collect/` reads
//! resource use and reports, with a file for each client in `collect/client/`. After a run, `archive/` reads results,
//! `compare/` compares two, `history/` detects changes over time. `predict/` is a capacity model, independent of runs.
//!
//! # Invariants
//!
//! - Bench never links a program that it measures.
//! - `schedule.rs`, `placement.rs`, `verdict/` and `compare/` do no I/O; in `predict/` only `machine_file.rs`,
//!   `cost_file.rs` and `measured.rs` read files.
//! - A figure is called better or worse than in an earlier run only with joint confidence over all figures judged, and
//!   intervals include the difference between two runs of one system (`compare/tests/power.rs`).
//! - No program and no network outlives the run that started it: a process that ends with the run holds each namespace.
//! - An agent on another machine (`run/agent.rs`) ends and removes everything when its standard input ends or is
//!   silent.
#![forbid(unsafe_code)]

pub mod limits;
pub mod scenario;

pub mod placement;
pub mod schedule;

pub mod environment;

pub mod run;

mod clock;
pub mod collect;

pub mod outcome;
pub mod verdict;

pub mod report;

pub mod archive;
pub mod compare;
pub mod history;

pub mod predict;

mod error;
mod exit;
mod options;

pub use error::Error;
pub use exit::Exit;
pub use options::{Charts, Options, Seed, Task, TrialSelection};

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::{Header, ResumedRun, RunStart};
use crate::scenario::{Experiment, Only};

/// Result of [`run()`].
#[derive(Debug)]
pub struct RunResult {
    /// The exit status.
    pub exit: Exit,
    /// Table of results and path of the report, for a terminal; or the listing that was requested instead.
    pub summary: String,
    /// Content of `summary.md`; `None` if nothing was measured.
    pub markdown: Option<String>,
}

/// Runs an experiment from its file to its report, or lists what it would do.
///
/// Prints progress on standard error. Stops every program that it started before it returns.
///
/// # Errors
/// If nothing was measured.
pub fn run(options: Options) -> Result<RunResult, Error> {
    let onrush = run::own_program(options.onrush.as_deref())?;
    // Fail before the measurement, not after it.
    if options.charts == Charts::Png && !run::is_installed(options::SVG_CONVERTER) {
        return Err(Error::NoConverter);
    }
    if let Task::Resume(directory) = &options.task {
        let earlier = ResumedRun::read(directory)?;
        let mut experiment = scenario::read_text(
            &earlier.header.file,
            &earlier.header.experiment,
            &earlier.header.directory,
            earlier.header.choice.scale.as_deref(),
        )?;
        choose(&mut experiment, &earlier.header.choice)?;
        report::check_directory(directory)?;
        let begin = RunStart::Earlier(earlier);
        return measure(&experiment, &onrush, directory, begin, options.charts);
    }
    let mut experiment = match &options.experiment {
        None if options.choice.scale.is_some() => return Err(Error::NoScale),
        None => scenario::built_in(),
        Some(path) => scenario::read(path, options.choice.scale.as_deref())?,
    };
    choose(&mut experiment, &options.choice)?;
    if !options.choice.quick {
        experiment.budget = options.budget.or(experiment.budget);
    }
    let header = header(&experiment, &options);
    let said = |summary| RunResult {
        exit: Exit::Done,
        summary,
        markdown: None,
    };
    match options.task {
        Task::List => Ok(said(report::list(&experiment, &onrush))),
        Task::Schedule => {
            let planned = run::plan(&experiment, &onrush, &header)?;
            Ok(said(report::schedule(&experiment, &planned)))
        }
        Task::Measure | Task::Resume(_) => {
            let out = report::claim_directory(options.out.as_deref(), &experiment.name)?;
            measure(
                &experiment,
                &onrush,
                &out,
                RunStart::Anew(header),
                options.charts,
            )
        }
    }
}

/// Runs the agent of an experiment that another machine controls, until standard input ends. The agent has exclusive
/// use of `directory`.
///
/// # Errors
/// If it cannot start.
pub fn serve_agent(directory: &Path) -> Result<(), Error> {
    run::serve_agent(directory)
}

fn choose(experiment: &mut Experiment, choice: &TrialSelection) -> Result<(), Error> {
    if choice.quick {
        experiment.apply_quick();
    }
    experiment.profile |= choice.profile;
    Only::new(choice.only.clone())
        .apply(experiment)
        .map_err(Error::NoMatch)
}

fn header(experiment: &Experiment, options: &Options) -> Header {
    let file = options.experiment.clone();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Any seed that differs between runs.
    let seed = options
        .seed
        .unwrap_or(Seed(now.as_nanos() as u64 % 1_000_000));
    Header::new(
        experiment,
        file.unwrap_or_else(|| PathBuf::from("chain.toml")),
        options.choice.clone(),
        seed,
        now.as_secs_f64(),
    )
}

fn measure(
    experiment: &Experiment,
    onrush: &Path,
    out: &Path,
    begin: RunStart,
    charts: Charts,
) -> Result<RunResult, Error> {
    let measured = run::measure(experiment, onrush, out, begin)?;
    let written = report::write_all(out, &measured);
    if written.is_err() {
        // Print the results if they cannot be written.
        let text = report::terminal(&measured.outcome);
        let out = out.display();
        let _ = writeln!(
            io::stderr(),
            "{text}\nTrials are kept in {out}/trials.jsonl: run `onrush bench --resume {out}` to write the results \
             once the cause is removed."
        );
    }
    let texts = written?;
    match charts {
        Charts::Svg => {}
        Charts::Png => report::draw(out)?,
    }
    let exit = Exit::of(&measured.outcome);
    measured.close();
    Ok(RunResult {
        exit,
        summary: texts.terminal,
        markdown: Some(texts.markdown),
    })
}
