//! Result of a run, as written to `result.json` (`docs/bench-result.schema.json`).

use std::collections::BTreeMap;

use onrush_measure::compare::Rounds;
use serde::{Deserialize, Serialize};

mod latency;
mod verdicts;

pub use self::latency::{Latency, PercentileValue};
pub use self::verdicts::{Bottleneck, BottleneckKind, FigureLine, Interval, Verdict};
use crate::limits::CPUS_OF_HOST_MAX;
use crate::options::Seed;
use crate::placement::Placement;
use crate::scenario::{CountedUnit, Point, Role, title};

/// Numbers by subject and measure, such as `cpu0` and `net_rx_softirqs`. `docs/experiment.md` lists the names.
pub type BySubject = BTreeMap<String, BTreeMap<String, f64>>;

/// Version of the format; within one version keys are only added.
pub const SCHEMA: u32 = 1;

/// Result of a whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// Question that the experiment answers.
    pub about: String,
    /// Start time, UTC, RFC 3339.
    pub started: String,
    /// Duration of the run in seconds.
    pub duration_s: f64,
    /// Whether all trials were made; false after a signal or the loss of a host.
    pub complete: bool,
    /// The lost host and the reason; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Write error, if a full disk ended the run; otherwise omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_room: Option<String>,
    /// Whether it was a quick check, whose figures are not conclusive.
    pub quick: bool,
    /// Requested rounds.
    pub rounds: u32,
    /// Load before each window in seconds.
    pub warm_up_s: f64,
    /// Requested length of a window in seconds.
    pub measure_s: f64,
    /// Seed for the order of the trials.
    pub seed: Seed,
    /// The rule by which roles were pinned to CPUs.
    pub placement_rule: String,
    /// Notes on the whole run.
    pub notes: Vec<String>,
    /// Works in the order of the file.
    pub works: Vec<WorkOutcome>,
}

impl Outcome {
    /// Whether at least one figure comes from valid, undisturbed rounds.
    pub fn has_conclusive_figure(&self) -> bool {
        self.lines().any(|(_, line)| match line.verdict {
            Verdict::Reached | Verdict::Missed => true,
            Verdict::Measured => !line.is_disturbed,
            Verdict::NotMeasured | Verdict::Invalid => false,
        })
    }

    /// All lines of the results table.
    pub fn lines(&self) -> impl Iterator<Item = (&WorkOutcome, &FigureLine)> {
        self.works
            .iter()
            .flat_map(|work| work.figures.iter().map(move |line| (work, line)))
    }
}

/// Result of one work.
#[derive(Debug, Clone, Serialize)]
pub struct WorkOutcome {
    /// Name of the work.
    pub name: String,
    /// Point of a sweep; omitted without a sweep.
    #[serde(skip_serializing_if = "Point::is_empty")]
    pub point: Point,
    /// Whether its points are cumulative changes, each applied on top of the previous ones.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_road: bool,
    /// Swept parameters whose values are labels although they look like numbers.
    #[serde(skip)]
    pub labels: Vec<String>,
    /// Question that the work answers.
    pub about: String,
    /// Connections of the client.
    pub connections: u32,
    /// Variants.
    pub variants: Vec<VariantOutcome>,
    /// Lines of the results table.
    pub figures: Vec<FigureLine>,
}

impl WorkOutcome {
    /// Name and point.
    pub fn title(&self) -> String {
        title(&self.name, &self.point)
    }

    /// The variant with this name.
    pub fn variant(&self, name: &str) -> Option<&VariantOutcome> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

/// Result of one variant of a work.
#[derive(Debug, Clone, Serialize)]
pub struct VariantOutcome {
    /// Name of the variant.
    pub name: String,
    /// Whether comparisons judge this variant: its `subject` key, otherwise whether Onrush has the role under test.
    pub ours: bool,
    /// Role whose cost is measured.
    pub under_test: Role,
    /// Program of each role.
    pub programs: BTreeMap<Role, String>,
    /// Host of each role on another machine; omitted if there is none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<Role, String>,
    /// CPUs of each role.
    pub placement: Placement,
    /// Why it was not measured; omitted if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Metrics of its figures with disagreeing rounds, and their spread as a share of the median. Omitted if all agree.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disagreeing: BTreeMap<String, f64>,
    /// Median and spread of each metric over the valid rounds.
    pub metrics: BTreeMap<String, Rounds>,
    /// Trials, one per round.
    pub trials: Vec<Trial>,
}

impl VariantOutcome {
    /// The trial with the median request rate, to draw if only one is drawn.
    pub fn median_trial(&self) -> Option<&Trial> {
        let mut by_rate: Vec<_> = self
            .trials
            .iter()
            .filter(|trial| trial.has_metrics())
            .collect();
        by_rate.sort_by(|a, b| a.rps.total_cmp(&b.rps));
        by_rate.get(by_rate.len().saturating_sub(1) / 2).copied()
    }
}

/// Median and spread of each metric over the valid rounds, or over all rounds if none is valid.
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
    /// Number of the round, from 1.
    pub round: u32,
    /// Start of its window, in seconds since the start of the run.
    pub at_s: f64,
    /// Seconds from the client's start to its end.
    pub window_s: f64,
    /// Requests per second that the client was told to send.
    pub rate: Option<f64>,
    /// Length of the warm-up in seconds, if it waited for a steady rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_s: Option<f64>,
    /// Unit of `requests`, `errors` and `rps`.
    pub counted: CountedUnit,
    /// Responses counted by the client.
    pub requests: u64,
    /// Failed requests counted by the client, including statuses other than 2xx and 3xx.
    pub errors: u64,
    /// Responses per second by the client's clock.
    pub rps: f64,
    /// Bytes received per second, if the client reports them.
    pub bytes_per_s: Option<f64>,
    /// Responses by status class, `2xx` to `5xx`; empty if the client does not report them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// Latencies measured by the client.
    pub latency_us: Option<Latency>,
    /// Latencies measured by the control client.
    pub control_latency_us: Option<Latency>,
    /// The client's rows per second.
    pub seconds: Vec<Second>,
    /// The machine's rows per second.
    pub samples: Vec<Sample>,
    /// Resource use of each role in the window.
    pub roles: BTreeMap<Role, RoleUse>,
    /// Mean use of each CPU in the window.
    pub cpus: Vec<CpuUse>,
    /// Kernel counters over the window: counts of events, times in seconds (`NAME_s`), means of gauges. Missing ones
    /// were 0, or are in [`Trial::left_out`].
    pub totals: BySubject,
    /// Resource use of bench itself.
    pub collector: CollectorUse,
    /// Counters that this machine lacks, with reasons.
    pub left_out: Vec<String>,
    /// Paths of each role's folded CPU profile, relative to the output directory; a flame graph has the same name with
    /// `.svg`. Empty without profiles.
    pub profiles: BTreeMap<Role, String>,
    /// All metrics of the trial.
    pub metrics: BTreeMap<String, f64>,
    /// The bottleneck.
    pub limiter: Bottleneck,
    /// Whether the client was the bottleneck; rate and latency then describe the client.
    pub client_is_limit: bool,
    /// Why the trial is invalid; empty if it is valid.
    pub invalid: Vec<String>,
    /// Relative change of the rate over the window, if there is a trend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteady: Option<f64>,
    /// Why the control client's figures describe itself rather than the system; empty if they are usable, and without a
    /// control client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_disturbed: Vec<String>,
    /// Share of a role's CPU used by other programs, if it is enough to distort a comparison with a target.
    pub disturbed: Option<f64>,
    /// Notes on the trial.
    pub notes: Vec<String>,
}

impl Trial {
    /// Whether anything was measured.
    pub fn has_metrics(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// Whether its figures are usable.
    pub fn is_valid(&self) -> bool {
        self.has_metrics() && self.invalid.is_empty()
    }
}

/// One row of a client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// End of the second, in seconds since the start of the window.
    pub t: f64,
    /// Responses per second.
    pub rps: f64,
    /// Total errors so far.
    pub errors: u64,
}

/// One row of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// End of the sample, in seconds since the start of the window.
    pub t: f64,
    /// Length of the sample in seconds.
    pub span_s: f64,
    /// Use of each CPU.
    pub cpus: Vec<CpuUse>,
    /// CPU time of each role as a share of one CPU.
    pub roles: BTreeMap<Role, f64>,
    /// Interfaces with traffic or losses.
    pub interfaces: BTreeMap<String, InterfaceUse>,
    /// Other kernel counters: events per second (`NAME_per_s`), shares of time, gauges. Missing ones were 0.
    pub counters: BySubject,
}

impl Sample {
    /// Machine of the sample: 0 is the local one, 1 and above are hosts.
    pub fn host(&self) -> usize {
        self.cpus
            .first()
            .map_or(0, |cpu| cpu.cpu / CPUS_OF_HOST_MAX)
    }
}

/// Use of one CPU as shares of its time, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Number of the CPU.
    pub cpu: usize,
    /// User and nice time.
    pub user: f64,
    /// System calls and kernel threads.
    pub system: f64,
    /// Packet processing and other deferred interrupts.
    pub softirq: f64,
    /// Interrupts.
    pub irq: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// The part of `softirq` in the kernel's ksoftirqd thread: it processes packets of the roles, but is not charged to
    /// any role.
    #[serde(skip)]
    pub ksoftirqd: f64,
}

impl CpuUse {
    /// Sum of all shares but idle.
    pub fn busy(&self) -> f64 {
        self.user + self.system + self.softirq + self.irq + self.steal
    }
}

/// Rates of an interface per second.
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
    /// Packets received with errors.
    pub rx_errors: f64,
    /// Packets not sent because of errors.
    pub tx_errors: f64,
    /// Packets dropped on receive.
    pub rx_dropped: f64,
    /// Packets dropped on send.
    pub tx_dropped: f64,
}

/// Resource use of a role in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleUse {
    /// User and system time of all its processes in seconds.
    pub cpu_s: f64,
    /// Share of kernel time, with the precision of clock ticks.
    pub system_share: f64,
    /// Use of its CPUs as a share.
    pub busy: f64,
    /// CPU time per response in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Resident anonymous memory at the end of the window.
    pub memory_bytes: u64,
    /// Time of its threads in the run queue, in seconds.
    pub wait_s: f64,
    /// Voluntary context switches of its threads.
    pub voluntary_switches: u64,
    /// Involuntary context switches of its threads.
    pub involuntary_switches: u64,
    /// Threads that ended in the window.
    pub threads_ended: u64,
}

/// Resource use of the bench thread that starts clients, waits for them and takes samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectorUse {
    /// User and system time in seconds.
    pub cpu_s: f64,
    /// Share of one CPU.
    pub cpu_share: f64,
}
