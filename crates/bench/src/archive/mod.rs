//! Results of earlier runs, read again: a directory that `onrush bench` wrote, of which `raw.csv` and `environment.json` are
//! enough.

mod facts;
mod rows;
mod unusable;

use std::fs;
use std::path::{Path, PathBuf};

pub use facts::{Difference, Facts, Forbids, Machine};
pub use rows::{Entrant, Round, Rows, Sound, Subject};
pub use unusable::Unusable;

use crate::limits::{ENVIRONMENT_BYTES_MAX, RAW_BYTES_MAX};
use crate::scenario::Metric;

/// The file of numbers.
pub const RAW: &str = "raw.csv";
/// The file of facts.
pub const ENVIRONMENT: &str = "environment.json";

/// Whether a figure called `name` is to be judged: all are where nothing is asked for, and those that hold a text which
/// is. What collectors gave explains other figures and makes each of them harder to tell: it has to be named whole.
pub fn is_asked(only: &[String], name: &str, metric: &Metric) -> bool {
    let own = metric.name();
    let mut parts = only.iter().filter(|part| name.contains(*part));
    match metric.is_secondary() {
        true => parts.any(|part| part.ends_with(&own)),
        false => only.is_empty() || parts.next().is_some(),
    }
}

/// An earlier run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its directory, as it was named.
    pub name: String,
    /// The machine, the programs and the experiment.
    pub facts: Facts,
    /// What was measured.
    pub rows: Rows,
}

impl Run {
    /// Reads the result in `directory`.
    ///
    /// # Errors
    /// When there is none, or a file of it cannot be read: with the file, the line where it has one, and what was expected.
    pub fn read(directory: &Path) -> Result<Run, Unusable> {
        if !fs::metadata(directory).is_ok_and(|found| found.is_dir()) {
            return Err(Unusable::NoDirectory(directory.to_owned()));
        }
        let rows = text(directory, RAW, RAW_BYTES_MAX)?;
        let facts = text(directory, ENVIRONMENT, ENVIRONMENT_BYTES_MAX)?;
        Ok(Run {
            name: directory.display().to_string(),
            rows: Rows::parse(&rows.1, &rows.0)?,
            facts: Facts::parse(&facts.1, &facts.0)?,
        })
    }
}

/// A file of a result, and where it is.
fn text(
    directory: &Path,
    name: &'static str,
    bytes_max: u64,
) -> Result<(PathBuf, String), Unusable> {
    let path = directory.join(name);
    if !path.exists() {
        return Err(Unusable::NoResult(directory.to_owned(), name));
    }
    match onrush_file::read_text(&path, bytes_max) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(Unusable::Unreadable(path, error)),
    }
}
