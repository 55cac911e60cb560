//! All results below a folder, in the order of their dates: where figures changed, by how much, and how surely.
//!
//! A series is one metric of one variant of one work of one experiment on one machine; its values are the medians of runs,
//! or of their ratios to a peer that all of its runs hold. Changes are found (`onrush_measure::change`), not looked for by
//! eye.

mod find;
mod markdown;
mod options;
mod page;
mod series;
mod text;

pub use find::{Dated, Found, find};
pub use options::Options;
pub use series::{Behind, ChangePoint, Point, Series};

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use self::series::series;
use crate::archive::Unusable;

/// What there is to say of all runs.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// The version of this format; keys are only added within one.
    pub schema: u32,
    /// The folder.
    pub folder: String,
    /// How many results were read.
    pub runs: usize,
    /// The day of the first and of the last.
    pub days: Option<(String, String)>,
    /// Runs of one experiment that were made on another machine than the one before.
    pub machines: Vec<String>,
    /// Results that could not be read, with the reason.
    pub left_out: Vec<String>,
    /// How surely changes are changes.
    pub confidence: f64,
    /// The smallest change that is told.
    pub smallest: f64,
    /// How many runs a series needs at least to show a change.
    pub runs_min: usize,
    /// All series.
    pub series: Vec<Series>,
}

/// Reads all results below `folder`, and looks for changes.
///
/// # Errors
/// When the folder cannot be listed, holds too many results, or none that can be read.
pub fn history(folder: &Path, options: &Options) -> Result<History, Unusable> {
    let found = find(folder)?;
    if found.runs.is_empty() && found.left_out.is_empty() {
        return Err(Unusable::NoResults(folder.to_owned()));
    }
    Ok(of(&folder.display().to_string(), &found, options))
}

/// The history of runs that were read.
fn of(folder: &str, found: &Found, options: &Options) -> History {
    let days = |run: &Dated| run.date.chars().take(10).collect::<String>();
    let ends = found.runs.first().zip(found.runs.last());
    History {
        schema: 1,
        folder: folder.to_owned(),
        runs: found.runs.len(),
        days: ends.map(|(first, last)| (days(first), days(last))),
        machines: machines(&found.runs),
        left_out: found.left_out.clone(),
        confidence: options.confidence,
        smallest: options.smallest,
        runs_min: onrush_measure::change::values_min(options.confidence),
        series: series(&found.runs, options),
    }
}

/// Where the machine of an experiment became another one, in words.
fn machines(runs: &[Dated]) -> Vec<String> {
    let mut last: BTreeMap<&str, &Dated> = BTreeMap::new();
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
            "{}: {} is of another machine than {} ({}: {:?} and {:?}{more}); its series are others",
            run.experiment, run.run.name, before.run.name, first.what, first.a, first.b
        ));
    }
    said
}

impl History {
    /// Whether the newest run of a series lies behind a change for the worse that is not known.
    pub fn is_behind_worse(&self) -> bool {
        self.series.iter().any(|it| it.behind == Behind::Worse)
    }

    /// The history as JSON: the fields, by their names.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("numbers, text and lists");
        format!("{text}\n")
    }
}

#[cfg(test)]
mod tests;
