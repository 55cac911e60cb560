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

pub mod archive;
pub mod compare;
pub mod history;

mod error;
mod exit;
mod options;

pub use error::Error;
pub use exit::Exit;
pub use options::Options;

use std::path::Path;

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
