//! What a run is asked for.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What `onrush bench` was asked to do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The experiment to run; `None` runs the chain that ships with the program.
    pub experiment: Option<PathBuf>,
    /// What is done with it.
    pub task: Task,
    /// Where results are written; `None` makes a directory named after the experiment and the time.
    pub out: Option<PathBuf>,
    /// How much of it.
    pub choice: Choice,
    /// The time that all rounds together may take, in place of what the experiment says.
    pub budget: Option<Duration>,
    /// What makes the order of trials that of an earlier run; `None` takes another one for each run.
    pub seed: Option<Seed>,
    /// How charts are written.
    pub charts: Charts,
    /// The program that takes the roles written as `onrush = [...]`; `None` is the running program itself.
    pub onrush: Option<PathBuf>,
}

/// What draws an SVG as a PNG (librsvg).
pub(crate) const PAINTER: &str = "rsvg-convert";

/// How the charts of a result are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Charts {
    /// As SVG.
    #[default]
    Svg,
    /// As SVG, and as PNG beside it.
    Png,
}

/// How much of an experiment is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Few rounds and short windows: checks that an experiment works, proves nothing.
    pub quick: bool,
    /// Works, variants and points that are measured, as [`crate::scenario::Only`] reads them; all when it is empty.
    pub only: Vec<String>,
    /// The scale of the experiment; `None` takes the usual one.
    #[serde(default)]
    pub scale: Option<String>,
    /// A CPU profile of each role, whatever the experiment says.
    #[serde(default)]
    pub profile: bool,
}

/// What is done with an experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Task {
    /// It is measured.
    #[default]
    Measure,
    /// The interrupted run in this directory is gone on with; its experiment is the one it was begun with.
    Resume(PathBuf),
    /// What would be measured, in which order and for how long, is said.
    Schedule,
    /// Its works, points, variants and programs are said.
    List,
}

/// The seed of an order of trials: the same seed gives the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);
