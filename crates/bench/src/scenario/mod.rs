//! What an experiment is, and how one is read. The file format is described in `docs/experiment.md`.
//!
//! An experiment has works (what is measured), each with variants (who does it) and figures (what is compared). A
//! variant gives each role to a program. A round measures every variant of every work once.

mod metric;
mod read;
mod section;
mod template;

pub use metric::{Metric, Unit};
pub use section::Mistake;
pub use template::{Values, render};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::Error;
use crate::limits::EXPERIMENT_BYTES_MAX;

/// The chain that is measured when no file is given.
const CHAIN: &str = include_str!("chain.toml");

/// The built-in experiment: client -> server and client -> proxy -> server, with a control client beside both.
pub fn built_in() -> Experiment {
    match read::experiment("chain.toml", CHAIN, Path::new(".")) {
        Ok(experiment) => experiment,
        // The text is part of the program and a test reads it.
        Err(mistake) => unreachable!("built-in experiment: {mistake}"),
    }
}

/// Reads and checks an experiment file.
pub fn read(path: &Path) -> Result<Experiment, Error> {
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
    Ok(read::experiment(
        &path.display().to_string(),
        &text,
        &directory,
    )?)
}

/// A checked experiment: every name resolves and every template can be filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Short name, used for the output directory.
    pub name: String,
    /// What the experiment asks, for the head of the report.
    pub about: String,
    /// How often every variant is measured.
    pub rounds: u32,
    /// Load before each window that is not counted.
    pub warm_up: Duration,
    /// The window that is counted.
    pub measure: Duration,
    /// What `--quick` makes of the three above.
    pub quick: Quick,
    /// The number of CPUs each role gets at most; `None` shares out all of them.
    pub cpus_per_role: Option<usize>,
    /// Programs by name.
    pub programs: BTreeMap<String, Program>,
    /// What is measured, in file order.
    pub works: Vec<Work>,
    /// The directory of the experiment file, for `{experiment_dir}`.
    pub directory: PathBuf,
    /// The text it was read from.
    pub source: String,
}

impl Experiment {
    /// Takes the rounds and windows of `--quick`.
    pub fn hurry(&mut self) {
        self.rounds = self.quick.rounds;
        self.warm_up = self.quick.warm_up;
        self.measure = self.quick.measure;
    }

    /// How many trials there are: works x variants x rounds.
    pub fn trial_count(&self) -> usize {
        let per_round: usize = self.works.iter().map(|work| work.variants.len()).sum();
        per_round * self.rounds as usize
    }
}

/// Rounds and windows of a smoke check.
#[derive(Debug, Clone, PartialEq)]
pub struct Quick {
    /// See [`Experiment::rounds`].
    pub rounds: u32,
    /// See [`Experiment::warm_up`].
    pub warm_up: Duration,
    /// See [`Experiment::measure`].
    pub measure: Duration,
}

/// A part in an experiment. The order is that of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Makes the load that is counted.
    Client,
    /// Stands between client and server.
    Proxy,
    /// Answers.
    Server,
    /// A client at a low rate beside the load, straight to the server: what the machine itself adds.
    Control,
}

impl Role {
    /// All roles, in the order of the chain.
    pub const ALL: [Role; 4] = [Role::Client, Role::Proxy, Role::Server, Role::Control];

    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Proxy => "proxy",
            Role::Server => "server",
            Role::Control => "control",
        }
    }

    /// Whether programs in this role listen on a port.
    pub fn listens(self) -> bool {
        match self {
            Role::Proxy | Role::Server => true,
            Role::Client | Role::Control => false,
        }
    }
}

/// A program that can take a role.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Its name in the experiment.
    pub name: String,
    /// How it is started.
    pub launch: Launch,
    /// The Debian package it comes from, named when it is missing.
    pub package: Option<String>,
    /// What to do when it is missing and no package has it.
    pub hint: Option<String>,
    /// The command that prints its version.
    pub version: Option<Vec<String>>,
    /// Files written into the program's directory before it starts: name -> template.
    pub files: BTreeMap<String, String>,
    /// Files of a given size written there: name -> bytes.
    pub sized_files: BTreeMap<String, u64>,
    /// How what a client measured is read.
    pub results: Results,
}

impl Program {
    /// Whether this is our own binary.
    pub fn is_ours(&self) -> bool {
        matches!(self.launch, Launch::Onrush(_))
    }
}

/// How a program is started.
#[derive(Debug, Clone, PartialEq)]
pub enum Launch {
    /// Our own binary with these arguments (templates).
    Onrush(Vec<String>),
    /// Any command line (templates).
    Command(Vec<String>),
    /// No program: connections that ask once and then stay open, held by the experiment itself.
    Idle(u32),
}

/// How what a client measured is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// The file `onrush load --json` writes.
    Onrush,
    /// The text wrk prints.
    Wrk,
    /// The JSON oha prints.
    Oha,
}

/// One thing that is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Its name, unique in the experiment.
    pub name: String,
    /// One or two sentences for the report.
    pub about: String,
    /// The role whose cost is the question, when it is not the one [`Work::under_test`] takes by itself.
    pub under_test: Option<Role>,
    /// For `{connections}`.
    pub connections: u32,
    /// For `{rate}`.
    pub rate: Option<Rate>,
    /// Who does it, in file order.
    pub variants: Vec<Variant>,
    /// What is compared, in file order.
    pub figures: Vec<Figure>,
}

impl Work {
    /// The role whose cost is the question: what the file says, else the proxy, else the server.
    pub fn under_test(&self, variant: &Variant) -> Role {
        let by_itself = if variant.roles.contains_key(&Role::Proxy) {
            Role::Proxy
        } else {
            Role::Server
        };
        self.under_test.unwrap_or(by_itself)
    }
}

/// Requests per second a paced client is told to make.
#[derive(Debug, Clone, PartialEq)]
pub enum Rate {
    /// This many.
    Fixed(f64),
    /// A share of the median rate that an earlier work reached.
    Share {
        /// 0 to 1.
        share: f64,
        /// The earlier work.
        work: String,
        /// Its variant.
        variant: String,
    },
}

/// One way to do a work.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its name, unique in the work.
    pub name: String,
    /// The program of each role that takes part.
    pub roles: BTreeMap<Role, String>,
    /// Values for templates.
    pub set: BTreeMap<String, String>,
}

/// One comparison, or one number with a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What is compared.
    pub metric: Metric,
    /// The variants that are judged, one line of the table each.
    pub ours: Vec<String>,
    /// The variant they are divided by; without one the number itself is judged.
    pub theirs: Option<String>,
    /// What is compared of these variants is how far they are above another one, round by round: what TLS adds, or a
    /// proxy.
    pub above: BTreeMap<String, String>,
    /// The target.
    pub bound: Option<Bound>,
}

/// A target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Reached when the value is this or less.
    AtMost(f64),
    /// Reached when the value is this or more.
    AtLeast(f64),
}

impl Bound {
    /// Whether a value reaches the target.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtMost(limit) => value <= limit,
            Bound::AtLeast(limit) => value >= limit,
        }
    }
}
