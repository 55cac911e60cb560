//! Whole experiments: programs started in their roles, measured side by side, judged, and reported on one page.
//!
//! An experiment is a file (`docs/experiment.md`); without one, the chain that ships with the crate is measured. The
//! reading order of the modules is the order of a run: scenario -> placement -> environment -> run -> collect ->
//! verdict -> report. Nothing here links the programs it measures: `onrush serve` and `onrush load` are child
//! processes like any other, so that every program is measured by the same means.
#![forbid(unsafe_code)]

pub mod limits;
pub mod scenario;

pub mod placement;

pub mod environment;

pub mod run;

pub mod collect;

pub mod outcome;
pub mod verdict;

pub mod report;

mod error;

pub use error::Error;

use std::path::{Path, PathBuf};

/// What `onrush bench` was asked to do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The experiment to run; `None` runs the chain that ships with the program.
    pub experiment: Option<PathBuf>,
    /// Where results are written; `None` makes a directory named after the experiment and the time.
    pub out: Option<PathBuf>,
    /// Few rounds and short windows: checks that an experiment works, proves nothing.
    pub quick: bool,
    /// The program that takes the roles written as `onrush = [...]`; `None` is the running program itself.
    pub onrush: Option<PathBuf>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was measured and every figure with a target reached it.
    Done,
    /// Everything was measured; at least one figure missed its target.
    Missed,
    /// At least one figure could not be judged: programs failed, errors occurred, or the client was the limit.
    Invalid,
    /// Stopped by a signal; what had been measured until then was written.
    Interrupted,
}

impl Exit {
    /// The exit code of the process: a missed target is a result, not a failure of the program.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done | Exit::Missed => 0,
            Exit::Invalid => 3,
            Exit::Interrupted => 130,
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub exit: Exit,
    /// The table of results for a terminal, and where the report is.
    pub summary: String,
}

/// Runs an experiment from its file to its report.
///
/// Prints progress on standard error. Every program that was started is
/// stopped before this returns, whatever happens. An error means that nothing was measured.
pub fn run(options: Options) -> Result<Ended, Error> {
    let experiment = load(&options)?;
    let out = report::claim_directory(options.out.as_deref(), &experiment.name)?;
    let measured = run::measure(&experiment, &options)?;
    let summary = report::write_all(&out, &measured)?;
    Ok(Ended {
        exit: measured.outcome.exit(),
        summary,
    })
}

fn load(options: &Options) -> Result<scenario::Experiment, Error> {
    let mut experiment = match &options.experiment {
        None => scenario::built_in(),
        Some(path) => scenario::read(Path::new(path))?,
    };
    if options.quick {
        experiment.hurry();
    }
    Ok(experiment)
}
