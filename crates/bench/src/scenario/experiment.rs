//! What an experiment is, once it was read and checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::network::Network;
use super::point::Point;
use super::remote::Remote;
use super::results::Results;
use super::role::Role;
use super::template::is_named;

/// A checked experiment: every name resolves and every template can be filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Short name, used for the output directory.
    pub name: String,
    /// What the experiment asks, for the head of the report.
    pub about: String,
    /// How often every variant is measured; at most so often, where `budget` or `precision` ends it.
    pub rounds: u32,
    /// The time that all rounds together may take: a round begins only if it will end within it. The first one always
    /// does.
    pub budget: Option<Duration>,
    /// How closely figures have to be known, as a share of their value, for no further round to be made.
    pub precision: Option<f64>,
    /// The order of the trials of a round.
    pub order: Order,
    /// Load before each window that is not counted.
    pub warm_up: WarmUp,
    /// The window that is counted.
    pub measure: Duration,
    /// What `--quick` makes of the three above.
    pub quick: Quick,
    /// The number of CPUs each role gets at most; `None` shares out all of them.
    pub cpus_per_role: Option<usize>,
    /// How many CPUs the values of the chosen scale are for, where it gives them.
    pub cpus: Option<usize>,
    /// Whether a CPU profile is made of each role, which costs the roles some of their time.
    pub profile: bool,
    /// Programs by name.
    pub programs: BTreeMap<String, Program>,
    /// What is measured, in file order; a work that is swept is one for each of its points, one behind the other.
    pub works: Vec<Work>,
    /// The directory of the experiment file, for `{experiment_dir}`.
    pub directory: PathBuf,
    /// The text it was read from.
    pub source: String,
}

impl Experiment {
    /// A warning where this machine has fewer CPUs than the values of the scale are for; roles on other machines have
    /// theirs.
    pub fn too_few_cpus(&self, cpus: usize) -> Option<String> {
        let wanted = self.cpus.filter(|wanted| *wanted > cpus)?;
        let runs_here = |work: &Work| work.variants.iter().any(|variant| variant.remote.is_none());
        self.works.iter().any(runs_here).then(|| {
            format!(
                "The values of this scale are for {wanted} CPUs, and {cpus} can be used here: masks and numbers of threads may \
                 have another effect. Take another scale, or a larger machine."
            )
        })
    }

    /// Takes the rounds and windows of `--quick`.
    pub fn hurry(&mut self) {
        self.rounds = self.quick.rounds;
        self.warm_up = WarmUp::Fixed(self.quick.warm_up);
        self.budget = None;
        self.precision = None;
        self.measure = self.quick.measure;
    }

    /// How long a trial takes, until some have shown it: starting and stopping its programs is guessed.
    pub fn trial_length(&self) -> Duration {
        const OVERHEAD_GUESS: Duration = Duration::from_millis(700);
        self.warm_up.longest() + self.measure + OVERHEAD_GUESS
    }
}

/// The order of the trials of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Another one in each round; see [`crate::schedule`].
    Shuffled,
    /// That of the file in each round.
    File,
}

/// What is read while a window is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collect {
    /// Each second, and clients more often.
    #[default]
    On,
    /// Nothing: counters are read when it begins and when it ends, which CPU time per request takes.
    Off,
}

/// Whether roles have CPUs of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// As far as there are enough.
    #[default]
    Apart,
    /// All roles have the same ones: what a chain does on one CPU, or on a few.
    Together,
}

/// Load before a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// For so long; none when it is zero.
    Fixed(Duration),
    /// Second by second until the rate does not change any more, and for so long at most.
    UntilSteady(Duration),
}

impl WarmUp {
    /// The longest that it takes.
    pub fn longest(self) -> Duration {
        match self {
            WarmUp::Fixed(length) | WarmUp::UntilSteady(length) => length,
        }
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
    /// The texts in which `{name}` is filled in: arguments, and files.
    pub fn templates(&self) -> impl Iterator<Item = &String> {
        let arguments = match &self.launch {
            Launch::Onrush(arguments) | Launch::Command(arguments) => arguments.as_slice(),
            Launch::Idle(_) => &[],
        };
        arguments.iter().chain(self.files.values())
    }

    /// Whether one of them names a value.
    pub fn names(&self, value: &str) -> bool {
        self.templates().any(|text| is_named(text, value))
    }

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

/// One thing that is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Its name; with its point unique in the experiment.
    pub name: String,
    /// The point of its sweep.
    pub point: Point,
    /// Whether its points are steps of a road, each one change behind the one before.
    pub is_road: bool,
    /// Swept parameters whose values are names although they look like numbers.
    pub labels: Vec<String>,
    /// One or two sentences for the report.
    pub about: String,
    /// The role whose cost is the question, when it is not the one [`Work::under_test`] takes by itself.
    pub under_test: Option<Role>,
    /// For `{connections}`.
    pub connections: u32,
    /// For `{rate}`.
    pub rate: Option<Rate>,
    /// The number of CPUs each role gets at most, where it differs from that of the experiment.
    pub cpus_per_role: Option<usize>,
    /// Whether roles have CPUs of their own.
    pub sharing: Sharing,
    /// Who does it, in file order.
    pub variants: Vec<Variant>,
    /// What is compared, in file order.
    pub figures: Vec<Figure>,
}

impl Work {
    /// Its name with its point: `fixed response · connections=100`.
    pub fn title(&self) -> String {
        title(&self.name, &self.point)
    }

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

/// The name of a work with its point.
pub fn title(name: &str, point: &Point) -> String {
    if point.is_empty() {
        return name.to_owned();
    }
    format!("{name} · {point}")
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
        /// The point of it that has the values of this one.
        point: Point,
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
    /// The network namespaces in which these run; `None` is this machine as it is, or [`Variant::remote`].
    pub network: Option<Network>,
    /// The other machines on which these run.
    pub remote: Option<Remote>,
    /// What is read while its windows are open.
    pub collect: Collect,
    /// Values for templates.
    pub set: BTreeMap<String, String>,
    /// Whether `compare` and `history` judge it (true) or take it as a reference; `None`: judged where our own binary has
    /// the role under test.
    pub subject: Option<bool>,
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
    /// Whether both sides may send different responses.
    pub responses: ResponsesMay,
}

/// Whether the two sides of a figure may send responses of different status or size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResponsesMay {
    /// A ratio between different responses is invalid.
    #[default]
    NotDiffer,
    /// The difference is what the figure is about.
    Differ,
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
