//! What a run produced, as it is written to `result.json` (`docs/bench-result.schema.json`).

use std::collections::BTreeMap;

use onrush_measure::compare::Rounds;
use serde::{Deserialize, Serialize};

mod judged;
mod latency;

pub use self::judged::{FigureLine, Interval, Limiter, LimiterKind, Verdict};
pub use self::latency::{Latency, PercentileValue};
use crate::limits::CPUS_OF_HOST_MAX;
use crate::options::Seed;
use crate::placement::Placement;
use crate::scenario::{Counted, Point, Role, title};

/// Numbers by what they are about and what was measured of it: `cpu0` and `net_rx_softirqs`. The names stand in
/// `docs/experiment.md`.
pub type BySubject = BTreeMap<String, BTreeMap<String, f64>>;

/// The version of the format; keys are only added within one.
pub const SCHEMA: u32 = 1;

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// What the experiment asks.
    pub about: String,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// How long it took.
    pub duration_s: f64,
    /// Whether every trial was made; false after a signal, and when a host was lost.
    pub complete: bool,
    /// The host that was lost, and how; left out where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// What there was no room for, where that ended the run; left out where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_room: Option<String>,
    /// Whether it was a smoke check, which proves nothing.
    pub quick: bool,
    /// Rounds asked for.
    pub rounds: u32,
    /// Load before each window.
    pub warm_up_s: f64,
    /// The window asked for.
    pub measure_s: f64,
    /// What makes the order of the trials repeatable.
    pub seed: Seed,
    /// The rule roles were pinned by.
    pub placement_rule: String,
    /// What a reader must know about the whole run.
    pub notes: Vec<String>,
    /// What was measured, in file order.
    pub works: Vec<WorkOutcome>,
}

impl Outcome {
    /// Whether at least one figure was measured on a quiet machine in rounds that count.
    pub fn concludes(&self) -> bool {
        self.lines().any(|(_, line)| match line.verdict {
            Verdict::Reached | Verdict::Missed => true,
            Verdict::Measured => !line.is_disturbed,
            Verdict::NotMeasured | Verdict::Invalid => false,
        })
    }

    /// All lines of the table.
    pub fn lines(&self) -> impl Iterator<Item = (&WorkOutcome, &FigureLine)> {
        self.works
            .iter()
            .flat_map(|work| work.figures.iter().map(move |line| (work, line)))
    }
}

/// One work.
#[derive(Debug, Clone, Serialize)]
pub struct WorkOutcome {
    /// Its name.
    pub name: String,
    /// The point of its sweep; left out where it has none.
    #[serde(skip_serializing_if = "Point::is_empty")]
    pub point: Point,
    /// Whether its points are steps of a road, each one change behind the one before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_road: bool,
    /// Swept parameters whose values are names although they look like numbers.
    #[serde(skip)]
    pub labels: Vec<String>,
    /// What it asks.
    pub about: String,
    /// Connections of the client.
    pub connections: u32,
    /// Who did it.
    pub variants: Vec<VariantOutcome>,
    /// The table.
    pub figures: Vec<FigureLine>,
}

impl WorkOutcome {
    /// Its name with its point.
    pub fn title(&self) -> String {
        title(&self.name, &self.point)
    }

    /// A variant by its name.
    pub fn variant(&self, name: &str) -> Option<&VariantOutcome> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

/// One variant of a work.
#[derive(Debug, Clone, Serialize)]
pub struct VariantOutcome {
    /// Its name.
    pub name: String,
    /// Whether comparisons judge it: the variant's `subject`, else whether our own binary had the role under test.
    pub ours: bool,
    /// The role whose cost is the question.
    pub under_test: Role,
    /// The program of each role.
    pub programs: BTreeMap<Role, String>,
    /// The other machine of each role; left out where they run here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<Role, String>,
    /// The CPUs of each role.
    pub placement: Placement,
    /// Why it was not measured; left out where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Metrics of its figures whose rounds do not agree: how far they lie apart, as a share of their median. Left out where
    /// all agree.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disagreeing: BTreeMap<String, f64>,
    /// Median and spread of every metric over the valid rounds.
    pub metrics: BTreeMap<String, Rounds>,
    /// One per round that was made.
    pub trials: Vec<Trial>,
}

impl VariantOutcome {
    /// The trial in the middle by request rate: the one to draw where only one fits.
    pub fn typical(&self) -> Option<&Trial> {
        let mut by_rate: Vec<_> = self.trials.iter().filter(|trial| trial.ran()).collect();
        by_rate.sort_by(|a, b| a.rps.total_cmp(&b.rps));
        by_rate.get(by_rate.len().saturating_sub(1) / 2).copied()
    }
}

/// Median and spread of every metric over the valid ones of some rounds; over all of them when none is.
pub fn metrics_of_rounds(trials: &[Trial]) -> BTreeMap<String, Rounds> {
    let any_valid = trials.iter().any(Trial::is_valid);
    let mut values: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        if any_valid && !trial.is_valid() {
            continue;
        }
        for (name, value) in &trial.metrics {
            values.entry(name).or_default().push(*value);
        }
    }
    values
        .into_iter()
        .filter_map(|(name, values)| Some((name.clone(), Rounds::of(&values)?)))
        .collect()
}

/// One variant in one round.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Counted from 1.
    pub round: u32,
    /// When its window began, seconds after the run did.
    pub at_s: f64,
    /// From the client's start to its end.
    pub window_s: f64,
    /// Requests per second the client was told to make.
    pub rate: Option<f64>,
    /// How long the load before the window was, where it went on until the rate was steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_s: Option<f64>,
    /// What `requests`, `errors` and `rps` are numbers of.
    pub counted: Counted,
    /// Responses received, by the client's count.
    pub requests: u64,
    /// Requests that failed, by the client's count; statuses other than 2xx and 3xx among them.
    pub errors: u64,
    /// Responses per second, by the client's clock.
    pub rps: f64,
    /// Bytes received per second, where the client gives it.
    pub bytes_per_s: Option<f64>,
    /// Responses by class of status, `2xx` to `5xx`; empty where the client does not report them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// What the client saw.
    pub latency_us: Option<Latency>,
    /// What the control client saw.
    pub control_latency_us: Option<Latency>,
    /// The client's own rows.
    pub seconds: Vec<Second>,
    /// The machine's rows.
    pub samples: Vec<Sample>,
    /// What each role used in the window.
    pub roles: BTreeMap<Role, RoleUse>,
    /// Mean use of each CPU in the window.
    pub cpus: Vec<CpuUse>,
    /// What the kernel counted in the window: numbers of events, seconds of times (`NAME_s`), means of what comes and
    /// goes. What is not there was 0, or is in [`Trial::left_out`].
    pub totals: BySubject,
    /// What the measuring itself cost.
    pub collector: CollectorUse,
    /// What could not be collected on this machine, and why.
    pub left_out: Vec<String>,
    /// Where the folded stacks of each role's CPU profile are, from the output directory on; a flame graph stands beside
    /// them (`.svg`). Empty where no profile was asked for.
    pub profiles: BTreeMap<Role, String>,
    /// Every metric this trial has.
    pub metrics: BTreeMap<String, f64>,
    /// What was full.
    pub limiter: Limiter,
    /// Whether the client was the limit: its rate and latency are then its own.
    pub client_is_limit: bool,
    /// Why the trial must not be used; empty when it may.
    pub invalid: Vec<String>,
    /// How much the rate changed from the beginning of the window to its end, as a share, when that is a trend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteady: Option<f64>,
    /// Why the numbers of the control client are its own and not the system's; empty where they may be used, and without
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_disturbed: Vec<String>,
    /// Share of a role's CPU that others used, when it was enough to spoil a comparison with a target.
    pub disturbed: Option<f64>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Trial {
    /// Whether anything was measured at all.
    pub fn ran(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// Whether its numbers may be used.
    pub fn is_valid(&self) -> bool {
        self.ran() && self.invalid.is_empty()
    }
}

/// One second of a client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// End of the second, from the start of the window.
    pub t: f64,
    /// Responses per second.
    pub rps: f64,
    /// Errors so far.
    pub errors: u64,
}

/// One second of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// End of the sample, from the start of the window.
    pub t: f64,
    /// Its length.
    pub span_s: f64,
    /// Every CPU.
    pub cpus: Vec<CpuUse>,
    /// Share of one CPU each role used.
    pub roles: BTreeMap<Role, f64>,
    /// Interfaces that carried or lost anything.
    pub interfaces: BTreeMap<String, InterfaceUse>,
    /// What else the kernel counted: events per second (`NAME_per_s`), shares of the time, what there is. What is not
    /// there was 0.
    pub counters: BySubject,
}

impl Sample {
    /// Number of the machine that it was taken on: 0 for this one, 1 and up for hosts.
    pub fn host(&self) -> usize {
        self.cpus
            .first()
            .map_or(0, |cpu| cpu.cpu / CPUS_OF_HOST_MAX)
    }
}

/// Shares of one CPU's time, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Its number.
    pub cpu: usize,
    /// User and nice.
    pub user: f64,
    /// System calls and kernel threads.
    pub system: f64,
    /// Packet processing and other deferred interrupts.
    pub softirq: f64,
    /// Interrupts.
    pub irq: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// The part of `softirq` that the kernel's own thread for it did: packets of the roles like the rest, but on no
    /// role's account.
    #[serde(skip)]
    pub ksoftirqd: f64,
}

impl CpuUse {
    /// Everything that is not idle.
    pub fn busy(&self) -> f64 {
        self.user + self.system + self.softirq + self.irq + self.steal
    }
}

/// Per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceUse {
    /// Packets received.
    pub rx_packets: f64,
    /// Packets sent.
    pub tx_packets: f64,
    /// Bytes received.
    pub rx_bytes: f64,
    /// Bytes sent.
    pub tx_bytes: f64,
    /// Packets that came damaged.
    pub rx_errors: f64,
    /// Packets that could not be sent.
    pub tx_errors: f64,
    /// Packets that came and had no room.
    pub rx_dropped: f64,
    /// Packets that had no room to be sent.
    pub tx_dropped: f64,
}

/// What a role used in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleUse {
    /// User and system time of all its processes.
    pub cpu_s: f64,
    /// The part spent in the kernel, as far as clock ticks tell.
    pub system_share: f64,
    /// Share of its CPUs.
    pub busy: f64,
    /// Per response.
    pub cpu_us_per_request: Option<f64>,
    /// Resident anonymous memory at the end.
    pub memory_bytes: u64,
    /// Time for which its threads could have run and waited for a CPU.
    pub wait_s: f64,
    /// Times that one of its threads gave up the CPU to wait for something.
    pub voluntary_switches: u64,
    /// Times that one was taken off the CPU.
    pub involuntary_switches: u64,
    /// Threads that ended in the window.
    pub threads_ended: u64,
}

/// What the measuring itself used in a window: the thread that starts the clients, waits for them and takes the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectorUse {
    /// User and system time.
    pub cpu_s: f64,
    /// Share of one CPU.
    pub cpu_share: f64,
}
