//! Options of a run.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Options of `onrush bench`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Experiment file; `None` selects the built-in `chain.toml`.
    pub experiment: Option<PathBuf>,
    /// Task to carry out.
    pub task: Task,
    /// Output directory; `None` creates one named after the experiment and the time.
    pub out: Option<PathBuf>,
    /// Part of the experiment to run.
    pub choice: TrialSelection,
    /// Time for all rounds, overriding the experiment.
    pub budget: Option<Duration>,
    /// Seed for the order of trials; `None` selects a new one for each run.
    pub seed: Option<Seed>,
    /// Format of chart files.
    pub charts: Charts,
    /// Program for roles written as `onrush = [...]`; `None` is the running program itself.
    pub onrush: Option<PathBuf>,
}

/// Converts SVG to PNG (librsvg).
pub(crate) const SVG_CONVERTER: &str = "rsvg-convert";

/// Format of chart files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Charts {
    /// SVG.
    #[default]
    Svg,
    /// SVG and PNG.
    Png,
}

/// Part of an experiment to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialSelection {
    /// Few rounds and short windows, to check that an experiment works; the figures are not conclusive.
    pub quick: bool,
    /// Works, variants and points to measure, in the syntax of [`crate::scenario::Only`]; all if empty.
    pub only: Vec<String>,
    /// Scale of the experiment; `None` selects the default.
    #[serde(default)]
    pub scale: Option<String>,
    /// Record a CPU profile of each role, even if the experiment does not request it.
    #[serde(default)]
    pub profile: bool,
}

/// Task of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Task {
    /// Measure it.
    #[default]
    Measure,
    /// Resume the interrupted run in this directory, with the experiment that it started with.
    Resume(PathBuf),
    /// Print the trials in order, with their duration.
    Schedule,
    /// Print works, points, variants and programs.
    List,
}

/// Seed for the order of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);
