//! The description of an experiment, read from a file in the format of `docs/experiment.md`.
//!
//! An experiment has works (what is measured). Each work has variants (the alternatives that are measured) and figures
//! (their comparisons). A variant assigns a program to each role. A round measures every variant of every work once.

mod collected;
mod experiment;
mod metric;
mod metric_kind;
mod network;
mod only;
mod point;
mod remote;
mod results;
mod role;

mod read;
pub(crate) mod section;
mod template;
mod value;

pub use collected::{CollectedMetric, MachineMetric, RoleMetric};
pub use experiment::{
    Bound, Collect, Experiment, Figure, Launch, Order, Program, Quick, Rate, ResponseRule, Sharing,
    Variant, WarmUp, Work, title,
};
pub use metric::Metric;
pub use metric_kind::{MetricKind, Unit};
pub use network::{Host, Link, Network, target};
pub use only::Only;
pub use point::{Point, Setting};
pub use remote::{Access, Remote, RemoteHost, Settings, Slurm, Ssh};
pub use results::{CountedUnit, LatencyFrom, Results};
pub use role::Role;
pub use section::Mistake;
pub use template::{Values, is_named, render};

use std::path::Path;

use crate::Error;
use crate::limits::EXPERIMENT_BYTES_MAX;

/// The experiment that runs if no file is given.
const CHAIN: &str = include_str!("chain.toml");

/// The built-in experiment: client -> server and client -> proxy -> server, with a control client next to both.
pub fn built_in() -> Experiment {
    match read::experiment("chain.toml", CHAIN, Path::new("."), None) {
        Ok(experiment) => experiment,
        // Compiled into the binary, and read by a test.
        Err(mistake) => unreachable!("built-in experiment: {mistake}"),
    }
}

/// Parses the text of an experiment that is stored in a result or in a test. `file` is the file name for errors.
pub(crate) fn parse(file: &str, text: &str) -> Result<Experiment, Mistake> {
    read::experiment(file, text, Path::new("."), None)
}

/// Reads and checks an experiment file, with the values of `scale` or of the default scale.
pub fn read(path: &Path, scale: Option<&str>) -> Result<Experiment, Error> {
    let text = onrush_file::read_text(path, EXPERIMENT_BYTES_MAX)
        .map_err(|source| Error::Read(path.into(), source))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let directory = directory
        .canonicalize()
        .map_err(|source| Error::Read(directory.into(), source.into()))?;
    read_text(path, &text, &directory, scale)
}

/// Parses and checks `text`, the content of the file `path` in `directory`.
///
/// # Errors
/// The first mistake in the text.
pub fn read_text(
    path: &Path,
    text: &str,
    directory: &Path,
    scale: Option<&str>,
) -> Result<Experiment, Error> {
    let file = path.display().to_string();
    Ok(read::experiment(&file, text, directory, scale)?)
}
