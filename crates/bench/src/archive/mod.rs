//! Reads results of earlier runs: `raw.csv` and `environment.json` in a directory written by `onrush bench`.

mod facts;
mod read_error;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};

pub use facts::{Difference, DifferenceScope, Facts, Machine};
pub use read_error::ReadError;
pub use rows::{Round, Rows, SeriesId, UsableRounds, VariantRows};

use crate::limits::{ENVIRONMENT_BYTES_MAX, RAW_BYTES_MAX};
use crate::scenario::Metric;

/// File name of the measurements.
pub const RAW: &str = "raw.csv";
/// File name of the environment.
pub const ENVIRONMENT: &str = "environment.json";

/// Whether the figure called `name` is judged. An empty `only` selects all figures, otherwise the figures that contain
/// one of its strings. Figures from collectors must be named in full: each figure judged makes the others less
/// significant, and these only explain others.
pub fn is_selected(only: &[String], name: &str, metric: &Metric) -> bool {
    let own = metric.name();
    let mut parts = only.iter().filter(|part| name.contains(*part));
    match metric.is_secondary() {
        true => parts.any(|part| part.ends_with(&own)),
        false => only.is_empty() || parts.next().is_some(),
    }
}

/// Result of an earlier run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Directory as given.
    pub name: String,
    /// Machine, programs and experiment.
    pub facts: Facts,
    /// Measurements.
    pub rows: Rows,
}

impl Run {
    /// Reads the result in `directory`.
    ///
    /// # Errors
    /// Without a result, or if a file cannot be read: the file, the line if known, and the expected text.
    pub fn read(directory: &Path) -> Result<Run, ReadError> {
        if !fs::metadata(directory).is_ok_and(|found| found.is_dir()) {
            return Err(ReadError::NoDirectory(directory.to_owned()));
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

fn text(
    directory: &Path,
    name: &'static str,
    bytes_max: u64,
) -> Result<(PathBuf, String), ReadError> {
    let path = directory.join(name);
    if !path.exists() {
        return Err(ReadError::NoResult(directory.to_owned(), name));
    }
    match onrush_file::read_text(&path, bytes_max) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(ReadError::Unreadable(path, error)),
    }
}
