//! A checked experiment and its parts.

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
    /// Introduction of the report: the question that the experiment answers.
    pub about: String,
    /// Number of rounds; the maximum if `budget` or `precision` is set.
    pub rounds: u32,
    /// Maximum time of all rounds together: a round begins only if it is expected to end in time. The first one always
    /// begins.
    pub budget: Option<Duration>,
    /// Stop when every figure is known within this share of its value, or is known to be on one side of its target.
    pub precision: Option<f64>,
    /// The order of the trials of a round.
    pub order: Order,
    /// Load before each window, not measured.
    pub warm_up: WarmUp,
    /// Length of the measured window.
    pub measure: Duration,
    /// Rounds and windows for `--quick`.
    pub quick: Quick,
    /// Maximum number of CPUs per role; `None` distributes all CPUs.
    pub cpus_per_role: Option<usize>,
    /// Number of CPUs that the values of the chosen scale are meant for.
    pub cpus: Option<usize>,
    /// Whether to take a CPU profile of each role, which costs the roles some CPU time.
    pub profile: bool,
    /// Programs by name.
    pub programs: BTreeMap<String, Program>,
    /// Works in file order. A sweep becomes one work per point, one after the other.
    pub works: Vec<Work>,
    /// Directory of the experiment file, for `{experiment_dir}`.
    pub directory: PathBuf,
    /// Text of the experiment file.
    pub source: String,
}

impl Experiment {
    /// Returns a warning if this machine has fewer CPUs than the values of the scale are meant for, and a work runs on
    /// it.
    pub fn too_few_cpus(&self, cpus: usize) -> Option<String> {
        let wanted = self.cpus.filter(|wanted| *wanted > cpus)?;
        let runs_here = |work: &Work| work.variants.iter().any(|variant| variant.remote.is_none());
        self.works.iter().any(runs_here).then(|| {
            format!(
                "The values of this scale are for {wanted} CPUs, and {cpus} are usable here: its CPU masks and thread \
                 counts may not fit. Use another scale, or a larger machine."
            )
        })
    }

    /// Applies `--quick`.
    pub fn apply_quick(&mut self) {
        self.rounds = self.quick.rounds;
        self.warm_up = WarmUp::Fixed(self.quick.warm_up);
        self.budget = None;
        self.precision = None;
        self.measure = self.quick.measure;
    }

    /// Estimated duration of a trial, until some have been measured. Starting and stopping its programs is a guess.
    pub fn trial_length(&self) -> Duration {
        const OVERHEAD_GUESS: Duration = Duration::from_millis(700);
        self.warm_up.longest() + self.measure + OVERHEAD_GUESS
    }
}

/// Order of the trials of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A different order in each round; see [`crate::schedule`].
    Shuffled,
    /// The order of the file.
    File,
}

/// Whether counters are sampled during a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collect {
    /// Samples counters every second.
    #[default]
    On,
    /// No samples: counters are read only at the start and the end of the window, as CPU time per request requires.
    Off,
}

/// Whether roles have CPUs of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// As far as there are enough CPUs.
    #[default]
    Apart,
    /// All roles share the same CPUs, to measure a chain on one CPU or on a few.
    Together,
}

/// Load before a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// A fixed duration; zero disables the warm-up.
    Fixed(Duration),
    /// Until the rate, measured each second, is steady; at most this long.
    UntilSteady(Duration),
}

impl WarmUp {
    /// The maximum duration.
    pub fn longest(self) -> Duration {
        match self {
            WarmUp::Fixed(length) | WarmUp::UntilSteady(length) => length,
        }
    }
}

/// Rounds and windows of `--quick`.
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
    /// The Debian package that contains it, for the hint if it is missing.
    pub package: Option<String>,
    /// Hint if it is missing; replaces the one about `package`.
    pub hint: Option<String>,
    /// The command that prints its version.
    pub version: Option<Vec<String>>,
    /// Files to write into the program's directory before it starts: name -> template.
    pub files: BTreeMap<String, String>,
    /// Files of a given size to create there: name -> bytes.
    pub sized_files: BTreeMap<String, u64>,
    /// Format of a client's report.
    pub results: Results,
}

impl Program {
    /// All templates: arguments and file contents.
    pub fn templates(&self) -> impl Iterator<Item = &String> {
        let arguments = match &self.launch {
            Launch::Onrush(arguments) | Launch::Command(arguments) => arguments.as_slice(),
            Launch::Idle(_) => &[],
        };
        arguments.iter().chain(self.files.values())
    }

    /// Whether a template contains `{value}`.
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
    /// No program: bench itself opens this many connections, sends one request on each and keeps them open.
    Idle(u32),
}

/// One work at one point of its sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Name; unique in the experiment together with the point.
    pub name: String,
    /// Point of the sweep.
    pub point: Point,
    /// Whether the points are steps, each with one change from the previous one.
    pub has_steps: bool,
    /// Swept parameters whose values are labels although they look like numbers.
    pub labels: Vec<String>,
    /// One or two sentences for the report.
    pub about: String,
    /// The role under test, if the file sets it.
    pub under_test: Option<Role>,
    /// For `{connections}`.
    pub connections: u32,
    /// For `{rate}`.
    pub rate: Option<Rate>,
    /// Maximum number of CPUs per role, if it differs from the experiment's.
    pub cpus_per_role: Option<usize>,
    /// Whether roles have CPUs of their own.
    pub sharing: Sharing,
    /// Variants in file order.
    pub variants: Vec<Variant>,
    /// Figures in file order.
    pub figures: Vec<Figure>,
}

impl Work {
    /// Its name with its point: `fixed response · connections=100`.
    pub fn title(&self) -> String {
        title(&self.name, &self.point)
    }

    /// The role under test: the one set in the file, otherwise the proxy, otherwise the server.
    pub fn under_test(&self, variant: &Variant) -> Role {
        let by_itself = if variant.roles.contains_key(&Role::Proxy) {
            Role::Proxy
        } else {
            Role::Server
        };
        self.under_test.unwrap_or(by_itself)
    }
}

/// Name of a work with its point.
pub fn title(name: &str, point: &Point) -> String {
    if point.is_empty() {
        return name.to_owned();
    }
    format!("{name} · {point}")
}

/// Target rate of a client, in requests per second.
#[derive(Debug, Clone, PartialEq)]
pub enum Rate {
    /// A fixed rate.
    Fixed(f64),
    /// A share of the median rate of an earlier work.
    Share {
        /// 0 to 1.
        share: f64,
        /// The earlier work.
        work: String,
        /// The point of that work with the same values as this one.
        point: Point,
        /// The variant of that work.
        variant: String,
    },
}

/// One of the alternatives that a work compares.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its name, unique in the work.
    pub name: String,
    /// Program of each role.
    pub roles: BTreeMap<Role, String>,
    /// Network namespaces of the roles; `None` if they run on this machine without namespaces, or on
    /// [`Variant::remote`].
    pub network: Option<Network>,
    /// Other machines that the roles run on.
    pub remote: Option<Remote>,
    /// Whether counters are sampled during its windows.
    pub collect: Collect,
    /// Values for templates.
    pub set: BTreeMap<String, String>,
    /// Whether `compare` and `history` judge this variant (true) or use it as a reference (false). `None`: judged if
    /// our own binary has the role under test.
    pub subject: Option<bool>,
}

/// A comparison of variants, or a value with a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The metric to compare.
    pub metric: Metric,
    /// The judged variants, one line of the table each.
    pub ours: Vec<String>,
    /// The variant to divide by; `None` judges the value itself.
    pub theirs: Option<String>,
    /// Variant -> baseline variant. For these variants the difference to the baseline in each round is compared, such
    /// as the cost of TLS or of a proxy.
    pub above: BTreeMap<String, String>,
    /// The target.
    pub bound: Option<Bound>,
    /// Whether the two sides may send different responses.
    pub responses: ResponseRule,
}

/// Whether the two sides of a figure may send responses of different status or size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResponseRule {
    /// No: a ratio between different responses is invalid.
    #[default]
    NotDiffer,
    /// Yes: the figure compares different responses on purpose.
    Differ,
}

/// Target of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Reached at this value or below.
    AtMost(f64),
    /// Reached at this value or above.
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
