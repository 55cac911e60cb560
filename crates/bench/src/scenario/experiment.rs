//! What an experiment is, once it was read and checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::metric::Metric;
use super::role::Role;

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
    /// Whether a CPU profile is made of each role, which costs the roles some of their time.
    pub profile: bool,
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
