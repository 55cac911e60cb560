//! History of all results below a folder: which figures changed, by how much, and with which confidence.
//!
//! A series is one metric of one variant of one work of one experiment on one machine; its values are the medians of
//! runs, or of their ratios to a reference that all of its runs contain. Changes are detected statistically
//! (`onrush_measure::change`).

mod find;
mod markdown;
mod options;
mod page;
mod series;
mod text;

pub use find::{DatedRun, FoundRuns, find};
pub use options::Options;
pub use series::{ChangePoint, LastChange, Point, Series};

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use self::series::series;
use crate::archive::ReadError;

/// History of all runs below a folder.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// Version of the JSON format; within one version keys are only added.
    pub schema: u32,
    /// The folder.
    pub folder: String,
    /// Number of results read.
    pub runs: usize,
    /// Dates of the first and the last run.
    pub days: Option<(String, String)>,
    /// Changes of the machine between successive runs of an experiment, as text.
    pub machines: Vec<String>,
    /// Results that could not be read, with reasons.
    pub left_out: Vec<String>,
    /// Confidence required of a change.
    pub confidence: f64,
    /// Smallest change reported, as a share.
    pub smallest: f64,
    /// Minimum number of runs in which a change can be detected.
    pub runs_min: usize,
    /// All series.
    pub series: Vec<Series>,
}

/// Reads all results below `folder` and detects changes.
///
/// # Errors
/// If the folder cannot be listed, contains too many results, or none that can be read.
pub fn history(folder: &Path, options: &Options) -> Result<History, ReadError> {
    let found = find(folder)?;
    if found.runs.is_empty() && found.left_out.is_empty() {
        return Err(ReadError::NoResults(folder.to_owned()));
    }
    Ok(of(&folder.display().to_string(), &found, options))
}

fn of(folder: &str, found: &FoundRuns, options: &Options) -> History {
    let days = |run: &DatedRun| run.date.chars().take(10).collect::<String>();
    let ends = found.runs.first().zip(found.runs.last());
    History {
        schema: 1,
        folder: folder.to_owned(),
        runs: found.runs.len(),
        days: ends.map(|(first, last)| (days(first), days(last))),
        machines: machines(&found.runs),
        left_out: found.left_out.clone(),
        confidence: options.confidence,
        smallest: options.min_effect,
        runs_min: onrush_measure::change::values_min(options.confidence),
        series: series(&found.runs, options),
    }
}

fn machines(runs: &[DatedRun]) -> Vec<String> {
    let mut last: BTreeMap<&str, &DatedRun> = BTreeMap::new();
    let mut said = Vec::new();
    for run in runs {
        let Some(before) = last.insert(&run.experiment, run) else {
            continue;
        };
        let machines = [before, run].map(|it| &it.run.facts.machine);
        let differences = machines[0].differences(machines[1]);
        let Some(first) = differences.first() else {
            continue;
        };
        let more = match differences.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        said.push(format!(
            "{}: {} was measured on another machine than {} ({}: {:?} and {:?}{more}); its series are separate",
            run.experiment, run.run.name, before.run.name, first.what, first.a, first.b
        ));
    }
    said
}

impl History {
    /// Whether the last change of some series is for the worse and not a known one.
    pub fn has_new_regression(&self) -> bool {
        self.series.iter().any(|it| it.behind == LastChange::Worse)
    }

    /// The history as JSON.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("numbers, strings and lists");
        format!("{text}\n")
    }
}

#[cfg(test)]
mod tests;
